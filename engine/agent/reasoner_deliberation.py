"""The strategy of an agent whose goals are pursued by an AgentSpeak(L) program.

Only what happens between two actions is the reasoner's. While an action runs, intentions that do not wait for
it continue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from engine.agent.decisions.outcome import fresh_id
from engine.agent.deliberation import OUTCOME_UNKNOWN, Deliberation
from engine.agent.execution import AgentParts, RunLimits, request_action, withdraw
from engine.agent.plan_maker import PlanMaker
from engine.agent.reasoner.actions import read_config
from engine.agent.reasoner.reasoner import Reasoner
from engine.agent.reasoner.run import ReasonerRun
from engine.agent.reasoner.saved_mind import make_reasoner, recall_mind, save
from engine.agent.recorder import AgentRecorder
from engine.agent.steering.gate import GateVerdict, may_think
from engine.core import events as ev
from engine.core.actions import ErrorCode
from engine.core.agents import RunState
from engine.core.journal import Event
from engine.core.offload import Slice
from engine.core.ports import Clock
from engine.core.reasoner import Generation, GenerationStage, SentMessage, WantedAction
from engine.core.reasons import Reason
from engine.core.recovery import ActiveAction, FailureKind
from engine.core.sandbox import StopGrade
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.planning.pgp.requests import Answerer, RecordedAnswers
from engine.tools.registry import Checked, Problem, ToolRegistry
from engine.tools.worlds.world import WORLDS
from engine.value import dataclass, fields_of

SLICE_S = 0.004
"""How long the reasoner keeps the event loop at a time."""
LOOP_S = 0.005
"""How long the event loop waits for the reasoner's thread; then it goes on, and the thread beside it."""
STUCK_S = 0.15
"""How long a part of the reasoner's cycle may still go on after the operator has told the agent to stop."""
AHEAD_S = 1.0
"""How long a part of the cycle may take while the agent is paused, only to stand before its next step."""
CLOSING_S = 0.3
"""How long a part of the cycle may still go on when the agent is closed."""
RUN_S = 0.1
"""How long it continues before what it did is recorded."""
A_DAY_S = 86_400.0

DueIn = Callable[[], float | None]
"""Seconds until a wait of the reasoner's is over; None when none is, or time does not count."""


@dataclass(frozen=True, slots=True)
class Busy:
    """What a record says of a part of the cycle in which events came."""

    phases: int = 0
    """How far the reasoner went on."""
    cut: ev.ReasonerCut | None = None
    """Where it was cut off."""


class ReasonerTiming:
    """How far a reasoner continues at a time, and what it waits for: as the clock allows."""

    in_thread = True
    """Whether the reasoner continues in a thread, as it may not end; what is on record did."""

    def __init__(self, recorder: AgentRecorder, clock: Clock) -> None:
        self._recorder, self._clock = recorder, clock

    def phases(self) -> Callable[[int], bool]:
        """Whether there may be another phase now, given how many there were; one there always may."""
        until = time.monotonic() + SLICE_S  # asked in a thread, where a loop's clock cannot be
        first: list[int] = []

        def goes_on(phases: int) -> bool:
            if not first:
                first.append(phases)
            return phases == first[0] or time.monotonic() < until

        return goes_on

    def recorded_busy(self) -> Busy | None:
        """What the record says of a part of the cycle in which events came; None without a record."""
        return None

    async def came_meanwhile(self) -> None:
        """Return when the record continues behind that."""

    async def yield_turn(self, until: float) -> bool:
        """Let others have their turn; False when it is time to record what was done."""
        await asyncio.sleep(0)
        return self._clock.monotonic() < until

    async def slow_down(self, until: float) -> None:
        """Wait until the time of a run is over that has filled its event before."""
        await self._changed_within(max(0.0, until - self._clock.monotonic()))

    async def idle(self, due: DueIn) -> bool:
        """Wait for a change; True where a wait of the reasoner's was over before."""
        seconds = due()
        if seconds is None:
            await self._recorder.wait_for_change()
            return False
        return await self._changed_within(seconds)

    async def wait_with(self, work: asyncio.Future[Any], due: DueIn) -> bool:
        """Wait for a change or some work; True where a wait of the reasoner's was over before."""
        seconds = due()
        over = await self._changed_within(A_DAY_S if seconds is None else seconds, work)
        return over and seconds is not None

    def pauses(self, limits: RunLimits, can_reason: Callable[[], bool]) -> bool:
        """Pause beside an action where the goal or the loops are over; False where they are not."""
        return limits.goal_over() or (can_reason() and limits.loops_over())

    def reasons_meanwhile(self, can_reason: Callable[[], bool]) -> bool:
        """Whether the reasoner continues beside an action now."""
        return can_reason()

    async def _changed_within(self, seconds: float, work: asyncio.Future[Any] | None = None) -> bool:
        """Wait for a change, or for some work; True when the time was over before."""
        change = asyncio.ensure_future(self._recorder.changed.wait())
        pause = asyncio.ensure_future(self._clock.sleep(seconds))
        waits = {change, pause} | ({work} if work is not None else set())
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (change, pause):
                task.cancel()
            await asyncio.gather(change, pause, return_exceptions=True)
        return done == {pause}


class ReasonerDeliberation(Deliberation):
    """Runs a reasoner between an agent's actions.

    Args:
        parts: the agent's collaborators.
        reasoner: the agent's mind; None for an agent that is about to be created.
        timing: how far it continues at a time; by the clock where none is given.
        make_maker: makes what asks for the plans that the reasoner lacks.
        recall: makes the mind again as it is behind the newest event.
    """

    def __init__(
        self,
        parts: AgentParts,
        reasoner: Reasoner | None = None,
        timing: ReasonerTiming | None = None,
        make_maker: Callable[[AgentRecorder, Reasoner, Answerer | None], PlanMaker] = PlanMaker,
        recall: Callable[[AgentState], Awaitable[tuple[Reasoner, str]]] | None = None,
    ) -> None:
        recorder = parts.recorder
        self._recorder, self._around, self._pipeline = recorder, parts.around, parts.pipeline
        self._approver, self._gate = parts.approver, parts.gate
        self._preparer, self._limits = parts.preparer, parts.limits
        self._timing = timing or ReasonerTiming(recorder, parts.around.clock)
        self._append, self._state = recorder.append, recorder.state
        self._reasoner = reasoner
        self._make_maker = make_maker
        self._maker: PlanMaker | None = None
        self._recall = recall
        self._slice: Slice | None = None
        """What runs in a thread now."""
        self._busy = False
        """Whether it is on record that a part of the cycle is under way."""
        self._again = False
        """Whether what comes is brought in as it came in the middle of a part of the cycle on record."""
        self._missed: list[tuple[Event, ev.Payload]] = []
        """Events that came while there was no mind."""
        recorder.observer = self

    @property
    def reasoner(self) -> Reasoner:
        """The agent's mind."""
        assert self._reasoner is not None
        return self._reasoner

    @property
    def maker(self) -> PlanMaker:
        """Makes the plans that the reasoner lacks."""
        if self._maker is None:
            self._maker = self._make_maker(self._recorder, self.reasoner, self._around.answerer)
        return self._maker

    async def close(self) -> None:
        """End everything that was begun beside the cycle, and record how far the reasoner went on."""
        if self._maker is not None:
            await self._maker.close()
        current = self._slice
        if current is not None and not current.finished:
            ending = asyncio.ensure_future(current.ended())
            await asyncio.wait({ending}, timeout=CLOSING_S)
            if not current.finished:
                current.cut_off()
                await asyncio.wait({ending}, timeout=CLOSING_S)
            ending.cancel()
        # There is no await between this and the end of the cycle, so nothing of what was done is lost.
        self._busy = self._busy and current is not None and not current.finished
        self._close_run()

    async def rests(self, seconds: float) -> None:
        """Wait so long at most for the end of what runs in a thread; a command then meets the newest mind."""
        if self._slice is not None and not self._slice.finished:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._slice.ended()

    def saved(self) -> dict[str, Any] | None:
        """The mind as it is behind the newest event; None where that cannot be said."""
        if self._reasoner is None or self._under_way:
            return None
        self._close_run()
        return save(self._reasoner)

    # -------------------------------------------------------------- what comes in, and what is recorded

    def before(self, payload: ev.Payload) -> None:
        """Record what the reasoner did before this, or that it is in the middle of something."""
        if self._reasoner is None or isinstance(payload, ev.ReasonerAdvanced | ev.ReasonerBusy):
            return
        if not self._under_way:
            self._close_run()
        elif not self._busy:
            self._busy = True
            self._append(ev.ReasonerBusy(), "agent", self._state.run_event)

    def after(self, event: Event, payload: ev.Payload) -> None:
        """Let the reasoner take what happened; the agent's creation makes the reasoner."""
        if self._reasoner is not None:
            self._reasoner.take(event, payload)
            if isinstance(payload, ev.ActionStarted):
                self._recorder.wake()  # intentions that do not wait for it may go on now
        elif self._recall is not None:
            self._missed.append((event, payload))
        elif isinstance(payload, ev.AgentCreated):
            self._reasoner = make_reasoner(self._state, self._around.registry, event.at)

    @property
    def _under_way(self) -> bool:
        """Whether a part of the cycle has begun and not ended, or had not on record."""
        # On record it lasts until the cycle goes on, and does not end between two events of one command.
        return self._again or self._busy or (self._slice is not None and not self._slice.finished)

    def _close_run(self) -> None:
        """Record how far the reasoner went on, and what follows from that."""
        if self._reasoner is None or self._under_way or (self._slice is not None and self._slice.cut):
            return
        done = self.reasoner.close([goal.id for goal in self._state.open_goals])
        cause = self._state.run_event
        for payload in done:
            event = self._append(payload, "agent", cause)
            if isinstance(payload, ev.ReasonerAdvanced):
                cause = event.ref
                for message in payload.sent:
                    self._around.post(self._state.agent_id, message)
        hits = [payload for payload in done if isinstance(payload, ev.MindBreakpointHit)]
        self._hold_at_breakpoint(hits, cause)

    def _hold_at_breakpoint(self, hits: list[ev.MindBreakpointHit], cause: str) -> None:
        """Pause where a breakpoint was reached; a step that the operator allowed ends there too."""
        if hits and (self._state.run is RunState.RUNNING or self._state.grants):
            reason = Reason("run.breakpoint", breakpoint=hits[0].breakpoint, what=hits[0].what)
            self._append(ev.AgentPaused(reason=reason), "agent", cause)

    def opened(self, *, new: bool) -> None:
        """Adopt the goals of the program in the agent's first session."""
        if new:
            for text in self.reasoner.goals:
                adopted = ev.GoalAdopted(goal=fresh_id(self._state, "g"), text=text)
                self._append(adopted, "agent", self._state.run_event)

    def settle_unknown(self, action: ActiveAction, cause: str) -> None:
        """Tell the intention that its action may or may not have happened; it is not repeated by itself."""
        failure = ev.FailureRecorded(
            failure=FailureKind.UNKNOWN_ERROR,
            message=OUTCOME_UNKNOWN,
            subject=action.command,
            goal=action.goal,
        )
        self._append(failure, "system", cause)

    def react(self, payload: ev.Payload) -> None:
        """Cut off what plans are being made of when the agent is stopped."""
        cut = isinstance(payload, ev.AgentHeld) and payload.grade.rank >= StopGrade.CUT.rank
        if self._maker is not None and (cut or isinstance(payload, ev.AgentStopped)):
            self._maker.cut()
        current = self._slice
        if current is not None and isinstance(payload, ev.AgentPaused | ev.AgentHeld | ev.AgentStopped):
            asyncio.get_running_loop().call_later(STUCK_S, current.cut_off)

    def hear(self, sender: str, message: SentMessage) -> None:
        """Take a message of another agent's reasoner."""
        said = fields_of(message, "performative", "content", "number", "answers")
        heard = ev.MessageHeard(sender=sender, **said)
        self._recorder.observe(heard, f"agent:{sender}")
        self._recorder.wake()

    def initial_world(self) -> dict[str, Any] | None:
        """The world that the configuration names, as it begins."""
        config = self.reasoner.config
        if not config.world or self._state.world:
            return None
        return WORLDS[config.world].begin(config.seed)

    # -------------------------------------------------------------- the cycle

    def has_work(self) -> bool:
        """Whether an action waits, the reasoner can continue, or plans are to be made."""
        if not may_think(self._state, free=True):
            return False
        return bool(self._state.wanted) or self._can_reason() or self._generation() is not None

    def _generation(self) -> Generation | None:
        """What is to be done about plans; a model is asked only while the agent may think."""
        due = self.maker.due
        asks = due is not None and due.stage is not GenerationStage.ANSWERED
        return due if due is None or not asks or may_think(self._state, free=False) else None

    def _can_reason(self) -> bool:
        """Whether the reasoner may continue and has something to continue with."""
        state, mind = self._state, self._state.mind
        if not may_think(state, free=True):
            return False
        if state.run is RunState.PAUSED and not state.grants and state.run_reason.is_a("run.stuck.reasoner"):
            return False  # even to stand before its next step, as it did not come there
        if mind is None or not (mind.idle or mind.poised):
            return True
        return not mind.idle and (state.run is RunState.RUNNING or state.grants > 0)

    async def tick(self) -> None:
        """Do what an intention waits for, or else let the reasoner continue."""
        self._recorder.begin_tick()
        if self._limits.loops_over():
            return
        generation = self._generation()
        if generation is not None:
            self.maker.forward(generation)
        elif self._state.wanted:
            await self._do(self._state.wanted[0])
        else:
            await self._reason()
            self.maker.look_ahead()
        await self._recorder.commit()

    async def idle(self) -> None:
        """Wait for something to do, or until a wait of the reasoner's is over."""
        if await self._timing.idle(self._due_in):
            self._append(ev.TimePassed(), "world")

    async def _reason(self) -> None:
        """Let the reasoner continue until there is something to record."""
        state = self._state
        free = state.run is RunState.RUNNING
        run = ReasonerRun(
            stride=None if free or not state.grants else state.stride,
            poise=not free and not state.grants,
            steps_left=state.max_loops - state.loops if free and state.max_loops is not None else None,
        )
        until = self._around.clock.monotonic() + RUN_S
        while run.open:
            if not await self._advance(run):
                return
            if not run.open or self.reasoner.laden or not await self._timing.yield_turn(until):
                break
            if self.reasoner.run is not run:
                break
        self._close_run()
        if run.full:
            await self._timing.slow_down(until)

    async def _advance(self, run: ReasonerRun) -> bool:
        """Let the reasoner continue for a slice; False where that was cut off."""
        recorded = self._timing.recorded_busy()
        if recorded is not None:
            return await self._do_again(run, recorded)
        began = self._around.clock.monotonic()
        in_time, first = self._timing.phases(), run.phases

        def goes_on(phases: int) -> bool:
            """Whether there may be another phase; what has come meanwhile is not kept waiting for more."""
            return in_time(phases) and (phases == first or not (self._busy or self.reasoner.laden))

        if not self._timing.in_thread:
            self.reasoner.advance(run, in_time)
            return True
        self._slice = current = Slice(partial(self.reasoner.advance, run, goes_on))
        try:
            if not current.wait(LOOP_S):
                if run.poise:
                    asyncio.get_running_loop().call_later(AHEAD_S, current.cut_off)
                await current.ended()
        except asyncio.CancelledError:
            current.cut_off()
            raise
        if current.cut:
            await self._begin_again(round(self._around.clock.monotonic() - began, 1))
            return False
        self._slice = None
        current.result()
        if self._busy:
            self._busy = False
            self._close_run()
        return True

    async def _begin_again(self, seconds: float) -> None:
        """Have the mind as it was before what was cut off, with what came since."""
        self._reasoner, self._slice, self._busy = None, None, False
        if self._maker is not None:
            self._maker.cut()
            self._maker = None
        self._record_cut(ev.ReasonerCut(seconds=seconds))
        await self._recorder.commit()
        assert self._recall is not None
        mind, _ = await self._recall(self._state)
        missed, self._missed = self._missed, []
        for event, payload in missed:
            if event.version > mind.version:
                mind.take(event, payload)
        self._reasoner = mind

    def _record_cut(self, cut: ev.ReasonerCut) -> None:
        event = self._append(cut, "system", self._state.run_event)
        if self._state.run in (RunState.RUNNING, RunState.PAUSED):
            reason = Reason("run.stuck.reasoner", seconds=cut.seconds)
            self._append(ev.AgentPaused(reason=reason), "system", event.ref)

    async def _do_again(self, run: ReasonerRun, recorded: Busy) -> bool:
        """Continue as on record, with what came meanwhile."""
        self.reasoner.advance(run, lambda phases: recorded.cut is None and phases < recorded.phases)
        self._busy = self._again = True
        self._append(ev.ReasonerBusy(), "agent", self._state.run_event)
        await self._timing.came_meanwhile()
        self._again = self._busy = False
        if recorded.cut is not None:
            self.reasoner.run = None
            self._record_cut(recorded.cut)
            return False
        self._close_run()
        return True

    def _due_in(self) -> float | None:
        """Seconds until a wait of the reasoner's is over; None when none is, or time does not count."""
        state, mind = self._state, self._state.mind
        if mind is None or mind.due_ms is None or not mind.idle or not may_think(state, free=False):
            return None
        now = datetime.fromisoformat(self._around.clock.now()).timestamp() * 1000 - self.reasoner.created
        return max(0.0, (mind.due_ms - now) / 1000)

    # -------------------------------------------------------------- actions

    async def _do(self, awaited: WantedAction) -> None:
        """Take an action that an intention waits for through the gate, and run it."""
        checked = self._around.registry.check(awaited.tool, awaited.command, awaited.args)
        mind = self._state.intentions.get(awaited.intention)
        tag = mind.tag if mind is not None else ""
        call = (awaited.tool, awaited.command, awaited.args if checked.problems else checked.args)
        requested = request_action(self._recorder, call, awaited.step, tag, self._state.run_event)
        given_up = partial(self._given_up, awaited)
        goal = self._state.goals.get(tag)
        text = goal.text if goal is not None else ""
        checked = await self._preparer.prepare(awaited.args, text, awaited.step, given_up, requested.ref)
        passed = await self._gate.admit(awaited.step, given_up, requested.ref, saves=not checked.problems)
        if isinstance(passed, GateVerdict):
            await self._approver.refuse(passed)
        elif isinstance(passed, ev.SnapshotFailed):
            refused = self._append(passed, "system", requested.ref)
            message = f"the workspace could not be saved before it. {passed.reason}"
            checked = Checked({}, (Problem(ErrorCode.NO_SPACE, message),))
            await self._pipeline.refuse(checked, refused.ref)
        elif not passed:
            withdraw(self._recorder, requested.ref)
        elif checked.problems:
            await self._pipeline.refuse(checked, requested.ref)
        else:
            await self._meanwhile(self._pipeline.run(requested.ref, self._state.run_event))

    def _given_up(self, awaited: WantedAction) -> bool:
        """Whether no intention waits for the action any more, or the operator comes first."""
        state = self._state
        stopped = self._recorder.stopped or state.deleted
        return stopped or bool(state.requests) or awaited not in state.wanted

    async def _meanwhile(self, work: Coroutine[Any, Any, object]) -> None:
        """Let intentions that do not wait for it continue until some work is done."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                self._recorder.changed.clear()
                generation = self._generation()
                if self._timing.pauses(self._limits, self._can_reason_meanwhile):
                    await self._recorder.commit()
                elif generation is not None and not self._state.reached:
                    self.maker.forward(generation)
                elif self._timing.reasons_meanwhile(self._can_reason_meanwhile):
                    await self._reason()
                    await self._recorder.commit()
                elif await self._timing.wait_with(task, self._due_in):
                    self._append(ev.TimePassed(), "world")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            task.result()

    def _can_reason_meanwhile(self) -> bool:
        return self._state.acting and not self._state.reached and self._can_reason()


def recorded_answers(state: AgentState) -> Answerer | None:
    """The answers that an agent was created with, where it was given some."""
    answers = read_config(state.config.meta).generation.answers
    return RecordedAnswers(answers) if answers else None


async def resumed_strategy(
    state: AgentState, store: JournalStore, registry: ToolRegistry
) -> tuple[Callable[[AgentParts], ReasonerDeliberation], str]:
    """The strategy of an agent with its mind as it was, and why a saved mind could not be used.

    Raises:
        ForgottenError: its mind cannot be had again.
    """
    mind, why = await recall_mind(state, store, registry)
    recall = partial(recall_mind, store=store, registry=registry)
    return partial(ReasonerDeliberation, reasoner=mind, recall=recall), why
