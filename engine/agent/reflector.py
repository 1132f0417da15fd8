"""The reflect stage: what is due is begun in the background, and its results are applied.

What is due follows from the state alone. Whatever the cycle waits for without having recorded anything is cut
short by it, so a replay begins the same at the same place. What a job brings is an event from outside.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.agent.decisions.outcome import fresh_id
from engine.agent.perception import AgentEnvironment
from engine.agent.recorder import AgentRecorder
from engine.core import events as ev
from engine.core.folds.actions import BACKGROUND
from engine.core.metacognition import BackgroundJob, JobOutcome, MetaSettings, MetaTask
from engine.core.reasons import Reason
from engine.core.sandbox import StopGrade
from engine.core.text import clean_line
from engine.memory.metacognition.job import BackgroundJobResult, JobInputs, model_question
from engine.memory.metacognition.retrospect import review_record
from engine.memory.metacognition.runner import BacklogFull, JobEnding
from engine.memory.metacognition.schedule import Due, adaptation, due, has_due_work, replannable, root_goal
from engine.memory.metacognition.stuck import notice_of
from engine.models.completion import ModelClient, call_event
from engine.models.errors import ModelError
from engine.models.messages import ModelAnswer
from engine.models.request import ModelRequest
from engine.value import fields_of

if TYPE_CHECKING:
    from engine.memory.metacognition.job import ModelQuestion


MESSAGE_LIMIT = 500
STOPPED = "the agent was stopped"


class Reflector:
    """Looks after an agent's own thinking, without ever waiting for that.

    Args:
        recorder: the agent's record.
        around: what runs background work, memory, and the model that is asked for words.
    """

    def __init__(self, recorder: AgentRecorder, around: AgentEnvironment) -> None:
        self._recorder, self._around = recorder, around
        self._append, self._state = recorder.append, recorder.state
        self._looked = ("", 0, False)
        """What there was when it was looked last whether the agent is stuck."""

    def begin(self, settings: MetaSettings) -> None:
        """Record what there is to look after the agent's thinking with, where that is not as it was."""
        meta, memory = self._state.meta, self._around.memory is not None
        known = (meta.on, meta.memory, meta.settings) == (settings.enabled, memory, settings)
        if not known and (settings.enabled or meta.on):
            begun = ev.MetacognitionBegun(settings=settings, memory=memory)
            self._append(begun, "system", self._state.run_event)

    def settle_lost(self, cause: str) -> None:
        """Record that what ran when the last session ended is lost."""
        for job in self._state.meta.running:
            lost = ev.BackgroundEnded(job=job.id, outcome=JobOutcome.LOST, message=Reason("meta.lost"))
            self._append(lost, "system", job.event, cause)

    @property
    def attends(self) -> bool:
        """Whether the reflect stage has something to do; then nothing else is begun before."""
        return has_due_work(self._state)

    def reflect(self) -> bool:
        """Apply the results of background work, and begin what is due; False when there is nothing."""
        if not self.attends:
            return False
        counts, state = self._state.meta.counts, self._state
        self._recorder.leave_tick()  # a tick that was cut short for this has not begun
        adapted = adaptation(state)
        if adapted is not None and counts is not None:
            self._append(adapted, "agent", counts.event)
        if goal := replannable(state):
            self._append(ev.ReplanAsked(goal=goal), "agent", state.meta.replan)
        for job in due(state):
            self._begin(job)
        return True

    def notice_stuck(self) -> bool:
        """Record that the agent is seen to be stuck, or no longer; False when there is nothing to tell.

        This comes from outside: the agent decides nothing by it, and a replay is fed it.
        """
        meta = self._state.meta
        looked = (meta.acted, meta.phase, self._state.has_work and self._state.intervention is None)
        if not self._around.watches or looked == self._looked:
            return False
        self._looked = looked
        noticed = notice_of(self._state)
        if noticed is None:
            return False
        self._append(noticed, "system", meta.acted)
        return True

    def _begin(self, due_task: Due) -> None:
        state = self._state
        about = fields_of(due_task, "task", "why", "about")
        started = ev.BackgroundStarted(job=fresh_id(state, "bg"), goal=root_goal(state), **about)
        self._append(started, "agent", state.run_event)
        job, runner = state.meta.job(started.job), self._around.background
        if runner is None or job is None:
            return
        inputs = JobInputs(
            job,
            state.agent_id,
            review_record(state),
            state.meta.settings.sources,
            self._around.memory,
            self._around.workflow_of,
            self._asking(job),
        )
        try:
            runner.start(self._name(job.id), partial(self._perform, inputs), partial(self.job_over, job.id))
        except BacklogFull as full:
            self.job_over(job.id, JobEnding(JobOutcome.REFUSED, str(full)))

    async def _perform(self, inputs: JobInputs) -> BackgroundJobResult:
        # What it writes to memory names the event that began it, which must be there.
        await self._recorder.log.commit()
        from engine.memory.metacognition.jobs import run_job  # late: most sessions begin no job

        return await run_job(inputs)

    def _name(self, job: str) -> str:
        """What a job is called among those of all agents."""
        return f"{self._state.agent_id}:{job}"

    def job_over(self, ident: str, ending: JobEnding) -> None:
        """Record how a job ended; what follows from it is for the next boundary of the cycle."""
        job = self._state.meta.job(ident)
        if job is None:
            return
        ended = isinstance(ending.result, BackgroundJobResult)
        result = ending.result if ended else BackgroundJobResult(ending.message)
        made = fields_of(result, "feedback", "computed", "replan", "made", "sources", "counts")
        message, took = clean_line(result.message, limit=MESSAGE_LIMIT), round(ending.duration_s * 1000)
        over = ev.BackgroundEnded(
            job=ident, outcome=ending.outcome, message=message, duration_ms=took, **made
        )
        self._recorder.observe(over, BACKGROUND.strip(), job.event)
        self._recorder.wake()

    def _asking(self, job: BackgroundJob) -> ModelQuestion | None:
        """Who is asked for words; None where they are computed."""
        budget_client, name = self._around.model, self._around.summariser or self._around.model_name
        asks = self._state.meta.settings.model and job.task in (MetaTask.REFLECT, MetaTask.CONSOLIDATE)
        if not asks or budget_client is None or not name:
            return None
        client = budget_client.aside
        heard = partial(self._heard, client, job)
        return model_question(client, name, heard, self._around.parts, repairs=self._around.repairs)

    def _heard(
        self, client: ModelClient, job: BackgroundJob, request: ModelRequest, result: ModelAnswer | ModelError
    ) -> None:
        known, purpose = client.capabilities(request.model), f"{BACKGROUND}{job.task}"
        called = call_event(request, result, known, goal=job.goal, purpose=purpose)
        self._recorder.observe(called, "thinker", job.event)

    def cut(self, payload: ev.Payload) -> None:
        """Cut off the work that a command ends; the ends follow."""
        runner = self._around.background
        if runner is None:
            return
        match payload:
            case ev.AgentHeld(grade=StopGrade.HOLD):
                return
            case ev.AgentHeld() | ev.AgentStopped() | ev.AgentDeleted():
                for job in self._state.meta.running:
                    runner.cancel(self._name(job.id), STOPPED)
            case ev.BackgroundCancelAsked():
                runner.cancel(self._name(payload.job), "the operator cut it off")

    async def close(self) -> None:
        """Cut off everything of the agent's, and return when every end is recorded."""
        if self._around.background is not None:
            await self._around.background.drain(self._name(""))
