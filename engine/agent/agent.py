"""One agent at work: its life and its cycle.

A tick perceives, reflects, deliberates, plans, thinks, acts and updates, in this order. Nothing that matters
lives outside the folded state: the cycle can be cut at any await and resumed by another process from the
journal. What each stage does is a collaborator's, handed what it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from engine.agent.actions.pipeline import Pipeline
from engine.agent.decisions.outcome import RefusedError
from engine.agent.decisions.table import decide
from engine.agent.deliberation import Deliberation, PlanDeliberation
from engine.agent.execution import ActionPreparer, AgentParts, CallServer, RunLimits
from engine.agent.gatekeeper import ActionSaver, Approver, BudgetGuard, Gatekeeper
from engine.agent.parameter_settler import ParameterSettler
from engine.agent.perception import AgentEnvironment, offer_changes
from engine.agent.recorder import AgentRecorder
from engine.agent.recoverer import Recoverer
from engine.agent.reflector import Reflector
from engine.core import events as ev
from engine.core.actions import SandboxSession
from engine.core.agents import RunState
from engine.core.command import Command, Receipt
from engine.core.journal import JournalError
from engine.core.plan import StepStatus
from engine.core.reasons import Reason
from engine.core.recovery import ActiveAction, Rewinding
from engine.core.sandbox import ReturnedShell, StopGrade

RESUMED_AFTER_RESTART = Reason("action.again")


class Agent:
    """An agent that runs when it may and waits when it must.

    Args:
        recorder: the agent's record.
        around: everything that reaches the agent from outside.
        deliberation: makes the strategy by which it chooses what it does.
    """

    def __init__(
        self,
        recorder: AgentRecorder,
        around: AgentEnvironment,
        deliberation: Callable[[AgentParts], Deliberation] = PlanDeliberation,
    ) -> None:
        self.recorder, self.around = recorder, around
        self.state, self.log = recorder.state, recorder.log
        self.append, self.commit_soon, self.wake = recorder.append, recorder.commit_soon, recorder.wake
        registry = around.registry
        self.pipeline = Pipeline(recorder, around.toolbox, registry, around.put_blob, around.answer_counted)
        self.reflector = Reflector(recorder, around)
        self._recoverer = Recoverer(recorder, registry, around.randomness)
        budget = BudgetGuard(recorder, around.ledger)
        self.time_is_up, self.ease = budget.time_is_up, budget.ease
        self._approver = Approver(recorder, around, self.pipeline)
        self.begin_metacognition, self.begin_approvals = self.reflector.begin, self._approver.begin
        saver = ActionSaver(recorder, around.saver, registry)
        self._gate = Gatekeeper(recorder, self._approver, budget, saver)
        self._calls = CallServer(recorder, around.clock, self.pipeline, self._gate, self._approver, saver)
        self._limits = RunLimits(recorder)
        parameters = ParameterSettler(recorder, around)
        self.deliberation = deliberation(
            AgentParts(
                recorder=recorder,
                around=around,
                pipeline=self.pipeline,
                reflector=self.reflector,
                recoverer=self._recoverer,
                approver=self._approver,
                gate=self._gate,
                preparer=ActionPreparer(parameters, self._approver, self._gate),
                limits=self._limits,
            )
        )
        self._task: asyncio.Task[None] | None = None
        if around.model_stream is not None:
            around.model_stream.listener = recorder
        if around.model is not None:
            around.model.spender = recorder

    # -------------------------------------------------------------- life

    def open(self, session: str, seed: int) -> None:
        """Resume the agent in a session, and settle what the last one left under way."""
        append, state = self.append, self.state
        new = not state.session
        opened = append(ev.AgentOpened(session=session, seed=seed), "system")
        self._recoverer.seed(seed)
        action = state.action
        if action is not None and action.started and action.step and self._resumes(action):
            self._ask_again(action, opened.ref)
        elif action is not None and action.started:
            unknown = append(ev.ActionOutcomeUnknown(action=action.id), "system", action.event, opened.ref)
            if action.step:
                self.deliberation.settle_unknown(action, unknown.ref)
        elif action is not None:
            withdrawn = ev.ActionWithdrawn(action=action.id, reason=Reason("action.session-ended"))
            append(withdrawn, "system", action.event, opened.ref)
        for job in state.running_jobs:
            lost = ev.JobEnded(job=job.id, ended="unknown", message=Reason("job.unseen"))
            append(lost, "system", job.event, opened.ref)
        self.reflector.settle_lost(opened.ref)
        if state.rewinding is not None:
            self._leave_half_rewound(state.rewinding, opened.ref)
        if state.run is RunState.RUNNING:
            append(ev.AgentPaused(reason=Reason("run.reopened")), "system", opened.ref)
        self.deliberation.opened(new=new)

    def _resumes(self, action: ActiveAction) -> bool:
        """Whether the action only waited, so that it can be asked for again."""
        spec = self.around.registry.spec(action.tool, action.command)
        return spec is not None and spec.resumes

    def _ask_again(self, action: ActiveAction, cause: str) -> None:
        cut = self.append(ev.ActionCancelled(action=action.id, reason=RESUMED_AFTER_RESTART), "system", cause)
        again = ev.StepEnded(
            goal=action.goal, step=action.step, status=StepStatus.PLANNED, summary=RESUMED_AFTER_RESTART
        )
        self.append(again, "system", cut.ref)

    def _leave_half_rewound(self, rewinding: Rewinding, cause: str) -> None:
        to = rewinding.to
        cut = self.append(ev.RewindCutOff(to=to), "system", rewinding.event, cause)
        before = int(rewinding.event.rpartition(":")[2]) - 1
        reason = Reason("turn.half-rewound", to=to, before=before)
        self.append(ev.InterventionOpened(goal=self.state.current_goal, reason=reason), "system", cut.ref)

    def start(self, ended: Callable[[], object] = lambda: None) -> None:
        """Begin the cycle as a task of the running loop; `ended` is called once it is over."""
        pace, work = self.around.pace, self.cycle()
        paced = work if pace is None else pace.run(work)
        self._task = asyncio.create_task(paced, name=f"agent {self.state.agent_id}")
        self._task.add_done_callback(lambda _: ended())

    async def close(self) -> None:
        """End the cycle; a running action is cancelled and recorded."""
        await self.deliberation.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.reflector.close()
        await self.around.control.close(self.state.agent_id)
        with suppress(JournalError):
            await self.log.commit()
        await self.log.close()

    async def ended(self) -> None:
        """Return when the cycle has ended, however it did."""
        if self._task is not None:
            await asyncio.wait({self._task})

    @property
    def fault(self) -> str:
        """Why the cycle ended by itself, which it never should; empty when it did not."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return ""
        error = self._task.exception()
        return "" if error is None else f"{type(error).__name__}: {error}"

    # -------------------------------------------------------------- what comes from outside

    def handle(self, command: Command, actor: str) -> Receipt:
        """Carry out an operator's command; the caller commits before it shows the receipt."""
        received = self.append(ev.CommandReceived(command=command.model_dump()), actor)
        try:
            result = decide(self.state, command, self.around.registry)
        except RefusedError as error:
            self.append(ev.CommandRefused(reason=error.reason), "system", received.ref)
            data = {"code": error.reason.code} if error.reason.code else {}
            return Receipt(ok=False, message=str(error), event=received.ref, data=data)
        for payload in (self.around.seal(self.log.stream, each) for each in result.events):
            self.append(payload, actor, received.ref)
            self._react(payload)
        self.wake()
        return Receipt(
            ok=True, message=result.message, event=received.ref, data={"changed": bool(result.events)}
        )

    def _react(self, payload: ev.Payload) -> None:
        """Do at once what a command asks beyond the state: to what runs now."""
        agent, control = self.state.agent_id, self.around.control
        self.reflector.cut(payload)
        match payload:
            case ev.AgentStopped():
                self.pipeline.cut()
                control.stop_jobs(agent)
            case ev.AgentDeleted():
                control.stop_jobs(agent)
            case ev.CallDropped() if self.state.action is not None and self.state.action.dropped:
                self.pipeline.cut()
            case ev.AgentHeld(grade=StopGrade.CANCEL):
                self.pipeline.cut()
            case ev.AgentHeld(grade=StopGrade.FREEZE):
                control.freeze(agent)
            case ev.AgentThawed():
                control.thaw(agent)
            case ev.JobStopAsked():
                control.stop_job(agent, payload.job)
            case ev.ShellReturned():
                control.return_shell(agent, payload.note)
        self.deliberation.react(payload)

    def offered(self, offer: ev.ToolOffered) -> None:
        """A tool from outside offers something else from now on."""
        self.recorder.observe(offer, "system")

    # -------------------------------------------------------------- the cycle

    async def cycle(self) -> None:
        """Tick while there is something to do; wait otherwise."""
        state, recorder, deliberation = self.state, self.recorder, self.deliberation
        while not state.deleted:
            recorder.changed.clear()
            if state.returned is not None:
                await self._perceive()
            elif state.requests:
                await self._calls.serve()
            elif self.reflector.notice_stuck() or self._gate.at_breakpoint() or self.reflector.reflect():
                await recorder.commit_meanwhile()
            elif deliberation.has_work() and not state.perceived:
                await self._perceive()
            elif deliberation.finish_goal() or self._limits.goal_over():
                await recorder.commit()
            elif deliberation.has_work():
                await deliberation.tick()
            else:
                await recorder.commit()
                await deliberation.idle()

    async def _perceive(self) -> None:
        if self.state.returned is not None:
            await self._offer_changes(self.state.returned)
        facts, session = await self._look()
        world = self.deliberation.initial_world()
        self.append(ev.WorldPerceived(facts=facts, session=session, world=world), "world")
        await self.recorder.commit()

    async def _look(self) -> tuple[dict[str, Any], SandboxSession]:
        """What the workspace is like; looked at again where a rewind came between."""
        while True:
            before = self.state.stop_event
            seen = await self.around.perceiver.perceive(self.state.sandbox)
            if before == self.state.stop_event:
                return seen

    async def _offer_changes(self, shell: ReturnedShell) -> None:
        changes = await self.around.saver.changes(self.state.agent_id, shell)
        offered = offer_changes(shell, changes, self.state.sandbox)
        if offered is not None:
            self.append(offered, "system", shell.event)
