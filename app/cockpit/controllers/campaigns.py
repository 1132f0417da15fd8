"""Jobs of the system itself, its backlog and campaigns: what is shown, and what their keys ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.cockpit.context import CockpitContext, in_background
from app.cockpit.controllers.links import ImproveLink
from app.projection import improve_views as views
from app.projection import pictures
from engine.core import campaigns as mm
from engine.core.improvement import CampaignStatus, JobRecord, JobStatus, MastermindState
from engine.core.journal import BlobError
from engine.improve.campaigns.report import shadow_text
from engine.inquiry.inbox import Need, NeedKind
from widgets.base.dialog import RowsDialog
from widgets.dialogs.campaign import CampaignDialog, CampaignRequest
from widgets.dialogs.lists import BacklogDialog, JobsDialog
from widgets.dialogs.picture import Picture
from widgets.dialogs.preview import PreviewDialog, PreviewModel

_JOBS = {"shadow": "coord_shadow", "resume": "campaign_resume"}
"""The job that a key starts on the shown campaign."""

SAID_AS: dict[JobStatus, str] = {JobStatus.DONE: "ok", JobStatus.NEEDS_OPERATOR: "note"}
"""How the bar says how a job ended; as an error for all others."""


class Campaigns:
    """The dialogs on jobs, backlog and campaigns, and the results of jobs."""

    def __init__(
        self, context: CockpitContext, mastermind: ImproveLink, enter: Callable[[str], None]
    ) -> None:
        self._context = context
        self._mastermind = mastermind
        self.settle = mastermind.settle
        self._enter = enter
        self._shown = ""
        """The campaign that is shown."""
        self._message = ""
        """The result of the last key in an open dialog."""
        context.frame_hooks.append(self._look)

    def _look(self) -> None:
        """Bring what is open up to date where something has happened."""
        state, showing = self._mastermind.state, self._context.showing
        if not self._mastermind.stale or state is None:
            return
        self._mastermind.stale = False
        if (jobs := showing(JobsDialog)) is not None:
            jobs.show(views.jobs(state))
        if (backlog := showing(BacklogDialog)) is not None:
            backlog.show(views.backlog(state))
        if (campaign := showing(CampaignDialog)) is not None:
            campaign.show(views.campaign(state, self._shown, self._message))

    def open_of_system(self, need: Need) -> None:
        """Open the campaign, the backlog or the question that the inbox named."""
        state = self._mastermind.state
        if need.kind is NeedKind.CAMPAIGN:
            self.open_campaign(need.thing)
        elif need.kind is NeedKind.BACKLOG:
            self.action_backlog()
        elif state is not None and need.thing in state.jobs:
            self.open_question(state.jobs[need.thing])
        else:
            self._mastermind.show(lambda now: self.open_question(now.jobs[need.thing]))

    def open_question(self, record: JobRecord) -> None:
        """Put what a job ended with before the operator: which of several is meant, steps to approve."""
        choices = record.answer.get("choices")
        if isinstance(choices, list) and choices:
            meant = tuple(
                (str(choice.get("component", "")), str(choice.get("rule", ""))) for choice in choices
            )
            line = f"{record.verb} {record.argument}".rstrip()
            model = PreviewModel(line, "it has several readings", choices=meant)
            job = {"verb": record.verb, "argument": record.argument, **record.answer.get("asked", {})}
            again = mm.StartJob.model_validate(job)

            def chosen(component: str | None) -> None:
                if component:
                    self._mastermind.ask(again.model_copy(update={"component": component}))

            self._context.push(PreviewDialog(model), chosen)
        elif digest := record.answer.get("approve"):
            options = {"approved": str(digest)}
            command = mm.StartJob(verb=record.verb, argument=record.argument, options=options)
            self._confirm("Do these steps?", record.message, command)
        else:
            self._context.show_text(f"{record.id} {record.verb}: it needs you", record.message)

    def _confirm(self, question: str, consequence: str, command: mm.ForMastermind) -> None:
        """Send a command once the operator has agreed."""
        self._context.confirm(question, consequence, lambda: self._mastermind.ask(command, self._say))

    def _say(self, message: str) -> None:
        """Show in the open dialog the result of a key."""
        self._message, self._mastermind.stale = message, True
        if isinstance(dialog := self._context.app.screen, RowsDialog):
            dialog.say(message)
        self._look()

    def action_mastermind_jobs(self) -> None:
        """Show the jobs."""
        self._mastermind.show(lambda state: self._push(JobsDialog(views.jobs(state))))

    def _push(self, dialog: JobsDialog | BacklogDialog | CampaignDialog) -> None:
        self._message = ""
        self._context.push(dialog)

    def _leave(self, then: Callable[..., object], *args: object) -> None:
        """Close the open dialog, and do something on the cockpit's own screen."""
        dialog = self._context.app.screen
        if isinstance(dialog, JobsDialog | BacklogDialog):
            dialog.dismiss(None)
            self._context.app.call_later(then, *args)

    def on_jobs_dialog_cancel(self, job: str) -> None:
        """End a job."""
        if job:
            self._mastermind.ask(mm.CancelJob(job=job), self._say)

    def on_jobs_dialog_open(self, job: str) -> None:
        """See the result of a job: its campaign, or its answer."""
        state = self._mastermind.state
        record = state.jobs.get(job) if state is not None else None
        if record is None or state is None:
            return
        of_job = [campaign.id for campaign in state.campaigns.values() if campaign.job == record.id]
        campaign = str(record.answer.get("campaign", "")) or (of_job[-1] if of_job else "")
        if record.status is JobStatus.NEEDS_OPERATOR and campaign not in state.campaigns:
            self._leave(self.open_question, record)
        elif campaign in state.campaigns:
            self._leave(self.open_campaign, campaign)
        else:
            title = f"{record.id} {record.verb} {record.argument}"
            self._leave(self._context.show_text, title, record.message or record.text or record.status.value)

    def on_jobs_dialog_backlog(self, _job: str) -> None:
        """See the backlog instead."""
        self._leave(self.action_backlog)

    def action_backlog(self) -> None:
        """Show what could be better."""
        self._mastermind.show(lambda state: self._push(BacklogDialog(views.backlog(state))))

    def on_backlog_dialog_approve(self, item: str) -> None:
        """Approve an item."""
        self.settle([item] if item else [], True, self._say)

    def on_backlog_dialog_reject(self, item: str) -> None:
        """Reject an item."""
        self.settle([item] if item else [], False, self._say)

    def on_backlog_dialog_process(self, _item: str) -> None:
        """Have the next item worked on."""
        self._mastermind.ask(mm.StartJob(verb="coord_process_backlog", count=1), self._say)

    def on_backlog_dialog_process_all(self, _item: str) -> None:
        """Have all items worked on."""
        about = "Each item gets a campaign, within the budget of the settings; T cancels it."
        command = mm.StartJob(verb="coord_process_backlog", count=1, auto=True)
        self._confirm("Work the whole backlog off by itself?", about, command)

    def on_backlog_dialog_campaign(self, item: str) -> None:
        """See the campaign on an item."""
        state = self._mastermind.state
        if state is None or item not in state.items:
            return
        if campaign := state.items[item].campaign:
            self._leave(self.open_campaign, campaign)
        else:
            self._say(f"{item} had no campaign yet: p works on the next item")

    def action_campaigns(self) -> None:
        """Show the campaign that needs the operator, else the newest."""
        self.open_campaign("")

    def open_campaign(self, campaign: str = "") -> None:
        """Show a campaign; without a name, the one that needs the operator, else the newest."""
        self._mastermind.show(lambda state: self._show_campaign(state, campaign))

    def _show_campaign(self, state: MastermindState, asked: str) -> None:
        waiting = [
            campaign.id
            for campaign in state.campaigns.values()
            if campaign.status is CampaignStatus.NEEDS_OPERATOR
        ]
        name = asked or next(reversed(waiting or list(state.campaigns)), "")
        if name not in state.campaigns:
            known = ", ".join(list(state.campaigns)[-8:]) or "none yet; coord_improve COMPONENT begins one"
            self._context.say(
                f"there is no campaign {asked}".rstrip() + f"; campaigns: {known}",
                "error" if asked else "note",
            )
            return
        self._shown = name
        self._push(CampaignDialog(views.campaign(state, name)))

    def on_campaign_dialog_picture(self) -> None:
        """Draw the gains of the candidates with their intervals."""
        self._context.show_picture(self._gains)

    async def _gains(self) -> Picture:
        state = self._mastermind.state
        campaign = state.campaigns.get(self._shown) if state is not None else None
        return pictures.gains(campaign) if campaign is not None else Picture("no campaign")

    def on_campaign_dialog_turned(self, by: int) -> None:
        """Show an older or a newer campaign."""
        state = self._mastermind.state
        if state is None or self._shown not in state.campaigns:
            return
        names = list(state.campaigns)
        at = names.index(self._shown) + by
        if 0 <= at < len(names):
            self._shown = names[at]
            self._say("")

    @in_background("difference")
    async def on_campaign_dialog_difference(self, candidate: str) -> None:
        """Read a difference."""
        mastermind = self._mastermind.part
        campaign = mastermind.state.campaigns.get(candidate.partition(".")[0]) if mastermind else None
        proposal = campaign.candidate(candidate) if campaign is not None else None
        if mastermind is None or proposal is None:
            return
        try:
            text = await mastermind.diff(candidate)
        except (BlobError, KeyError) as error:
            text = f"the difference cannot be read: {error}"
        if (dialog := self._context.showing(CampaignDialog)) is not None:
            dialog.show_difference(proposal.diff, text)

    def on_campaign_dialog_wanted(self, name: str, request: CampaignRequest) -> None:
        """Do what is wanted of a campaign; what changes files is confirmed first."""
        state = self._mastermind.state
        campaign = state.campaigns.get(name) if state is not None else None
        if campaign is None or self._context.refused_in_past():
            return
        chosen = campaign.candidate(campaign.chosen)
        if request == "apply" and chosen is not None:
            files = ", ".join(sorted(chosen.files))
            about = f"It writes {files} (+{chosen.added} -{chosen.removed}). u takes it back.\n"
            about += shadow_text(campaign) or "It was not run as a shadow; s does that."
            apply = mm.ApplyCandidate(campaign=campaign.id, diff=chosen.diff)
            self._confirm(f"Apply {chosen.id}: {chosen.title}?", about, apply)
        elif request == "decline":
            about = "The candidate is not applied; its item of the backlog is rejected."
            self._confirm(f"Decline {campaign.chosen}?", about, mm.DeclineCampaign(campaign=campaign.id))
        elif request == "roll_back" and campaign.application is not None:
            # One key: it brings files back as they were, and r finds the same candidate again for nothing.
            self._mastermind.ask(mm.RollBack(campaign=campaign.id), self._say)
        elif request in _JOBS:
            self._mastermind.ask(mm.StartJob(verb=_JOBS[request], argument=campaign.id), self._say)
        elif request == "cancel":
            self._mastermind.ask(mm.CancelJob(job=campaign.job), self._say)

    def job_over(self, job: str) -> None:
        """Say how a job ended; what its operator asked to see opens by itself."""
        state = self._mastermind.state
        record = state.jobs.get(job) if state is not None else None
        if record is None or state is None:
            return
        self._context.run(self._mastermind.look_at_components(), "components")
        head = record.message.partition("\n")[0]
        notice, kind = (
            f"{record.id} {record.verb} {record.status}: {head}",
            SAID_AS.get(record.status, "error"),
        )
        self._context.say(notice, kind)
        if job in self._mastermind.own_jobs and self._context.no_dialog:
            # Behind what a key asked for that closes another dialog (`_leave`).
            show = partial(self._open_result, state, record)
            self._context.app.call_later(self._context.pop_up, show, notice, kind)

    def _open_result(self, state: MastermindState, record: JobRecord) -> None:
        """Open what a job ended with."""
        campaign = state.campaigns.get(str(record.answer.get("campaign", "")))
        if record.status is JobStatus.NEEDS_OPERATOR and campaign is None:
            self.open_question(record)
        elif campaign is not None and campaign.status is CampaignStatus.NEEDS_OPERATOR:
            self.open_campaign(campaign.id)
        elif "\n" in record.message:
            self._context.show_text(f"{record.id} {record.verb} {record.argument}", record.message)

    def status(self, state: MastermindState) -> tuple[str, str]:
        """What the status line says of jobs and campaigns."""
        return views.improve_status(state)
