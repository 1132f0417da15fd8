"""The models of the dialogs on Mastermind, from what it knows."""

from __future__ import annotations

from collections.abc import Iterator

from app import mastermind_lines as lines
from app.preview import Preview
from engine.domain.improvement import CampaignStatus, ItemStatus, Ruling
from engine.domain.mastermind import BacklogItem, Campaign, Candidate, JobRecord, JobStatus, MastermindState
from engine.domain.text import clean_line
from engine.mastermind.fold import sets_text
from engine.mastermind.foretelling import shadow_text
from widgets.dialogs.backlog import BacklogModel, ItemLine
from widgets.dialogs.campaign import CampaignModel, CandidateLine, Wish
from widgets.dialogs.jobs import JobLine, JobsModel
from widgets.dialogs.preview import PreviewModel
from widgets.facts import Fact

STYLES = {"✓": "success", "✗": "error", "?": "warning", "▶": "accent", "↶": "warning", "■": "dim", "…": "dim"}
"""The style of a mark; of others that of text."""
JOBS_SHOWN = 200
EVIDENCE_SHOWN = 30
_SETTLED = (ItemStatus.COMPLETED, ItemStatus.REJECTED, ItemStatus.ROLLED_BACK)
_REJECTABLE = (ItemStatus.PENDING, ItemStatus.PENDING_APPROVAL, ItemStatus.FAILED)
_RESUMABLE = (
    *(CampaignStatus.CANCELLED, CampaignStatus.INTERRUPTED),
    *(CampaignStatus.FAILED, CampaignStatus.ROLLED_BACK),
)


def _style(mark: str) -> str:
    return STYLES.get(mark, "text")


# ------------------------------------------------------------------ the status line


def standing(state: MastermindState | None) -> tuple[str, str]:
    """What the status line says of jobs and campaigns, and its short form; empty where there is nothing."""
    if state is None:
        return "", ""
    running = [one for one in state.jobs.values() if not one.status.over]
    if running:
        first = next((one for one in running if one.status is JobStatus.RUNNING), running[0])
        more = f" +{len(running) - 1}" if len(running) > 1 else ""
        said = clean_line(f"{first.id} {first.verb} {lines.share(first)}")
        return f"{said}{more}", f"{first.id} {lines.share(first)}".rstrip() + more
    waiting = [one.id for one in state.campaigns.values() if one.status is CampaignStatus.NEEDS_OPERATOR]
    if waiting:
        return f"{waiting[-1]} waits for you (C)", f"{waiting[-1]}?"
    return "", ""


# ------------------------------------------------------------------ jobs


def jobs(state: MastermindState, said: str = "") -> JobsModel:
    """The newest jobs, the newest first."""
    newest = list(state.jobs.values())[-JOBS_SHOWN:]
    return JobsModel(tuple(_job(one) for one in reversed(newest)), said)


def _job(job: JobRecord) -> JobLine:
    mark = lines.JOB_MARKS[job.status]
    part = min(1.0, job.done / job.of) if job.of and not job.status.over else None
    return JobLine(
        job.id,
        mark,
        _style(mark),
        job.status.value,
        f"{job.verb} {job.argument}".rstrip(),
        job.message if job.status.over else job.text,
        part,
        lines.share(job),
        job.ended[11:19] or job.begun[11:19],
        job.status.over,
    )


# ------------------------------------------------------------------ backlog


def backlog(state: MastermindState, said: str = "") -> BacklogModel:
    """All items, the most urgent first."""
    items = lines.listed(state)
    opened = sum(not _over(one) for one in items)
    waits = sum(one.status is ItemStatus.PENDING_APPROVAL for one in items)
    told = [f"{opened} open of {len(items)}"]
    told += [f"{waits} wait for your approval"] if waits else []
    told += [f"{state.autonomous} works it off by itself"] if state.autonomous else []
    return BacklogModel(tuple(_item(one) for one in items), " · ".join(told), said)


def _over(item: BacklogItem) -> bool:
    return item.status in _SETTLED


def _item(one: BacklogItem) -> ItemLine:
    mark = lines.ITEM_MARKS[one.status]
    finding = one.finding
    place = f"{finding.path}:{finding.line}" if finding is not None and finding.path else ""
    waits = one.status is ItemStatus.PENDING_APPROVAL
    told = [
        Fact("item", f"{one.id} · {one.uid} · {one.concern} · from {one.source or 'nobody'}"),
        *([Fact("place", place)] if place else []),
        *([Fact("stands", one.message)] if one.message else []),
        *([Fact("decided", f"by {one.decided_by}")] if one.decided_by else []),
        *([Fact("tried", f"{one.attempts} times, last {one.tried[:19]}")] if one.attempts else []),
        *([Fact("merged", f"found {one.merged} times more")] if one.merged else []),
        *([Fact("critical", "nothing is tried before you approve it", "warning")] if waits else []),
        *(Fact("evidence", text) for text in one.evidence[:EVIDENCE_SHOWN]),
    ]
    return ItemLine(
        one.id,
        mark,
        _style(mark),
        one.priority,
        one.status.value,
        one.target,
        one.suggestion,
        tuple(told),
        approvable=waits,
        rejectable=one.status in _REJECTABLE,
        campaign=one.campaign,
        over=_over(one),
    )


# ------------------------------------------------------------------ campaigns


def campaign(state: MastermindState, wanted: str, said: str = "") -> CampaignModel:
    """A campaign with its family."""
    found = state.campaigns.get(wanted)
    if found is None:
        return CampaignModel(said=said or "there was no campaign yet; coord_improve COMPONENT begins one")
    names = list(state.campaigns)
    mark = lines.CAMPAIGN_MARKS[found.status]
    named = found.component.id if found.component is not None else "?"
    head = [
        f"{found.directive} · {found.rule}",
        f"{len(found.candidates)} of {found.budget.candidates} candidates · {found.seconds:.1f} of "
        f"{found.budget.seconds:g} s of processor · ${found.usd:.2f} · seed {found.seed}",
        *([f"judged by {sets_text(found.sets)} checks"] if found.sets else []),
        *([told] if (told := shadow_text(found)) else []),
        *([found.message] if found.message else []),
        *([f"! {found.told}"] if found.told else []),
    ]
    return CampaignModel(
        found.id,
        f"on {named}",
        mark,
        found.status.value,
        _style(mark),
        tuple(head),
        tuple(_family(found)),
        tuple(_log(found)),
        _may(state, found),
        f"{names.index(wanted) + 1} of {len(names)}",
        said,
    )


def _may(state: MastermindState, found: Campaign) -> frozenset[Wish]:
    may: set[Wish] = set()
    if found.status is CampaignStatus.NEEDS_OPERATOR:
        may |= {"shadow", "apply", "decline", "resume"}
    if found.status is CampaignStatus.APPLIED:
        may.add("roll_back")
    if found.status in _RESUMABLE:
        may.add("resume")
    job = state.jobs.get(found.job)
    if job is not None and not job.status.over:
        may = {"cancel"}
    return frozenset(may)


def _family(found: Campaign) -> Iterator[CandidateLine]:
    """Each candidate below the one that it was made from."""
    known = {one.id for one in found.candidates}
    below: dict[str, list[Candidate]] = {}
    for one in found.candidates:
        below.setdefault(one.parent if one.parent in known else "", []).append(one)

    def walk(parent: str, lead: str) -> Iterator[CandidateLine]:
        children = below.get(parent, [])
        for at, one in enumerate(children):
            last = at == len(children) - 1
            branch = ("└ " if last else "├ ") if parent else ""
            yield _candidate(found, one, lead + branch)
            yield from walk(one.id, lead + (("  " if last else "│ ") if parent else ""))

    return walk("", "")


def _candidate(found: Campaign, one: Candidate, lead: str) -> CandidateLine:
    verdict = one.verdict
    mark = lines.RULING_MARKS[verdict.ruling] if verdict is not None else "…"
    gain = verdict.gain if verdict is not None else None
    return CandidateLine(
        one.id,
        lead,
        mark,
        _style(mark),
        verdict.ruling.value if verdict is not None else "not judged",
        one.title,
        one.added,
        one.removed,
        (gain.low, gain.mean, gain.high) if gain is not None else None,
        gain.unit if gain is not None else "",
        f"{gain.mean:+.3g} {gain.unit}" if gain is not None else "",
        tuple(_told(one)),
        chosen=one.id == found.chosen,
        diff=one.diff,
    )


def _told(one: Candidate) -> Iterator[Fact]:
    yield Fact("", f"{one.id}: {one.title}", "strong")
    yield Fact("by", one.origin + (f", from {one.parent}" if one.parent else ""))
    if one.why:
        yield Fact("why", one.why)
    verdict = one.verdict
    if verdict is None:
        yield Fact("judge", "it is not judged yet")
        return
    styles = {Ruling.BETTER: "success", Ruling.REJECTED: "error", Ruling.BROKEN: "error"}
    yield Fact("judge", verdict.ruling.value, styles.get(verdict.ruling, "text"))
    if verdict.cheats:
        yield Fact("cheats", ", ".join(verdict.cheats), "error")
    for reason in verdict.reasons:
        yield Fact("because", reason)
    if verdict.gain is not None:
        yield Fact("gain", lines.gain_text(verdict.gain))
    if verdict.mended:
        yield Fact("mended", ", ".join(verdict.mended))
    if verdict.broken:
        yield Fact("broken", ", ".join(verdict.broken), "error")
    if one.again:
        yield Fact("judged", f"as {one.again}, which is the same; it cost nothing")


def _log(found: Campaign) -> Iterator[Fact]:
    for one in found.findings:
        yield Fact("found", one.text)
    for stage in found.stages:
        yield Fact(stage.at[11:19], f"{stage.status}: {stage.text}".removesuffix(": "))


# ------------------------------------------------------------------ previews


def preview(found: Preview) -> PreviewModel:
    """A preview, as its dialog shows it."""
    choices = tuple((one.id, one.rule) for one in found.choices)
    return PreviewModel(found.line, found.does, found.facts, choices, found.wrong)
