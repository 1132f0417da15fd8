"""Plan sets in the explorer's world: the thesis' cycles and our own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from explorer_answers import FLYING

from app.cli.candidates import Candidate, asked_candidate, plans_candidate
from app.cli.explorer import CandidateRuns, Mode, Result
from engine.bdi.parser import parse_program
from engine.bdi.semantics import Semantics
from engine.planning.pgp.requests import RecordedAnswers
from engine.tools.worlds.explorer import baseline_program
from engine.tools.worlds.explorer_run import ExplorerEnding, ExplorerRun, run_explorer

BASELINE = baseline_program().plans


def tried(candidate: Candidate, seeds: Sequence[int] = (7,), main: Mode = Mode.NATIVE) -> Result:
    return asyncio.run(CandidateRuns(candidate, seeds).result(main))


def flown(name: str, mode: Mode, *, generated: bool = False) -> ExplorerRun:
    (run,) = tried(plans_candidate(name, generated=generated)).runs[mode]
    return run


def endings(text: str, cycles: int = 2_000) -> set[ExplorerEnding]:
    plans = parse_program(text).plans
    return {run_explorer(plans, 7, mode.semantics, cycles=cycles).ending for mode in Mode}


def test_the_baseline_needs_33_of_the_thesis_cycles_and_7_of_ours() -> None:
    runs = [flown("baseline", mode) for mode in Mode]
    assert [(run.cycles, run.moves, run.generations) for run in runs] == [(33, 3, 0), (7, 3, 0)]


def test_the_same_plans_through_the_reactive_procedure_need_37_and_10() -> None:
    runs = [flown("baseline", mode, generated=True) for mode in Mode]
    assert [(run.cycles, run.moves, run.generations) for run in runs] == [(37, 3, 1), (10, 3, 1)]


@pytest.mark.parametrize(("name", "ref_cycles"), [("5.8", 38), ("5.9", 37)])
def test_the_listings_as_answers_need_the_cycles_of_the_specification(name: str, ref_cycles: int) -> None:
    run = flown(name, Mode.COMPAT)
    assert (run.cycles, run.moves, run.generations) == (ref_cycles, 3, 1)


@pytest.mark.parametrize("name", ["5.8", "5.9", "5.10", "5.11"])
@pytest.mark.parametrize("mode", Mode)
def test_every_listing_reaches_home_after_one_generation(name: str, mode: Mode) -> None:
    run = flown(name, mode)
    assert (run.ending, run.generations) == (ExplorerEnding.HOME, 1)


def test_a_removal_event_for_every_percept_that_goes_makes_the_thesis_cycles_38() -> None:
    """The reference raises one for the last only, which is a bug of it."""
    repaired = replace(Semantics.compat(), last_removal_only=False)
    assert run_explorer(BASELINE, 7, repaired).cycles == 38


def test_a_walk_that_overlooks_home_beside_it_takes_201_moves() -> None:
    """The size of one model's published mean."""
    blind = "+!reach(X) : there_is(X, here). +!reach(X) <- getDirectionToMove(D); move(D); !reach(X)."
    assert run_explorer(parse_program(blind).plans, 7, Semantics.compat()).moves == 201


def test_over_forty_seeds_our_cycle_always_reaches_home() -> None:
    result = tried(plans_candidate("baseline"), range(1, 41))
    assert {run.ending for run in result.counted} == {ExplorerEnding.HOME}
    assert all(run.cycles < 10_000 for run in result.counted)
    assert min(result.times()["moves"]) >= 3


def test_a_run_is_the_same_each_time() -> None:
    runs = [run_explorer(BASELINE, 42, Semantics.compat()) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0] != run_explorer(BASELINE, 43, Semantics.compat())


def test_a_run_without_plans_an_unbound_or_unknown_direction_and_an_unknown_action_end_idle() -> None:
    for text in (
        "",
        "+!reach(X) <- move(D).",
        "+!reach(X) <- move(up).",
        "+!reach(X) <- fly(north).",
        "+!reach(X) <- move(north, fast).",
        "+!reach(X) : there_is(X, here).",
    ):
        assert endings(text) == {ExplorerEnding.IDLE}


def test_a_run_that_never_ends_is_given_up_and_a_stop_is_obeyed() -> None:
    assert endings("+!reach(X) <- !reach(X).") == {ExplorerEnding.CYCLES}
    assert endings("+!reach(X) <- move(here); !reach(X).") == {ExplorerEnding.CYCLES}
    assert endings("+!reach(X) <- pause; sleep(5); .wait(50); stop; !reach(X).") == {ExplorerEnding.STOPPED}


def test_an_action_that_an_agent_lacks_is_reported_and_its_plan_never_runs() -> None:
    result = tried(asked_candidate(RecordedAnswers([FLYING]), "flying"))
    assert result.review.complaints == ("line 3: +!reach(X): line 5: there is no action fly/1",)
    assert (result.counted[0].ending, result.counted[0].moves, result.tsr) == (ExplorerEnding.IDLE, 0, 0)
    assert result.unknown_actions == 1
