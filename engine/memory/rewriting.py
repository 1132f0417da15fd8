"""Searches in which a model puts the query in other ways, and orders what was found.

Whatever goes wrong there leaves the plain result, and a note that says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Protocol

from engine.core.text import clean_line
from engine.memory.memories import Found, HybridSearch
from engine.memory.query import OPERATED, operators, parsed
from engine.memory.search import SearchMatch
from engine.value import replace

REWRITE_S, ORDER_S = 5.0, 8.0
"""How long the two answers are waited for."""
OTHERS = 3
"""Other ways to put a query."""
ORDERED = 20
"""The best memories, which the model orders."""
MOST = 500
"""Memories that a search gives at most."""
SHOWN = 400
"""Characters of a query, and of each memory, that the model is shown."""
_OPERATES = str.maketrans('":-', "   ")


class RewriteError(Exception):
    """The model could not be asked, or its answer cannot be used; the message says why."""


class Rewriter(Protocol):
    """Helps a search; each answer comes with the tokens that it took."""

    name: str

    async def others(self, query: str) -> tuple[tuple[str, ...], int]:
        """Other ways to put a query.

        Raises:
            RewriteError: there is no answer.
        """

    async def order(self, query: str, texts: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
        """The ids of these memories, what answers the query best first.

        Raises:
            RewriteError: there is no answer.
        """


Ask = Callable[[HybridSearch], Awaitable[Found]]


async def search_rewritten(
    ask: Ask, request: HybridSearch, rewriter: Rewriter, within: tuple[float, float] | None = None
) -> Found:
    """What a search finds with the help of a model; the plain result where the model is none.

    Args:
        ask: searches.
        request: what is looked for.
        rewriter: the model.
        within: seconds that its two answers are waited for, where it is not the usual time.
    """
    first_s, then_s = within or (REWRITE_S, ORDER_S)
    plain = await ask(request)
    query = request.query[:SHOWN]
    end = request.offset + request.limit
    if not parsed(query, 0.0).text.strip() or end > MOST:
        return plain  # filters alone find the newest
    try:
        async with asyncio.timeout(first_s):
            others, tokens = await rewriter.others(query)
        asked = list(dict.fromkeys(filter(None, (_asked(request.query, other) for other in others))))[:OTHERS]
        found = await _joined(ask, request, asked)
        best = {match.memory.id: match for match in found[:ORDERED]}
        if len(best) > 1 and (request.nearest or any(match.clear for match in found)):
            async with asyncio.timeout(then_s):
                order, more = await rewriter.order(query, {ident: _text(best[ident]) for ident in best})
            found, tokens = [*_ordered(best, order), *found[ORDERED:]], tokens + more
    except (RewriteError, TimeoutError) as error:
        why = clean_line(str(error), limit=200) or "it did not answer in time"
        return replace(plain, note=f"{rewriter.name} did not help: {why}")
    note = (
        f"asked {rewriter.name}: +{len(asked)} {'query' if len(asked) == 1 else 'queries'}, {tokens:,} tokens"
    )
    return replace(Found.of(found[request.offset : end], nearest=request.nearest), note=note)


async def _joined(ask: Ask, request: HybridSearch, others: list[str]) -> list[SearchMatch]:
    """What any of the queries finds, each memory by its best score."""
    wide = {"limit": max(ORDERED, request.offset + request.limit), "offset": 0, "nearest": True}
    best: dict[str, SearchMatch] = {}
    every = [await ask(request.model_copy(update={**wide, "query": one})) for one in (request.query, *others)]
    if operators(request.query) and any(found.relevant for found in every):
        every = [found for found in every if found.relevant]  # others hold what the query leaves out
    for match in chain.from_iterable(every):
        known = best.get(match.memory.id)
        if known is None or match.score > known.score:
            best[match.memory.id] = match
    return sorted(best.values(), key=lambda match: -match.score)


def _ordered(best: Mapping[str, SearchMatch], order: Sequence[str]) -> list[SearchMatch]:
    """These in the order that the model gave, and behind them those that it left out."""
    if not order or set(order) - best.keys():
        raise RewriteError("it named memories that were not shown")
    # Of two that contradict each other the newer one comes first, whatever a model says.
    return sorted(
        (best[one] for one in dict.fromkeys((*order, *best))), key=lambda match: bool(match.superseded)
    )


def _asked(query: str, other: str) -> str:
    """Another way to put a query, held to all that it leaves out and filters; empty where nothing is left."""
    kept = operators(query)
    words = other.translate(_OPERATES).split()[: max(0, OPERATED - len(kept.split()))]
    return " ".join((*words, kept)).strip() if words else ""


def _text(match: SearchMatch) -> str:
    return " ".join((match.memory.description, match.memory.content)).strip()[:SHOWN]
