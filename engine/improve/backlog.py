"""The backlog: what could be better, ordered by urgency, each thing in it once.

Two suggestions are the same when they have the same target and at least two thirds of their words in common:
words in small letters, without numbers, places (`stats.py:12`) and words without meaning. Of two findings of
an audit, concern, file and name (a test, a function) have to be the same, too. While one is open the other is
merged with it. What was done or rejected a short while ago is not added again; what failed rests before it is
tried again.

`match_components` finds which component a directive means. A name counts by the letters of its words that
stand in the directive; beginnings of words count less. Of two readings on the same words the better stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from engine.core import campaigns as me
from engine.core.improvement import (
    OPEN_ITEMS,
    BacklogItem,
    Component,
    Concern,
    Finding,
    ItemStatus,
    MastermindSettings,
    MastermindState,
)
from engine.core.journal import canonical
from engine.core.reasons import Reason, clean_reason
from engine.core.text import clean_line
from engine.improve.ports import JobRefused
from engine.improve.state import EventStream
from engine.tools.parameters.paths import folded, references
from engine.value import dataclass

ALIKE = 2 / 3
"""Part of their words that two suggestions have in common when they are the same."""
EVIDENCE_LIMIT = 50
"""References that an item keeps."""
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
_COMPARED_WORD = re.compile(r"[^\W\d_]+(?:'\w+)?|\w*[^\W\d]\w*")
_PLACE = re.compile(r"\S+:\d+\b|\b\d[\d.,]*\b")


@dataclass(frozen=True, slots=True)
class BacklogEntry:
    """How a suggestion was entered."""

    item: BacklogItem
    how: str
    """`added`, `merged` or `known`: it was done or rejected a short while ago."""


def comparison_words(text: str) -> frozenset[str]:
    """The words by which suggestions are compared."""
    plain = _PLACE.sub(" ", text.casefold())
    return frozenset(word.rstrip("s") for word in _COMPARED_WORD.findall(plain) if word not in _SILENT)


def is_duplicate(text: str, other: str) -> bool:
    """Whether two suggestions say the same of a target."""
    first, second = comparison_words(text), comparison_words(other)
    if not first or not second:
        return " ".join(text.casefold().split()) == " ".join(other.casefold().split())
    return len(first & second) / len(first | second) >= ALIKE


def seconds_between(earlier: str, later: str) -> float:
    """Seconds between two times of events; endless where one is none."""
    try:
        return (_time(later) - _time(earlier)).total_seconds()
    except ValueError:
        return float("inf")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def urgency_key(item: BacklogItem) -> tuple[int, str, int]:
    """Where an item stands: the most urgent first, then the oldest."""
    return (-item.priority, item.added, int(item.id[1:]))


def find_item(state: MastermindState, name: str) -> BacklogItem:
    """The item that an id or the beginning of one names.

    Raises:
        JobRefused: none or several fit; the message lists them.
    """
    name = name.strip()
    items = [state.items[name]] if name in state.items else list(state.items.values())
    fitting = [
        item for item in items if name and (item.uid.startswith(name.lower()) or item.id.startswith(name))
    ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        some = ", ".join(item.id for item in sorted(items, key=urgency_key)[:CANDIDATES])
        has = f"it has {some}" if some else "it is empty"
        raise JobRefused(f"the backlog has no item {clean_line(name, limit=40)!r}; {has}")
    listed = "; ".join(f"{item.id} ({item.uid[:8]}) {item.suggestion[:40]}" for item in fitting[:CANDIDATES])
    more = f" and {len(fitting) - CANDIDATES} more" if len(fitting) > CANDIDATES else ""
    raise JobRefused(f"{name!r} fits {len(fitting)} items: {listed}{more}")


@dataclass(slots=True)
class Backlog:
    """The backlog of a workspace: decides by its state, writes to its stream.

    Args:
        stream: the stream.
        settings: cool-downs, and what is critical.
        now: what time it is.
    """

    _stream: EventStream
    _settings: MastermindSettings
    _now: Now

    def critical(self, target: str, component: Component | None = None) -> bool:
        """Whether a target waits for the operator before anything is tried."""
        if not self._settings.approve_critical:
            return False
        if component is not None and component.critical:
            return True
        named = " ".join((target, *(component.paths if component is not None else ()))).casefold()
        return any(stem and stem.casefold() in named for stem in self._settings.critical)

    def add_finding(self, finding: Finding, component: Component | None = None) -> BacklogEntry:
        """Put what an audit found into the backlog."""
        return self.add(
            finding.target,
            finding.text,
            priority=min(10, max(1, finding.severity)),
            concern=finding.concern,
            source="audit",
            critical=self.critical(finding.target, component),
            evidence=finding.evidence,
            finding=finding,
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
        actor: str = "system",
        evidence: tuple[str, ...] = (),
        finding: Finding | None = None,
    ) -> BacklogEntry:
        """Put a suggestion in, or merge it with one that is the same; pending until the stream commits."""
        target, suggestion = clean_line(target, limit=500), clean_line(suggestion, limit=4_000)
        same = self._same(target, suggestion, finding)
        for item in same:
            if item.status in OPEN_ITEMS:
                known = tuple(dict.fromkeys((*item.evidence, *evidence)))[:EVIDENCE_LIMIT]
                other = suggestion if suggestion != item.suggestion else ""
                event = me.ItemMerged(item=item.id, priority=priority, evidence=known, suggestion=other)
                self._stream.append(event, actor=actor)
                return BacklogEntry(self._stream.state.items[item.id], "merged")
        for item in same:
            if item.status in CLOSED and self._since(item.changed) < self._settings.cooldown_s:
                return BacklogEntry(item, "known")
        number = len(self._stream.state.items) + 1
        uid = hashlib.sha256(canonical([target, concern, suggestion, number]).encode()).hexdigest()[:16]
        status = ItemStatus.PENDING_APPROVAL if critical else ItemStatus.PENDING
        what = (f"i{number}", uid, target, concern, suggestion, priority, source, status, critical)
        item = BacklogItem(*what, evidence=tuple(evidence)[:EVIDENCE_LIMIT], finding=finding)
        self._stream.append(me.ItemAdded(item=item), actor=actor)
        return BacklogEntry(self._stream.state.items[item.id], "added")

    def settle(self, name: str, *, approve: bool, reason: str, actor: str) -> BacklogItem:
        """Approve or reject an item.

        Raises:
            JobRefused: there is no such item, or it does not wait for that.
        """
        item = find_item(self._stream.state, name)
        waits = item.status is ItemStatus.PENDING_APPROVAL
        if approve and not waits:
            raise JobRefused(f"{item.id} is {item.status}; only what waits for approval can be approved")
        if not (waits or item.status in (ItemStatus.PENDING, ItemStatus.FAILED)):
            raise JobRefused(f"{item.id} is {item.status}; it cannot be rejected any more")
        status = ItemStatus.PENDING if approve else ItemStatus.REJECTED
        message = clean_line(reason) or Reason("item.approved" if approve else "item.rejected")
        self.move(item.id, status, message, actor=actor, decided=True)
        return self._stream.state.items[item.id]

    def move(
        self,
        item: str,
        status: ItemStatus,
        message: str = "",
        campaign: str = "",
        *,
        actor: str = "system",
        decided: bool = False,
    ) -> None:
        """Say where an item stands now, and whether the actor decided that."""
        why = clean_reason(message)
        event = me.ItemMoved(item=item, status=status, message=why, campaign=campaign, decided=decided)
        self._stream.append(event, actor=actor)

    def next(self) -> BacklogItem | None:
        """The item that is worked on next: pending, or failed and cooled down; None when there is none."""
        ready = [item for item in self._stream.state.items.values() if self.ready(item)]
        return min(ready, key=urgency_key, default=None)

    def ready(self, item: BacklogItem) -> bool:
        """Whether an item may be worked on now."""
        if item.status is ItemStatus.PENDING:
            return True
        return item.status is ItemStatus.FAILED and self.cooldown_left_s(item) <= 0

    def cooldown_left_s(self, item: BacklogItem) -> float:
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
            for item in reversed(self._stream.state.items.values())
            if item.target == target
            and _one_place(item.finding, finding)
            and is_duplicate(item.suggestion, suggestion)
        ]


def _one_place(finding: Finding | None, other: Finding | None) -> bool:
    """Whether two findings can be one; lines do not count, for they move."""
    if finding is None or other is None:
        return True
    return (finding.concern, finding.path, finding.name) == (other.concern, other.path, other.name)


CLOSE = 0.9
"""Of two readings on the same words, one with less than this part of the other's letters gives way."""
BEGINNING = 3
"""Letters that a word has in common with a longer one at least."""
WORTH = 0.8
"""What a beginning counts of a whole word."""
_WORD = re.compile(r"[^\W_]+")
_EMPTY = frozenset(
    {"tool", "agent", "py", "toml", "asl", "the", "a", "an", "of", "and", "sandbox", "json", "md"}
)
"""Words of names that say nothing of which one is meant."""


@dataclass(frozen=True, slots=True)
class ComponentMatch:
    """A component that a directive may mean, with why."""

    component: Component
    rule: str
    letters: float
    """How much of its name was found."""
    words: frozenset[str] = frozenset()
    """The directive's words that it rests on."""
    part: bool = False
    """Whether some of these are only the beginnings of its name's words, or the other way round."""
    places: tuple[int, ...] = ()
    """Where in the directive these words stand, counted in words."""


def match_components(directive: str, components: Iterable[Component]) -> list[ComponentMatch]:
    """The components that a directive names, the best first."""
    words = _WORD.findall(folded(directive[:8_000]))
    whole = directive.strip().casefold()
    matches = []
    for component in components:
        readings = [_reading(component, name, what, words, whole) for name, what in _names(component)]
        if fitting := [reading for reading in readings if reading is not None]:
            matches.append(max(fitting, key=lambda reading: reading.letters))
    return sorted(matches, key=lambda match: (-match.letters, match.component.id))


def best_matches(matches: Sequence[ComponentMatch]) -> list[ComponentMatch]:
    """The readings that no better one replaces."""
    return [match for match in matches if not any(_better(other, match) for other in matches)]


def unknown_names(directive: str, matches: Iterable[ComponentMatch]) -> list[str]:
    """Tools and agents that a directive names, as `foo_tool`, and that no reading is."""
    words = frozenset[str]().union(*(match.words for match in matches))
    return [name for name in references(directive) if not words & set(_WORD.findall(name)) - _EMPTY]


def _better(other: ComponentMatch, match: ComponentMatch) -> bool:
    """Whether another reading replaces this one.

    A word that only resembles a name and stands right before another one says more of that: the order report
    is a report.
    """
    if match.part and not other.part and {max(match.places) + 1} == {*other.places[:1]}:
        return True
    return match.words < other.words or (match.words == other.words and match.letters < other.letters * CLOSE)


def _names(component: Component) -> Iterable[tuple[str, str]]:
    yield component.id, "its id"
    for alias in component.aliases:
        yield alias, "a name of it"
    if len(component.paths) == 1:
        yield component.paths[0], "its path"
        yield component.paths[0].rpartition("/")[2], "its file"


def _reading(
    component: Component, name: str, what: str, spoken: Sequence[str], whole: str
) -> ComponentMatch | None:
    """How a name of a component stands in a directive; None where it does not."""
    words, rule = _WORD.findall(folded(name)), f"{name} is {what}"
    if name.casefold() == whole:
        return ComponentMatch(component, rule, 1_000.0, frozenset(words))
    pairs = [(word, _spoken(word, spoken)) for word in words if word not in _EMPTY]
    rests = {other for _, other in pairs}
    if not pairs or "" in rests:
        return None
    letters = sum(len(word) * (1.0 if word == other else WORTH) for word, other in pairs)
    how = ", ".join(word if word == other else f"{other} for {word}" for word, other in pairs)
    part = any(word != other for word, other in pairs)
    places = tuple(sorted(spoken.index(word) for word in rests))
    return ComponentMatch(component, f"{rule}: {how}", letters, frozenset(rests), part, places)


def _spoken(word: str, spoken: Sequence[str]) -> str:
    """The spoken word that is this one, or begins it or the other way round; empty where none is."""
    if word in spoken:
        return word
    pairs = ((other, *sorted((word, other), key=len)) for other in spoken)
    return next(
        (other for other, short, long in pairs if len(short) >= BEGINNING and long.startswith(short)), ""
    )
