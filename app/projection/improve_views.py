"""The models of the dialogs on Mastermind, from what it knows."""

from __future__ import annotations

from collections.abc import Iterator

from app.projection import improve_text as lines
from engine.core import improvement as im
from engine.core.text import clean_line
from engine.improve.campaigns.report import shadow_text
from engine.improve.state import check_counts_text
from widgets.base.facts import Fact, ListModel
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, Pieces, bar
from widgets.dialogs.campaign import CampaignModel, CampaignRequest

STYLES = {"✓": "success", "✗": "error", "?": "warning", "▶": "accent", "↶": "warning", "■": "dim", "…": "dim"}
"""The style of a mark; of others that of text."""
JOBS_SHOWN = 200
METER_CELLS = 12
GAIN_CELLS = 19
"""Cells of the interval of a gain."""
EVIDENCE_SHOWN = 30
_SETTLED = (im.ItemStatus.COMPLETED, im.ItemStatus.REJECTED, im.ItemStatus.ROLLED_BACK)


def _style(mark: str) -> str:
    return STYLES.get(mark, "text")


# ------------------------------------------------------------------ the status line


def improve_status(state: im.MastermindState | None) -> tuple[str, str]:
    """What the status line says of jobs and campaigns, and its short form; empty where there is nothing."""
    if state is None:
        return "", ""
    running = [job for job in state.jobs.values() if not job.status.over]
    if running:
        first = next((job for job in running if job.status is im.JobStatus.RUNNING), running[0])
        more = f" +{len(running) - 1}" if len(running) > 1 else ""
        words = clean_line(f"{first.id} {first.verb} {lines.progress_text(first)}")
        return f"{words}{more}", f"{first.id} {lines.progress_text(first)}".rstrip() + more
    needs = im.CampaignStatus.NEEDS_OPERATOR
    waiting = [campaign.id for campaign in state.campaigns.values() if campaign.status is needs]
    return (f"{waiting[-1]} waits for you (C)", f"{waiting[-1]}?") if waiting else ("", "")


# ------------------------------------------------------------------ jobs


def jobs(state: im.MastermindState) -> ListModel:
    """The newest jobs, the newest first."""
    newest = list(state.jobs.values())[-JOBS_SHOWN:]
    return ListModel("Background jobs", [_job(job) for job in reversed(newest)])


def _job(job: im.JobRecord) -> Row:
    mark, over = lines.MARKS[job.status], job.status.over
    style, asked = _style(mark), clean_line(f"{job.verb} {job.argument}".rstrip(), limit=80)
    words = clean_line(job.message if over else job.text, limit=600)
    meter: Pieces = (Piece("· ", "dim"),)
    if job.of and not over:
        count = clean_line(lines.progress_text(job))
        meter = (*bar(min(1.0, job.done / job.of), METER_CELLS, style="accent"), Piece(f" {count} ", "dim"))
    return Row(
        job.id,
        (
            Piece(f"{job.id:<4} ", "strong"),
            Piece(f"{job.status.value:<11} ", style),
            Piece(f"{asked} ", "accent"),
            *meter,
            Piece(words),
        ),
        tail=(Piece(job.ended[11:19] or job.begun[11:19], "dim"),),
        indent=5,
        most=3,
        mark=Piece(mark, style),
        copy=f"{job.id} {asked} {words}",
    )


# ------------------------------------------------------------------ backlog


def backlog(state: im.MastermindState) -> ListModel:
    """All items, the most urgent first."""
    items = lines.sorted_items(state)
    opened = sum(item.status not in _SETTLED for item in items)
    waits = sum(item.status is im.ItemStatus.PENDING_APPROVAL for item in items)
    parts = [f"{opened} open of {len(items)}"]
    parts += [f"{waits} wait for your approval"] if waits else []
    parts += [f"{state.autonomous} works it off by itself"] if state.autonomous else []
    rows, facts = [_item(item) for item in items], {item.id: _item_facts(item) for item in items}
    return ListModel("Backlog: what could be better", rows, standing=" · ".join(parts), facts=facts)


def _item(item: im.BacklogItem) -> Row:
    mark, plain = lines.MARKS[item.status], "dim" if item.status in _SETTLED else "text"
    target, suggestion = clean_line(item.target, limit=40), clean_line(item.suggestion, limit=400)
    return Row(
        item.id,
        (
            Piece(f"{item.id:<4} ", "strong"),
            Piece(f"{item.priority:>2} ", plain),
            Piece(f"{item.status.value:<17}", _style(mark)),
            Piece(f"{target} ", "accent"),
            Piece(suggestion, plain),
        ),
        indent=8,
        most=2,
        mark=Piece(mark, _style(mark)),
        copy=f"{item.id} {target} {suggestion}",
    )


def _item_facts(item: im.BacklogItem) -> list[Fact]:
    finding = item.finding
    place = f"{finding.path}:{finding.line}" if finding is not None and finding.path else ""
    rows = (
        ("item", f"{item.id} · {item.uid} · {item.concern} · from {item.source or 'nobody'}"),
        ("place", place),
        ("stands", item.message),
        ("decided", f"by {item.decided_by}" if item.decided_by else ""),
        ("tried", f"{item.attempts} times, last {item.tried[:19]}" if item.attempts else ""),
        ("merged", f"found {item.merged} times more" if item.merged else ""),
    )
    parts = [Fact(label, text) for label, text in rows if text]
    if item.status is im.ItemStatus.PENDING_APPROVAL:
        parts.append(Fact("critical", "nothing is tried before you approve it", "warning"))
    return parts + [Fact("evidence", text) for text in item.evidence[:EVIDENCE_SHOWN]]


# ------------------------------------------------------------------ campaigns


def campaign(state: im.MastermindState, name: str, message: str = "") -> CampaignModel:
    """A campaign with its family."""
    campaign = state.campaigns.get(name)
    if campaign is None:
        return CampaignModel(said=message or "there was no campaign yet; coord_improve COMPONENT begins one")
    names = list(state.campaigns)
    mark = lines.MARKS[campaign.status]
    named = campaign.component.id
    head = [
        f"{campaign.directive} · {campaign.rule}",
        f"{len(campaign.candidates)} of {campaign.budget.candidates} candidates · {campaign.seconds:.1f} of "
        f"{campaign.budget.seconds:g} s of processor · ${campaign.usd:.2f} · seed {campaign.seed}",
        f"judged by {check_counts_text(campaign.sets)} checks" if campaign.sets else "",
        *(shadow_text(campaign), campaign.message, f"! {campaign.told}" if campaign.told else ""),
    ]
    shown = list(family(campaign))
    widest = max((len(lead + candidate.id) for lead, candidate in shown), default=0)
    return CampaignModel(
        campaign.id,
        f"on {named}",
        mark,
        campaign.status.value,
        _style(mark),
        tuple(filter(None, head)),
        [_candidate(campaign, candidate, f"{lead}{candidate.id}".ljust(widest)) for lead, candidate in shown],
        {candidate.id: tuple(_told(candidate)) for candidate in campaign.candidates},
        {candidate.id: candidate.diff for candidate in campaign.candidates},
        campaign.chosen,
        tuple(_log(campaign)),
        _may(state, campaign),
        f"{names.index(name) + 1} of {len(names)}",
        message,
    )


def _may(state: im.MastermindState, campaign: im.Campaign) -> frozenset[CampaignRequest]:
    may: set[CampaignRequest] = set()
    if campaign.status is im.CampaignStatus.NEEDS_OPERATOR:
        may |= {"shadow", "apply", "decline"}
    if campaign.status is im.CampaignStatus.APPLIED:
        may.add("roll_back")
    if campaign.status in im.RESUMABLE:
        may.add("resume")
    job = state.jobs.get(campaign.job)
    if job is not None and not job.status.over:
        may = {"cancel"}
    return frozenset(may)


def family(campaign: im.Campaign) -> Iterator[tuple[str, im.Candidate]]:
    """Each candidate below the one that it was made from, with the branches that it hangs on."""
    known = {candidate.id for candidate in campaign.candidates}
    below: dict[str, list[im.Candidate]] = {}
    for child in campaign.candidates:
        below.setdefault(child.parent if child.parent in known else "", []).append(child)

    def walk(parent: str, lead: str) -> Iterator[tuple[str, im.Candidate]]:
        children = below.get(parent, [])
        for at, child in enumerate(children):
            last = at == len(children) - 1
            branch = ("└ " if last else "├ ") if parent else ""
            yield lead + branch, child
            yield from walk(child.id, lead + (("  " if last else "│ ") if parent else ""))

    return walk("", "")


def _candidate(campaign: im.Campaign, candidate: im.Candidate, name: str) -> Row:
    """The interval of the gain is green above nothing, red below, plain across."""
    verdict = candidate.verdict
    mark = lines.RULING_MARKS[verdict.ruling] if verdict is not None else "…"
    ruling = verdict.ruling.value if verdict is not None else "not judged"
    gain, interval, style, figures = verdict.gain if verdict is not None else None, "", "text", ""
    if gain is not None:
        interval, figures = f"{gain.low:+.3g} … {gain.high:+.3g}", f"{gain.words} "
        style = "success" if gain.low > 0 else "error" if gain.high < 0 else "text"
    title, strong = clean_line(candidate.title), "strong" if candidate.id == campaign.chosen else "text"
    added, removed = Piece(f"+{candidate.added}", "success"), Piece(f" -{candidate.removed}", "error")
    return Row(
        candidate.id,
        (
            Piece(f"{name} ", strong),
            Piece(f"{interval:^{GAIN_CELLS}}", style),
            Piece(f" {ruling:<10} ", _style(mark)),
            Piece(clean_line(figures) + " " * bool(figures), "dim"),
            Piece(title, strong),
        ),
        tail=(added, removed) if candidate.diff else (),
        mark=Piece(mark, _style(mark)),
        copy=f"{candidate.id} {ruling} {title} {clean_line(figures)}".rstrip(),
    )


def _told(candidate: im.Candidate) -> Iterator[Fact]:
    yield Fact("", f"{candidate.id}: {candidate.title}", "strong")
    yield Fact("by", candidate.origin + (f", from {candidate.parent}" if candidate.parent else ""))
    if candidate.why:
        yield Fact("why", candidate.why)
    yield from (Fact(*row) for row in lines.verdict_rows(candidate.verdict))
    if candidate.again:
        yield Fact("judged", f"as {candidate.again}, which is the same; it cost nothing")


def _log(campaign: im.Campaign) -> Iterator[Fact]:
    for finding in campaign.findings:
        yield Fact("found", finding.text)
    for stage in campaign.stages:
        yield Fact(stage.at[11:19], f"{stage.status}: {stage.text}".removesuffix(": "))
