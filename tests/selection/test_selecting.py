"""The definition of a selection: its properties."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.crew.selection import Edge, Node, Signal, choose, facts_of, normalise, triggers_in

WORDS = ("plan", "test", "risk")
TYPES = ("un-defined", "ill-defined")
IDS = tuple("abcdef")
WEIGHTS = st.one_of(st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0]), st.floats(1e-9, 1.0))


def _some(words: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(words), unique=True).map(tuple)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[Edge]]:
    """A few agents with confidences, records and bars."""
    nodes = [
        Node(
            one,
            draw(_some(WORDS)),
            draw(_some(TYPES)),
            enabled=draw(st.integers(0, 4)) > 0,
            callers=draw(st.sampled_from([("*",), ("a",), ("zed",)])),
        )
        for one in draw(_some(IDS))
    ]
    ends = st.tuples(st.sampled_from(IDS), st.sampled_from(IDS), st.sampled_from(["", "x"]))
    edges = [
        Edge(src, "CHAINS_TO", dst, draw(WEIGHTS), source)
        for src, dst, source in draw(st.lists(ends, unique=True, max_size=10))
        if src != dst
    ]
    rated = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(TYPES)), unique=True, max_size=6)
    edges += [Edge(src, "GOOD_FOR", dst, draw(st.floats(0, 1))) for src, dst in draw(rated)]
    used = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from("123")), unique=True, max_size=8)
    edges += [Edge(src, "USED_BY", dst, float(draw(st.booleans()))) for src, dst in draw(used)]
    return nodes, edges


SIGNALS = st.builds(
    Signal,
    _some(WORDS),
    _some(TYPES),
    _some(IDS),
    _some(IDS),
    st.sampled_from([None, "a", "b"]),
    st.one_of(st.none(), _some(IDS)),
    st.integers(1, 6),
    st.booleans(),
)


@given(graphs(), SIGNALS)
def test_finished_agents_stay_away_the_order_is_total_and_scores_are_in_range(
    graph: tuple[list[Node], list[Edge]], signal: Signal
) -> None:
    found = choose(facts_of(*graph), signal)
    keys = [row.order for row in found.rows]
    assert keys == sorted(set(keys))
    assert all(-0.05 <= row.score <= 1.35 for row in found.rows)
    if not signal.allow_repeat:
        assert not {row.id for row in found.rows} & set(signal.previous)


@given(graphs(), SIGNALS, st.randoms(use_true_random=False))
def test_the_order_of_what_is_given_does_not_matter(
    graph: tuple[list[Node], list[Edge]], signal: Signal, dice: object
) -> None:
    def mixed(things: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dice.sample(things, len(things)))  # type: ignore[attr-defined,no-any-return]

    other = replace(
        signal,
        triggers=mixed(signal.triggers),
        problem_types=mixed(signal.problem_types),
        previous=mixed(signal.previous),
    )
    nodes, edges = (list(mixed(tuple(things))) for things in graph)  # type: ignore[arg-type]
    assert choose(facts_of(nodes, edges), other) == choose(facts_of(*graph), signal)


@given(graphs(), SIGNALS, st.integers(0, 9))
def test_an_unrelated_agent_changes_nothing_and_a_heavier_chain_never_lowers_its_end(
    graph: tuple[list[Node], list[Edge]], signal: Signal, at: int
) -> None:
    nodes, edges = graph
    wide = replace(signal, limit=100)
    before = {row.id: row.score for row in choose(facts_of(nodes, edges), wide).rows}
    stranger = Node("stranger", ("elsewhere",))
    assert {row.id: row.score for row in choose(facts_of([*nodes, stranger], edges), wide).rows} == before

    chains = [edge for edge in edges if edge.rel == "CHAINS_TO"]
    if chains:
        one = chains[at % len(chains)]
        heavier = [replace(edge, value=1.0) if edge is one else edge for edge in edges]
        after = {row.id: row.score for row in choose(facts_of(nodes, heavier), wide).rows}
        assert after.get(one.dst, -1.0) >= before.get(one.dst, -1.0)


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
