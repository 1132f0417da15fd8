"""Compression: a part that would be dropped for its length is summarised in its place, and says so.

It begins where a package is over its budget by more than a third. Where no model summarises, the entries
are counted; no sentence is made up.
Source: spec master-loop-and-memory §2 (summarize_text), §3.4, §3.16 W20.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from engine.journal.event import canonical
from engine.memory.context_parts import head
from engine.memory.package import ContextPackage, Digest, Item, Part, Section
from engine.memory.packing import CHARACTERS_PER_TOKEN, Estimate, estimate_tokens, shown_tokens

COMPRESSIBLE = frozenset(
    {Part.WORKING, Part.ACTIONS, Part.IMPORTANT, Part.THOUGHTS, Part.PROACTIVE, Part.PROCEDURES}
)
OVER = 4 / 3
"""Share of the budget from which on parts are summarised."""
SHARE = 1 / 3
"""How long a summary may be, of what it stands for (15,000 to 5,000 tokens, §3.4)."""
SUMMARY_TOKENS = (50, 2_000)
SUMMARY_TIMEOUT_S = 20.0
FIRST_LINE = 120
"""Characters of each entry's first line in a counted digest."""


class SummaryUnavailable(Exception):  # noqa: N818 - the house's faults say what happened
    """Nobody can summarise just now; the entries are counted instead."""


Summariser = Callable[[str, int], Awaitable[str]]
"""Makes of a text a shorter one of so many tokens; raises `SummaryUnavailable` where it cannot."""


async def compress(
    package: ContextPackage,
    budget_tokens: int,
    estimate: Estimate = estimate_tokens,
    summarise: Summariser | None = None,
    *,
    previous: ContextPackage | None = None,
    timeout_s: float = SUMMARY_TIMEOUT_S,
) -> ContextPackage:
    """The package with its longest parts summarised until it is no more than a third over its budget.

    Args:
        package: what was gathered.
        budget_tokens: what it is to be packed into.
        estimate: as for `pack`.
        summarise: who writes summaries, such as a model; None where nobody does.
        previous: the package compressed before this one; summaries of the same entries are taken from it.
        timeout_s: seconds that one summary may take.
    """
    known = {one.digest.source: one.digest for one in (previous.sections if previous else ()) if one.digest}
    for _ in COMPRESSIBLE:
        sizes = shown_tokens(package, estimate)
        if sum(sizes.values()) <= budget_tokens * OVER:
            break
        whole = [one for one in package.sections if one.part in COMPRESSIBLE and one.items and not one.digest]
        if not whole:
            break
        longest = max(whole, key=lambda one: sizes[one.part])
        target = _target(sizes[longest.part])
        digest = known.get(_source(longest)) or await _digest(longest, target, summarise, timeout_s)
        # What is no shorter than the entries would only hide them.
        shorter = replace(longest, digest=digest)
        after = replace(
            package, sections=tuple(shorter if one is longest else one for one in package.sections)
        )
        if sum(shown_tokens(after, estimate).values()) >= sum(sizes.values()):
            break
        package = after
    return package


def _target(tokens: int) -> int:
    low, high = SUMMARY_TOKENS
    return max(low, min(high, round(tokens * SHARE)))


def _source(section: Section) -> str:
    return hashlib.sha256(canonical(list(section.items)).encode("utf-8", "replace")).hexdigest()


async def _digest(section: Section, target: int, summarise: Summariser | None, timeout_s: float) -> Digest:
    source = _source(section)
    limit = target * CHARACTERS_PER_TOKEN
    if summarise is not None:
        try:
            async with asyncio.timeout(timeout_s):
                said = (await summarise(canonical(list(section.items)), target)).strip()
        except (SummaryUnavailable, TimeoutError):
            said = ""
        if said:
            return Digest(head(said, limit), computed=False, of=len(section.items), source=source)
    return Digest(head(counted(section), limit), computed=True, of=len(section.items), source=source)


def counted(section: Section) -> str:
    """Entries by number and first lines: what can be said of them without understanding them."""
    by = ("status", "tool") if section.part is Part.ACTIONS else ("type",)
    tallies = [f"by {name}: {tally}" for name in by if (tally := _tally(section.items, name))]
    lines = [f"{item.get('id', '?')}: {_first_line(item)}" for item in section.items]
    return "\n".join([f"{len(section.items)} entries", *tallies, *lines])


def _tally(items: tuple[Item, ...], name: str) -> str:
    counts = Counter(str(item[name]) for item in items if name in item)
    return ", ".join(f"{value} {number}" for value, number in counts.most_common())


def _first_line(item: Mapping[str, object]) -> str:
    """The beginning of what an entry says, whole words of it or not."""
    said = [str(item[name]) for name in ("status", "did", "summary", "content") if item.get(name)]
    lines = [text.strip().splitlines()[0] for text in said if text.strip()]
    return head(": ".join(lines), FIRST_LINE)
