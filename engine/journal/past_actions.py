"""What is remembered of an action of an agent's own that has ended; part of the fold.

Enough to tell later whether the agent goes in a circle or waits for something that may still come (spec
steering §4 T17, T25).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engine.domain.metacognition import ActionSort, PastAction
from engine.domain.state import ActiveAction, AgentState
from engine.journal import events as ev
from engine.journal.answers import answer_digest, digest, error_words
from engine.journal.event import Event

POLLS = frozenset({"wait_job", "jobs", "job_output"})
"""Commands that look after a background job."""
TELLING = ("path", "source", "command", "job", "query", "content")
"""Arguments that say most about a call, the best first."""
_RUNS = frozenset({"run", "start", "stop_job"})
"""Commands of the sandbox tool that may change files and are not edits of one."""
_PAUSE = re.compile(r"^(?:timeout \S+ )?(?:sleep|usleep|wait)\b|\btime\.sleep\(|\bStart-Sleep\b")
_OUTSIDE = re.compile(
    r"^(?:gh|glab|kubectl|docker|podman|aws|gcloud|az|ssh|squeue|sacct|qstat|systemctl|pgrep|ps|ss|netstat|lsof"
    r"|ping|dig|nslookup|host)\b|^git (?:fetch|ls-remote|pull)\b"
)
"""Programs that look at something which changes without the agent."""
_ADDRESS = re.compile(r"\bhttps?://([\w.-]+|\[::1\])|^(?:nc|telnet)(?: -\S+)* ([\w.-]+)")
_HERE = re.compile(r"localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]")
_LOOKS = re.compile(
    r"^(?:cat|head|tail|ls|stat|test|grep|egrep|rg|wc|find|file|du|df|diff|cmp|tree|which|curl|wget|nc|telnet"
    r"|date|id|env|pwd)\b|^git (?:status|log|diff|show|branch|ls-files|grep|blame)\b"
)
"""Programs that change nothing here."""


def past_action(state: AgentState, action: ActiveAction, said: ev.ActionFinished, event: Event) -> PastAction:
    """What the window remembers of an action.

    Args:
        state: the agent's state, with the action still in it.
        action: the action.
        said: how it ended.
        event: the event that says so.
    """
    code = said.code.value if said.code else ""
    telling = next((action.args[name] for name in TELLING if name in action.args), "")
    first = str(telling or next((action.args[name] for name in sorted(action.args)), ""))[:200]
    line = _command_line(action.args)
    found = state.find_step(action.step)
    plan, step = found if found is not None else (None, None)
    return PastAction(
        call=f"{action.tool}.{action.command}",
        digest=digest([state.sandbox.cwd, action.args]),
        subject=f"{action.command} {' '.join(first.split())}"[:80].strip(),
        ok=not code,
        code=code,
        duration_ms=said.duration_ms,
        polls=action.command in POLLS,
        sort=_sort(action, line),
        answer=answer_digest({"blob": said.blob} if said.blob else said.result, ok=not code),
        error=error_words(code, said.result) if code else "",
        may_change=_may_change(state, line),
        gap_ms=_between(state.meta.acted_at, action.at),
        decided=f"{plan.id}.{plan.revision}" if plan is not None else "",
        again=step is not None and step.attempts > 1,
        phase=state.meta.phase,
    )


def _command_line(args: Mapping[str, Any]) -> str:
    """The program that a call runs, with its arguments; empty where it runs none."""
    command = args.get("command")
    return " ".join(map(str, command)) if isinstance(command, list) else str(command or "")


def _sort(action: ActiveAction, line: str) -> ActionSort:
    if action.command == "wait_job" or (action.command == "run" and _PAUSE.search(line)):
        return ActionSort.PAUSE
    if action.command in _RUNS:
        looks = _LOOKS.search(line) or _OUTSIDE.search(line) or _ADDRESS.search(line)
        return ActionSort.LOOK if looks else ActionSort.RUN
    return ActionSort.EDIT if action.mutates else ActionSort.LOOK


def _may_change(state: AgentState, line: str) -> bool | None:
    """Whether something that a call looks at can change without the agent; None where that is not known."""
    jobs = state.running_jobs
    address = _ADDRESS.search(line)
    elsewhere = address is not None and not _HERE.fullmatch(address[1] or address[2])
    if jobs or elsewhere or _OUTSIDE.search(line):
        return True
    # What a job was to bring does not come any more once all of them have ended.
    return False if state.jobs else None


def _between(ended: str, begun: str) -> int:
    """Milliseconds from an action's end to the next one's start; 0 where that is not known."""
    try:
        passed = datetime.fromisoformat(begun) - datetime.fromisoformat(ended)
    except ValueError:
        return 0
    return max(0, round(passed.total_seconds() * 1000))
