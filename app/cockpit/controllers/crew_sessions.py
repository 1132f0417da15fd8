"""Guided sessions, debates, pipelines and builds of agents: what is shown of them, and what their keys do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from textual.worker import Worker

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.links import CrewLink, ImproveLink
from app.commands.crew import answer_to
from app.projection.session_views import build, has_view, session
from engine.core import campaigns as mm
from engine.core import crew_commands as cc
from engine.core.ports import SystemClock
from engine.crew.builder.findings import (
    BuildResult,
    Finding,
    Level,
    PhaseRecord,
    Status,
    read_record,
    read_result,
)
from engine.crew.state import CrewState
from widgets.dialogs.session import BuilderDialog, SessionDialog, SessionModel, SessionRequest

LOOK_S = 0.1
"""Seconds between two looks at what an open view shows."""
IN_PAST = "you look at the past, where nothing acts"


def _now() -> datetime:
    return datetime.fromisoformat(SystemClock().now()).astimezone(UTC)


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
        if state is None or handoff is None or not has_view(handoff):
            return False
        if name != self._viewed or self._dialog is None:
            self._viewed, self._message = name, ""
            self._context.push(SessionDialog(session(state, handoff, _now())))
        return True

    @property
    def _dialog(self) -> SessionDialog | None:
        """The open view."""
        dialog = self._context.showing(SessionDialog)
        return None if isinstance(dialog, BuilderDialog) else dialog

    def open_guided(self, name: str) -> None:
        """Open a guided session that asks the operator, once and unless they are busy."""
        handoff = self._crew.handoff(name)
        begun = handoff is not None and not handoff.context.parent_id and handoff.spec is not None
        if begun and name not in self._shown_once:
            self._shown_once |= {name}
            self._context.pop_up(lambda: self.open(name), f"{name} asks you: H shows it", "asks")

    def shows_resumed(self, command: cc.ForCrew) -> Callable[[str], None] | None:
        """Shows a guided session that a line resumes; None for all other commands."""
        name = command.handoff if isinstance(command, cc.ResumeHandoff) else ""
        handoff = self._crew.handoff(name)
        if handoff is None or handoff.spec is None or handoff.spec.type != "guided":
            return None

        def shown(message: str) -> None:
            self._context.pop_up(lambda: self.open(name), message or f"{name} goes on: H shows it", "note")

        return shown

    def _changed(self) -> None:
        """Have the open view follow the crew, at most ten times a second."""
        if not self._looking and self._dialog is not None:
            self._looking = True
            self._context.app.set_timer(LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = False
        state, handoff, dialog = self._crew.state, self._crew.handoff(self._viewed), self._dialog
        if state is not None and handoff is not None and dialog is not None:
            dialog.show(session(state, handoff, _now(), self._message))

    def _say(self, message: str) -> None:
        """Show in the open view the result of a key."""
        self._message = message
        self._look()

    def _do(self, command: cc.ForCrew) -> None:
        if self._context.in_past:
            self._say(IN_PAST)
        else:
            self._crew.ask(command, self._say)

    def on_session_dialog_answered(self, name: str, asked: str, option: int, text: str = "") -> None:
        """Answer what is asked."""
        state = self._crew.state
        request = state.requests.get(asked) if state is not None else None
        if request is None or request.state != "open":
            self._say(f"{asked} is open no longer")
        else:
            self._do(answer_to(request, option, text))

    def on_session_dialog_wanted(self, name: str, request: SessionRequest) -> None:
        """Have it ask after each part or not; ending it is confirmed first."""
        handoff = self._crew.handoff(name)
        if handoff is not None and request == "step_mode":
            self._do(cc.StepMode(handoff=handoff.id, on=not handoff.as_running.steps))
        elif handoff is not None and request == "end":
            command = cc.CancelHandoff(handoff=handoff.id)
            kept = "What it gave is kept; it has no result."
            self._context.confirm(f"End {handoff.id}?", kept, lambda: self._do(command))


def _failed(code: str, message: str, source: str) -> BuildResult:
    return BuildResult(Status.FAILED, findings=(Finding(Level.ERROR, code, message, source),))


class Builds:
    """The build that runs, or the last one, and its screen."""

    def __init__(self, context: CockpitContext, crew: CrewLink, mastermind: ImproveLink) -> None:
        self._context = context
        self._crew = crew
        self._mastermind = mastermind
        self._worker: Worker[None] | None = None
        self._job: mm.StartJob | None = None
        """What is built, or was built last."""
        self._options: dict[str, str] = {}
        """What the operator chose on the screen, as options of the command."""
        self._records: tuple[PhaseRecord, ...] = ()
        self.result: BuildResult | None = None

    def build(self, job: mm.StartJob) -> None:
        """Build an agent and show it, phase by phase; a build continues behind a closed screen."""
        if self.result is None and self._worker is not None:
            self._context.say(f"{self._source} is being built; one build at a time is shown", "error")
        else:
            self._job, self._options = job, {}
            self._begin()
        if self._context.no_dialog:
            self._context.push(BuilderDialog(self._model()))

    @property
    def _source(self) -> str:
        """What is built, as it is shown."""
        return self._job.argument if self._job is not None else ""

    def _begin(self) -> None:
        self._records, self.result = (), None
        self._worker = self._context.run(self._build(), "build")

    async def _build(self) -> None:
        assert self._job is not None
        options = {**self._job.options, **self._options}
        try:
            self.result = await self._result_of(self._job.model_copy(update={"options": options}))
        finally:
            if self.result is None:
                self._worker = None
        kind = "asks" if self.result.choice is not None else "error"
        status = self.result.status.value.replace("_", " ")
        self._context.say(f"{self._source}: {status}", "ok" if self.result.success else kind)
        self._look()

    def _model(self, message: str = "") -> SessionModel:
        return build(self._source, self._records, self.result, message)

    def _look(self, message: str = "") -> None:
        if (dialog := self._context.showing(BuilderDialog)) is not None:
            dialog.show(self._model(message))

    def on_builder_dialog_answered(self, source: str, asked: str, number: int, text: str = "") -> None:
        """Build again with what was chosen."""
        choice = self.result.choice if self.result is not None else None
        if choice is None:
            return
        option = choice.options[number - 1]
        if option == "abort":
            self._look("it is left as it is; r builds it again")
            return
        self._options[choice.key] = option
        self.on_builder_dialog_wanted(source, "again")

    def on_builder_dialog_wanted(self, source: str, request: SessionRequest) -> None:
        """Build the same once more, or end the build, of which nothing is left then."""
        if request == "again":
            self._begin()
            self._look()
        elif self._worker is not None:
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
