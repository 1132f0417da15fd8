"""Jobs, backlog and campaigns in the cockpit: what is shown of them, and what their keys ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.cockpit.mastermind_base import MastermindBase
from engine.domain import mastermind_commands as mm
from engine.domain.improvement import CampaignStatus
from engine.domain.mastermind import JobRecord, JobStatus, MastermindState
from engine.journal.errors import BlobError
from widgets.dialogs import ConfirmDialog, ConfirmModel

if TYPE_CHECKING:
    from engine.inquiry import Need
    from widgets.dialogs.backlog import BacklogDialog
    from widgets.dialogs.campaign import CampaignDialog
    from widgets.dialogs.jobs import JobsDialog

STEPS_SHOWN = 14
"""Steps of a deployment that a question has room for."""


class CampaignKeys(MastermindBase):
    """The dialogs on jobs, backlog and campaigns."""

    _jobs: JobsDialog | None = None
    _backlog: BacklogDialog | None = None
    _campaign: CampaignDialog | None = None
    _campaign_shown = _dialog_said = ""
    """The campaign that is shown; what came of the last key in an open dialog."""

    def _look_at_mastermind(self) -> None:
        """Bring what is open up to date where something has happened."""
        state = self._mastermind_state
        if not self._mastermind_stale or state is None:
            return
        self._mastermind_stale = False
        from app.projection import mastermind_views as views

        if self._jobs is not None:
            self._jobs.show(views.jobs(state, self._dialog_said))
        if self._backlog is not None:
            self._backlog.show(views.backlog(state, self._dialog_said))
        if self._campaign is not None:
            self._campaign.show(views.campaign(state, self._campaign_shown, self._dialog_said))

    def _open_of_system(self, need: Need) -> None:
        """Open the campaign, the backlog or the question that the inbox named."""
        from engine.inquiry import NeedKind

        state = self._mastermind_state
        if need.kind is NeedKind.CAMPAIGN:
            self._open_campaign(need.thing)
        elif need.kind is NeedKind.BACKLOG:
            self.action_backlog()
        elif state is not None and need.thing in state.jobs:
            self._open_question(state.jobs[need.thing])
        else:
            self._open_of_mastermind(lambda now: self._open_question(now.jobs[need.thing]))

    def _open_question(self, record: JobRecord) -> None:
        """Put what a job ended with before the operator: which of several is meant, steps to approve."""
        choices = record.answer.get("choices")
        if isinstance(choices, list) and choices:
            from widgets.dialogs.preview import PreviewDialog, PreviewModel

            meant = tuple((str(one.get("component", "")), str(one.get("rule", ""))) for one in choices)
            line = f"{record.verb} {record.argument}".rstrip()
            model = PreviewModel(line, "it has several readings", choices=meant)
            said = {"verb": record.verb, "argument": record.argument, **record.answer.get("asked", {})}
            again = mm.StartJob.model_validate(said)

            def chosen(component: str | None) -> None:
                if component:
                    self._ask_mastermind(again.model_copy(update={"component": component}))

            self.push_screen(PreviewDialog(model), chosen)
        elif record.answer.get("approve") and isinstance(record.answer.get("steps"), list):
            self._approve_steps(record)
        elif record.answer.get("argument"):
            # What a model filled in; this creates just that.
            create = mm.StartJob(verb=record.verb, argument=str(record.answer["argument"]))
            self._confirm("Create this agent?", record.message, create)
        else:
            self._read_text(f"{record.id} {record.verb}: it needs you", record.message)

    def _approve_steps(self, record: JobRecord) -> None:
        steps = [str(one) for one in record.answer["steps"]]
        more = [f"… and {len(steps) - STEPS_SHOWN} more: mastermind_jobs shows them"]
        shown = "\n".join(steps[:STEPS_SHOWN] + (more if len(steps) > STEPS_SHOWN else []))
        options = {"approved": record.answer["approve"], "deployment": record.answer.get("deployment")}
        command = mm.StartJob(verb=record.verb, argument=record.argument, options=options)
        self._confirm(f"Do these {len(steps)} steps?", shown, command)

    def _confirm(self, question: str, consequence: str, command: mm.ForMastermind) -> None:
        """Send a command once the operator has agreed."""

        def answered(yes: bool | None) -> None:
            if yes:
                self._ask_mastermind(command, self._said_of_mastermind)

        self.push_screen(ConfirmDialog(ConfirmModel(question, consequence)), answered)

    def _said_of_mastermind(self, message: str) -> None:
        """Show in the open dialog what came of a key."""
        self._dialog_said, self._mastermind_stale = message, True
        self._look_at_mastermind()

    # -------------------------------------------------------------- jobs

    def action_mastermind_jobs(self) -> None:
        """Show the jobs."""
        self._open_of_mastermind(self._show_jobs)

    def _open_of_mastermind(self, show: Callable[[MastermindState], None]) -> None:
        """Open a dialog on what Mastermind knows."""
        if self._engine is None:
            self._say("the workspace is still opening", "error")
        elif len(self.screen_stack) == 1:
            self.run_worker(self._opened_of_mastermind(show), name="mastermind", exit_on_error=False)

    async def _opened_of_mastermind(self, show: Callable[[MastermindState], None]) -> None:
        mastermind = await self._open_mastermind()
        if len(self.screen_stack) == 1:
            show(mastermind.state)

    def _show_jobs(self, state: MastermindState) -> None:
        from app.projection import mastermind_views as views
        from widgets.dialogs.jobs import JobsDialog

        self._jobs = JobsDialog(views.jobs(state))
        self.push_screen(self._jobs, self._dialog_closed)

    def _dialog_closed(self, _none: None) -> None:
        self._jobs = self._backlog = self._campaign = None
        self._dialog_said = ""

    # The handlers' names say which dialog's messages they take, so that it need not be imported before.

    def on_jobs_dialog_cancel_requested(self, event: JobsDialog.CancelRequested) -> None:
        """End a job."""
        self._ask_mastermind(mm.CancelJob(job=event.job), self._said_of_mastermind)

    def on_jobs_dialog_open_requested(self, event: JobsDialog.OpenRequested) -> None:
        """See what came of a job: its campaign, or its answer."""
        state = self._mastermind_state
        record = state.jobs.get(event.job) if state is not None else None
        if record is None or state is None or self._jobs is None:
            return
        found = [one.id for one in state.campaigns.values() if one.job == record.id]
        campaign = str(record.answer.get("campaign", "")) or (found[-1] if found else "")
        self._jobs.dismiss(None)
        if record.status is JobStatus.NEEDS_OPERATOR and campaign not in state.campaigns:
            self.call_later(self._open_question, record)
        elif campaign in state.campaigns:
            self.call_later(self._open_campaign, campaign)
        else:
            title = f"{record.id} {record.verb} {record.argument}"
            self.call_later(self._read_text, title, record.message or record.text or record.status.value)

    def on_jobs_dialog_backlog_requested(self, event: JobsDialog.BacklogRequested) -> None:
        """See the backlog instead."""
        if self._jobs is not None:
            self._jobs.dismiss(None)
            self.call_later(self.action_backlog)

    # -------------------------------------------------------------- backlog

    def action_backlog(self) -> None:
        """Show what could be better."""
        self._open_of_mastermind(self._show_backlog)

    def _show_backlog(self, state: MastermindState) -> None:
        from app.projection import mastermind_views as views
        from widgets.dialogs.backlog import BacklogDialog

        self._backlog = BacklogDialog(views.backlog(state))
        self.push_screen(self._backlog, self._dialog_closed)

    def on_backlog_dialog_settle_requested(self, event: BacklogDialog.SettleRequested) -> None:
        """Approve or reject items, one after the other."""
        self.run_worker(self._settle_items(event.items, event.approve), name="settle", exit_on_error=False)

    async def _settle_items(self, items: tuple[str, ...], approve: bool) -> None:
        said = []
        for item in items:
            said.append((await self._submit(mm.SettleItem(item=item, approve=approve))).message)
        self._said_of_mastermind("; ".join(said))

    def on_backlog_dialog_process_requested(self, event: BacklogDialog.ProcessRequested) -> None:
        """Have the next items worked on."""
        command = mm.StartJob(verb="coord_process_backlog", count=event.count, auto=event.auto)
        if event.auto:
            told = "Each item gets a campaign, within the budget of the settings; T cancels it."
            self._confirm("Work the whole backlog off by itself?", told, command)
        else:
            self._ask_mastermind(command, self._said_of_mastermind)

    def on_backlog_dialog_campaign_requested(self, event: BacklogDialog.CampaignRequested) -> None:
        """See the campaign on an item."""
        if self._backlog is not None:
            self._backlog.dismiss(None)
            self.call_later(self._open_campaign, event.campaign)

    # -------------------------------------------------------------- campaigns

    def action_campaigns(self) -> None:
        """Show the campaign that needs the operator, else the newest."""
        self._open_campaign("")

    def _open_campaign(self, wanted: str) -> None:
        def show(state: MastermindState) -> None:
            self._show_campaign(state, wanted)

        self._open_of_mastermind(show)

    def _show_campaign(self, state: MastermindState, wanted: str) -> None:
        waiting = [one.id for one in state.campaigns.values() if one.status is CampaignStatus.NEEDS_OPERATOR]
        name = wanted or next(reversed(waiting or list(state.campaigns)), "")
        if name not in state.campaigns:
            known = ", ".join(list(state.campaigns)[-8:]) or "none yet; coord_improve COMPONENT begins one"
            self._say(
                f"there is no campaign {wanted}".rstrip() + f"; campaigns: {known}",
                "error" if wanted else "note",
            )
            return
        from app.projection import mastermind_views as views
        from widgets.dialogs.campaign import CampaignDialog

        self._campaign_shown = name
        self._campaign = CampaignDialog(views.campaign(state, name))
        self.push_screen(self._campaign, self._dialog_closed)

    def on_campaign_dialog_turned(self, event: CampaignDialog.Turned) -> None:
        """Show an older or a newer campaign."""
        state = self._mastermind_state
        if state is None or self._campaign_shown not in state.campaigns:
            return
        names = list(state.campaigns)
        at = names.index(self._campaign_shown) + event.by
        if 0 <= at < len(names):
            self._campaign_shown = names[at]
            self._said_of_mastermind("")

    def on_campaign_dialog_difference_wanted(self, event: CampaignDialog.DifferenceWanted) -> None:
        """Read a difference."""
        self.run_worker(self._read_difference(event.candidate), name="difference", exit_on_error=False)

    async def _read_difference(self, candidate: str) -> None:
        mastermind = self._mastermind
        campaign = mastermind.state.campaigns.get(candidate.partition(".")[0]) if mastermind else None
        found = campaign.candidate(candidate) if campaign is not None else None
        if mastermind is None or found is None:
            return
        try:
            text = await mastermind.diff(candidate)
        except (BlobError, KeyError) as error:
            text = f"the difference cannot be read: {error}"
        if self._campaign is not None:
            self._campaign.show_difference(found.diff, text)

    def on_campaign_dialog_wanted(self, event: CampaignDialog.Wanted) -> None:
        """Do what is wanted of a campaign; what changes files is confirmed first."""
        state = self._mastermind_state
        campaign = state.campaigns.get(event.campaign) if state is not None else None
        if campaign is None or self._refused_in_past():
            return
        chosen = campaign.candidate(campaign.chosen)
        from engine.mastermind.foretelling import shadow_text

        if event.wish == "apply" and chosen is not None:
            files = ", ".join(sorted(chosen.files))
            told = f"It writes {files} (+{chosen.added} -{chosen.removed}). u takes it back.\n"
            told += shadow_text(campaign) or "It was not run as a shadow; s does that."
            apply = mm.ApplyCandidate(campaign=campaign.id, diff=chosen.diff)
            self._confirm(f"Apply {chosen.id}: {chosen.title}?", told, apply)
        elif event.wish == "decline":
            told = "The candidate is not applied; its item of the backlog is rejected."
            self._confirm(f"Decline {campaign.chosen}?", told, mm.DeclineCampaign(campaign=campaign.id))
        elif event.wish == "roll_back" and campaign.application is not None:
            # One key: it brings files back as they were, and o finds the same candidate again for nothing.
            self._ask_mastermind(mm.RollBack(campaign=campaign.id), self._said_of_mastermind)
        elif event.wish == "shadow":
            shadow = mm.StartJob(verb="coord_shadow", argument=campaign.id)
            self._ask_mastermind(shadow, self._said_of_mastermind)
        elif event.wish == "resume":
            resume = mm.StartJob(verb="campaign_resume", argument=campaign.id)
            self._ask_mastermind(resume, self._said_of_mastermind)
        elif event.wish == "cancel":
            self._ask_mastermind(mm.CancelJob(job=campaign.job), self._said_of_mastermind)
