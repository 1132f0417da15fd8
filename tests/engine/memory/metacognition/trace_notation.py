"""Labelled traces of agents: a notation for what they did, folded as the journal's events are.

A line is an action: `6* @4 ~30 [r] COMMAND ARGUMENTS => ANSWER TEXT`. It is done six times, each four
seconds after the one before, takes thirty, and is a retry of recovery; all four may be left out. `{i}` counts
the times. `3*(` to `)` repeats lines. The answer is `ok`, `fail` (a program's exit status) or an error code.
Lines with `!`: `plan` (from here on all is of one plan), `goal` (the operator changes it), `guidance`,
`job ID LINE`, `end ID HOW`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, Reversibility, SandboxSession
from engine.core.agents import AgentConfig
from engine.core.fold import apply
from engine.core.journal import Event
from engine.core.plan import PlanStep
from engine.core.state import AgentState
from engine.tools.simple_coder_commands import COMMANDS

TRACES = Path(__file__).parent / "stuck_traces"
THINKS_S = (2.1, 6.4, 3.3, 8.9, 4.2, 12.7, 2.8, 5.5)
"""How long a model thinks before an action, unless the trace says so."""
_ACTION = re.compile(
    r"(?:@(?P<gap>\S+) )?(?:~(?P<took>\S+) )?(?P<again>\[r\] )?(?P<call>.*?) => (?P<answer>\S+) ?(?P<text>.*)"
)


@dataclass(frozen=True, slots=True)
class Trace:
    name: str
    stuck: bool
    kind: str
    why: str
    held_out: bool
    begins: int
    """The action, from 1, at which the loop begins."""
    period: int
    text: str


def traces() -> list[Trace]:
    found = []
    for name, stuck in (("stuck", True), ("honest", False)):
        for one in tomllib.loads((TRACES / f"{name}.toml").read_text(encoding="utf-8"))["trace"]:
            found.append(
                Trace(
                    one["name"], stuck, one.get("kind", ""), one["why"], one.get("held_out", False),
                    one.get("from", 0), one.get("period", 1), one["text"],
                )
            )  # fmt: skip
    return found


def lines_of(text: str) -> Iterator[str]:
    """The lines with everything that is repeated written out."""
    lines = iter(text.strip().splitlines())
    for line in lines:
        times, head = re.match(r"(?:(\d+)\*)? ?(.*)", line).groups()  # type: ignore[union-attr]
        body = [head]
        if head == "(":
            body = []
            while (inner := next(lines)) != ")":
                body.append(inner)
        for number in range(1, int(times or 1) + 1):
            yield from (one.replace("{i}", str(number)) for one in body)


class Telling:
    """Folds a trace's events, as an agent that decides on one action after the other has them."""

    def __init__(self) -> None:
        self.state = AgentState()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.ended = self.now
        self.actions = 0
        self._planned = False
        self._step = ""
        self._revisions = 0
        self._add(ev.AgentCreated(agent_id="pilot", agent_type="bdi_agent", config=AgentConfig()))
        self._add(ev.GoalAdopted(goal="g1", text="work"), "operator:o")
        self._add(ev.GoalSelected(goal="g1"))

    def _add(self, payload: ev.Payload, actor: str = "agent") -> None:
        at = self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        version = self.state.version + 1
        event = Event("pilot", version, at, 0, actor, (), payload.kind, payload.body(), f"h{version}")
        apply(self.state, event, payload)

    def tell(self, line: str) -> bool:
        """Take in a line; whether it was an action."""
        if line.startswith("! "):
            self._say(*line[2:].partition(" ")[::2])
            return False
        match = _ACTION.fullmatch(line)
        assert match is not None, f"no such notation: {line}"
        thinks = THINKS_S[self.actions % len(THINKS_S)] + self.actions % 3
        self.now += timedelta(seconds=float(match["gap"] or thinks))
        self._act(
            match["call"],
            match["answer"],
            match["text"].replace("\\n", "\n"),
            float(match["took"] or 0.2),
            bool(match["again"]),
        )
        self.ended = self.now
        return True

    def _say(self, what: str, rest: str) -> None:
        ident, _, more = rest.partition(" ")
        match what:
            case "plan":
                self._planned = True
            case "goal":
                self._add(
                    ev.GoalChanged(goal="g1", text=f"other work {self.actions}", priority=0), "operator:o"
                )
            case "guidance":
                self._add(ev.GuidanceGiven(text="think"), "operator:o")
            case "job":
                self._add(ev.JobStarted(job=ident, command=more, action=f"a{self.actions}"))
            case "end":
                self._add(ev.JobEnded(job=ident, ended=more))
            case _:
                raise AssertionError(what)

    def _act(self, call: str, answer: str, text: str, took_s: float, again: bool) -> None:
        self.actions += 1
        tool, command, args = _call(call)
        if not again:
            self._decide(tool, command, args)
        name = f"a{self.actions}"
        self._add(
            ev.ActionRequested(action=name, step=self._step, goal="g1", tool=tool, command=command, args=args)
        )
        spec = COMMANDS.get(command)
        self._add(ev.ActionStarted(action=name, undo=Reversibility.NONE, mutates=bool(spec and spec.mutates)))
        self.now += timedelta(seconds=took_s)
        self._add(_finished(name, command, args, answer, text, took_s))

    def _decide(self, tool: str, command: str, args: dict[str, Any]) -> None:
        self._step = f"s{self.actions}"
        step = PlanStep(self._step, command, tool=tool, command=command, args=args)
        plan = self.state.plans.get("g1")
        if plan is None:
            self._add(ev.PlanAdopted(plan="p1", goal="g1", steps=(step,)))
        elif not self._planned:
            self._add(ev.PlanRevised(plan="p1", goal="g1", change="decided", steps=(*plan.steps, step)))
        else:
            # The plan had the step all the time: what is compared is its revision.
            self.state.plans["g1"] = type(plan)(
                plan.id, plan.goal, plan.revision, (*plan.steps, step), plan.event
            )


def _call(call: str) -> tuple[str, str, dict[str, Any]]:
    command, _, rest = call.partition(" ")
    first, _, more = rest.partition(" ")
    match command:
        case "memory":
            return "memory", first, {"query": more}
        case "run" | "start":
            return "simple_coder", command, {"command": rest}
        case "write" | "append":
            return "simple_coder", command, {"path": first, "content": more}
        case "replace":
            old, _, new = more.partition("|")
            return "simple_coder", command, {"path": first, "old": old, "new": new}
        case "find":
            return "simple_coder", command, {"pattern": rest}
        case "wait_job" | "job_output" | "jobs":
            return "simple_coder", command, {"job": rest}
        case "read":
            return "simple_coder", command, {"path": first, "offset": more}
        case "move" | "copy":
            return "simple_coder", command, {"source": first, "target": more}
    return "simple_coder", command, {"path": rest}


def _finished(
    name: str, command: str, args: dict[str, Any], answer: str, text: str, took_s: float
) -> ev.ActionFinished:
    code = None if answer == "ok" else ErrorCode("exit_status" if answer == "fail" else answer)
    runs = command == "run"
    said: dict[str, Any] = (
        {"return_code": int(code is not None), "stdout": "", "stderr": text} if runs else {"message": text}
    )
    if runs and code is None:
        said = {"return_code": 0, "stdout": text, "stderr": ""}
    session = SandboxSession(cwd=str(args["path"])) if command == "cd" else None
    status = ResultStatus.SUCCESS if code is None else ResultStatus.FAILURE if runs else ResultStatus.ERROR
    return ev.ActionFinished(
        action=name, status=status, code=code, result=said, session=session, duration_ms=round(took_s * 1000)
    )
