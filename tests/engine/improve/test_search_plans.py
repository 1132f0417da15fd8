"""Plan libraries: a planted loss is found, nulls are not, and the same seed gives the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from engine.core.improvement import Component, ComponentKind
from engine.improve.ports import NotJudged, Outcome, Split
from engine.improve.search.components import PLANS, PLANS_FILE
from engine.improve.search.plan_search import LibraryText, SearchEffort, search_library, world_tasks
from engine.improve.search.suites import PlansSuite, check_explorer_library
from tests.engine.improve.planted import CAREFUL, EDGE, GOOD

QUICK = SearchEffort(rounds=1, worlds=(6, 16, 48), kept=3, choose=80)
COMPONENT = Component(PLANS, ComponentKind.PLANS, "plans", (PLANS_FILE,))


def test_a_better_order_is_found_and_what_was_not_changed_stays_as_it_was_written() -> None:
    found = search_library(CAREFUL, random.Random(3), QUICK)
    assert found is not None
    assert found.changes[0] == "@quick before @careful"
    assert found.after < 0.9 * found.before
    assert "// Looks where it goes although the direction is free for certain.\n@careful" in found.text
    assert search_library(CAREFUL, random.Random(3), QUICK) == found


@pytest.mark.slow
def test_a_better_order_is_found_where_figures_scatter() -> None:
    found = search_library(EDGE, random.Random(1))
    assert found is not None
    assert found.changes[0] == "@near before @edge"


def test_a_library_that_is_good_already_ends_without_a_proposal() -> None:
    assert search_library(GOOD, random.Random(1), QUICK) is None


def test_nothing_is_looked_for_once_it_is_cancelled() -> None:
    assert search_library(CAREFUL, random.Random(1), QUICK, lambda: True) is None


def test_every_change_can_be_read_and_no_split_shares_a_world() -> None:
    for change in LibraryText(EDGE).changes():
        assert LibraryText(change.text).program.plans
    drawn = {split: {one.seed for one in world_tasks(split, 1, 200)} for split in Split}
    assert sum(map(len, drawn.values())) == len(set.union(*drawn.values()))


async def test_a_suite_gives_the_same_in_each_run_and_says_what_is_wrong_with_a_library(
    tmp_path: Path,
) -> None:
    suite = PlansSuite(COMPONENT, 5)
    check = suite.checks(Split.SEALED)[7]
    (tmp_path / "plans").mkdir()
    (tmp_path / PLANS_FILE).write_text(GOOD, encoding="utf-8")
    first, again = [await suite.examine(tmp_path, check, seed=5) for _ in range(2)]
    assert first == again
    assert first.outcome is Outcome.HOLDS
    (tmp_path / PLANS_FILE).write_text("+!reach(O <- .", encoding="utf-8")
    broken = await suite.examine(tmp_path, check, seed=5)
    assert broken.outcome is Outcome.FAILS
    assert f"{PLANS_FILE}:1" in broken.text


def test_a_library_for_another_world_is_refused_in_a_sentence() -> None:
    with pytest.raises(NotJudged, match=r"plans/greeter\.asl has no plan for !reach\(X\): only libraries"):
        check_explorer_library("+!greet <- .print(hello).\n", "plans/greeter.asl")
