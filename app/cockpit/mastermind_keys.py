"""Mastermind in the command bar: lines about the system itself, previews, what came of jobs."""

from __future__ import annotations

from collections.abc import Callable

from app.cockpit.campaign_keys import CampaignKeys
from app.verb import Context, Local
from engine.domain.improvement import CampaignStatus
from engine.domain.mastermind import JobStatus
from engine.journal import events as ev
from engine.journal.event import Event
from widgets.dialogs import ConfirmDialog, ConfirmModel

SAID_AS: dict[JobStatus, str] = {JobStatus.DONE: "ok", JobStatus.NEEDS_OPERATOR: "note"}
"""How the bar says what came of a job; as an error for all others (mindX spec §7, behaviour 14)."""
READ_ONLY = frozenset(
    {"mastermind_status", "show_agent_registry", "show_tool_registry", "id_list", "agent_verify"}
)
"""Answers that change nothing."""


class MastermindKeys(CampaignKeys):
    """What is typed about the system itself, and what comes of it."""

    def _mastermind_told(self, event: Event) -> None:
        """Take an event of Mastermind's stream in."""
        self._mastermind_stale = True
        if self._mastermind is None:
            self._mastermind_soon()
        said = ev.payload_of(event)
        if said.kind == "mastermind.job_ended":
            self.call_later(self._job_over, str(getattr(said, "job", "")))

    def _job_over(self, job: str) -> None:
        """Say what came of a job; what its operator asked to see opens by itself."""
        state = self._mastermind_state
        record = state.jobs.get(job) if state is not None else None
        if record is None or state is None:
            return
        self.run_worker(self._look_at_components(), name="components", exit_on_error=False)
        head, _, more = record.message.partition("\n")
        self._say(f"{record.id} {record.verb} {record.status}: {head}", SAID_AS.get(record.status, "error"))
        if job not in self._own_jobs or self._occupied or self._in_past:
            return
        campaign = state.campaigns.get(str(record.answer.get("campaign", "")))
        if record.status is JobStatus.NEEDS_OPERATOR and campaign is None:
            self._open_question(record)
        elif campaign is not None and campaign.status is CampaignStatus.NEEDS_OPERATOR:
            self._open_campaign(campaign.id)
        elif more:
            self._read_text(f"{record.id} {record.verb} {record.argument}", record.message)

    # -------------------------------------------------------------- what is typed

    def _answer_entered(self, intent: Local) -> None:
        """Do what is answered without a job."""
        if intent.action == "coord_backlog":
            self.action_backlog()
        elif intent.action == "mastermind_jobs":
            self.action_mastermind_jobs()
        elif intent.action == "campaign":
            self._open_campaign(intent.argument)
        elif intent.action == "id_deprecate" and not self._refused_in_past():
            self.run_worker(self._give_identity_up(intent), name=intent.action, exit_on_error=False)
        elif intent.action in READ_ONLY or not self._refused_in_past():
            self.run_worker(self._answered(intent), name=intent.action, exit_on_error=False)

    async def _answered(self, intent: Local) -> None:
        from app.mastermind_doing import answered

        if self._engine is None:
            self._say("the workspace is still opening", "error")
            return
        await self._open_mastermind()
        code, _, text = await answered(self._engine, intent, operator=self._settings.operator)
        kind = {0: "ok", 3: "note"}.get(code, "error")
        self._say(text.replace("\n", " · "), kind if intent.action not in READ_ONLY or code else "note")
        if "\n" in text and code in (0, 3) and len(self.screen_stack) == 1:
            self._read_text(intent.action, text)

    async def _give_identity_up(self, intent: Local) -> None:
        """Ask before an identity is given up."""
        from app.mastermind_doing import YES, answered

        if self._engine is None:
            self._say("the workspace is still opening", "error")
            return
        code, _, text = await answered(self._engine, intent, operator=self._settings.operator)
        if code != 3:
            self._say(text, "error" if code else "ok")
            return

        def sure(yes: bool | None) -> None:
            if yes:
                self._answer_entered(Local("id_deprecate", f"{intent.argument} {YES}"))

        told = text.partition("; id_deprecate ")[0]
        self.push_screen(ConfirmDialog(ConfirmModel("Give this identity up?", told)), sure)

    def _show_preview(self, line: str, context: Context, do: Callable[[str, str], None]) -> None:
        """Show what a line would do; enter in the dialog does it.

        Args:
            line: without the `?` behind it.
            context: against which it is understood.
            do: given the line, and the component that was chosen where several were meant.
        """
        self.run_worker(self._previewed(line, context, do), name="preview", exit_on_error=False)

    async def _previewed(self, line: str, context: Context, do: Callable[[str, str], None]) -> None:
        from app.mastermind_doing import foretold
        from app.projection import mastermind_views as views
        from widgets.dialogs.preview import PreviewDialog

        if self._engine is None or len(self.screen_stack) > 1:
            return
        found = await foretold(self._engine, line, context)

        def answered(chosen: str | None) -> None:
            if chosen is None:
                self._open_bar(found.line)
            else:
                do(found.line, chosen)

        self.push_screen(PreviewDialog(views.preview(found)), answered)
