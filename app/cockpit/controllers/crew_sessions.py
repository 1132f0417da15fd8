"""Guided sessions, debates, pipelines and builds of agents: what is shown of them, and what their keys do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from textual.worker import Worker

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.links import CrewLink, ImproveLink
from app.projection import debate_views, pipeline_views
from app.projection.debate_views import debate
from app.projection.guided_views import checker, guided
from app.projection.pipeline_views import build, pipeline
from engine.core import campaigns as mm
from engine.core import crew_commands as cc
from engine.crew.builder.findings import (
    BuildResult,
    Finding,
    Level,
    PhaseRecord,
    Status,
    read_record,
    read_result,
)
from engine.crew.state import CrewState, Handoff
from widgets.dialogs.debate import DebateDialog, DebateWish
from widgets.dialogs.guided import Answer, GuidedDialog, GuidedWish
from widgets.dialogs.pipeline import BuilderDialog, BuilderModel, PipelineDialog, PipelineWish

LOOK_S = 0.1
"""Seconds between two looks at what an open view shows."""
_OPTIONS = {
    "go_on": ("go_on", ""),
    "question": ("note", "Question: "),
    "evidence": ("note", "Evidence: "),
    "round": ("round", ""),
    "time": ("time", ""),
    "override": ("override", ""),
}
"""The option of the question between two rounds that each key takes, and what stands before its words."""


class CrewSessions:
    """The view of one handoff."""

    def __init__(self, context: CockpitContext, crew: CrewLink) -> None:
        self._context = context
        self._crew = crew
        self._viewed = ""
        """The handoff that is viewed."""
        self._message = ""
        """The result of the last key."""
        crew.change_watchers.append(self._changed)
        self._shown_once: frozenset[str] = frozenset()
        """Guided handoffs that were opened by themselves, or left closed."""
        self._looking = False
        """Whether a look at the open view is due."""

    def open(self, name: str) -> bool:
        """Open the view of a guided agent, a pipeline or a debate; False where there is none for it."""
        state, handoff = self._crew.state, self._crew.handoff(name)
        if state is None or handoff is None or handoff.spec is None:
            return False
        if name == self._viewed and self._dialog is not None:
            return True
        self._viewed, self._message = name, ""
        match handoff.spec.type:
            case "guided":
                self._context.push(GuidedDialog(guided(state, handoff), checker(handoff)))
            case "pipeline":
                self._context.push(PipelineDialog(pipeline(state, handoff)))
            case "collaborative" if handoff.spec.debate is not None:
                self._context.push(DebateDialog(debate(state, handoff)))
            case _:
                return False
        return True

    @property
    def _dialog(self) -> GuidedDialog | DebateDialog | PipelineDialog | None:
        """The open view."""
        showing = self._context.showing
        return showing(GuidedDialog) or showing(DebateDialog) or showing(PipelineDialog)

    def open_guided(self, name: str) -> None:
        """Open a guided session that asks the operator, once and unless they are busy."""
        handoff = self._crew.handoff(name)
        begun = handoff is not None and not handoff.context.parent_id and handoff.spec is not None
        if begun and name not in self._shown_once:
            self._shown_once |= {name}
            if not self._context.occupied:
                self.open(name)

    def shows_resumed(self, command: cc.ForCrew) -> Callable[[str], None] | None:
        """Shows a guided session that a line resumes; None for all other commands."""
        name = command.handoff if isinstance(command, cc.ResumeHandoff) else ""
        handoff = self._crew.handoff(name)
        if handoff is None or handoff.spec is None or handoff.spec.type != "guided":
            return None

        def shown(_message: str) -> None:
            if not self._context.occupied:
                self.open(name)

        return shown

    def _changed(self) -> None:
        """Have the open view follow the crew, at most ten times a second."""
        if not self._looking and self._dialog is not None:
            self._looking = True
            self._context.app.set_timer(LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = False
        state, handoff = self._crew.state, self._crew.handoff(self._viewed)
        if state is None or handoff is None:
            return
        match self._dialog:
            case GuidedDialog() as dialog:
                dialog.show(guided(state, handoff))
            case DebateDialog() as dialog:
                dialog.show(debate(state, handoff, self._message))
            case PipelineDialog() as dialog:
                dialog.show(pipeline(state, handoff, self._message))

    def _say(self, message: str) -> None:
        """Show in the open view the result of a key."""
        self._message = message
        self._look()

    def _do(self, command: cc.ForCrew) -> None:
        if self._context.in_past:
            self._say("you look at the past, where nothing acts")
        else:
            self._crew.ask(command, self._say)

    def on_guided_dialog_moved(
        self, handoff: str, move: GuidedWish, value: Answer = "", step: str = "", reason: str = ""
    ) -> None:
        """Make a move; one that is refused says why in place."""
        dialog = self._context.showing(GuidedDialog)
        if dialog is None:
            return
        if self._context.in_past:
            dialog.say("you look at the past, where nothing acts")
            return
        if move == "resume":
            command: cc.ForCrew = cc.ResumeHandoff(handoff=handoff)
        else:
            given = list(value) if isinstance(value, tuple) else value
            command = cc.GuidedMove(handoff=handoff, move=move, value=given, step=step, reason=reason)
        self._context.run(self._moved(dialog, command), "guided")

    async def _moved(self, dialog: GuidedDialog, command: cc.ForCrew) -> None:
        receipt = await self._context.submit(command)
        if not receipt.ok:
            dialog.say(receipt.message)
        elif isinstance(command, cc.GuidedMove) and command.move == "save":
            dialog.dismiss(None)
        self._look()

    def on_debate_dialog_wanted(self, name: str, wish: DebateWish, text: str = "") -> None:
        """Steer the debate; ending it is confirmed first."""
        state, handoff = self._crew.state, self._crew.handoff(name)
        if state is None or handoff is None:
            return
        between = debate_views.between(state, handoff.id)
        if wish == "cancel":
            self._end(handoff, "Cancel this debate?", "The transcript is kept; there is no verdict.")
        elif wish == "step_mode":
            self._do(cc.StepMode(handoff=handoff.id, on=not handoff.as_running.steps))
        elif wish == "override" and (contested := debate_views.contested(state, handoff.id)) is not None:
            self._do(cc.AnswerRequest(request=contested.id, text=text))
        elif between is None:
            self._say("the question between two rounds is gone already")
        else:
            option, words = _OPTIONS[wish]
            text = f"{words}{text}" if text else ""
            self._do(cc.AnswerRequest(request=between.id, option=option, text=text))

    def on_pipeline_dialog_wanted(self, name: str, wish: PipelineWish, text: str = "") -> None:
        """Steer the pipeline; ending it is confirmed first."""
        state, handoff = self._crew.state, self._crew.handoff(name)
        if state is None or handoff is None:
            return
        request = pipeline_views.question_of(state, handoff)
        if wish == "abort":
            self._end(handoff, "End this pipeline?", "What its phases gave is kept.")
        elif wish == "step_mode":
            self._do(cc.StepMode(handoff=handoff.id, on=not handoff.as_running.steps))
        elif wish == "go_on" and handoff.state == "paused":
            self._do(cc.ResumeHandoff(handoff=handoff.id))
        elif request is None:
            self._say("nothing is asked any more")
        else:
            self._do(cc.AnswerRequest(request=request.id, option=wish, text=text))

    def _end(self, handoff: Handoff, question: str, consequence: str) -> None:
        self._context.confirm(question, consequence, lambda: self._do(cc.CancelHandoff(handoff=handoff.id)))


def _failed(code: str, message: str, source: str) -> BuildResult:
    return BuildResult(Status.FAILED, findings=(Finding(Level.ERROR, code, message, source),))


def _as_options(overrides: dict[str, Any]) -> dict[str, str]:
    """What was chosen on the screen, as options of the verb."""
    options = {}
    if "type" in overrides:
        options["type"] = str(overrides["type"])
    if overrides.get("trusted") == "trust":
        options["trust"] = ""
    return options


class Builds:
    """The build that runs, or the last one, and its screen."""

    def __init__(self, context: CockpitContext, crew: CrewLink, mastermind: ImproveLink) -> None:
        self._context = context
        self._crew = crew
        self._mastermind = mastermind
        self._worker: Worker[None] | None = None
        self._job: mm.StartJob | None = None
        """What is built, or was built last."""
        self._overrides: dict[str, Any] = {}
        """Parts of the spec that the operator chose, which count above what the source says."""
        self._records: tuple[PhaseRecord, ...] = ()
        self.result: BuildResult | None = None

    def build(self, job: mm.StartJob) -> None:
        """Build an agent and show it, phase by phase; a build goes on behind a closed screen."""
        if self.result is None and self._worker is not None:
            self._context.say(f"{self._source} is being built; one build at a time is shown", "error")
        else:
            self._job, self._overrides = job, {}
            self._begin()
        if self._context.no_dialog:
            self._context.push(BuilderDialog(self._model()))

    async def job_again(self, name: str) -> mm.StartJob:
        """The job that builds a registered agent again from the folder that it came from.

        Raises:
            RegistrationError: it cannot be built again; the message says why.
        """
        from engine.crew.builder.builds import builds_of

        builds = builds_of(await self._crew.open())
        assert builds is not None
        again = await builds.again(name)
        options = _as_options(dict(again.overrides))
        return mm.StartJob(verb="agent_build", argument=str(again.path), options=options)

    @property
    def _source(self) -> str:
        """What is built, as it is shown."""
        return self._job.argument if self._job is not None else ""

    def _begin(self) -> None:
        self._records, self.result = (), None
        self._worker = self._context.run(self._build(), "build")

    async def _build(self) -> None:
        assert self._job is not None
        options = {**self._job.options, **_as_options(self._overrides)}
        try:
            self.result = await self._result_of(self._job.model_copy(update={"options": options}))
        finally:
            if self.result is None:
                self._worker = None
        kind = "asks" if self.result.choice is not None else "error"
        status = self.result.status.value.replace("_", " ")
        self._context.say(f"{self._source}: {status}", "ok" if self.result.success else kind)
        self._look()

    def _model(self, message: str = "") -> BuilderModel:
        return build(self._source, self._source, self._records, self.result, message)

    def _look(self, message: str = "") -> None:
        if (dialog := self._context.showing(BuilderDialog)) is not None:
            dialog.show(self._model(message))

    def on_builder_dialog_chosen(self, build: str, option: str) -> None:
        """Build again with what was chosen."""
        choice = self.result.choice if self.result is not None else None
        if choice is None:
            return
        if option == "abort":
            self._look("it is left as it is; b builds it again")
            return
        self._overrides[choice.key] = option
        self._begin()
        self._look()

    def on_builder_dialog_again(self, build: str) -> None:
        """Build the same once more."""
        self._begin()
        self._look()

    def on_builder_dialog_cancel(self, build: str) -> None:
        """End the build; nothing is left of it."""
        if self._worker is not None:
            self._worker.cancel()
            source, self._worker, self._job = self._source, None, None
            if (dialog := self._context.showing(BuilderDialog)) is not None:
                dialog.dismiss(None)
            self._context.say(f"the build of {source} is cancelled; nothing of it is left", "note")

    async def _result_of(self, job: mm.StartJob) -> BuildResult:
        """Have a job build; cancelling this cancels the job."""
        crew, mastermind = await self._crew.open(), await self._mastermind.open()
        known = set(crew.state.builds)
        receipt = await self._context.submit(job)
        if not receipt.ok:
            return _failed("REFUSED", receipt.message, job.argument)
        name = str(receipt.data["job"])
        self._mastermind.own_jobs |= {name}
        over = asyncio.ensure_future(mastermind.wait(name))
        try:
            while not over.done():
                await asyncio.wait([over], timeout=LOOK_S)
                self._show_phases(crew.state, known)
        except asyncio.CancelledError:
            await self._context.submit(mm.CancelJob(job=name))
            raise
        record = over.result()
        if not record.answer:
            return _failed(record.status.value.upper(), record.message, job.argument)
        return read_result(record.answer)

    def _show_phases(self, state: CrewState, known: set[str]) -> None:
        """Show the phases of the new build that are over by now."""
        new = next((build for name, build in state.builds.items() if name not in known), None)
        if new is not None and len(new.phases) > len(self._records):
            self._records = tuple(read_record(phase) for phase in new.phases)
            self._look()
