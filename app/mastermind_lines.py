"""What Mastermind knows, as lines for a person: jobs, backlog, campaigns, its log."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.improvement import CampaignStatus, Gain, ItemStatus, Ruling, Verdict
from engine.domain.mastermind import BacklogItem, Campaign, JobRecord, JobStatus, MastermindState
from engine.domain.text import clean_line

JOB_MARKS = {
    JobStatus.QUEUED: "…",
    JobStatus.RUNNING: "▶",
    JobStatus.DONE: "✓",
    JobStatus.NEEDS_OPERATOR: "?",
    JobStatus.REFUSED: "✗",
    JobStatus.FAILED: "✗",
    JobStatus.CANCELLED: "■",
    JobStatus.INTERRUPTED: "■",
}
ITEM_MARKS = {
    ItemStatus.PENDING: "·",
    ItemStatus.PENDING_APPROVAL: "?",
    ItemStatus.IN_PROGRESS: "▶",
    ItemStatus.COMPLETED: "✓",
    ItemStatus.FAILED: "✗",
    ItemStatus.REJECTED: "■",
    ItemStatus.ROLLED_BACK: "↶",
}
CAMPAIGN_MARKS = {
    CampaignStatus.AUDITING: "▶",
    CampaignStatus.PROPOSING: "▶",
    CampaignStatus.JUDGING: "▶",
    CampaignStatus.NEEDS_OPERATOR: "?",
    CampaignStatus.APPLIED: "✓",
    CampaignStatus.NO_IMPROVEMENT: "·",
    CampaignStatus.DECLINED: "■",
    CampaignStatus.FAILED: "✗",
    CampaignStatus.CANCELLED: "■",
    CampaignStatus.INTERRUPTED: "■",
    CampaignStatus.ROLLED_BACK: "↶",
}
RULING_MARKS = {Ruling.BETTER: "✓", Ruling.NO_BETTER: "·", Ruling.REJECTED: "✗", Ruling.BROKEN: "✗"}
"""Marks follow from how a thing stands and from nothing else (mindX spec §7, behaviour 14)."""
_OPEN = (ItemStatus.IN_PROGRESS, ItemStatus.PENDING, ItemStatus.PENDING_APPROVAL)
SHOWN = 20


def listed(state: MastermindState) -> tuple[BacklogItem, ...]:
    """The backlog: what is open, the most urgent first, then the rest, the newest change first."""
    items = state.items.values()
    opened = sorted((one for one in items if one.status in _OPEN), key=lambda one: (-one.priority, one.added))
    closed = sorted((one for one in items if one.status not in _OPEN), key=lambda one: one.changed)
    return (*opened, *reversed(closed))


def backlog_text(state: MastermindState) -> str:
    """The backlog, one item a line."""
    lines = [
        f"{ITEM_MARKS[one.status]} {one.id:<4} {one.uid[:8]} {one.priority:>2} {one.status:<16} "
        f"{one.target:<18} {one.suggestion}"
        for one in listed(state)
    ]
    return _lines(lines) or "the backlog is empty; coord_analyze looks for what could be better"


def jobs_text(state: MastermindState) -> str:
    """The newest jobs, one a line."""
    newest = list(state.jobs.values())[-SHOWN:]
    return _lines([job_line(one) for one in reversed(newest)]) or "no job was begun yet"


def job_line(job: JobRecord) -> str:
    """A job in a line."""
    said = job.message if job.status.over else f"{share(job)} {job.text}"
    asked = f"{job.verb} {clean_line(job.argument, limit=80)}"
    return clean_line(f"{JOB_MARKS[job.status]} {job.id:<4} {job.status:<11} {asked} · {said}", limit=400)


def share(job: JobRecord) -> str:
    """How far a job is: `3/12`, or nothing where that is not known."""
    return f"{job.done:g}/{job.of:g}" if job.of else ""


def campaigns_text(state: MastermindState) -> str:
    """The newest campaigns, one a line."""
    lines = [
        f"{CAMPAIGN_MARKS[one.status]} {one.id:<4} {one.status:<20} "
        f"{one.component.id if one.component else '?':<18} {len(one.candidates)} candidates · {one.message}"
        for one in reversed(list(state.campaigns.values())[-SHOWN:])
    ]
    return _lines(lines) or "there was no campaign yet; coord_improve COMPONENT begins one"


def campaign_text(campaign: Campaign) -> str:
    """A campaign with its candidates, their verdicts and what was done, in lines."""
    named = campaign.component.id if campaign.component is not None else "?"
    lines = [
        f"{CAMPAIGN_MARKS[campaign.status]} {campaign.id} on {named}: {campaign.status}",
        f"directive: {campaign.directive}",
        f"understood: {campaign.rule}",
        f"took: {campaign.seconds:.1f} s of processor, ${campaign.usd:.2f} · seed {campaign.seed}",
    ]
    lines += [f"found: {one.text}" for one in campaign.findings]
    for one in campaign.candidates:
        mark = RULING_MARKS[one.verdict.ruling] if one.verdict is not None else "…"
        lines.append(f"{mark} {one.id} +{one.added} -{one.removed} {one.origin}: {one.title}")
        lines += [f"    {said}" for said in verdict_lines(one.verdict)]
    lines += [f"{one.at[:19]} {one.status}: {one.text}" for one in campaign.stages]
    return _lines([*lines, campaign.told])


def verdict_lines(verdict: Verdict | None) -> tuple[str, ...]:
    """What a judge said, in lines."""
    if verdict is None:
        return ("not judged yet",)
    lines = [str(verdict.ruling), *verdict.reasons]
    if verdict.gain is not None:
        lines.append(gain_text(verdict.gain))
    if verdict.mended:
        lines.append(f"mended: {', '.join(verdict.mended)}")
    if verdict.broken:
        lines.append(f"broken: {', '.join(verdict.broken)}")
    if verdict.cheats:
        lines.append(f"broke a rule of the judging: {', '.join(verdict.cheats)}")
    return (*lines, f"judged in {verdict.seconds:.1f} s of processor")


def gain_text(gain: Gain) -> str:
    """A paired comparison in figures."""
    return (
        f"{gain.mean:+.3g} {gain.unit}, 95 % from {gain.low:+.3g} to {gain.high:+.3g}, {gain.pairs} pairs; "
        f"{gain.before:.4g} before, {gain.after:.4g} after"
    )


def status_text(state: MastermindState) -> str:
    """What Mastermind did and why: what is under way, what is open, campaigns, and its newest lines."""
    running = [one for one in state.jobs.values() if not one.status.over]
    opened = sum(one.status in _OPEN for one in state.items.values())
    lines = [
        "under way: " + ("" if running else "nothing"),
        *(f"  {job_line(one)}" for one in running),
        f"backlog: {opened} open of {len(state.items)}"
        + (f"; {state.autonomous} works it off by itself" if state.autonomous else ""),
        "campaigns: " + ("" if state.campaigns else "none"),
        *(f"  {line}" for line in campaigns_text(state).splitlines() if state.campaigns),
        "log:" if state.log else "log: empty",
        *(f"  {one.at[:19]} {one.topic:<20} {one.text}" for one in state.log[-SHOWN * 2 :]),
    ]
    return _lines(lines)


def _lines(lines: Sequence[str]) -> str:
    kept = ((line, len(line) - len(line.lstrip())) for line in lines if line.strip())
    return "\n".join(" " * blanks + clean_line(line, limit=400) for line, blanks in kept)
