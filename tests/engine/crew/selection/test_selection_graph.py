"""The selection graph by worked examples, and its properties."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.crew.selection import (
    CLARIFIER,
    REMEMBERED,
    Candidate,
    Outcome,
    Signal,
    choose,
    normalise,
    signal_in,
    triggers_in,
)
from tests.engine.crew.selection.worked_examples import (
    EXAMPLES,
    WELL,
    Example,
    agent,
    agents,
    expected,
    scores,
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_worked_examples_come_out(example: Example) -> None:
    selection = choose(agents(**example.others), example.uses, example.signal)
    assert scores(selection) == expected(example.result)
    assert all(len(row.why) >= 1 for row in selection.rows)
    turned = choose(agents(**example.others)[::-1], example.uses, example.signal)
    assert turned == selection, "the order of what is given does not matter"
    wide = replace(example.signal, limit=100)
    stranger = agent("stranger", ("elsewhere",))
    assert scores(choose([*agents(**example.others), stranger], example.uses, wide)) == scores(selection)
    heavy = agents(**example.others, pws=agent("pws", ("validate",), (WELL,), precedes={"devil": 1.0}))
    before, after = (
        dict(scores(choose(some, example.uses, wide))) for some in (agents(**example.others), heavy)
    )
    assert after.get("devil", -1.0) >= before.get("devil", -1.0)


def test_who_has_finished_is_not_selected_and_nothing_leads_to_larry() -> None:
    every = tuple(spec.id for spec in agents())
    selection = choose(agents(), {}, Signal(("validate",), (WELL,), every))
    assert selection.rows == ()
    assert selection.route == CLARIFIER
    assert {lost.id: lost.lost for lost in selection.lost}["devil"] == "It has finished already."


def test_why_one_was_selected_and_why_others_were_not() -> None:
    others = {"hats": agent("hats", ("validate",), selectable=False)}
    signal = Signal(("validate", "jobs"), (WELL,), ("minto-pyramid",), limit=1)
    selection = choose(agents(**others), {}, signal)
    assert selection.rows[0].why == (
        "Trigger validate: +0.60.",
        "Good for well-defined (1): +0.40.",
        "Follows minto-pyramid (0.9): +0.27.",
    )
    assert {lost.id: lost.lost for lost in selection.lost} == {
        "devil": "1 others scored higher.",
        "jtbd": "1 others scored higher.",
        "minto-pyramid": "It has finished already.",
        "six-hats": "It is disabled.",
    }


def test_a_text_gives_a_signal_and_uses_count() -> None:
    chaining = {"follows": [{"id": "jtbd"}]}
    follows = agent("pws", ("Validate", "many views"), ("Well_Defined",), 0.9, chaining=chaining)
    uses = {("pws-validation", "s1"): True, ("pws-validation", "s2"): False, ("gone", "s1"): True}
    signal = signal_in("Start: VALIDATE it from many\n views, well_defined", [follows], previous=("jtbd",))
    assert (signal.triggers, signal.problem_types) == (("many views", "validate"), ("well-defined",))
    (row,) = choose([follows], uses, signal).rows
    assert (0.6, pytest.approx(0.36), pytest.approx(0.15), 0.0) == (row.T, row.P, row.C, row.R)
    assert row.why[-2] == "1 of 2 uses succeeded: +0.000."
    assert not choose([follows], uses, replace(signal, available=())).rows


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("text", "trigger", "stands"),
    [
        ("where to start", "art", False),
        ("state of the art.", "art", True),
        ("GO_NO_GO?", "go-no-go", True),
        ("a go-no-go", "go", False),
        ("ill_defined", "defined", False),
        ("many\n  views", "many views", True),
        ("ﬁnd the customer's need", "customer", True),
        ("needs - and jobs", "needs", True),
        ("c++11", "c++", False),
        ("in c++ now", "c++", True),
        ("start with art", "art", True),
    ],
)
def test_triggers_stand_as_whole_words(text: str, trigger: str, stands: bool) -> None:
    assert triggers_in(text, [trigger]) == ((trigger,) if stands else ())


PARSER = agent("parser", ("grammar",), description="Writes parsers for small languages.")
BAKER = agent("baker", ("oven",), description="Bakes bread and cakes.")


def learned(*values: float, later: int = 0, text: str = "bread for small languages") -> Candidate:
    """The baker, after tasks like this one that ended so, and others after them."""
    outcomes = [Outcome("baker", text, value) for value in values]
    outcomes += [Outcome("parser", text, 1.0)] * later
    rows = choose([PARSER, BAKER], {}, signal_in(f"{text}, in the oven", [BAKER]), outcomes).rows
    return next(row for row in rows if row.id == "baker")


def test_words_select_where_no_trigger_does_and_say_which() -> None:
    (row,) = choose([PARSER, BAKER], {}, signal_in("a parser of our language", [PARSER, BAKER])).rows
    assert (row.id, row.T) == ("parser", 0.0)
    assert row.why == (f"About language, parser: {row.W:+.2f}.",)
    chained = agent("pws", chaining={"follows": [{"id": "jtbd"}]})
    nonsense = signal_in("book a table", [chained], previous=("jtbd",))
    assert not choose([chained], {}, nonsense).rows, "to follow what has finished is not enough for a text"


def test_outcomes_are_bounded_and_grow_weaker_and_are_explained() -> None:
    assert learned().L == 0.0
    assert 0.6 < learned(1.0).L < learned(1.0, 1.0).L < learned(*[1.0] * 500).L < 2.0
    assert -2.0 < learned(*[-1.0] * 500).L < learned(-1.0).L < learned(-0.5).L < 0.0
    assert learned(1.0, later=200).L < 0.7 * learned(1.0).L
    assert learned(1.0, later=REMEMBERED).L == 0.0
    assert learned(1.0, -1.0).why[-1].startswith("1 of 2 tasks with bread, ")
    assert learned(-1.0, 1.0).L > learned(1.0, -1.0).L, "the newer one counts more"


@pytest.mark.parametrize(
    "text", ["\ud800 bread", "a\x00bread", '" OR NEAR(*) -- bread', "パンを焼く" * 9_000]
)
def test_hostile_requests_are_read_as_words(text: str) -> None:
    outcomes = [Outcome("baker", text, 1.0)] * 9
    assert choose([BAKER, PARSER], {}, signal_in(text, [BAKER]), outcomes).route in ("baker", CLARIFIER)
