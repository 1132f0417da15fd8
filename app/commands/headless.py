"""Running agents without a screen: one goal from beginning to end, or one command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from pydantic import ValidationError

from app.commands.breakpoints import break_command
from app.commands.command import Context, GrammarError
from app.commands.goal_engine import GoalEngine
from app.commands.missions import AgentFaultError, install_mission, is_idle, mission_agent, wait_until
from app.commands.settings import MODELS, load_and_say, untrusted_line
from app.commands.watchdog import LoopWatch, ending_on
from app.projection.event_lines import budget_hold_text, ending_jobs_text, line_of
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import LOOPS_OVER, RunState
from engine.core.goals import GoalStatus
from engine.core.journal import Event
from engine.core.reasons import Reason
from engine.core.recovery import FailureKind
from engine.core.state import AgentState
from engine.core.text import clean_line, first_problem
from engine.core.thinking import FAILED_PLANNING
from engine.inquiry.inbox import asked_of
from engine.models.choice import ModelChoice
from engine.planning.library.missions import Mission
from engine.sandbox.policy import Tier
from engine.value import dataclass

DEFAULT_AGENT = "pilot-1"


class Status(StrEnum):
    """How a headless run ended."""

    GOAL_ACHIEVED = "GOAL_ACHIEVED"
    FAILED = "FAILED"
    NEEDS_OPERATOR = "NEEDS_OPERATOR"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    TIMED_OUT = "TIMED_OUT"
    INTERRUPTED = "INTERRUPTED"
    FAULT = "FAULT"
    """The agent ended by a fault of the program, or could not be opened."""
    NO_JAIL = "NO_JAIL"
    """The jail that the policy requires cannot be had here; nothing ran."""


EXIT_CODES = {
    Status.GOAL_ACHIEVED: 0,
    Status.FAILED: 1,
    Status.NEEDS_OPERATOR: 3,
    Status.BUDGET_EXCEEDED: 4,
    Status.TIMED_OUT: 5,
    Status.INTERRUPTED: 130,
    Status.FAULT: 70,
    Status.NO_JAIL: 78,
}
"""70 and 78 are EX_SOFTWARE and EX_CONFIG of sysexits.h."""


_HELD = ("run.breakpoint", "run.stuck", "run.reviewer")


def rest_status(state: AgentState, before: AgentState | None) -> tuple[Status | None, str]:
    """Why an agent that rests does not go on by itself, and in words; nothing where it has done all.

    Args:
        state: the agent's.
        before: its state before the command; only what came since counts. None where it was to act, so that
            all that holds it does.
    """
    if (need := next(asked_of(state), None)) is not None and (before is None or need not in asked_of(before)):
        return Status.NEEDS_OPERATOR, f"it needs you: {need.what}; inbox says more"
    if before is not None and before.run_event == state.run_event:
        return None, ""
    if state.held_by is not None:
        return Status.BUDGET_EXCEEDED, state.run_reason
    if state.timed_out:
        return Status.TIMED_OUT, state.run_reason
    if state.run is RunState.STOPPED and state.has_work:
        return Status.INTERRUPTED, state.run_reason
    held = state.run is RunState.PAUSED and any(map(state.run_reason.is_a, _HELD))
    return (Status.NEEDS_OPERATOR, state.run_reason) if held else (None, "")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run and how."""

    workspace: Path
    goal: str = ""
    mission: Mission | None = None
    agent: str = DEFAULT_AGENT
    max_loops: int | None = None
    ask: bool = True
    thinker: str = ""
    """Who plans for an agent that is created; empty for the usual one."""
    style: str = ""
    """Whether it plans or decides; empty for the usual one."""
    step: bool = False
    """Wait for Enter before each action."""
    timeout_s: float | None = None
    events: bool = False
    """Print every event as one JSON line to standard output."""
    quiet: bool = False
    budget_usd: float | None = None
    budget_tokens: int | None = None
    budget_actions: int | None = None
    budget_seconds: float | None = None
    """What the agent may take over all its sessions; what is not given the settings say."""
    approve: tuple[str, ...] = ()
    """Rules of calls that may run unasked, until the run has ended."""
    breaks: tuple[str, ...] = ()
    """Breakpoints to set before it runs, as in the command bar; the run ends where one holds it."""
    accept: Tier | None = None
    """The weakest jail in which programs may run; the settings say it otherwise."""
    trust: str = ""
    """The digest of what is in the folder, to be trusted from now on."""


@dataclass(slots=True)
class _End:
    status: Status
    message: str
    reason: str = ""


def _needs_operator(message: str, reason: str = "") -> _End:
    return _End(Status.NEEDS_OPERATOR, message, reason)


class Run:
    """One headless run.

    Args:
        engine: the workspace.
        options: what to run and how.
        out: where events are printed.
        err: where lines for people are printed.
        events: the agent's events from the run's beginning, where its caller follows the journal for
            several runs, shows what happens and takes signals.
    """

    def __init__(
        self,
        engine: GoalEngine,
        options: RunOptions,
        out: TextIO,
        err: TextIO,
        *,
        events: AsyncIterator[Event] | None = None,
    ) -> None:
        self._engine, self._events = engine, events
        self._options = options
        self._out, self._err = out, err
        self._goal = ""
        self._interrupted = asyncio.Event()

    async def run(self) -> dict[str, Any]:
        """Run the goal; the result is what `run --json` prints, without what is known only after closing."""
        options, engine = self._options, self._engine
        loop = asyncio.get_running_loop()
        began = loop.time()
        if refused := await self._prepare():
            return {"status": Status.FAILED.value, "message": refused, "reason": "REFUSED"}
        before = await engine.view(options.agent)
        since = await engine.head()
        if self._events is None:
            print_problems(engine, self._err)
        with on_interrupt(self.interrupt) if self._events is None else nullcontext():
            end = await self._start(before)
            if end is None:
                end = await self._follow(since)
        state = await engine.view(options.agent)
        end = self._without_leave(end, state)
        if (ending := ending_jobs_text(state.running_jobs)) and not options.quiet:
            print(ending, file=self._err, flush=True)
        goal = state.goals.get(self._goal)
        actions = state.actions - before.actions
        message = end.message
        if end.status is Status.GOAL_ACHIEVED:
            counted = f"achieved in {actions} action{'s' * (actions != 1)}"
            message = ", ".join(filter(None, (counted, goal.lacking if goal else "")))
        result: dict[str, Any] = {
            "status": end.status.value,
            "goal": goal.text if goal else options.goal,
            "session": engine.session,
            "agent": options.agent,
            "loops": state.tick - before.tick,
            "actions": actions,
            "failed_actions": state.failed_actions - before.failed_actions,
            "thinker": state.config.thinker,
            "tokens": state.tokens - before.tokens,
            "cost_usd": round(state.cost_usd - before.cost_usd, 6),
            "duration_s": round(loop.time() - began, 3),
            "message": message,
            "lacking": goal.lacking.split(", ") if goal and goal.lacking else [],
        }
        return {**result, "reason": end.reason} if end.reason else result

    def _without_leave(self, end: _End, state: AgentState) -> _End:
        """The end of a run that needed a server which waits for leave: the operator is needed."""
        if end.status not in (Status.FAILED, Status.NEEDS_OPERATOR) or self._engine.servers is None:
            return end
        messages = [end.message, *(each.message for each in state.failures if each.goal == self._goal)]
        for server in self._engine.servers.asked:
            if any(f"{server.server} has no command" in message for message in messages):
                what = f"the goal needs {server.server}, which waits for your leave: {server.how}"
                return _needs_operator(what, "NO_LEAVE")
        return end

    def interrupt(self) -> None:
        """Stop the agent, and end the run."""
        self._interrupted.set()

    async def _do(self, command: cmd.Command) -> cmd.Receipt:
        return await self._engine.submit(command, operator="headless")

    async def _prepare(self) -> str:
        """Make the agent, set its budget and breakpoints, grant its rules; why not, where that is refused."""
        options, agent = self._options, self._options.agent
        if agent not in self._engine.agents:
            made = await self._do(
                mission_agent(options.mission, agent, thinker=options.thinker, style=options.style)
            )
            if not made.ok:
                return made.message
        names = ("usd", "tokens", "actions", "seconds")
        amounts = {name: getattr(options, f"budget_{name}") for name in names}
        budget = cmd.SetBudget.model_validate({"agent": agent, **amounts})
        if budget.limits.any:
            await self._do(budget)
        for rule in options.approve:
            given = await self._do(cmd.GrantRule(agent=agent, rule=rule))
            if not given.ok:
                return given.message
        for line in options.breaks:
            try:
                command = break_command(line.strip(), Context(agent, await self._engine.view(agent)))
            except (GrammarError, ValidationError) as error:
                wrong = first_problem(error) if isinstance(error, ValidationError) else error
                return f"--break '{line}': {wrong}"
            receipt = await self._do(command)
            if not receipt.ok:
                return f"--break '{line}': {receipt.message}"
        return ""

    async def _start(self, before: AgentState) -> _End | None:
        """Adopt the goal above all others and set the agent running."""
        options = self._options
        if fault := self._engine.fault(options.agent):
            return _End(Status.FAULT, fault)
        if refusal := self._engine.sandbox(options.agent).refusal:
            return _End(Status.NO_JAIL, refusal)
        if before.intervention is not None:
            return _needs_operator(f"the agent still waits: {before.intervention.reason}")
        text = options.goal
        if options.mission is not None:
            receipt = await install_mission(self._engine, options.agent, options.mission)
            if not receipt.ok:
                return _End(Status.FAILED, receipt.message, "REFUSED")
            text = text or options.mission.goal
        if options.breaks and not options.step and not before.open_goals:
            # Already running when the goal comes, so that no breakpoint is met by a plan made before it runs.
            await self._do(cmd.Run(agent=options.agent, max_loops=options.max_loops, ask=options.ask))
        highest = max((goal.priority for goal in before.open_goals), default=0)
        receipt = await self._do(cmd.AdoptGoal(agent=options.agent, text=text, priority=highest + 1))
        if not receipt.ok:
            return _End(Status.FAILED, receipt.message, "REFUSED")
        view = await self._engine.view(options.agent)
        self._goal = max(view.goals.values(), key=lambda goal: goal.order).id
        if options.step:
            await self._do(cmd.Pause(agent=options.agent))
            return None
        run = cmd.Run(agent=options.agent, max_loops=options.max_loops, until=self._goal, ask=options.ask)
        receipt = await self._do(run)
        if receipt.ok or (await self._engine.view(options.agent)).intervention is not None:
            # A turn that the agent has given over already is met among the events.
            return None
        return _End(Status.FAILED, receipt.message, "REFUSED")

    async def _follow(self, since: int) -> _End:
        """Watch events until the run has ended, time is up, or the operator interrupts."""
        watch = asyncio.create_task(self._watch(since))
        interrupt = asyncio.create_task(self._interrupted.wait())
        fault = asyncio.create_task(self._engine.faulted(self._options.agent))
        stepper = asyncio.create_task(self._step_by_enter()) if self._options.step else None
        tasks = {watch, interrupt, fault, *([stepper] if stepper else [])}
        try:
            done, _ = await asyncio.wait(
                tasks, timeout=self._options.timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if watch in done:
                return watch.result()
            if fault in done and interrupt not in done:
                return _End(Status.FAULT, fault.result())
            if stepper in done and interrupt not in done and await self._goal_over():
                # The input ended with the goal's last action; its result is just not durable yet.
                return await watch
            reason = "interrupted" if done else "the time is up"
            await self._do(cmd.Stop(agent=self._options.agent, reason=reason))
            await self._settled()
            if interrupt in done:
                return _End(Status.INTERRUPTED, "interrupted; what ran was cut off")
            if done:
                return _End(Status.INTERRUPTED, "standard input ended before the goal did")
            return _End(
                Status.TIMED_OUT, f"not done after {self._options.timeout_s:g} s; what ran was cut off"
            )
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _goal_over(self) -> bool:
        state = await self._engine.view(self._options.agent)
        return state.intervention is not None or state.goals[self._goal].status.terminal

    async def _settled(self) -> None:
        """Wait until the stopped agent's action has ended."""
        with suppress(TimeoutError, AgentFaultError):
            async with asyncio.timeout(10):
                await wait_until(self._engine, self._options.agent, lambda state: not state.acting)

    async def _watch(self, since: int) -> _End:
        async for event in self._events or self._engine.events(since):
            if self._events is None:
                self.show(event)
            if event.stream != self._options.agent:
                continue
            end = await self._end_of(ev.payload_of(event))
            if end is not None:
                return end
        return _End(Status.FAILED, "the journal ended", "JOURNAL")

    async def _end_of(self, payload: ev.Payload) -> _End | None:
        match payload:
            case ev.GoalEnded(goal=goal, status=GoalStatus.ACHIEVED) if goal == self._goal:
                return _End(Status.GOAL_ACHIEVED, "")
            case ev.GoalEnded(goal=goal) if goal == self._goal:
                view = await self._engine.view(self._options.agent)
                wrong = [failure for failure in view.failures if failure.goal == goal]
                last = wrong[-1].kind if wrong else None
                planning = last is FailureKind.PLANNING_ERROR or not all(each.step for each in wrong)
                return _End(Status.FAILED, payload.reason, FAILED_PLANNING if planning else "ERROR_LIMIT")
            case ev.InterventionOpened():
                return await self._turn(payload)
            case ev.PlansHeld():
                return await self._plans_held(payload)
            case ev.ApprovalAsked():
                what = f"{payload.action} {payload.call.name} waits for approval: {payload.why}"
                return _needs_operator(what, "APPROVAL")
            case ev.ReplanHeld():
                what = f"a re-plan of {payload.goal} waits for acceptance: {payload.change}"
                return _needs_operator(what, "REPLAN")
            case ev.ReasonerAdvanced() if payload.mind.idle:
                return await self._rests()
            case ev.BudgetReached():
                return _End(Status.BUDGET_EXCEEDED, f"{budget_hold_text(payload)}: {payload.reason}")
            case ev.AgentPaused():
                return self._held(payload.reason)
        return None

    def _held(self, reason: Reason) -> _End | None:
        """A breakpoint ends the run, unless the operator steps it; so do loops that are over."""
        if reason.is_a("run.breakpoint") and not self._options.step:
            return _needs_operator(reason, "BREAKPOINT")
        if not reason.is_a("run.loops-over"):
            return None
        left = f"{reason}; {self._goal} stays open, and `pilothouse do run` resumes it"
        return _End(Status.TIMED_OUT, left, LOOPS_OVER)

    async def _plans_held(self, held: ev.PlansHeld) -> _End | None:
        """Generated plans wait for approval: that ends the run, or the plans where nobody is to be asked."""
        reason = f"plans of generation {held.generation} wait for approval"
        if not self._options.ask:
            nobody = "nobody is there to approve them"
            reject = cmd.DecidePlans(
                agent=self._options.agent, generation=held.generation, decision="reject", text=nobody
            )
            if (await self._do(reject)).ok:
                return None
        return _needs_operator(reason, "PLANS_HELD")

    async def _rests(self) -> _End | None:
        """A reasoner whose goal waits for something that will not come by itself ends the run."""
        view = await self._engine.view(self._options.agent)
        if view.has_work or view.busy or view.goals[self._goal].status.terminal:
            return None
        return _needs_operator("the goal waits for something that does not come by itself", "WAITS")

    async def _turn(self, turn: ev.InterventionOpened) -> _End | None:
        """The agent asks: that ends the run, or the goal where nobody is to be asked."""
        kind = turn.failure.value if turn.failure else ""
        if not self._options.ask:
            abort = cmd.AbortGoal(agent=self._options.agent, goal=self._goal, reason=f"{kind}: {turn.reason}")
            if (await self._do(abort)).ok:
                return None
        planning = turn.failure is FailureKind.PLANNING_ERROR
        return _needs_operator(turn.reason, FAILED_PLANNING if planning else kind)

    def show(self, event: Event) -> None:
        """Print an event as it is asked for."""
        if self._options.events:
            print(json.dumps(ev.as_dict(event)), file=self._out, flush=True)
        elif not self._options.quiet and (line := line_of(event)) is not None:
            print(line.plain(), file=self._err, flush=True)

    async def _step_by_enter(self) -> None:
        """One action for each line of standard input."""
        lines = _Lines()
        while True:
            view = await self._engine.view(self._options.agent)
            if view.run is RunState.PAUSED and not view.acting and not view.grants:
                print("-- press Enter for the next action --", file=self._err, flush=True)
            if not await lines.next():
                return
            receipt = await self._do(cmd.Step(agent=self._options.agent))
            if not receipt.ok:
                print(receipt.message, file=self._err, flush=True)
            await wait_until(self._engine, self._options.agent, is_idle)


class _Lines:
    """Lines of standard input, as they come.

    Read by a thread that does not keep the program from ending, which a thread of the loop's pool would
    until the operator pressed Enter; and past `sys.stdin`, whose lock such a thread would hold at the end.
    """

    def __init__(self) -> None:
        self._ready: asyncio.Queue[bool] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="standard input", daemon=True).start()

    async def next(self) -> bool:
        """Wait for a line; False at the end of input."""
        return await self._ready.get()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        # RuntimeError: the loop has closed; OSError and ValueError: there is no input to read.
        with suppress(RuntimeError):
            with suppress(OSError, ValueError):
                while chunk := os.read(sys.stdin.fileno(), 4096):
                    for _ in range(chunk.count(b"\n")):
                        loop.call_soon_threadsafe(self._ready.put_nowait, True)
            loop.call_soon_threadsafe(self._ready.put_nowait, False)


def print_problems(engine: GoalEngine, err: TextIO) -> None:
    """Print what a workspace has that cannot be used."""
    health = engine.health
    parts = {"recipes": health.library, "prompts": health.prompts, "states": health.states}
    lines = [f"{name}: {problem}" for name, problems in parts.items() for problem in problems]
    for server in engine.servers.asked if engine.servers is not None else ():
        what = f"mcp.json: {server.server} waits for your leave: {server.how}; it would start {server.line}"
        lines.append(clean_line(what, limit=1_000))
    for line in lines:
        print(line, file=err, flush=True)


@contextmanager
def on_interrupt(then: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call a function while the block runs."""
    with ending_on((signal.SIGINT, signal.SIGTERM), lambda _: then()):
        yield


Serving = Callable[[Engine], AbstractAsyncContextManager[object]]
"""Lets other programs use an engine while it is open."""


@asynccontextmanager
async def open_engine(
    workspace: Path, config: EngineConfig | None = None, serving: Serving = nullcontext
) -> AsyncIterator[Engine]:
    """An engine on the workspace, closed in the end."""
    engine = await Engine.open(workspace, config=config or load_and_say(workspace).engine_config())
    if left_out := untrusted_line(engine.trust):
        sys.stderr.write(f"{clean_line(left_out, limit=1_000)}\n")
    try:
        if engine.servers is not None:
            await engine.servers.settled()  # whoever acts at once should find their tools
        with LoopWatch(workspace):
            async with serving(engine):
                yield engine
    finally:
        await engine.close()


async def check_price(model: ModelChoice, home: Path) -> None:
    """See that what a model costs is known, as a budget in dollars needs it.

    Raises:
        ValueError: it is not; the message says what to give instead, and what to write where.
    """
    client = model.client()
    try:
        await client.learn(model.name)
        name = client.named(model.name)
        known = client.capabilities(name)
    finally:
        await client.close()
    if not known.prices:
        raise ValueError(
            f"the price of {name} is unknown, so a budget in dollars cannot be kept: give --budget-tokens N, "
            f"or its price in {home / MODELS}:\n"
            f'[[model]]\nname = "{name}"\nprice_in = 0.0   # US dollars for a million tokens\nprice_out = 0.0'
        )


async def run_goal(
    options: RunOptions, *, out: TextIO, err: TextIO, serving: Serving = nullcontext
) -> dict[str, Any]:
    """Run one agent on a goal; the answer is what `run --json` prints.

    Raises:
        JournalError: the workspace cannot be opened.
        ValueError: a budget in dollars is given, and what the model costs is unknown.
    """
    needed = options.mission is not None and options.mission.network
    settings = load_and_say(options.workspace, trust=options.trust)
    config = settings.engine_config(network=needed, accept=options.accept)
    if options.budget_usd is not None and config.model is not None and options.thinker != "procedural":
        await check_price(config.model, settings.home)
    async with open_engine(options.workspace, config, serving) as engine:
        result = await Run(engine, options, out, err).run()
    return {**result, "journal_head": engine.final_head}
