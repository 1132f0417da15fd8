"""Guided sessions, debates, pipelines and builds in the cockpit: what is shown, what their keys do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from app.cockpit.crew_keys import CrewKeys
from engine.domain import crew_commands as cc
from engine.journal.event import Event

if TYPE_CHECKING:
    from textual.worker import Worker

    from engine.building.findings import BuildResult, PhaseRecord
    from engine.crew.state import CrewState, Handoff
    from widgets.dialogs.builder import BuilderDialog
    from widgets.dialogs.debate import DebateDialog
    from widgets.dialogs.guided import GuidedDialog
    from widgets.dialogs.pipeline import PipelineDialog

LOOK_S = 0.1
"""Seconds between two looks at what an open view shows."""
Told = Callable[["PhaseRecord"], None]
Build = Callable[[Told, dict[str, Any]], Awaitable["BuildResult"]]
"""Builds an agent with these overrides, and tells of each phase when it is over; what was chosen is among the
overrides, as `mcp` or `trusted`."""


class CrewViews(CrewKeys):
    """The view of one handoff, or of one build."""

    _guided: GuidedDialog | None = None
    _debate: DebateDialog | None = None
    _pipeline: PipelineDialog | None = None
    _viewed = _view_said = ""
    """The handoff that is viewed; what came of the last key."""
    _shown_once: frozenset[str] = frozenset()
    """Guided handoffs that were opened by themselves, or left closed."""
    _looking = False
    """Whether a look at the open view is due."""

    # -------------------------------------------------------------- opening

    def _view_of_handoff(self, name: str) -> bool:
        """Open the view of a guided agent, a pipeline or a debate; False where there is none for it."""
        state = self._crew_state
        one = state.handoffs.get(name) if state is not None else None
        if state is None or one is None or one.spec is None:
            return False
        if name == self._viewed:
            return True
        self._viewed, self._view_said = name, ""
        match one.spec.type:
            case "guided":
                self._show_guided(state, one)
            case "pipeline":
                self._show_pipeline(state, one)
            case "collaborative" if one.spec.debate is not None:
                self._show_debate(state, one)
            case _:
                return False
        return True

    def _show_guided(self, state: CrewState, one: Handoff) -> None:
        from app.projection.guided_views import checker, guided
        from widgets.dialogs.guided import GuidedDialog

        self._guided = GuidedDialog(guided(state, one), checker(one))
        self.push_screen(self._guided, self._view_closed)

    def _show_debate(self, state: CrewState, one: Handoff) -> None:
        from app.projection.debate_views import debate
        from widgets.dialogs.debate import DebateDialog

        self._debate = DebateDialog(debate(state, one))
        self.push_screen(self._debate, self._view_closed)

    def _show_pipeline(self, state: CrewState, one: Handoff) -> None:
        from app.projection.pipeline_views import pipeline
        from widgets.dialogs.pipeline import PipelineDialog

        self._pipeline = PipelineDialog(pipeline(state, one))
        self.push_screen(self._pipeline, self._view_closed)

    def _view_closed(self, _none: None) -> None:
        self._guided = self._debate = self._pipeline = None
        self._viewed = self._view_said = ""

    def _asked_of_operator(self, request: dict[str, object]) -> None:
        """Say who asks; what the operator goes through step by step opens by itself, once."""
        super()._asked_of_operator(request)
        name, state = str(request.get("handoff_id") or ""), self._crew_state
        one = state.handoffs.get(name) if state is not None else None
        begun = one is not None and not one.context.parent_id and one.spec is not None
        if begun and str(request.get("reason_code")).startswith("guided") and name not in self._shown_once:
            self._shown_once |= {name}
            if not self._occupied:
                self._view_of_handoff(name)

    def _shows_resumed(self, command: cc.ForCrew) -> Callable[[str], None] | None:
        """Shows a guided session that a line lets go on; None for all other commands."""
        state, name = self._crew_state, command.handoff if isinstance(command, cc.ResumeHandoff) else ""
        one = state.handoffs.get(name) if state is not None else None
        if one is None or one.spec is None or one.spec.type != "guided":
            return None

        def shown(_message: str) -> None:
            if not self._occupied:
                self._view_of_handoff(name)

        return shown

    # -------------------------------------------------------------- keeping it up to date

    def _crew_told(self, event: Event) -> None:
        """Take an event of the crew's stream in; an open view follows, at most ten times a second."""
        super()._crew_told(event)
        if self._viewed and not self._looking:
            self._looking = True
            self.set_timer(LOOK_S, self._look_at_view)

    def _look_at_view(self) -> None:
        self._looking = False
        state = self._crew_state
        one = state.handoffs.get(self._viewed) if state is not None else None
        if state is None or one is None:
            return
        if self._guided is not None:
            from app.projection.guided_views import guided

            self._guided.show(guided(state, one))
        elif self._debate is not None:
            from app.projection.debate_views import debate

            self._debate.show(debate(state, one, self._view_said))
        elif self._pipeline is not None:
            from app.projection.pipeline_views import pipeline

            self._pipeline.show(pipeline(state, one, self._view_said))

    def _said_of_view(self, message: str) -> None:
        """Show in the open view what came of a key."""
        self._view_said = message
        self._look_at_view()

    def _do_in_view(self, command: cc.ForCrew) -> None:
        if self._in_past:
            self._said_of_view("you look at the past, where nothing acts")
        else:
            self._ask_crew(command, self._said_of_view)

    # The handlers' names say which dialog's messages they take, so that it need not be imported before.

    # -------------------------------------------------------------- guided

    def on_guided_dialog_moved(self, event: GuidedDialog.Moved) -> None:
        """Make a move; one that is refused says why in place."""
        dialog = self._guided
        if dialog is None:
            return
        if self._in_past:
            dialog.say("you look at the past, where nothing acts")
            return
        if event.move == "resume":
            command: cc.ForCrew = cc.ResumeHandoff(handoff=event.handoff)
        else:
            value = list(event.value) if isinstance(event.value, tuple) else event.value
            command = cc.GuidedMove(
                handoff=event.handoff, move=event.move, value=value, step=event.step, reason=event.reason
            )
        self.run_worker(self._moved(dialog, command), name="guided", exit_on_error=False)

    async def _moved(self, dialog: GuidedDialog, command: cc.ForCrew) -> None:
        receipt = await self._submit(command)
        if not receipt.ok:
            dialog.say(receipt.message)
        elif isinstance(command, cc.GuidedMove) and command.move == "save":
            dialog.dismiss(None)
        self._look_at_view()

    # -------------------------------------------------------------- debate

    def on_debate_dialog_wanted(self, event: DebateDialog.Wanted) -> None:
        """Tell the debate how it goes on; ending it is confirmed first."""
        from app.projection import debate_views as views

        state = self._crew_state
        one = state.handoffs.get(event.handoff) if state is not None else None
        if state is None or one is None:
            return
        asked = views.between(state, one.id)
        if event.wish == "cancel":
            self._end(one, "Cancel this debate?", "The transcript is kept; there is no verdict.")
        elif event.wish == "step_mode":
            self._do_in_view(cc.StepMode(handoff=one.id, on=not one.as_running.steps))
        elif event.wish == "override" and (contested := views.contested(state, one.id)) is not None:
            self._do_in_view(cc.AnswerRequest(request=contested.id, text=event.text))
        elif asked is None:
            self._said_of_view("the question between two rounds is gone already")
        else:
            option, words = _OPTIONS[event.wish]
            text = f"{words}{event.text}" if event.text else ""
            self._do_in_view(cc.AnswerRequest(request=asked.id, option=option, text=text))

    # -------------------------------------------------------------- pipeline

    def on_pipeline_dialog_wanted(self, event: PipelineDialog.Wanted) -> None:
        """Tell the pipeline how it goes on; ending it is confirmed first."""
        from app.projection import pipeline_views as views

        state = self._crew_state
        one = state.handoffs.get(event.handoff) if state is not None else None
        if state is None or one is None:
            return
        request = views.question_of(state, one)
        if event.wish == "abort":
            self._end(one, "End this pipeline?", "What its phases gave is kept.")
        elif event.wish == "step_mode":
            self._do_in_view(cc.StepMode(handoff=one.id, on=not one.as_running.steps))
        elif event.wish == "go_on" and one.state == "paused":
            self._do_in_view(cc.ResumeHandoff(handoff=one.id))
        elif request is None:
            self._said_of_view("nothing is asked any more")
        else:
            self._do_in_view(cc.AnswerRequest(request=request.id, option=event.wish, text=event.text))

    def _end(self, one: Handoff, question: str, told: str) -> None:
        from widgets.dialogs import ConfirmDialog, ConfirmModel

        def answered(yes: bool | None) -> None:
            if yes:
                self._do_in_view(cc.CancelHandoff(handoff=one.id))

        self.push_screen(ConfirmDialog(ConfirmModel(question, told)), answered)

    # -------------------------------------------------------------- builds

    _builder: BuilderDialog | None = None
    _building: Worker[None] | None = None
    _build: Build | None = None
    _source = ""
    _overrides: dict[str, Any]
    _records: tuple[PhaseRecord, ...] = ()
    _result: BuildResult | None = None

    def _open_build(self, source: str, build: Build, overrides: dict[str, Any] | None = None) -> None:
        """Build an agent and show it, phase by phase; a build goes on behind a closed screen.

        Args:
            source: what is built, as it is shown.
            build: builds it.
            overrides: parts of the spec that count above what the source says.
        """
        if self._result is None and self._building is not None:
            self._say(f"{self._source} is being built; one build at a time is shown", "error")
        else:
            self._source, self._build, self._overrides = source, build, dict(overrides or {})
            self._begin_build()
        self._show_build()

    def _show_build(self) -> None:
        """Show the build that runs, or the last one."""
        from widgets.dialogs.builder import BuilderDialog

        if self._build is None:
            self._say("nothing was built yet", "note")
        elif len(self.screen_stack) == 1:
            self._builder = BuilderDialog(self._build_model())
            self.push_screen(self._builder, self._build_closed)

    def _build_closed(self, _none: None) -> None:
        self._builder = None

    def _begin_build(self) -> None:
        self._records, self._result = (), None
        self._building = self.run_worker(self._built(), name="build", exit_on_error=False)

    async def _built(self) -> None:
        assert self._build is not None
        try:
            self._result = await self._build(self._phase_over, self._overrides)
        finally:
            if self._result is None:
                self._building = None
        said = f"{self._source}: {self._result.status.value.replace('_', ' ')}"
        kind = "asks" if self._result.choice is not None else "error"
        self._say(said, "ok" if self._result.success else kind)
        self._look_at_build()

    def _phase_over(self, record: PhaseRecord) -> None:
        self._records = (*self._records, record)
        self._look_at_build()

    def _build_model(self, said: str = "") -> Any:
        from app.projection.build_views import build

        return build(self._source, self._source, self._records, self._result, said)

    def _look_at_build(self, said: str = "") -> None:
        if self._builder is not None:
            self._builder.show(self._build_model(said))

    def on_builder_dialog_chosen(self, event: BuilderDialog.Chosen) -> None:
        """Build again with what was chosen."""
        choice = self._result.choice if self._result is not None else None
        if choice is None:
            return
        if event.option == "abort":
            self._look_at_build("it is left as it is; b builds it again")
            return
        if event.option != "retry":
            self._overrides[choice.key] = event.option
        self._begin_build()
        self._look_at_build()

    def on_builder_dialog_again_wanted(self, event: BuilderDialog.AgainWanted) -> None:
        """Build the same once more."""
        self._begin_build()
        self._look_at_build()

    def on_builder_dialog_cancel_wanted(self, event: BuilderDialog.CancelWanted) -> None:
        """End the build; nothing is left of it."""
        if self._building is not None:
            self._building.cancel()
            self._building = self._build = None
            if self._builder is not None:
                self._builder.dismiss(None)
            self._say(f"the build of {self._source} is cancelled; nothing of it is left", "note")


_OPTIONS = {
    "go_on": ("go_on", ""),
    "question": ("note", "Question: "),
    "evidence": ("note", "Evidence: "),
    "round": ("round", ""),
    "time": ("time", ""),
    "override": ("override", ""),
}
"""The option of the question between two rounds that each key takes, and what stands before its words."""
