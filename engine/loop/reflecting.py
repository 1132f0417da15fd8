"""The reflect stage: what is due is begun in the background, and what came of it is taken in.

What is due follows from the state alone. Whatever the cycle waits for without having recorded anything is cut
short by it, so a replay begins the same at the same place. What a job brings is an event from outside.
Source: spec master-loop-and-memory §3.6, §3.13, §3.16 W5, W15, W16.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine import metacognition, models
from engine.domain.metacognition import BackgroundJob, JobOutcome, MetaSettings, MetaTask
from engine.domain.stopping import StopGrade
from engine.domain.text import clean_line
from engine.journal import events as ev
from engine.journal.recovery_fold import BACKGROUND
from engine.loop.outcome import fresh_id
from engine.loop.recording import RecordingAgent
from engine.metacognition.result import Result
from engine.metacognition.retrospect import look_back
from engine.metacognition.runner import BacklogFull, Ending
from engine.metacognition.schedule import Due, adaptation, due, replannable, root_goal, waits
from engine.metacognition.work import Inputs, perform

if TYPE_CHECKING:
    from engine.metacognition.asking import Asking

MESSAGE_LIMIT = 500
STOPPED = "the agent was stopped"


class ReflectingAgent(RecordingAgent):
    """Looks after its own thinking, without ever waiting for that."""

    _looked: tuple[str, int, bool] = ("", 0, False)
    """What there was when somebody looked last whether it is stuck."""

    def begin_metacognition(self, settings: MetaSettings) -> None:
        """Record what there is to look after the agent's thinking with, where that is not as it was."""
        meta, memory = self.state.meta, self.around.memory is not None
        known = (meta.on, meta.memory, meta.settings) == (settings.enabled, memory, settings)
        if not known and (settings.enabled or meta.on):
            begun = ev.MetacognitionBegun(settings=settings, memory=memory)
            self.append(begun, "system", self.state.run_event)

    def _settle_background(self, cause: str) -> None:
        """Record that what ran when the last session ended is lost."""
        for job in self.state.meta.running:
            lost = ev.BackgroundEnded(
                job=job.id, outcome=JobOutcome.LOST, message="the session ended while it ran"
            )
            self.append(lost, "system", job.event, cause)

    @property
    def _attends(self) -> bool:
        """Whether the reflect stage has something to do; then nothing else is begun before."""
        return waits(self.state)

    def _reflect(self) -> bool:
        """Take in what came of background work, and begin what is due; False when there is nothing."""
        if not self._attends:
            return False
        counts, state = self.state.meta.counts, self.state
        self._tick = state.tick  # a tick that was cut short for this has not begun
        adapted = adaptation(state)
        if adapted is not None and counts is not None:
            self.append(adapted, "agent", counts.event)
        if goal := replannable(state):
            self.append(ev.ReplanAsked(goal=goal), "agent", state.meta.replan)
        for one in due(state):
            self._begin(one)
        return True

    def _notice_stuck(self) -> bool:
        """Record that the agent is seen to be stuck, or no longer; False when there is nothing to tell.

        This comes from outside: the agent decides nothing by it, and a replay is fed it.
        """
        meta = self.state.meta
        looked = (meta.acted, meta.phase, self.state.has_work and self.state.intervention is None)
        if not self.around.watches or looked == self._looked:
            return False
        self._looked = looked
        noticed = metacognition.notice_of(self.state)
        if noticed is None:
            return False
        self.append(noticed, "system", meta.acted)
        return True

    def _begin(self, one: Due) -> None:
        state = self.state
        started = ev.BackgroundStarted(
            job=fresh_id(state, "bg"), task=one.task, why=one.why, goal=root_goal(state), about=one.about
        )
        self.append(started, "agent", state.run_event)
        job, runner = state.meta.job(started.job), self.around.background
        if runner is None or job is None:
            return
        inputs = Inputs(
            job,
            state.agent_id,
            look_back(state),
            state.meta.settings.sources,
            self.around.memory,
            self.around.workflow_of,
            self._asking(job),
        )
        try:
            runner.start(self._name(job.id), partial(self._perform, inputs), partial(self._job_over, job.id))
        except BacklogFull as full:
            self._job_over(job.id, Ending(JobOutcome.REFUSED, str(full)))

    async def _perform(self, inputs: Inputs) -> Result:
        # What it writes to memory names the event that began it, which must be there.
        await self.log.commit()
        return await perform(inputs)

    def _name(self, job: str) -> str:
        """What a job is called among those of all agents."""
        return f"{self.state.agent_id}:{job}"

    def _job_over(self, ident: str, ending: Ending) -> None:
        """Record how a job ended; what follows from it is for the next boundary of the cycle."""
        job = self.state.meta.job(ident)
        if job is None:
            return
        result = ending.result if isinstance(ending.result, Result) else Result(ending.message)
        over = ev.BackgroundEnded(
            job=ident,
            outcome=ending.outcome,
            message=clean_line(result.message, limit=MESSAGE_LIMIT),
            feedback=result.feedback,
            computed=result.computed,
            replan=result.replan,
            made=result.made,
            sources=result.sources,
            counts=result.counts,
            duration_ms=round(ending.duration_s * 1000),
        )
        self._observe(over, BACKGROUND.strip(), job.event)
        self.poke()

    def _asking(self, job: BackgroundJob) -> Asking | None:
        """Who is asked for words; None where they are computed."""
        purse, name = self.around.model, self.around.model_name
        wanted = self.state.meta.settings.model and job.task in (MetaTask.REFLECT, MetaTask.CONSOLIDATE)
        if not wanted or purse is None or not name:
            return None
        client = purse.aside
        heard = partial(self._heard, client, job)
        return metacognition.asking_of(client, name, heard, self.around.parts, repairs=self.around.repairs)

    def _heard(
        self,
        client: models.ModelClient,
        job: BackgroundJob,
        request: models.ModelRequest,
        outcome: models.ModelAnswer | models.ModelError,
    ) -> None:
        from engine.models.recording import called  # models open when one is asked

        known, purpose = client.capabilities(request.model), f"{BACKGROUND}{job.task}"
        said = called(request, outcome, known, goal=job.goal, purpose=purpose)
        self._observe(said, "thinker", job.event)

    def _cut_background(self, payload: ev.Payload) -> None:
        """Cut off what a command wants cut off; the ends follow."""
        runner = self.around.background
        if runner is None:
            return
        match payload:
            case ev.AgentHeld(grade=StopGrade.HOLD):
                return
            case ev.AgentHeld() | ev.AgentStopped() | ev.AgentDeleted():
                for job in self.state.meta.running:
                    runner.cancel(self._name(job.id), STOPPED)
            case ev.BackgroundCancelAsked():
                runner.cancel(self._name(payload.job), "the operator cut it off")

    async def _end_background(self) -> None:
        """Cut off everything of the agent's, and return when every end is recorded."""
        if self.around.background is not None:
            await self.around.background.drain(self._name(""))
