"""The backlog: what could be better, ordered by urgency, each thing in it once.

Two suggestions are the same when they have the same target and at least two thirds of their words in common:
words in small letters, without numbers, places (`stats.py:12`) and the words that say nothing; where both are
findings of an audit, concern, file and name (a test, a function) have to be the same. While one is open the
other is merged into it and the higher priority counts; one that was done or rejected is not added again until
its cool-down is over.
Source: mindX spec §6.2 and behaviours 11, 64 to 67, 70.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine.domain.improvement import Component, Concern, Finding, ItemStatus
from engine.domain.mastermind import BacklogItem, MastermindSettings, MastermindState
from engine.domain.text import clean_line
from engine.journal import mastermind_events as me
from engine.journal.event import canonical
from engine.mastermind.parts import JobRefused
from engine.mastermind.state import Spine

ALIKE = 2 / 3
"""Part of their words that two suggestions have in common when they are the same."""
EVIDENCE_LIMIT = 50
"""References that an item keeps."""
OPEN = (ItemStatus.PENDING, ItemStatus.PENDING_APPROVAL, ItemStatus.IN_PROGRESS)
CLOSED = (ItemStatus.COMPLETED, ItemStatus.REJECTED)
Now = Callable[[], str]
CANDIDATES = 8
"""Items that are listed where a prefix fits several."""
_SILENT = frozenset(
    re.findall(
        r"\w+",
        "a an and are be by can could for has have in is it its may more of on or please should so than that "
        "the this to was which with would",
    )
)
_WORD = re.compile(r"[^\W\d_]+(?:'\w+)?|\w*[^\W\d]\w*")
_PLACE = re.compile(r"\S+:\d+\b|\b\d[\d.,]*\b")


@dataclass(frozen=True, slots=True)
class Entered:
    """What became of a suggestion."""

    item: BacklogItem
    how: str
    """`added`, `merged` or `known`: it was done or rejected a short while ago."""


def words_of(text: str) -> frozenset[str]:
    """The words by which suggestions are compared."""
    plain = _PLACE.sub(" ", text.casefold())
    return frozenset(word.rstrip("s") for word in _WORD.findall(plain) if word not in _SILENT)


def alike(one: str, other: str) -> bool:
    """Whether two suggestions say the same of a target."""
    first, second = words_of(one), words_of(other)
    if not first or not second:
        return " ".join(one.casefold().split()) == " ".join(other.casefold().split())
    return len(first & second) / len(first | second) >= ALIKE


def seconds_between(earlier: str, later: str) -> float:
    """Seconds between two times of events; endless where one is none."""
    try:
        return (_time(later) - _time(earlier)).total_seconds()
    except ValueError:
        return float("inf")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def order(item: BacklogItem) -> tuple[int, str, int]:
    """Where an item stands: the most urgent first, then the oldest (mindX spec §6.2)."""
    return (-item.priority, item.added, int(item.id[1:]))


def find(state: MastermindState, wanted: str) -> BacklogItem:
    """The item that an id or the beginning of one names.

    Raises:
        JobRefused: none or several fit; the message lists them.
    """
    wanted = wanted.strip()
    if wanted in state.items:
        return state.items[wanted]
    fitting = [
        item
        for item in state.items.values()
        if wanted and (item.uid.startswith(wanted.lower()) or item.id.startswith(wanted))
    ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        some = ", ".join(item.id for item in sorted(state.items.values(), key=order)[:CANDIDATES])
        raise JobRefused(
            f"the backlog has no item {clean_line(wanted, limit=40)!r}; "
            + (f"it has {some}" if some else "it is empty")
        )
    listed = "; ".join(f"{item.id} ({item.uid[:8]}) {item.suggestion[:40]}" for item in fitting[:CANDIDATES])
    more = f" and {len(fitting) - CANDIDATES} more" if len(fitting) > CANDIDATES else ""
    raise JobRefused(f"{wanted!r} fits {len(fitting)} items: {listed}{more}")


class Backlog:
    """The backlog of a workspace: decides by its state, writes to its stream.

    Args:
        spine: the stream.
        settings: cool-downs, and what is critical.
        now: what time it is.
    """

    def __init__(self, spine: Spine, settings: MastermindSettings, now: Now) -> None:
        self._spine = spine
        self._settings = settings
        self._now = now

    @property
    def listed(self) -> tuple[BacklogItem, ...]:
        """All items: those that are open in their order, then what became of the others, the newest first."""
        items = self._spine.state.items.values()
        opened = sorted((item for item in items if item.status in OPEN), key=order)
        closed = sorted((item for item in items if item.status not in OPEN), key=lambda one: one.changed)
        return (*opened, *reversed(closed))

    def critical(self, target: str, component: Component | None = None) -> bool:
        """Whether a target waits for the operator before anything is tried."""
        if not self._settings.approve_critical:
            return False
        if component is not None and component.critical:
            return True
        named = " ".join((target, *(component.paths if component is not None else ()))).casefold()
        return any(stem and stem.casefold() in named for stem in self._settings.critical)

    def add_finding(self, finding: Finding, *, source: str, component: Component | None = None) -> Entered:
        """Put what an audit found into the backlog."""
        return self.add(
            finding.target,
            finding.text,
            priority=min(10, max(1, finding.severity)),
            concern=finding.concern,
            source=source,
            critical=self.critical(finding.target, component),
            evidence=finding.evidence,
            finding=finding,
            actor="system",
        )

    def add(
        self,
        target: str,
        suggestion: str,
        *,
        priority: int,
        concern: Concern,
        source: str,
        critical: bool,
        actor: str,
        evidence: tuple[str, ...] = (),
        finding: Finding | None = None,
    ) -> Entered:
        """Put a suggestion in, or merge it with one that is the same; pending until the stream commits."""
        target, suggestion = clean_line(target, limit=500), clean_line(suggestion, limit=4_000)
        same = self._same(target, suggestion, finding)
        for item in same:
            if item.status in OPEN:
                return self._merged(item, suggestion, priority, evidence, actor)
        for item in same:
            if item.status in CLOSED and self._since(item.changed) < self._settings.cooldown_s:
                return Entered(item, "known")
        number = len(self._spine.state.items) + 1
        uid = hashlib.sha256(canonical([target, concern, suggestion, number]).encode()).hexdigest()[:16]
        status = ItemStatus.PENDING_APPROVAL if critical else ItemStatus.PENDING
        item = BacklogItem(
            f"i{number}",
            uid,
            target,
            concern,
            suggestion,
            priority,
            source,
            status,
            critical,
            evidence=tuple(evidence)[:EVIDENCE_LIMIT],
            finding=finding,
        )
        self._spine.append(me.ItemAdded(item=item), actor=actor)
        return Entered(self._spine.state.items[item.id], "added")

    def settle(self, wanted: str, *, approve: bool, reason: str, actor: str) -> BacklogItem:
        """Approve or reject an item.

        Raises:
            JobRefused: there is no such item, or it does not wait for that.
        """
        item = find(self._spine.state, wanted)
        if approve and item.status is not ItemStatus.PENDING_APPROVAL:
            raise JobRefused(f"{item.id} is {item.status}; only what waits for approval can be approved")
        if not approve and item.status not in (
            ItemStatus.PENDING,
            ItemStatus.PENDING_APPROVAL,
            ItemStatus.FAILED,
        ):
            raise JobRefused(f"{item.id} is {item.status}; it cannot be rejected any more")
        status = ItemStatus.PENDING if approve else ItemStatus.REJECTED
        said = clean_line(reason) or ("approved" if approve else "rejected")
        self._spine.append(me.ItemMoved(item=item.id, status=status, message=said, decided=True), actor=actor)
        return self._spine.state.items[item.id]

    def move(self, item: str, status: ItemStatus, message: str = "", campaign: str = "") -> None:
        """Say where an item stands now."""
        said = me.ItemMoved(item=item, status=status, message=clean_line(message), campaign=campaign)
        self._spine.append(said)

    def next(self) -> BacklogItem | None:
        """The item that is worked on next: pending, or failed and cooled down; None when there is none."""
        ready = [item for item in self._spine.state.items.values() if self.ready(item)]
        return min(ready, key=order, default=None)

    def ready(self, item: BacklogItem) -> bool:
        """Whether an item may be worked on now."""
        if item.status is ItemStatus.PENDING:
            return True
        return item.status is ItemStatus.FAILED and self.cools_for(item) <= 0

    def cools_for(self, item: BacklogItem) -> float:
        """For how many seconds an item that failed is left alone yet."""
        if item.status is not ItemStatus.FAILED:
            return 0.0
        return max(0.0, self._settings.cooldown_s - self._since(item.changed))

    def _since(self, at: str) -> float:
        return seconds_between(at, self._now())

    def _same(self, target: str, suggestion: str, finding: Finding | None) -> list[BacklogItem]:
        """The items that say the same, the newest first."""
        return [
            item
            for item in reversed(self._spine.state.items.values())
            if item.target == target
            and _one_place(item.finding, finding)
            and alike(item.suggestion, suggestion)
        ]

    def _merged(
        self, item: BacklogItem, suggestion: str, priority: int, evidence: tuple[str, ...], actor: str
    ) -> Entered:
        known = tuple(dict.fromkeys((*item.evidence, *evidence)))[:EVIDENCE_LIMIT]
        other = suggestion if suggestion != item.suggestion else ""
        said = me.ItemMerged(item=item.id, priority=priority, evidence=known, suggestion=other)
        self._spine.append(said, actor=actor)
        return Entered(replace(self._spine.state.items[item.id]), "merged")


def _one_place(one: Finding | None, other: Finding | None) -> bool:
    """Whether two findings can be one; lines do not count, for they move."""
    if one is None or other is None:
        return True
    return (one.concern, one.path, one.name) == (other.concern, other.path, other.name)
