"""Commands about the system itself: campaigns, the backlog and jobs of Mastermind.

Options stand before the last argument, which is taken as it stands, without quotes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from app.commands import arguments as args
from app.commands.command import Context, Group, Show, Submit, Values, late
from engine.core import campaigns as mm
from engine.core.improvement import RESUMABLE, CampaignStatus, ItemStatus

OPEN = (ItemStatus.PENDING, ItemStatus.PENDING_APPROVAL, ItemStatus.FAILED)
WAITS = CampaignStatus.NEEDS_OPERATOR
OF_START = frozenset({"seed", "candidates", "seconds", "usd", "tokens", "allow", "component"})
"""Options that are fields of the job itself."""


command = Group("Mastermind", "improve", late("preview:preview_improve"))


# ------------------------------------------------------------------ reading arguments


def start(verb: str, argument: str, values: Values, **more: Any) -> mm.StartJob:
    """The command that begins a job.

    Args:
        verb: what the job does.
        argument: of the job, as it stands.
        values: options, of which those that are set are sent.
        more: other fields of the command.
    """
    given = {name.replace("_", "-"): value for name, value in values.items() if value is not None}
    fields = {name: given.pop(name) for name in OF_START & set(given)}
    return mm.StartJob.model_validate(
        {"verb": verb, "argument": argument, "options": given, **fields, **more}
    )


def begins(verb: str) -> Submit:
    """Sends the command that begins a job: options, then one argument to the end of the line."""

    def make(_context: Context, values: Values) -> mm.StartJob:
        options = {name: value for name, value in values.items() if name != "argument"}
        return start(verb, values.get("argument", ""), options)

    return Submit(make)


def _process(_context: Context, values: Values) -> mm.StartJob:
    count = values.get("count", "")
    options = {name: value for name, value in values.items() if name != "count"}
    if count == "auto":
        return start("coord_process_backlog", "auto", options, auto=True)
    return start("coord_process_backlog", count, options, count=int(count or 1))


def _campaign(text: str, context: Context) -> str:
    return f"k{CAMPAIGN(text, context)}"


def _roll_back(text: str, context: Context) -> str:
    return "last" if text == "last" else _campaign(text, context)


def _job(text: str, context: Context) -> str:
    return f"j{JOB(text, context)}"


def _deploy(_context: Context, values: Values) -> mm.StartJob:
    return start("deploy", values["argument"], {"approved": values.get("approve")})


def _suggest(_context: Context, values: Values) -> mm.AddItem:
    target, text = values["component"], values["text"]
    return mm.AddItem(target=target, suggestion=text, priority=values.get("priority", 5))


# ------------------------------------------------------------------ choices for completion


def _components(context: Context) -> Iterable[tuple[str, str]]:
    return context.components


def _items(*statuses: ItemStatus) -> args.Choices:
    def choices(context: Context) -> Iterable[tuple[str, str]]:
        items = context.mastermind.items.values() if context.mastermind is not None else ()
        return [(item.id, f"{item.target}: {item.suggestion}") for item in items if item.status in statuses]

    return choices


def _campaigns(*statuses: CampaignStatus) -> args.Choices:
    def choices(context: Context) -> Iterable[tuple[str, str]]:
        state = context.mastermind
        campaigns = reversed(state.campaigns.values()) if state is not None else ()
        return [
            (campaign.id, f"{campaign.status}: {campaign.directive}")
            for campaign in campaigns
            if not statuses or campaign.status in statuses
        ]

    return choices


def _running(context: Context) -> Iterable[tuple[str, str]]:
    jobs = context.mastermind.jobs.values() if context.mastermind is not None else ()
    return [(job.id, f"{job.verb} {job.argument}") for job in jobs if not job.status.over]


def _seeds(context: Context) -> Iterable[tuple[str, str]]:
    campaigns = context.mastermind.campaigns.values() if context.mastermind is not None else ()
    return [(str(campaign.seed), f"of {campaign.id}") for campaign in reversed(tuple(campaigns))]


def _approvable(context: Context) -> Iterable[tuple[str, str]]:
    """Digests of steps that were shown and not done."""
    jobs = reversed(context.mastermind.jobs.values()) if context.mastermind is not None else ()
    return [(str(job.answer["approve"]), job.argument) for job in jobs if job.answer.get("approve")]


# ------------------------------------------------------------------ the commands


def _state(what: str, view: str = "") -> Show:
    """Shows what Mastermind knows."""
    return Show(late(f"improve_runner:show_{what}"), view)


COUNT = args.matching("[1-9][0-9]{0,2}|auto", "how many items, or auto, is expected")
ITEM_ID = args.matching(
    "[A-Za-z0-9]{1,64}", "'{}' is no item's id, such as i3 or the beginning of a long one"
)
CAMPAIGN = args.matching(
    "[kK]?[0-9]{1,9}", "'{}' is no campaign's id, such as k2", lambda text: text.lstrip("kK")
)
JOB = args.matching("[jJ]?[0-9]{1,9}", "'{}' is no job's id, such as j3", lambda text: text.lstrip("jJ"))
ONLY_JOB = args.only_choice(_running, "name the job; under way: {}")
ONLY_CAMPAIGN = args.only_choice(_campaigns(WAITS), "a campaign such as k2 is missing; there are: {}")
_flag = partial(args.Flag, behind=True)
OF_CAMPAIGNS = (
    _flag("seed", "N", _seeds),
    _flag("candidates", "N", args.pairs(("12", "at most"), ("3", "at most"))),
    _flag("seconds", "S", args.pairs(("600", "of processor"), ("60", "of processor"))),
    _flag("usd", "X", args.pairs(("1", "for models"), ("0", "no model"))),
    _flag("tokens", "N", args.pairs(("200000", "for a model without a price"))),
    _flag("allow"),
    _flag("apply"),
)
ON_ONE = (_flag("component", "ID", _components), *OF_CAMPAIGNS)
ANY = partial(args.Word, "campaign", "a campaign", True)
WAITING = ANY(parse=_campaign, offers=_campaigns(WAITS), default=ONLY_CAMPAIGN)
RESUMED = args.Word("argument", "a campaign such as k2", False, "CAMPAIGN", _campaign, _campaigns(*RESUMABLE))
COUNTS = args.pairs(("auto", "until it is empty, cancelled or out of budget"), ("3", "items"))
APPROVABLE = args.Word(
    "item", "an item such as i3", parse=ITEM_ID, offers=_items(ItemStatus.PENDING_APPROVAL)
)
REJECTABLE = args.Word("item", "an item such as i3", parse=ITEM_ID, offers=_items(*OPEN))
FILE = args.Rest("file", "a file such as report.html", shown="FILE")
argument = partial(args.Rest, "argument")
COMMANDS = (
    command(
        "evolve", begins("evolve"), *ON_ONE, argument("the directive", shown="DIRECTIVE", offers=_components)
    ),
    command(
        "coord_improve improve",
        begins("coord_improve"),
        *(*ON_ONE, argument("a component", shown="COMPONENT [CONTEXT]", offers=_components)),
    ),
    command("campaign campaigns", _state("campaigns", "campaign"), ANY("ID", _campaign, _campaigns(), "")),
    command(
        "campaign_page",
        _state("page"),
        *(args.Word("campaign", "a campaign such as k2", parse=_campaign, offers=_campaigns()), FILE),
    ),
    command("campaign_resume coord_resume", begins("campaign_resume"), RESUMED),
    command(
        "coord_shadow shadow",
        Submit(lambda _context, values: start("coord_shadow", values["campaign"], {})),
        WAITING,
    ),
    command("coord_apply", mm.ApplyCandidate, WAITING),
    command("coord_decline", mm.DeclineCampaign, WAITING, args.REASON),
    command(
        "coord_rollback rollback",
        mm.RollBack,
        ANY("[CAMPAIGN|last]", _roll_back, _campaigns(CampaignStatus.APPLIED)),
    ),
    command(
        "coord_analyze analyze_system",
        begins("coord_analyze"),
        argument("a context", optional=True, shown="CONTEXT"),
    ),
    command("coord_backlog backlog", _state("backlog", "backlog")),
    command(
        "coord_suggest suggest",
        Submit(_suggest),
        args.priority(),
        args.Word("component", "a component", offers=_components),
        args.Rest("text", "the suggestion"),
    ),
    command(
        "coord_process_backlog process_backlog",
        Submit(_process),
        *OF_CAMPAIGNS,
        args.Rest("count", "how many items", optional=True, shown="[COUNT|auto]", parse=COUNT, offers=COUNTS),
    ),
    command("coord_approve", Submit(mm.SettleItem, {"approve": True}), APPROVABLE),
    command("coord_reject", Submit(mm.SettleItem, {"approve": False}), *(REJECTABLE, args.REASON)),
    command("mastermind_status", _state("status")),
    command("mastermind_jobs coord_jobs", _state("jobs", "jobs")),
    command(
        "job_cancel cancel_job",
        mm.CancelJob,
        args.Word("job", "a job", True, parse=_job, offers=_running, default=ONLY_JOB),
    ),
    command(
        "deploy",
        Submit(_deploy),
        *(args.Flag("approve", "DIGEST", _approvable), argument("the directive", shown="DIRECTIVE")),
    ),
)
