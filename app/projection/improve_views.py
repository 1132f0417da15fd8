"""The models of the dialogs on Mastermind, from what it knows."""

from __future__ import annotations

from collections.abc import Iterator

from app.projection import improve_text as lines
from engine.core import improvement as im
from engine.core.text import clean_line
from engine.improve.campaigns.report import shadow_text
from engine.improve.state import check_counts_text
from widgets.base.facts import Fact
from widgets.dialogs.backlog import BacklogModel, ItemLine, JobLine, JobsModel
from widgets.dialogs.campaign import CampaignModel, CandidateLine, Wish

STYLES = {"✓": "success", "✗": "error", "?": "warning", "▶": "accent", "↶": "warning", "■": "dim", "…": "dim"}
"""The style of a mark; of others that of text."""
JOBS_SHOWN = 200
EVIDENCE_SHOWN = 30
_SETTLED = (im.ItemStatus.COMPLETED, im.ItemStatus.REJECTED, im.ItemStatus.ROLLED_BACK)
_REJECTABLE = (im.ItemStatus.PENDING, im.ItemStatus.PENDING_APPROVAL, im.ItemStatus.FAILED)
_RESUMABLE = (
    *(im.CampaignStatus.CANCELLED, im.CampaignStatus.INTERRUPTED),
    *(im.CampaignStatus.FAILED, im.CampaignStatus.ROLLED_BACK),
)


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


def jobs(state: im.MastermindState, message: str = "") -> JobsModel:
    """The newest jobs, the newest first."""
    newest = list(state.jobs.values())[-JOBS_SHOWN:]
    return JobsModel(tuple(_job(job) for job in reversed(newest)), message)


def _job(job: im.JobRecord) -> JobLine:
    mark = lines.MARKS[job.status]
    part = min(1.0, job.done / job.of) if job.of and not job.status.over else None
    return JobLine(
        job.id,
        mark,
        _style(mark),
        job.status.value,
        f"{job.verb} {job.argument}".rstrip(),
        job.message if job.status.over else job.text,
        part,
        lines.progress_text(job),
        job.ended[11:19] or job.begun[11:19],
        job.status.over,
    )


# ------------------------------------------------------------------ backlog


def backlog(state: im.MastermindState, message: str = "") -> BacklogModel:
    """All items, the most urgent first."""
    items = lines.sorted_items(state)
    opened = sum(not _over(item) for item in items)
    waits = sum(item.status is im.ItemStatus.PENDING_APPROVAL for item in items)
    parts = [f"{opened} open of {len(items)}"]
    parts += [f"{waits} wait for your approval"] if waits else []
    parts += [f"{state.autonomous} works it off by itself"] if state.autonomous else []
    return BacklogModel(tuple(_item(item) for item in items), " · ".join(parts), message)


def _over(item: im.BacklogItem) -> bool:
    return item.status in _SETTLED


def _item(item: im.BacklogItem) -> ItemLine:
    mark = lines.MARKS[item.status]
    finding = item.finding
    place = f"{finding.path}:{finding.line}" if finding is not None and finding.path else ""
    waits = item.status is im.ItemStatus.PENDING_APPROVAL
    rows = (
        ("item", f"{item.id} · {item.uid} · {item.concern} · from {item.source or 'nobody'}"),
        ("place", place),
        ("stands", item.message),
        ("decided", f"by {item.decided_by}" if item.decided_by else ""),
        ("tried", f"{item.attempts} times, last {item.tried[:19]}" if item.attempts else ""),
        ("merged", f"found {item.merged} times more" if item.merged else ""),
    )
    parts = [Fact(label, text) for label, text in rows if text]
    parts += [Fact("critical", "nothing is tried before you approve it", "warning")] if waits else []
    parts += [Fact("evidence", text) for text in item.evidence[:EVIDENCE_SHOWN]]
    return ItemLine(
        item.id,
        mark,
        _style(mark),
        item.priority,
        item.status.value,
        item.target,
        item.suggestion,
        tuple(parts),
        approvable=waits,
        rejectable=item.status in _REJECTABLE,
        campaign=item.campaign,
        over=_over(item),
    )


# ------------------------------------------------------------------ campaigns


def campaign(state: im.MastermindState, name: str, message: str = "") -> CampaignModel:
    """A campaign with its family."""
    campaign = state.campaigns.get(name)
    if campaign is None:
        return CampaignModel(said=message or "there was no campaign yet; coord_improve COMPONENT begins one")
    names = list(state.campaigns)
    mark = lines.MARKS[campaign.status]
    named = campaign.component.id if campaign.component is not None else "?"
    head = [
        f"{campaign.directive} · {campaign.rule}",
        f"{len(campaign.candidates)} of {campaign.budget.candidates} candidates · {campaign.seconds:.1f} of "
        f"{campaign.budget.seconds:g} s of processor · ${campaign.usd:.2f} · seed {campaign.seed}",
        f"judged by {check_counts_text(campaign.sets)} checks" if campaign.sets else "",
        *(shadow_text(campaign), campaign.message, f"! {campaign.told}" if campaign.told else ""),
    ]
    return CampaignModel(
        campaign.id,
        f"on {named}",
        mark,
        campaign.status.value,
        _style(mark),
        tuple(filter(None, head)),
        tuple(_family(campaign)),
        tuple(_log(campaign)),
        _may(state, campaign),
        f"{names.index(name) + 1} of {len(names)}",
        message,
    )


def _may(state: im.MastermindState, campaign: im.Campaign) -> frozenset[Wish]:
    may: set[Wish] = set()
    if campaign.status is im.CampaignStatus.NEEDS_OPERATOR:
        may |= {"shadow", "apply", "decline", "resume"}
    if campaign.status is im.CampaignStatus.APPLIED:
        may.add("roll_back")
    if campaign.status in _RESUMABLE:
        may.add("resume")
    job = state.jobs.get(campaign.job)
    if job is not None and not job.status.over:
        may = {"cancel"}
    return frozenset(may)


def _family(campaign: im.Campaign) -> Iterator[CandidateLine]:
    """Each candidate below the one that it was made from."""
    known = {candidate.id for candidate in campaign.candidates}
    below: dict[str, list[im.Candidate]] = {}
    for child in campaign.candidates:
        below.setdefault(child.parent if child.parent in known else "", []).append(child)

    def walk(parent: str, lead: str) -> Iterator[CandidateLine]:
        children = below.get(parent, [])
        for at, child in enumerate(children):
            last = at == len(children) - 1
            branch = ("└ " if last else "├ ") if parent else ""
            yield _candidate(campaign, child, lead + branch)
            yield from walk(child.id, lead + (("  " if last else "│ ") if parent else ""))

    return walk("", "")


def _candidate(campaign: im.Campaign, candidate: im.Candidate, lead: str) -> CandidateLine:
    verdict = candidate.verdict
    mark = lines.RULING_MARKS[verdict.ruling] if verdict is not None else "…"
    gain = verdict.gain if verdict is not None else None
    return CandidateLine(
        candidate.id,
        lead,
        mark,
        _style(mark),
        verdict.ruling.value if verdict is not None else "not judged",
        candidate.title,
        candidate.added,
        candidate.removed,
        (gain.low, gain.mean, gain.high) if gain is not None else None,
        f"{gain.mean:+.3g} {gain.unit}" if gain is not None else "",
        tuple(_told(candidate)),
        chosen=candidate.id == campaign.chosen,
        diff=candidate.diff,
    )


def _told(candidate: im.Candidate) -> Iterator[Fact]:
    yield Fact("", f"{candidate.id}: {candidate.title}", "strong")
    yield Fact("by", candidate.origin + (f", from {candidate.parent}" if candidate.parent else ""))
    if candidate.why:
        yield Fact("why", candidate.why)
    verdict = candidate.verdict
    if verdict is None:
        yield Fact("judge", "it is not judged yet")
        return
    styles = {im.Ruling.BETTER: "success", im.Ruling.REJECTED: "error", im.Ruling.BROKEN: "error"}
    yield Fact("judge", verdict.ruling.value, styles.get(verdict.ruling, "text"))
    rows = [("cheats", ", ".join(verdict.cheats), "error")]
    rows += [("because", reason, "text") for reason in verdict.reasons]
    rows.append(("gain", lines.gain_text(verdict.gain) if verdict.gain is not None else "", "text"))
    rows.append(("mended", ", ".join(verdict.mended), "text"))
    rows.append(("broken", ", ".join(verdict.broken), "error"))
    yield from (Fact(*row) for row in rows if row[1])
    if candidate.again:
        yield Fact("judged", f"as {candidate.again}, which is the same; it cost nothing")


def _log(campaign: im.Campaign) -> Iterator[Fact]:
    for finding in campaign.findings:
        yield Fact("found", finding.text)
    for stage in campaign.stages:
        yield Fact(stage.at[11:19], f"{stage.status}: {stage.text}".removesuffix(": "))
