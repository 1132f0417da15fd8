"""`pilothouse do`: one line of the command bar, without a screen."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import traceback
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from inspect import isawaitable
from itertools import count
from pathlib import Path
from typing import Any

from app.commands.breakpoints import stop_answer
from app.commands.command import (
    Answer,
    CommandHost,
    Context,
    GrammarError,
    Request,
    ServerFacts,
    Submit,
    Values,
    late,
)
from app.commands.headless import EXIT_CODES, Serving, Status, open_engine, rest_status
from app.commands.missions import AgentFaultError, is_idle, wait_until
from app.commands.preview import default_preview, refused_preview
from app.commands.registry import (
    as_command,
    command_of,
    is_improvement_request,
    needed_state,
    preview_asked,
    read_line,
)
from app.commands.settings import load_and_say
from app.commands.user import chosen_operator
from app.projection.event_lines import ending_jobs_text
from app.projection.improve_text import Preview as Preview
from engine.agent.steering.gate import may_think
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core.actions import ActionFinished
from engine.core.agents import Mode
from engine.core.campaigns import ForMastermind, StartJob
from engine.core.crew_commands import ForCrew
from engine.core.journal import JournalError
from engine.core.metacognition import JobOutcome, MetaTask
from engine.core.secrets import without_secrets
from engine.core.state import AgentState
from engine.core.store.port import DATA_DIRECTORY
from engine.core.text import clean, clean_line
from engine.planning.library.missions import mission_names
from engine.planning.thinkers.procedural import ProceduralThinker
from engine.sandbox.policy import Tier
from engine.value import dataclass, field, replace

ACTS_ALONE = (cmd.Run, cmd.Step)
"""Commands after which the agent acts, which it does not without the jail that its policy requires."""
LETS_ACT = (*ACTS_ALONE, cmd.CallTool)
"""Commands after which `do` waits until the agent rests."""
LETS_PLAN = (cmd.AdoptGoal, cmd.ChangeGoal)
"""Commands after which `do` waits until there is a plan to look at, or a question about it."""


FAULT_LOG = "faults.log"
FAULT_LOG_BYTES = 1_048_576
"""From which size on the log is begun anew; the one before is kept as `faults.log.1`."""


def log_fault(workspace: Path, error: BaseException) -> str:
    """Put a fault into the workspace's log; what is said of it, in a line that names its id."""
    ident = f"e{secrets.token_hex(3)}"
    path = workspace / DATA_DIRECTORY / FAULT_LOG
    with suppress(OSError):
        if path.exists() and path.stat().st_size > FAULT_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        text = f"--- {ident}\n{without_secrets(''.join(traceback.format_exception(error)))}\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    message = clean_line(without_secrets(f"{type(error).__name__}: {error}"), limit=300)
    return f"{message} (error {ident}; {FAULT_LOG} has the rest)"


async def run_command(
    workspace: Path,
    line: str,
    *,
    agent: str = "",
    accept: Tier | None = None,
    dry: bool = False,
    quiet: bool = False,
    trust: str = "",
    serving: Serving = nullcontext,
) -> Answer:
    """Carry out one line; exit code 0 when done, 1 when refused or failed, 2 when not understood.

    3 means that the operator is needed. As for `run`, 70 means that the agent ended by a fault, 78 that there
    is no jail to let it act in.

    Args:
        workspace: where.
        line: as typed in the command bar; with ` ?` behind it only what it would do is shown.
        agent: for whom it is meant; empty for the first one.
        accept: the weakest jail that is accepted.
        dry: show only what it would do.
        quiet: show no progress on standard error.
        trust: the digest of what is in the folder, to be trusted from now on.
        serving: what serves the engine meanwhile.

    Raises:
        JournalError: the workspace cannot be opened.
    """
    bare = preview_asked(line)
    asked = line if bare is None else bare
    try:
        command_of(asked)
    except GrammarError as error:
        # A slip of the finger makes no workspace.
        return 2, {}, str(error)
    try:
        config = load_and_say(workspace, trust=trust).engine_config(accept=accept)
        async with open_engine(workspace, config, serving) as engine:
            by = chosen_operator() or "cli"
            return await run_line(engine, line, agent=agent, dry=dry, quiet=quiet, operator=by)
    except JournalError:
        raise
    except Exception as error:  # noqa: BLE001 - it is shown under the id that the fault's log has
        return _refused(Status.FAULT, log_fault(workspace, error))


async def run_line(
    engine: WorkspaceEngine, line: str, *, agent: str, dry: bool, quiet: bool, **more: Any
) -> Answer:
    """Carry out one line in an open workspace, or show what it would do where ` ?` is behind it.

    Args and errors as `run_command_in` has them.
    """
    bare = preview_asked(line)
    line, dry = (bare, True) if bare is not None else (line, dry)
    return await run_command_in(engine, line, agent=agent, dry=dry, quiet=quiet, **more)


async def run_command_in(
    engine: WorkspaceEngine,
    line: str,
    *,
    agent: str = "",
    dry: bool = False,
    quiet: bool = False,
    operator: str = "cli",
    key: str = "",
    here: Path = Path(),
    lasts: bool = False,
) -> Answer:
    """Carry out one line in an open workspace; see `run_command`.

    Args:
        engine: the open workspace.
        line: as typed in the command bar.
        agent: for whom it is meant; empty for the first one.
        dry: show only what it would do.
        quiet: show no progress on standard error.
        operator: in whose name commands are sent.
        key: with one each command of the line is carried out once, however often the line comes.
        here: from where paths in the line lead.
        lasts: whether the engine goes on behind the line.
    """
    chosen = agent or (engine.agents[0] if engine.agents else "")
    if agent and agent not in engine.agents:
        return 2, {}, f"there is no agent '{agent}'; agents: {', '.join(engine.agents) or 'none yet'}"
    context = context_of(engine, chosen, await engine.view(chosen) if chosen else None, here)
    improves = is_improvement_request(line)
    context = await with_needed_state(engine, line, context)
    host = HeadlessHost(engine, context, quiet, operator, key=key, lasts=lasts)
    if dry or improves:
        preview = await preview_line(host, line)
        return preview_answer(preview) if dry else _not_done(preview)
    try:
        request = read_line(line, context)
        if (ask := request.command.asks_first) is not None and not request.values.get("yes"):
            code, answer, text = await run_request(host, replace(request, run=ask, sends=None))
            return code or EXIT_CODES[Status.NEEDS_OPERATOR], answer, text
        return await run_request(host, request)
    except GrammarError as error:
        return 2, {}, str(error)
    except AgentFaultError as error:
        return _refused(Status.FAULT, str(error))


async def run_request(host: CommandHost, request: Request) -> Answer:
    """Carry out a line that was understood.

    Raises:
        GrammarError: what it names does not exist.
    """
    answer = begin_request(host, request)
    given = (await answer if isawaitable(answer) else answer) or (0, {"ok": True, "message": ""}, "")
    return given[0], {"changed": request.changes and not given[0], **given[1]}, given[2]


def begin_request(host: CommandHost, request: Request) -> Awaitable[Answer | None] | Answer | None:
    """Carry out a line as far as that can be done at once; see `run_request`."""
    if isinstance(request.run, Submit) and request.sends is not None:
        return request.run.send(host, request.sends)
    if request.command.in_engine and host.engine.link:
        return host.engine.line(request.line, request.context.agent)
    return request.run(host, request.values)


async def preview_line(host: CommandHost, line: str) -> Preview:
    """What a line would do; nothing is changed.

    Args:
        host: against whose workspace it is understood.
        line: without the `?` behind it.
    """
    try:
        return await preview_request(host, read_line(line, host.context))
    except GrammarError as error:
        return refused_preview(as_command(line), str(error))


def with_component(request: Request, component: str) -> Request:
    """The request for the component that the operator chose, where several may be meant."""
    if not component or not isinstance(request.sends, StartJob):
        return request
    return replace(request, sends=request.sends.model_copy(update={"component": component}))


def preview_answer(preview: Preview) -> Answer:
    """A preview as an answer; exit code 2 where it would be refused, 3 where it has several meanings."""
    code = 2 if preview.wrong else 3 if preview.choices else 0
    return code, preview.as_json(), preview.text() if not preview.wrong else preview.wrong


def _not_done(preview: Preview) -> Answer:
    """A request for an improvement is shown as it is understood, for the operator to enter it."""
    code, answer, text = preview_answer(preview)
    if code == 2:
        return code, answer, text
    first = preview.line.split()[1]
    message = f"'{first}' is no command; what was understood is not done before you enter it"
    return 3, {**answer, "ok": False, "message": message}, f"{text}\n{message}"


def _refused(status: Status, message: str) -> Answer:
    return EXIT_CODES[status], {"ok": False, "status": status.value, "message": message}, message


def _result_text(result: Mapping[str, Any]) -> str:
    """What a call returned beyond its summary, for whoever has no screen."""
    text = result.get("content", result.get("stdout"))
    if text is None:
        text = "\n".join(map(str, result.get("items", ())))
    return clean(str(text)).strip("\n")


# ------------------------------------------------------------------ what lines are understood against


def context_of(engine: WorkspaceEngine, agent: str, state: AgentState | None, here: Path = Path()) -> Context:
    """What a line is understood against in this workspace."""
    return Context(
        agent=agent,
        state=state,
        agents=engine.agents,
        missions=lambda: mission_names(engine.workspace),
        examples=lambda: engine.examples,
        spec_of=partial(engine.registry.spec, "simple_coder"),
        servers=_servers_of(engine),
        here=engine.here / here,
    )


async def with_needed_state(engine: WorkspaceEngine, line: str, context: Context) -> Context:
    """The context with what the crew or Mastermind knows, where the line is read against it."""
    match needed_state(line):
        case "improve" if context.mastermind is None:
            return replace(context, mastermind=(await engine.mastermind()).state)
        case "crew" if context.crew is None:
            return replace(context, crew=(await engine.crew()).state)
    return context


def _servers_of(engine: WorkspaceEngine) -> dict[str, ServerFacts]:
    """The servers of the workspace's own `mcp.json`."""
    if engine.servers is None:
        return {}
    states = {view.name: view.state.value for view in engine.servers.views}
    return {
        entry.server: ServerFacts(f"{states[entry.server]}: {entry.line}", entry.facts, entry.waits)
        for entry in engine.servers.entries
    }


# ------------------------------------------------------------------ the host


@dataclass(frozen=True, slots=True)
class HeadlessHost:
    """Carries commands out without a screen, and waits for their results."""

    engine: WorkspaceEngine
    context: Context
    quiet: bool = False
    operator: str = "cli"
    key: str = ""
    """Makes the ids of the commands; empty where they need none."""
    numbers: Iterator[int] = field(default_factory=count)
    lasts: bool = False
    """Whether the engine goes on behind the line."""

    def say(self, text: str) -> None:
        """Nothing is shown before the answer."""

    def view(self, name: str, /, **arguments: object) -> bool:
        """There is no screen."""
        return False

    async def submit(self, command: cmd.Command) -> Answer:
        """Send a command, and wait until what it begins has ended or needs the operator."""
        answer: Answer
        if self.key:
            submission = f"{self.key}.{next(self.numbers)}"
            command = command.model_copy(update={"submission": submission})
        if isinstance(command, ForMastermind):
            answer = await late("improve_runner:run_without_screen")(
                self.engine, command, self.quiet, self.operator
            )
        elif isinstance(command, ForCrew):
            answer = await late("crew_runner:run_crew_command")(self.engine, command, self.operator)
        else:
            answer = await self._submit_to_agent(command)
        return answer

    async def _submit_to_agent(self, command: cmd.Command) -> Answer:
        engine = self.engine
        if isinstance(command, cmd.AcceptTier | cmd.GrantNetwork) and not self.lasts:
            option = "--accept-tier" if isinstance(command, cmd.AcceptTier) else "--network"
            return 2, {}, f"what is accepted ends with this line; give it the option {option} instead"
        if fault := engine.fault(command.agent):
            return _refused(Status.FAULT, fault)
        if isinstance(command, ACTS_ALONE) and (refusal := engine.sandbox(command.agent).refusal):
            return _refused(Status.NO_JAIL, refusal)
        waits = isinstance(command, (*LETS_ACT, *LETS_PLAN)) and command.agent in engine.agents
        since, before = await engine.head(), await engine.view(command.agent) if waits else None
        receipt = await engine.submit(command, operator=self.operator)
        answer: dict[str, Any] = {"ok": receipt.ok, "message": receipt.message, "event": receipt.event}
        answer["changed"] = receipt.ok and bool(receipt.data.get("changed", True))
        if receipt.ok and isinstance(command, (*LETS_ACT, *LETS_PLAN)):
            return await self._rested(command, receipt, answer, since, before)
        if not receipt.ok and isinstance(command, ACTS_ALONE):
            status, _ = rest_status(await engine.view(command.agent), None)
            answer |= {"status": status.value} if status else {}
            return EXIT_CODES[status] if status else 1, answer, receipt.message
        if receipt.ok and isinstance(command, cmd.Stop):
            stopped, text = await stop_answer(engine, receipt.data, receipt.message)
            return 0, {**answer, **stopped}, text
        if receipt.ok and isinstance(command, cmd.ForceMeta):
            return await self._task_ended(command, receipt)
        return int(not receipt.ok), answer, receipt.message

    async def _rested(
        self, command: cmd.Command, receipt: cmd.Receipt, answer: dict[str, Any], since: int,
        before: AgentState | None,
    ) -> Answer:  # fmt: skip
        """Wait until the agent rests, or has a plan."""
        acts = isinstance(command, LETS_ACT)
        state = await wait_until(self.engine, command.agent, is_idle if acts else has_next_step)
        answer |= {
            "mode": state.mode.value,
            "summary": state.last_summary,
            "events": await self.engine.head() - since,
        }
        result = state.last_summary
        if not acts:
            newest = max(state.goals.values(), key=lambda goal: goal.order).id if state.goals else ""
            plan = state.plans.get(command.goal if isinstance(command, cmd.ChangeGoal) else newest)
            steps = len(plan.steps) if plan is not None else 0
            result = f"{steps} step{'s' * (steps != 1)} planned" if plan else "it plans once it runs"
        status, why = rest_status(state, before if not isinstance(command, ACTS_ALONE) else None)
        returned = ""
        if status is None and isinstance(command, cmd.CallTool):
            events = await self.engine.store.last(1, command.agent, kind=ActionFinished.kind)
            for ended in (json.loads(event.body) for event in events if event.seq > since):
                status = Status.FAILED if ended.get("code") else None
                answer["result"] = ended["result"]
                returned = "" if status else _result_text(ended["result"])
                result = "" if returned else result
        elif status is None:
            were_open = {goal.id for goal in before.open_goals} if before is not None else set()
            lost = [g for g in state.goals.values() if g.id in were_open and g.ending[0] == "failed"]
            status = Status.FAILED if lost else None
            why = "; ".join(f"{goal.id} failed: {goal.reason}" for goal in lost)
        if status is not None:
            answer |= {"ok": False, "status": status.value, "reason": why}
        done = "" if status and isinstance(command, cmd.Run) else receipt.message
        parts = (done, state.mode, why or result, ending_jobs_text(state.running_jobs))
        text = " · ".join(part for part in parts if part)
        return EXIT_CODES[status] if status else 0, answer, "\n".join(filter(None, (text, returned)))

    async def _task_ended(self, command: cmd.ForceMeta, receipt: cmd.Receipt) -> Answer:
        """Wait until a background task is over, as it would be cut off with the session."""
        task = MetaTask(command.task)
        state = await wait_until(
            self.engine,
            command.agent,
            lambda now: task not in now.meta.forced and now.meta.doing(task) is None,
        )
        ended = next((each for each in reversed(state.meta.ended) if each.job.task is task), None)
        if ended is None:
            return 0, {"ok": True, "message": receipt.message, "event": receipt.event}, receipt.message
        done = ended.outcome is JobOutcome.DONE
        answer = {"ok": done, "message": ended.message, "event": ended.event, "outcome": ended.outcome.value}
        return int(not done), answer, ended.message


def has_next_step(state: AgentState) -> bool:
    """True when the agent has a step to take, asks, or may not plan now."""
    waits = not may_think(state, free=state.config.thinker == ProceduralThinker.name)
    poised = state.reasons and state.mind is not None and (state.mind.poised or state.mind.idle)
    return waits or not state.open_goals or state.step is not None or poised


def can_step(state: AgentState) -> bool:
    """Whether an agent takes part when all are stepped: it is paused and has something to do."""
    free = state.intervention is None and state.handover is None
    return state.mode in (Mode.PAUSED, Mode.TIMED_OUT) and free and state.has_work


async def step_all(host: CommandHost, values: Values) -> Answer:
    """Step every paused agent, at once, and wait until all of them rest."""
    engine, scope = host.engine, values["scope"] or "step"
    waiting = [name for name in engine.agents if can_step(await engine.view(name))]
    steps = (cmd.Step.model_validate({"agent": name, "scope": scope}) for name in waiting)
    answers = await asyncio.gather(*(host.submit(step) for step in steps))
    lines = [f"{name}: {text}" for name, (_, _, text) in zip(waiting, answers, strict=True)]
    rows = [{"agent": name, **row} for name, (_, row, _) in zip(waiting, answers, strict=True)]
    code = max((code for code, _, _ in answers), default=0)
    return code, {"agents": rows}, "\n".join(lines) or "no agent is paused with something to do"


async def preview_request(host: CommandHost, request: Request) -> Preview:
    """What an understood line would do; nothing is changed."""
    if request.command.in_engine and host.engine.link and request.sends is None:
        _, given, text = await host.engine.line(request.line, request.context.agent, dry=True)
        if given.get("wrong") or "does" not in given:
            return refused_preview(request.line, str(given.get("wrong") or text))
        return Preview(request.line, given["does"], tuple((name, value) for name, value in given["facts"]))
    of_crew = late("crew_runner:preview_crew") if isinstance(request.sends, ForCrew) else default_preview
    return await (request.command.preview or of_crew)(host, request)
