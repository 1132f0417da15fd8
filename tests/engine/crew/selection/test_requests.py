"""Labelled requests find their agents: built-in ones always, public skills where their folder is given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.crew.ontology.spec import AgentSpec
from engine.crew.selection import Outcome
from tests.benchmarks.selection import (
    NOBODY,
    SKILLSET,
    Request,
    after,
    bm25,
    crew_of,
    hits,
    ours,
    public_skills,
    requests,
    threshold,
)

PLACE = os.environ.get(SKILLSET, "")


def share(
    asked: list[Request], specs: list[AgentSpec], top: int = 1, outcomes: Sequence[Outcome] = ()
) -> float:
    ranked = [ours(specs, request.text, outcomes) for request in asked]
    return sum(hits(asked, ranked, 0.0, top)) / len(asked)


def test_300_requests_are_labelled_each_once() -> None:
    develop, held = requests()
    assert (len(develop), len(held)) == (150, 150)
    assert len({request.text for request in (*develop, *held)}) == 300


async def test_requests_find_the_built_in_agents() -> None:
    specs = await crew_of(())
    known = {NOBODY, *(spec.id for spec in specs)}
    develop, held = ([each for each in half if each.agent in known] for half in requests())
    assert share(held, specs) >= 0.7
    outcomes = after(specs, develop)
    assert share(develop, specs, outcomes=outcomes) > share(develop, specs) + 0.1, "what ended is remembered"
    assert share(held, specs, outcomes=outcomes) >= share(held, specs) - 0.02, "and spoils nothing else"


@pytest.mark.skipif(not PLACE, reason=f"{SKILLSET} names no folder with the public skills: NOT MEASURED")
async def test_requests_find_public_skills_better_than_by_bm25_over_descriptions() -> None:
    specs = await crew_of(public_skills(Path(PLACE)))
    develop, held = requests()
    plain = [bm25(specs, [request.text for request in half]) for half in (develop, held)]
    best = sum(hits(held, plain[1], threshold(develop, plain[0]), 1)) / len(held)
    assert share(held, specs) >= max(0.7, best + 0.1)
    assert share(held, specs, top=3) >= 0.8
