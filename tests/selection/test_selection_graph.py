"""The selection graph by worked examples, and what it takes of specs and uses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.selection import CLARIFIER, Edge, Signal, choose, edges_of, facts_of, graph_of, signal_in
from tests.selection.worked_examples import EXAMPLES, IDS, ILL, WELL, Example, expected, node, rows, scores


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_worked_examples_come_out(example: Example) -> None:
    nodes, edges = rows()
    if example.change is not None:
        example.change(nodes, edges)
    selection = choose(facts_of(nodes, edges), example.signal)
    assert scores(selection) == expected(example.result)
    assert all(len(row.why) >= 1 for row in selection.rows)


def test_who_has_finished_is_not_selected_and_nothing_leads_to_larry() -> None:
    selection = choose(facts_of(*rows()), Signal(("validate",), (WELL,), tuple(IDS.values())))
    assert selection.rows == ()
    assert selection.route == CLARIFIER
    assert {lost.candidate.id: lost.reason for lost in selection.lost}["devil"] == "It has finished already."
    assert choose(facts_of(*rows()), Signal()).clarify


def test_why_one_was_selected_and_why_others_were_not() -> None:
    nodes, edges = rows()
    nodes = [row for row in nodes if row.id not in ("jtbd", "six-hats")]
    nodes += [node("jtbd", ("jobs",), (ILL,), callers=("larry",))]
    nodes += [node("hats", ("validate",), (), enabled=False)]
    signal = Signal(
        ("validate", "jobs"), (WELL,), ("minto-pyramid",), ("devil",), "scenario-analysis", limit=1
    )
    selection = choose(facts_of(nodes, edges), signal)
    assert selection.rows[0].why == (
        "Trigger validate: +0.60.",
        "Good for well-defined: +0.40.",
        "Follows minto-pyramid (0.9): +0.27.",
    )
    assert {lost.candidate.id: lost.reason for lost in selection.lost} == {
        "devil": "It was excluded.",
        "jtbd": "scenario-analysis may not call it.",
        "minto-pyramid": "It has finished already.",
        "six-hats": "It is disabled.",
    }
    nodes.append(node("other", ("validate",), ()))
    (second,) = [lost for lost in choose(facts_of(nodes, edges), signal).lost if lost.candidate.id == "other"]
    assert (second.place, second.reason) == (2, "It came 2nd; 1 were asked for.")


def test_a_spec_declares_its_edges_and_uses_count() -> None:
    given: dict[str, Any] = {
        "id": "pws-validation",
        "name": "PWS",
        "type": "operator",
        "description": "Scores a plan.",
        "triggers": {
            "keywords": ["Validate", "many views"],
            "problem_types": [{"type": "Well_Defined", "confidence": 0.9}],
        },
        "chaining": {"precedes": [{"id": "devil", "weight": 0.7}], "follows": [{"id": "jtbd"}]},
    }
    spec = parse_spec(given)
    assert sorted(edges_of(spec)) == [
        Edge("jtbd", "CHAINS_TO", "pws-validation", 0.5, "pws-validation"),
        Edge("pws-validation", "CHAINS_TO", "devil", 0.7, "pws-validation"),
        Edge("pws-validation", "GOOD_FOR", "well-defined", 0.9),
    ]
    uses = {("pws-validation", "s1"): True, ("pws-validation", "s2"): False, ("gone", "s1"): True}
    graph = graph_of((spec,), uses)
    signal = signal_in("Start: VALIDATE it from many\n views, well_defined", graph, previous=("jtbd",))
    assert (signal.triggers, signal.problem_types) == (("many views", "validate"), ("well-defined",))
    (row,) = choose(graph, signal).rows
    assert (0.6, pytest.approx(0.36), pytest.approx(0.15), 0.0) == (row.T, row.P, row.C, row.R)
    assert (row.evidence.uses, row.evidence.successes) == (2, 1)
    (hidden,) = choose(graph_of((spec.model_copy(update={"selectable": False}),), {}), signal).lost
    assert hidden.reason == "It is disabled."
    assert not choose(graph, replace(signal, available=())).rows
