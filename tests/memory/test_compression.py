"""Compression: the longest part is summarised in its place, by a model or by counting, and says by whom."""

from __future__ import annotations

import asyncio
import json

import pytest

from engine.memory.compression import SummaryUnavailable, compress
from engine.memory.package import ContextPackage, Part, Section
from engine.memory.packing import pack, shown_tokens
from tests.memory.context_pieces import FULL, STAMP, package, read

BUDGET = 1_000


class Scribe:
    """Summarises, and remembers what it was given."""

    def __init__(self, says: str = "It was dug in seven places.", error: Exception | None = None) -> None:
        self.says = says
        self.error = error
        self.given: list[tuple[str, int]] = []

    async def __call__(self, text: str, tokens: int) -> str:
        self.given.append((text, tokens))
        if self.error is not None:
            raise self.error
        return self.says


def long_actions() -> ContextPackage:
    """Actions that take several times the budget, and a little of everything else."""
    small = package(dict.fromkeys(FULL, 1), size=20)
    actions = tuple(
        {
            "id": f"a{n}",
            "did": f"dig {n}",
            "tool": "simple_coder",
            "status": "failed" if n == 3 else "completed",
            "result": f"hole {n} " + "x" * 3_500,
        }
        for n in range(7)
    )
    changed = tuple(
        Section(Part.ACTIONS, actions, STAMP, 1) if one.part is Part.ACTIONS else one
        for one in small.sections
    )
    return ContextPackage(small.question, STAMP, changed)


async def test_the_longest_part_is_summarised_instead_of_dropped_and_says_so() -> None:
    scribe = Scribe()
    whole = long_actions()
    assert Part.ACTIONS not in read(pack(whole, BUDGET))
    told = read(pack(await compress(whole, BUDGET, summarise=scribe), BUDGET))
    assert set(told) == set(Part)
    assert told[Part.ACTIONS]["summary"] == "It was dug in seven places."
    assert told[Part.ACTIONS]["by"] == "a model's summary"
    assert told[Part.ACTIONS]["of"] == 7
    ((given, tokens),) = scribe.given
    assert [one["id"] for one in json.loads(given)] == [f"a{n}" for n in range(7)]
    assert tokens == 2_000


@pytest.mark.parametrize("over", [1.0, 1.3])
async def test_what_is_over_by_less_than_a_third_is_not_summarised(over: float) -> None:
    scribe = Scribe()
    whole = long_actions()
    budget = round(sum(shown_tokens(whole).values()) / over)
    assert await compress(whole, budget, summarise=scribe) == whole
    assert not scribe.given


@pytest.mark.parametrize("error", [SummaryUnavailable("no model"), None])
async def test_without_a_summary_entries_are_counted_and_that_is_said(error: Exception | None) -> None:
    scribe = Scribe("  ", error)
    shorter = await compress(long_actions(), BUDGET, summarise=scribe)
    assert shorter == await compress(long_actions(), BUDGET)
    told = read(pack(shorter, BUDGET))[Part.ACTIONS]
    assert told["by"] == "counted, no model wrote it"
    first, statuses, tools, *lines = told["summary"].splitlines()
    assert (first, statuses, tools) == (
        "7 entries",
        "by status: completed 6, failed 1",
        "by tool: simple_coder 7",
    )
    assert lines[3] == "a3: failed: dig 3"


async def test_a_summariser_that_hangs_is_not_waited_for_without_end() -> None:
    async def hangs(_text: str, _tokens: int) -> str:
        await asyncio.Event().wait()
        return ""

    shorter = await compress(long_actions(), BUDGET, summarise=hangs, timeout_s=0.01)
    assert shorter.section(Part.ACTIONS).digest.computed


async def test_the_same_entries_are_summarised_once() -> None:
    scribe = Scribe()
    first = await compress(long_actions(), BUDGET, summarise=scribe)
    second = await compress(long_actions(), BUDGET, summarise=scribe, previous=first)
    assert second == first
    assert len(scribe.given) == 1


async def test_a_summary_that_goes_on_and_on_is_cut_with_a_mark() -> None:
    shorter = await compress(long_actions(), BUDGET, summarise=Scribe("blah " * 10_000))
    digest = shorter.section(Part.ACTIONS).digest
    assert digest is not None
    assert digest.text.endswith("more characters]")
    assert len(digest.text) < 2_000 * 4 + 40


async def test_part_after_part_is_summarised_the_longest_first_until_it_is_near_the_budget() -> None:
    scribe = Scribe("short")
    shorter = await compress(package(FULL, size=2_000), 6_000, summarise=scribe)
    done = [one.part for one in shorter.sections if one.digest]
    assert done == [Part.WORKING, Part.ACTIONS, Part.IMPORTANT, Part.THOUGHTS]
    assert [len(json.loads(text)) for text, _ in scribe.given] == [20, 10, 7, 7]
    assert sum(shown_tokens(shorter).values()) <= 6_000 * 4 / 3
