"""An agent whose goals are pursued by an AgentSpeak(L) program.

Its life, gate, pipeline and journal are those of every agent; only what happens between two actions is the
reasoner's. While an action runs, intentions that do not wait for it go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any

from engine.domain.action import ErrorCode
from engine.domain.failure import FailureKind
from engine.domain.reasoning import Generation, GenerationStage, SentMessage, WantedAction
from engine.domain.state import ActiveAction, AgentState, RunState
from engine.domain.stopping import StopGrade
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.log import StreamLog
from engine.loop.agent import OUTCOME_UNKNOWN, Agent
from engine.loop.generating import PlanMaker
from engine.loop.outcome import fresh_id
from engine.loop.recording import Surroundings
from engine.reasoner.actions import TOOL, ActionTable
from engine.reasoner.config import read_config
from engine.reasoner.reasoner import Reasoner
from engine.reasoner.run import Run
from engine.reasoner.saving import save
from engine.steering.approvals import Verdict
from engine.steering.gate import may_think
from engine.tools.arguments import Checked, Problem
from engine.tools.registry import ToolRegistry
from engine.worlds.explorer_world import WORLDS

SLICE_S = 0.004
"""How long the reasoner keeps the event loop at a time."""
RUN_S = 0.1
"""How long it goes on before what it did is recorded."""


def make_reasoner(state: AgentState, registry: ToolRegistry, created: str) -> Reasoner:
    """The reasoner of an agent that has just been created.

    Args:
        state: the agent's state.
        registry: what actions can call.
        created: when the agent was created, ISO 8601.
    """
    config = read_config(state.config.meta)
    tools = [(TOOL, registry.get(TOOL).commands)]
    if config.world:
        tools.append((config.world, WORLDS[config.world].commands))
    return Reasoner(state.agent_id, config, ActionTable.of(*tools), created)


class ReasoningAgent(Agent):
    """Runs a reasoner between its actions."""

    def __init__(
        self, state: AgentState, log: StreamLog, around: Surroundings, reasoner: Reasoner | None = None
    ) -> None:
        super().__init__(state, log, around)
        self._reasoner = reasoner
        self._maker: PlanMaker | None = None

    @property
    def reasoner(self) -> Reasoner:
        """The agent's mind."""
        assert self._reasoner is not None
        return self._reasoner

    @property
    def maker(self) -> PlanMaker:
        """Who makes the plans that the reasoner lacks."""
        if self._maker is None:
            self._maker = self._make_maker()
        return self._maker

    def _make_maker(self) -> PlanMaker:
        return PlanMaker(self, self.reasoner, self.around.answerer)

    async def close(self) -> None:
        """End the cycle and everything that was begun beside it."""
        await self.maker.close()
        # There is no await between this and the end of the cycle, so nothing of what was done is lost.
        self._close_run()
        await super().close()

    def saved(self) -> dict[str, Any] | None:
        """The mind as it is behind the newest event; None where that cannot be said."""
        self._close_run()
        return save(self.reasoner)

    # -------------------------------------------------------------- what comes in, and what is recorded

    def append(self, payload: ev.Payload, actor: str, *causes: str) -> Event:
        """Record what happened; what the reasoner did before it comes first."""
        if self._reasoner is not None and not isinstance(payload, ev.ReasonerAdvanced):
            self._close_run()
        event = super().append(payload, actor, *causes)
        if self._reasoner is not None:
            self._reasoner.take(event, payload)
            if isinstance(payload, ev.ActionStarted):
                self.poke()  # Intentions that do not wait for it may go on now.
        elif isinstance(payload, ev.AgentCreated):
            self._reasoner = make_reasoner(self.state, self.around.registry, event.at)
        return event

    def _close_run(self) -> None:
        """Record how far the reasoner went on, and what follows from that."""
        done = self.reasoner.close([goal.id for goal in self.state.open_goals])
        cause = self.state.run_event
        for payload in done:
            said = self.append(payload, "agent", cause)
            if isinstance(payload, ev.ReasonerAdvanced):
                cause = said.ref
                for message in payload.sent:
                    self.around.post(self.state.agent_id, message)
        self._hold_at_breakpoint([one for one in done if isinstance(one, ev.MindBreakpointHit)], cause)

    def _hold_at_breakpoint(self, hits: list[ev.MindBreakpointHit], cause: str) -> None:
        """Pause where a breakpoint was reached; a step that the operator allowed ends there too."""
        if hits and (self.state.run is RunState.RUNNING or self.state.grants):
            reason = f"breakpoint {hits[0].breakpoint}: {hits[0].what}"
            self.append(ev.AgentPaused(reason=reason), "agent", cause)

    def _reach_out(self, payload: ev.Payload) -> None:
        super()._reach_out(payload)
        cut = isinstance(payload, ev.AgentHeld) and payload.grade.rank >= StopGrade.CUT.rank
        if cut or isinstance(payload, ev.AgentStopped):
            self.maker.cut()

    def hear(self, sender: str, message: SentMessage) -> None:
        """Take a message of another agent's reasoner."""
        heard = ev.MessageHeard(
            sender=sender,
            performative=message.performative,
            content=message.content,
            number=message.number,
            answers=message.answers,
        )
        self._observe(heard, f"agent:{sender}")
        self.poke()

    def open(self, session: str, seed: int) -> None:
        """Take the agent up; a new one adopts the goals of its program."""
        new = not self.state.session
        super().open(session, seed)
        if new:
            for text in self.reasoner.goals:
                adopted = ev.GoalAdopted(goal=fresh_id(self.state, "g"), text=text)
                self.append(adopted, "agent", self.state.run_event)

    def _leave_unknown(self, action: ActiveAction, cause: str) -> None:
        """The intention learns that its action may or may not have happened; it is not repeated by itself."""
        found = ev.FailureRecorded(
            failure=FailureKind.UNKNOWN_ERROR,
            message=OUTCOME_UNKNOWN,
            subject=action.command,
            goal=action.goal,
        )
        self.append(found, "system", cause)

    def _first_world(self) -> dict[str, Any] | None:
        config = self.reasoner.config
        if not config.world or self.state.world:
            return None
        return WORLDS[config.world].begin(config.seed)

    # -------------------------------------------------------------- the cycle

    def _has_work(self) -> bool:
        if not may_think(self.state, free=True):
            return False
        return bool(self.state.wanted) or self._can_reason() or self._generation() is not None

    def _generation(self) -> Generation | None:
        """What is to be done about plans; a model is asked only while the agent may think."""
        due = self.maker.due
        asks = due is not None and due.stage is not GenerationStage.ANSWERED
        return due if due is None or not asks or may_think(self.state, free=False) else None

    def _can_reason(self) -> bool:
        """Whether the reasoner may go on and has something to go on with."""
        state, mind = self.state, self.state.mind
        if not may_think(state, free=True):
            return False
        if mind is None or not (mind.idle or mind.poised):
            return True
        return not mind.idle and (state.run is RunState.RUNNING or state.grants > 0)

    async def tick(self) -> None:
        """Do what an intention waits for, or else let the reasoner go on."""
        self._tick, self._stop = self.state.tick + 1, self.state.stop_event
        if self._out_of_loops():
            return
        generation = self._generation()
        if generation is not None:
            self.maker.forward(generation)
        elif self.state.wanted:
            await self._do(self.state.wanted[0])
        else:
            await self._reason()
            self.maker.look_ahead()
        await self.commit()

    async def _reason(self) -> None:
        """Let the reasoner go on until something has come of it."""
        state = self.state
        free = state.run is RunState.RUNNING
        run = Run(
            stride=None if free or not state.grants else state.stride,
            poise=not free and not state.grants,
            steps_left=state.max_loops - state.loops if free and state.max_loops is not None else None,
        )
        until = self.around.clock.monotonic() + RUN_S
        while run.open:
            self.reasoner.advance(run, self._pace())
            if not run.open or not await self._breathe(until) or self.reasoner.run is not run:
                break
        self._close_run()
        if run.full:
            await self._slow_down(until)

    def _pace(self) -> Callable[[int], bool]:
        """Whether there may be another phase before others have their turn, given how many there were."""
        clock = self.around.clock
        until = clock.monotonic() + SLICE_S
        return lambda phases: clock.monotonic() < until

    async def _slow_down(self, until: float) -> None:
        """Wait until the time of a run is over that has filled its event before."""
        await self._changed_within(max(0.0, until - self.around.clock.monotonic()))

    async def _breathe(self, until: float) -> bool:
        """Let others have their turn; False when it is time to record what was done."""
        await asyncio.sleep(0)
        return self.around.clock.monotonic() < until

    async def _idle(self) -> None:
        """Wait for something to do, or until a wait of the reasoner's is over."""
        due = self._due_in()
        if due is None:
            await super()._idle()
        elif await self._changed_within(due):
            self.append(ev.TimePassed(), "world")

    def _due_in(self) -> float | None:
        """Seconds until a wait of the reasoner's is over; None when none is, or time does not count."""
        state, mind = self.state, self.state.mind
        if mind is None or mind.due_ms is None or not mind.idle or not may_think(state, free=False):
            return None
        now = datetime.fromisoformat(self.around.clock.now()).timestamp() * 1000 - self.reasoner.created
        return max(0.0, (mind.due_ms - now) / 1000)

    async def _changed_within(self, seconds: float, work: asyncio.Future[Any] | None = None) -> bool:
        """Wait for a change, or for some work; True when the time was over before."""
        change = asyncio.ensure_future(self._changed.wait())
        pause = asyncio.ensure_future(self.around.clock.sleep(seconds))
        waits = {change, pause} | ({work} if work is not None else set())
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (change, pause):
                task.cancel()
            await asyncio.gather(change, pause, return_exceptions=True)
        return done == {pause}

    # -------------------------------------------------------------- actions

    async def _do(self, wanted: WantedAction) -> None:
        """Take an action that an intention waits for through the gate, and run it."""
        checked = self.around.registry.check(wanted.tool, wanted.command, wanted.args)
        mind = self.state.intentions.get(wanted.intention)
        requested = self.append(
            ev.ActionRequested(
                action=fresh_id(self.state, "a"),
                step=wanted.step,
                goal=mind.tag if mind is not None else "",
                tool=wanted.tool,
                command=wanted.command,
                args=wanted.args if checked.problems else checked.args,
            ),
            "agent",
            self.state.run_event,
        )
        given_up = partial(self._given_up, wanted)
        goal = self.state.goals.get(mind.tag) if mind is not None else None
        gate = partial(self._pass_gate, wanted.step, given_up, requested.ref, saves=False)
        checked = await self._settled(wanted.args, goal.text if goal else "", given_up, gate)
        if not checked.problems and not given_up():
            await self._note_needs(given_up)
        passed = await self._pass_gate(wanted.step, given_up, requested.ref, saves=not checked.problems)
        if isinstance(passed, Verdict):
            await self._refuse(passed)
        elif isinstance(passed, ev.SnapshotFailed):
            refused = self.append(passed, "system", requested.ref)
            message = f"the workspace could not be saved before it. {passed.reason}"
            checked = Checked({}, (Problem(ErrorCode.NO_SPACE, message),))
            await self.pipeline.refuse(checked, refused.ref)
        elif not passed:
            if self.state.action is not None:
                withdrawn = ev.ActionWithdrawn(action=self.state.action.id, reason=self._why_withdrawn())
                self.append(withdrawn, "agent", requested.ref)
        elif checked.problems:
            await self.pipeline.refuse(checked, requested.ref)
        else:
            await self._meanwhile(self.pipeline.run(requested.ref, self.state.run_event))

    def _given_up(self, wanted: WantedAction) -> bool:
        """Whether nobody waits for the action any more, or the operator comes first."""
        state = self.state
        stopped = state.run is RunState.STOPPED or state.deleted or state.stop_event != self._stop
        return stopped or bool(state.requests) or wanted not in state.wanted

    async def _meanwhile(self, work: Coroutine[Any, Any, object]) -> None:
        """Let intentions that do not wait for it go on until some work is done."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                self._changed.clear()
                generation = self._generation()
                if self._pauses_meanwhile():
                    await self.commit()
                elif generation is not None and not self.state.reached:
                    self.maker.forward(generation)
                elif self._goes_on_meanwhile():
                    await self._reason()
                    await self.commit()
                else:
                    await self._until(task)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            task.result()

    def _pauses_meanwhile(self) -> bool:
        """Pause where the goal or the loops are over for which the operator let it run."""
        return self._rest_after_goal() or (self._goes_on_meanwhile() and self._out_of_loops())

    def _goes_on_meanwhile(self) -> bool:
        return self.state.acting and not self.state.reached and self._can_reason()

    async def _until(self, work: asyncio.Future[Any]) -> None:
        """Wait until some work is done, something has changed, or a wait of the reasoner's is over."""
        due = self._due_in()
        if await self._changed_within(86_400.0 if due is None else due, work) and due is not None:
            self.append(ev.TimePassed(), "world")
