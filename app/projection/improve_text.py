"""What Mastermind knows, as lines for a person: jobs, backlog, campaigns, its log; and previews of lines."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from engine.core import improvement as im
from engine.core.text import clean_line
from engine.value import asdict, dataclass, replace

_MARKS: dict[str, tuple[StrEnum, ...]] = {
    "…": (im.JobStatus.QUEUED,),
    "▶": (
        *(im.JobStatus.RUNNING, im.ItemStatus.IN_PROGRESS),
        *(im.CampaignStatus.AUDITING, im.CampaignStatus.PROPOSING, im.CampaignStatus.JUDGING),
    ),
    "?": (im.JobStatus.NEEDS_OPERATOR, im.ItemStatus.PENDING_APPROVAL),
    "·": (im.ItemStatus.PENDING, im.CampaignStatus.NO_IMPROVEMENT),
    "✓": (im.JobStatus.DONE, im.ItemStatus.COMPLETED, im.CampaignStatus.APPLIED),
    "✗": (im.JobStatus.FAILED, im.JobStatus.REFUSED),
    "■": (
        im.JobStatus.CANCELLED,
        im.JobStatus.INTERRUPTED,
        im.ItemStatus.REJECTED,
        im.CampaignStatus.DECLINED,
    ),
    "↶": (im.ItemStatus.ROLLED_BACK,),
}
MARKS: dict[str, str] = {status: mark for mark, statuses in _MARKS.items() for status in statuses}
"""The mark of a status of a job, an item or a campaign; it follows from the status alone."""
RULING_MARKS = {
    im.Ruling.BETTER: "✓",
    im.Ruling.NO_BETTER: "·",
    im.Ruling.REJECTED: "✗",
    im.Ruling.BROKEN: "✗",
}
RULING_STYLES = {im.Ruling.BETTER: "success", im.Ruling.REJECTED: "error", im.Ruling.BROKEN: "error"}
SHOWN = 20


def sorted_items(state: im.MastermindState) -> tuple[im.BacklogItem, ...]:
    """The backlog: what is open, the most urgent first, then the rest, the newest change first."""
    items = state.items.values()
    opened = [item for item in items if item.status in im.OPEN_ITEMS]
    closed = [item for item in items if item.status not in im.OPEN_ITEMS]
    opened.sort(key=lambda item: (-item.priority, item.added))
    closed.sort(key=lambda item: item.changed)
    return (*opened, *reversed(closed))


def backlog_text(state: im.MastermindState) -> str:
    """The backlog, one item a line."""
    lines = [
        f"{MARKS[item.status]} {item.id:<4} {item.uid[:8]} {item.priority:>2} {item.status:<16} "
        f"{item.target:<18} {item.suggestion}"
        for item in sorted_items(state)
    ]
    return _lines(lines) or "the backlog is empty; coord_analyze looks for what could be better"


def jobs_text(state: im.MastermindState) -> str:
    """The newest jobs, one a line."""
    newest = list(state.jobs.values())[-SHOWN:]
    return _lines([job_line(job) for job in reversed(newest)]) or "no job was begun yet"


def job_line(job: im.JobRecord) -> str:
    """A job in a line."""
    words = job.message if job.status.over else f"{progress_text(job)} {job.text}"
    asked = f"{job.verb} {clean_line(job.argument, limit=80)}"
    return clean_line(f"{MARKS[job.status]} {job.id:<4} {job.status:<11} {asked} · {words}", limit=400)


def progress_text(job: im.JobRecord) -> str:
    """How far a job is: `3/12`, or nothing where that is not known."""
    return f"{job.done:g}/{job.of:g}" if job.of else ""


def campaigns_text(state: im.MastermindState) -> str:
    """The newest campaigns, one a line."""
    lines = [
        f"{MARKS[campaign.status]} {campaign.id:<4} {campaign.status:<20} {campaign.component.id:<18} "
        f"{len(campaign.candidates)} candidates · {campaign.message}"
        for campaign in reversed(list(state.campaigns.values())[-SHOWN:])
    ]
    return _lines(lines) or "there was no campaign yet; coord_improve COMPONENT begins one"


def campaign_text(campaign: im.Campaign) -> str:
    """A campaign with its candidates, their verdicts and what was done, in lines."""
    named = campaign.component.id
    lines = [
        f"{MARKS[campaign.status]} {campaign.id} on {named}: {campaign.status}",
        f"directive: {campaign.directive}",
        f"understood: {campaign.rule}",
        f"took: {campaign.seconds:.1f} s of processor, ${campaign.usd:.2f} · seed {campaign.seed}",
    ]
    lines += [f"found: {finding.text}" for finding in campaign.findings]
    for candidate in campaign.candidates:
        mark = RULING_MARKS[candidate.verdict.ruling] if candidate.verdict is not None else "…"
        size = f"+{candidate.added} -{candidate.removed}"
        lines.append(f"{mark} {candidate.id} {size} {candidate.origin}: {candidate.title}")
        lines += [f"    {label}: {text}" for label, text, _ in verdict_rows(candidate.verdict)]
    lines += [f"{stage.at[:19]} {stage.status}: {stage.text}" for stage in campaign.stages]
    return _lines([*lines, campaign.told])


def verdict_rows(verdict: im.Verdict | None) -> list[tuple[str, str, str]]:
    """What a judge said: label, text and style."""
    if verdict is None:
        return [("judge", "it is not judged yet", "text")]
    return [
        ("judge", verdict.ruling.value, RULING_STYLES.get(verdict.ruling, "text")),
        *[("cheats", ", ".join(verdict.cheats), "error")] * bool(verdict.cheats),
        *(("because", reason, "text") for reason in verdict.reasons),
        *([("gain", gain_text(verdict.gain), "text")] if verdict.gain is not None else []),
        *[("mended", ", ".join(verdict.mended), "text")] * bool(verdict.mended),
        *[("broken", ", ".join(verdict.broken), "error")] * bool(verdict.broken),
    ]


def gain_text(gain: im.Gain) -> str:
    """A paired comparison in figures."""
    return (
        f"{gain.words}, gain 95 % from {gain.low:+.3g} to {gain.high:+.3g}, {gain.pairs} pairs; "
        f"{gain.before:.4g} before, {gain.after:.4g} after"
    )


def status_text(state: im.MastermindState) -> str:
    """What Mastermind did and why: what is under way, what is open, campaigns, and its newest lines."""
    running = [job for job in state.jobs.values() if not job.status.over]
    opened = sum(item.status in im.OPEN_ITEMS for item in state.items.values())
    lines = [
        "under way: " + ("" if running else "nothing"),
        *(f"  {job_line(entry)}" for entry in running),
        f"backlog: {opened} open of {len(state.items)}"
        + (f"; {state.autonomous} works it off by itself" if state.autonomous else ""),
        "campaigns: " + ("" if state.campaigns else "none"),
        *(f"  {line}" for line in campaigns_text(state).splitlines() if state.campaigns),
        "log:" if state.log else "log: empty",
        *(f"  {entry.at[:19]} {entry.topic:<20} {entry.text}" for entry in state.log[-SHOWN * 2 :]),
    ]
    return _lines(lines)


def _lines(lines: Sequence[str]) -> str:
    kept = ((line, len(line) - len(line.lstrip())) for line in lines if line.strip())
    return "\n".join(" " * blanks + clean_line(line, limit=400) for line, blanks in kept)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several things that a line may mean."""

    id: str
    rule: str = ""
    """Why it may be meant."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a line would do."""

    line: str
    """As it would be entered."""
    does: str
    """In a sentence."""
    facts: tuple[tuple[str, str], ...] = ()
    """What it resolves to: label and text."""
    choices: tuple[Choice, ...] = ()
    """What may be meant, where that is not certain."""
    wrong: str = ""
    """Why it would be refused; empty where it would not be."""

    def as_json(self) -> dict[str, Any]:
        """The preview as plain values."""
        return {**asdict(self), "facts": [list(fact) for fact in self.facts], "ok": not self.wrong}

    def text(self) -> str:
        """The preview for a person."""
        lines = [self.line, f"does: {self.does}"] if not self.wrong else [f"refused: {self.wrong}"]
        lines += [f"{label}: {value}" if label else value for label, value in self.facts]
        lines += [
            f"may be: {choice.id} ({choice.rule})" if choice.rule else f"may be: {choice.id}"
            for choice in self.choices
        ]
        return "\n".join(lines)

    def with_facts(self, facts: tuple[tuple[str, str], ...]) -> Preview:
        """The same with other facts."""
        return replace(self, facts=facts)
