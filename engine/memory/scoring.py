"""The numbers by which memories are kept, become relevant, are promoted and expire: pure functions."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from engine.core.memory import LinkType, MemoryItem, MemoryLevel, MemoryLink, MemoryType

HOUR_S = 3_600.0
DAY_S = 86_400.0

DECAY_PER_HOUR = {
    MemoryLevel.WORKING: 0.01,
    MemoryLevel.EPISODIC: 0.01,
    MemoryLevel.SEMANTIC: 0.001,
    MemoryLevel.PROCEDURAL: 0.0003,
}
"""How fast relevance decays; one rate for all would bury procedures in days."""

TTL_S = {
    MemoryLevel.WORKING: 1_800,
    MemoryLevel.EPISODIC: 604_800,
    MemoryLevel.SEMANTIC: 2_592_000,
    MemoryLevel.PROCEDURAL: 7_776_000,
}
"""Seconds a record of each level is kept; see `time_to_live`."""

CAPACITY = 20
"""Memories that a workflow's working memory holds at most."""

CONSOLIDATED_TTL_S = 86_400
"""Seconds for which a record of what was done stays at most once it went into another memory."""

KEY_TYPES = frozenset({MemoryType.QUESTION, MemoryType.PLAN, MemoryType.INSIGHT})
"""Types that draw the focus."""


def text_digest(description: str, content: str) -> str:
    """Names the text of a memory as it is embedded; 128 bits in hex."""
    return hashlib.sha256(embedded_text(description, content).encode()).hexdigest()[:32]


def embedded_text(description: str, content: str) -> str:
    """The text of a memory from which its vector is made."""
    return f"{description}: {content}" if description else content


def scope_words(workflow: str, level: str | None, kind: str | None) -> tuple[str, ...]:
    """The words by which the full-text index itself holds a search to a workflow, a level or a type.

    Such words never occur in texts, so they need no column of their own in a query.
    """
    words = {"scopeworkflow": workflow, "scopelevel": level, "scopetype": (kind or "").replace("_", "")}
    return tuple(f"{name}{value}" for name, value in words.items() if value)


def rarity(total: int, count: int) -> float:
    """As BM25 weighs a word that stands in `count` of `total` texts."""
    return max(1e-6, math.log((max(total, count) - count + 0.5) / (count + 0.5)))


def expiry(at: float, ttl: int) -> float | None:
    """When a memory's time is over; None for never."""
    return at + ttl if ttl else None


# ------------------------------------------------------------------ relevance


def decayed(
    importance: float, confidence: float, uses: int, age_h: float, idle_d: float, decay: float = 0.01
) -> float:
    """Relevance from 0 to 10: importance that fades with age and rises with use.

    Args:
        importance: 0 to 10.
        confidence: 0 to 1.
        uses: how often it was used.
        age_h: hours since it was made.
        idle_d: days since it was used, or made.
        decay: rate an hour.

    """
    faded = importance * math.exp(-decay * max(0.0, age_h))
    value = faded * (1 + math.log1p(uses) / 10) * confidence / (1 + max(0.0, idle_d))
    return min(10.0, max(0.0, value))


class Candidate(NamedTuple):
    """As much of a memory as ranking needs; few of those that are ranked are read whole."""

    row: int
    id: str
    digest: str
    level: MemoryLevel
    importance: float
    confidence: float
    created_at: float
    access_count: int
    accessed_at: float | None


def relevance(memory: MemoryItem | Candidate, now: float) -> float:
    """How much a memory matters at a time, from 0 to 10."""
    age_h = (now - memory.created_at) / HOUR_S
    return decayed(
        memory.importance,
        memory.confidence,
        memory.access_count,
        age_h,
        _idle_days(memory, now),
        DECAY_PER_HOUR[memory.level],
    )


def _idle_days(memory: MemoryItem | Candidate, now: float) -> float:
    last = memory.created_at if memory.accessed_at is None else memory.accessed_at
    return max(0.0, now - last) / DAY_S


# ------------------------------------------------------------------ working memory


def focus_score(memory: MemoryItem, now: float, recent_actions: Collection[str]) -> float:
    """How strongly a memory draws the focus.

    Args:
        memory: one of those in working memory.
        now: seconds since 1970.
        recent_actions: ids of the workflow's last three actions.
    """
    settled = {MemoryLevel.SEMANTIC: 0.5, MemoryLevel.PROCEDURAL: 0.7}.get(memory.level, 0.0)
    recent = 3.0 if memory.action and memory.action in recent_actions else 0.0
    key = 1.5 if memory.type in KEY_TYPES else 0.0
    return 0.6 * relevance(memory, now) + recent + key + settled


def to_evict(items: Sequence[MemoryItem], kept: Collection[str], now: float) -> str:
    """The memory to evict from a full working memory: the least relevant not kept; empty if all are."""
    free = [memory for memory in items if memory.id not in kept]
    return min(free, key=lambda memory: relevance(memory, now)).id if free else ""


def optimized(items: Sequence[MemoryItem], target: int, kept: Collection[str], now: float) -> tuple[str, ...]:
    """Which memories stay when working memory is cut down, in the order in which they were added.

    Args:
        items: all in working memory.
        target: how many shall stay, the most relevant; those that are kept stay even beyond that.
        kept: the focal and the pinned ones.
        now: seconds since 1970.
    """
    ranked = sorted(items, key=lambda memory: (memory.id not in kept, -relevance(memory, now)))
    fixed = sum(memory.id in kept for memory in items)
    stays = {memory.id for memory in ranked[: max(target, fixed)]}
    return tuple(memory.id for memory in items if memory.id in stays)


# ------------------------------------------------------------------ promotion and consolidation


def next_level(memory: MemoryItem) -> MemoryLevel | None:
    """The level that a memory has earned, or None."""
    uses, sure = memory.access_count, memory.confidence
    if memory.level is MemoryLevel.EPISODIC and uses >= 5 and sure >= 0.8:
        return MemoryLevel.SEMANTIC
    skilled = memory.type in (MemoryType.PROCEDURE, MemoryType.SKILL)
    if memory.level is MemoryLevel.SEMANTIC and skilled and uses >= 10 and sure >= 0.9:
        return MemoryLevel.PROCEDURAL
    return None


PASSING = frozenset(
    {
        *(MemoryType.ACTION_LOG, MemoryType.TOOL_OUTPUT, MemoryType.ARTIFACT_CREATION),
        *(MemoryType.REASONING_STEP, MemoryType.CHECKPOINT),
    }
)
"""Types that record what was done; all others hold what was learnt."""

IMPORTANT_FROM = 7.0
"""Importance from which on a memory counts as learnt whatever its type, and is never forgotten."""


def learnt(memory: MemoryItem) -> bool:
    """Whether it holds what was learnt, or matters as much; else it records what was done."""
    return memory.type not in PASSING or memory.importance >= IMPORTANT_FROM


def time_to_live(memory: MemoryItem) -> int:
    """Seconds for which a memory is kept unless it says otherwise."""
    if memory.level is MemoryLevel.EPISODIC and learnt(memory):
        return TTL_S[MemoryLevel.SEMANTIC]
    return TTL_S[memory.level]


def settled(memory: MemoryItem, now: float) -> MemoryLevel | None:
    """The level at which a memory stays when its time is over, as it was used or matters; None where it goes.

    A memory that was stored with another time to live than is usual expires after that.
    """
    if memory.level is MemoryLevel.WORKING or memory.ttl not in (time_to_live(memory), TTL_S[memory.level]):
        return None
    used = memory.accessed_at is not None and memory.accessed_at >= now - memory.ttl
    if not used and memory.importance < IMPORTANT_FROM:
        return None
    return max(memory.level, MemoryLevel.SEMANTIC, key=lambda level: level.rank)


def consolidated_importance(importances: Sequence[float]) -> float:
    """Importance of a consolidation of several memories: a little above the greatest, at most 10."""
    return min(max(importances) + 0.5, 10.0)


def consolidated_confidence(confidences: Sequence[float]) -> float:
    """Confidence of a consolidation of several memories: their mean, less with every one more."""
    mean = math.fsum(confidences) / len(confidences)
    return max(0.1, mean * (1 - min(0.2, 0.02 * (len(confidences) - 1))))


# ------------------------------------------------------------------ actions, thoughts, links

THOUGHT_IMPORTANCE = {
    "goal": 7.5,
    "decision": 7.5,
    "summary": 6.5,
    "reflection": 6.5,
    "hypothesis": 6.5,
    "insight": 6.5,
}
"""Thoughts that become memories, and how much they matter."""


def ended_importance(importance: float, status: str) -> float:
    """Importance of an action's memory at its end: failures matter more, what was skipped less."""
    return min(10.0, max(0.0, importance * {"failed": 1.2, "skipped": 0.8}.get(status, 1.0)))


_TELLING = frozenset((MemoryType.FACT, MemoryType.USER_INPUT, MemoryType.CORRECTION, MemoryType.INSIGHT))
_BEFORE = "is are was were be equals called named at on costs takes = :"
_BEFORE_A_VALUE = frozenset(_BEFORE.split())
_DENIALS = "not no never longer isn't aren't doesn't don't didn't can't cannot won't"
_DENYING = frozenset(_DENIALS.split())
_HELPING = frozenset(("do", "does", "did", "can", "will"))
_PART = re.compile(r"[\w'.-]*\w|[=:]")


def contradict(one: MemoryItem, other: MemoryItem) -> bool:
    """Whether two memories tell another value of the same thing, or one denies what the other says.

    A value is what stands last, behind a word such as `is` or `at`; at most two words may follow.
    """
    if one.type not in _TELLING or other.type not in _TELLING:
        return False
    first, second = (_PART.findall(memory.content[:2_000].casefold()) for memory in (one, other))
    plain = [[word for word in words if word not in _DENYING | _HELPING] for words in (first, second)]
    if plain[0] == plain[1]:
        return _DENYING.isdisjoint(first) != _DENYING.isdisjoint(second)
    same = _alike(first, second)
    behind = _alike(first[: same - 1 : -1], second[: same - 1 : -1]) if same else 0
    values = (len(first) - same - behind, len(second) - same - behind)
    return (
        same >= 2
        and behind <= 2
        and 1 <= min(values) <= max(values) <= 3
        and first[same - 1] in _BEFORE_A_VALUE
    )


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words two lists begin with in common."""
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    return same


def suggested_link(source: MemoryItem, target: MemoryItem) -> LinkType:
    """What type of link two similar memories suggest."""
    if contradict(source, target):
        return LinkType.CONTRADICTS
    if source.type == target.type:
        return LinkType.SEQUENTIAL if source.level is MemoryLevel.EPISODIC else LinkType.SUPPORTS
    if (source.type, target.type) == (MemoryType.INSIGHT, MemoryType.FACT):
        return LinkType.GENERALIZES
    return LinkType.RELATED


LINK_DECAY_AFTER_S = 14 * DAY_S
LINK_DECAY = 0.95
LINK_MINIMUM = 0.1


def weakened(link: MemoryLink, now: float) -> float | None:
    """The strength of a link after one round of decay; 0 when it goes, None when it is too young."""
    if now - link.created_at <= LINK_DECAY_AFTER_S:
        return None
    strength = link.strength * LINK_DECAY
    return strength if strength >= LINK_MINIMUM else 0.0
