"""What every selection graph does: the same tests for memory, SQLite and a server over Bolt."""

from __future__ import annotations

from typing import Any

import pytest

from engine.agents.reading import read_spec
from engine.selection import (
    CLARIFIER,
    FrameworkGraph,
    GraphFault,
    GraphInputError,
    GraphNotFound,
    Node,
    Position,
    Signal,
    choose,
    facts_of,
    register,
    signal_in,
)
from tests.selection.worked_examples import EXAMPLES, IDS, ILL, WELL, Example, expected, fill, node, scores


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
async def test_the_worked_examples_come_out_in_both_policies(graph: FrameworkGraph, example: Example) -> None:
    """Line 57."""
    await fill(graph)
    if example.change is not None:
        await example.change(graph)
    facts = facts_of(await graph.nodes(), await graph.edges())
    for policy, wanted in (("literal", example.literal), ("corrected", example.corrected)):
        found = await graph.select(example.signal, policy=policy)  # type: ignore[arg-type]
        assert scores(found) == expected(wanted), policy
        assert found == choose(facts, example.signal, policy)  # type: ignore[arg-type]
        assert all(len(row.why) >= 1 for row in found.rows)


async def test_changing_a_chains_weight_leaves_one_edge(graph: FrameworkGraph) -> None:
    """Line 58."""
    await fill(graph)
    await graph.link("minto-pyramid", "CHAINS_TO", "pws-validation", weight=0.7)
    chains = [edge for edge in await graph.edges("CHAINS_TO") if edge.src == "minto-pyramid"]
    assert [(edge.dst, edge.value) for edge in chains] == [("pws-validation", 0.7)]

    await graph.link("minto-pyramid", "CHAINS_TO", "pws-validation", weight=0.2, source="pws-validation")
    await graph.link("minto-pyramid", "CHAINS_TO", "pws-validation", weight=0.3, source="pws-validation")
    assert len(await graph.edges("CHAINS_TO")) == 6
    await graph.unlink("minto-pyramid", "CHAINS_TO", "pws-validation", source="pws-validation")
    assert len(await graph.edges("CHAINS_TO")) == 5
    await graph.unlink("minto-pyramid", "CHAINS_TO", "pws-validation")
    assert len(await graph.edges()) == 4


async def test_who_has_finished_is_not_selected_and_nothing_leads_to_larry(graph: FrameworkGraph) -> None:
    """Line 58."""
    await fill(graph)
    found = await graph.select(Signal(("validate",), (WELL,), tuple(IDS.values())))
    assert found.rows == ()
    assert found.route == CLARIFIER
    assert {one.candidate.id: one.reason for one in found.lost}["devil"] == "It has finished already."
    assert (await graph.select(Signal())).clarify


async def test_why_one_was_selected_and_why_others_were_not(graph: FrameworkGraph) -> None:
    await fill(graph)
    await graph.upsert(node("jtbd", ("jobs",), (ILL,), callers=("larry",)))
    await graph.upsert(node("hats", ("validate",), (), enabled=False))
    await graph.link("minto-pyramid", "GOOD_FOR", "Ill Defined", confidence=0.5)
    signal = Signal(
        ("validate", "jobs"), (WELL,), ("minto-pyramid",), ("devil",), "scenario-analysis", limit=1
    )
    found = await graph.select(signal)
    assert found.rows[0].why == (
        "Trigger validate: +0.60.",
        "Good for well-defined: +0.40.",
        "Follows minto-pyramid (0.9): +0.27.",
    )
    assert {one.candidate.id: one.reason for one in found.lost} == {
        "devil": "It was excluded.",
        "jtbd": "scenario-analysis may not call it.",
        "minto-pyramid": "It has finished already.",
        "six-hats": "It is disabled.",
    }
    assert (await graph.explain("pws-validation", signal)).place == 1
    told = await graph.explain("scenario-analysis", signal)
    assert told.reason == "No trigger, no type of problem and no chain leads to it."
    second = await graph.explain("devil", Signal(("validate",), (WELL,), limit=1))
    assert (second.place, second.reason) == (2, "It came 2nd; 1 were asked for.")
    with pytest.raises(GraphNotFound, match=r"no agent minto-pyramids .* minto-pyramid"):
        await graph.explain("minto-pyramids", signal)


async def test_a_trial_is_seen_through_itself_and_leaves_nothing(graph: FrameworkGraph) -> None:
    """Line 53, the graph's half: a name with quotes, a backslash and a newline comes back as it was."""
    await fill(graph)
    before = await graph.nodes(), await graph.edges(), await graph.position()
    odd = Node("odd", 'Devil\'s "Advocate" \\n \n', "role", ("Why_Not", "it's"), description="} {$x} `")
    async with graph.trial() as trial:
        for _ in range(2):
            await trial.upsert(odd)
            await trial.link("odd", "CHAINS_TO", "not-there-yet", weight=0.5)
        await trial.note_position(Position(7, "ab"))
        assert odd in await trial.nodes()
        assert len(await trial.edges()) == len(before[1]) + 1
        found = await trial.select(Signal(odd.triggers))
        assert [(row.id, row.matched, row.node) for row in found.rows] == [("odd", ("why-not", "it's"), odd)]
        with pytest.raises(GraphFault, match="A transaction is open here"):
            await graph.upsert(odd)
    assert (await graph.nodes(), await graph.edges(), await graph.position()) == before

    async def broken() -> None:
        async with graph.transaction() as unit:
            await unit.upsert(odd)
            raise LookupError

    with pytest.raises(LookupError):
        await broken()
    assert (await graph.nodes(), await graph.edges(), await graph.position()) == before
    async with graph.transaction() as unit:
        await unit.upsert(odd)
        await unit.note_position(Position(7, "ab"))
    assert odd in await graph.nodes()
    assert await graph.position() == Position(7, "ab")


async def test_neighbours_lead_away_and_are_told_nearest_first(graph: FrameworkGraph) -> None:
    await fill(graph)
    await graph.link("devil", "CHAINS_TO", "jtbd", weight=0.1)
    found = await graph.neighbours("jtbd", "CHAINS_TO", 3)
    assert [(edge.src, edge.dst) for edge in found] == [
        ("jtbd", "minto-pyramid"),
        ("jtbd", "pws-validation"),
        ("minto-pyramid", "pws-validation"),
        ("pws-validation", "devil"),
        ("devil", "jtbd"),
    ]
    assert len(await graph.neighbours("jtbd")) == 2
    await graph.link("jtbd", "GOOD_FOR", ILL, confidence=0.8)
    (good,) = await graph.neighbours("jtbd", "GOOD_FOR", 2)
    assert (good.dst, good.props) == (ILL, {"confidence": 0.8})


async def test_removing_takes_the_edges_and_keeps_the_record(graph: FrameworkGraph) -> None:
    await fill(graph)
    await graph.record_use("devil", "s1", False)
    await graph.record_use("devil", "s1", True)
    await graph.remove("devil")
    assert "devil" not in {one.id for one in await graph.nodes()}
    assert [edge.dst for edge in await graph.edges() if "devil" in (edge.src, edge.dst)] == ["s1"]
    assert (await graph.select(Signal(("challenge",), (), ("pws-validation",)))).clarify
    await graph.upsert(node("devil", ("challenge",), ()))
    (row,) = (await graph.select(Signal(("challenge",)))).rows
    assert (row.evidence.uses, row.evidence.successes, row.score) == (1, 1, 0.616667)
    await graph.unlink("devil", "USED_BY", "s1")
    assert (await graph.select(Signal(("challenge",)))).rows[0].score == 0.6
    await graph.link("not-there", "CHAINS_TO", "devil", weight=1.0)
    assert "not-there" not in {one.id for one in await graph.nodes()}


async def test_registering_a_new_version_replaces_what_the_former_declared(graph: FrameworkGraph) -> None:
    await fill(graph)
    chaining = {"precedes": [{"id": "devil", "weight": 0.7}], "follows": [{"id": "jtbd"}]}
    given: dict[str, Any] = {
        "id": "pws-validation",
        "name": "PWS",
        "type": "operator",
        "description": "Scores a plan.",
        "triggers": {
            "keywords": ["Validate"],
            "problem_types": [{"type": "Well_Defined", "confidence": 0.9}],
        },
        "chaining": chaining,
    }
    for _ in range(2):
        await register(graph, read_spec(given))
    chains = [(edge.src, edge.dst, edge.value) for edge in await graph.edges() if edge.source]
    assert chains == [("jtbd", "pws-validation", 0.5), ("pws-validation", "devil", 0.7)]
    assert [edge.value for edge in await graph.edges("GOOD_FOR")] == [0.9]
    found = await graph.select(Signal(("validate",), (WELL,), ("minto-pyramid",)))
    assert (found.rows[0].id, found.rows[0].score) == ("pws-validation", 1.23)

    later = {
        **given,
        "version": "1.1.0",
        "chaining": {},
        "triggers": {"keywords": ["go"]},
        "selectable": False,
    }
    await register(graph, read_spec(later))
    assert not [edge for edge in await graph.edges() if edge.source or edge.rel == "GOOD_FOR"]
    assert len(await graph.edges("CHAINS_TO")) == 5
    assert (await graph.explain("pws-validation", Signal(("go",)))).reason == "It is disabled."


async def test_a_text_gives_the_triggers_that_stand_in_it(graph: FrameworkGraph) -> None:
    await fill(graph)
    await graph.upsert(node("hats", ("many views", "art"), ()))
    signal = await signal_in("Start: VALIDATE it from many\n views, well_defined", graph, limit=2)
    assert signal.triggers == ("many views", "validate")
    assert signal.problem_types == ("well-defined",)
    assert len((await graph.select(signal)).rows) == 2


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (("a b", "CHAINS_TO", "c", {}), "src"),
        (("a", "CHAINS_TO", "a", {}), "dst"),
        (("a", "LIKES", "b", {}), "rel"),
        (("a", "CHAINS_TO", "b", {"weight": 0}), "weight"),
        (("a", "CHAINS_TO", "b", {"weight": float("nan")}), "weight"),
        (("a", "CHAINS_TO", "b", {"confidence": 0.5}), "confidence"),
        (("a", "GOOD_FOR", " ", {}), "dst"),
        (("a", "GOOD_FOR", "b", {"confidence": 1.1}), "confidence"),
        (("a", "USED_BY", "s", {"success": 1}), "success"),
        (("a", "USED_BY", "\ud800", {"success": True}), "dst"),
    ],
)
async def test_what_the_graph_does_not_take_is_named(
    graph: FrameworkGraph, call: tuple[str, str, str, dict[str, object]], field: str
) -> None:
    src, rel, dst, props = call
    with pytest.raises(GraphInputError) as caught:
        await graph.link(src, rel, dst, **props)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert await graph.edges() == ()
