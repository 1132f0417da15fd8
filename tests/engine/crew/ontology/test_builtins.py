"""What the built-in agents are held to (ontology spec §5): a good answer passes, and each fault is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import engine.planning.library
from engine.crew.ontology.criteria import Subject, check_all, failed
from engine.crew.ontology.kinds import AgentType
from engine.crew.ontology.results import compute
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ontology.spec_parser import parse_spec

HOME = Path(engine.planning.library.__file__).parent / "agents"
NAMES = sorted(folder.name for folder in HOME.iterdir() if folder.is_dir())


def spec_of(name: str) -> AgentSpec:
    front = yaml.safe_load((HOME / name / "SKILL.md").read_text(encoding="utf-8").split("---\n")[1])
    side = yaml.safe_load((HOME / name / "agent.yaml").read_text(encoding="utf-8"))
    kind = front["metadata"]["mindrian-type"]
    return parse_spec({"id": front["name"], "description": front["description"], "type": kind, **side})


def faults(name: str, data: dict[str, Any], text: str = "", sources: dict[str, str] | None = None) -> str:
    outcomes = check_all(spec_of(name).instructions.quality_criteria, Subject(text, data, sources or {}))
    return "; ".join(one.message for one in failed(outcomes))


def test_all_are_there_and_their_edges_lead_somewhere() -> None:
    specs = {name: spec_of(name) for name in NAMES}
    assert set(NAMES) == {name for name, spec in specs.items() if spec.id == name}
    assert {spec.type for spec in specs.values()} == set(AgentType)
    edges = {(name, edge.id): edge.weight for name, spec in specs.items() for edge in spec.chaining.precedes}
    assert edges == {
        ("larry", "minto-pyramid"): 0.8,
        ("larry", "jtbd"): 0.6,
        ("minto-pyramid", "pws-validation"): 0.9,
        ("jtbd", "pws-validation"): 0.8,
        ("pws-validation", "devil"): 0.7,
        ("deep-research", "minto-pyramid"): 0.6,
        ("scenario-analysis", "six-hats"): 0.7,
        ("six-hats", "minto-pyramid"): 0.6,
        ("devil", "bmc-wizard"): 0.5,
    }
    named = {one for spec in specs.values() for one in spec.handoff.routing.can_delegate_to}
    named |= {side.agent_id for spec in specs.values() if spec.debate for side in spec.debate.sides}
    assert named | {edge for _, edge in edges} <= set(NAMES)
    assert {name for name, spec in specs.items() if not spec.selectable} == {"synthesizer", "judge"}


def test_the_devil() -> None:
    kinds = ("assumptions", "demand", "execution")
    good = [{"family": kind, "quote": "It sells itself", "challenge": "c", "settles": "s"} for kind in kinds]
    sources = {"task": "It sells\nitself."}
    assert faults("devil", {"challenges": good}, "Steelman: cheap.", sources) == ""
    assert "one line" in faults("devil", {"challenges": good}, "It is bad.", sources)
    assert "three families" in faults("devil", {"challenges": good[:2]}, "Steelman: x", sources)
    assert "exactly" in faults(
        "devil", {"challenges": [*good, {**good[0], "quote": "no"}]}, "Steelman: x", sources
    )
    assert "settle" in faults(
        "devil", {"challenges": [{**one, "settles": ""} for one in good]}, "Steelman: x", sources
    )


MINTO: dict[str, Any] = {
    "situation": "We sell bread in one town.",
    "complication": "A chain opened next door.",
    "question": "How do we keep our customers?",
    "answer": "Bake what the chain cannot.",
    "reasons": [
        {"text": "freshness is wanted", "support": "survey"},
        {"text": "margins allow it", "support": "assumption"},
    ],
}
PARTS = "# Situation\n# Complication\n# Question\n# Answer"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, ""),
        ({"question": "We keep them."}, "question mark"),
        ({"answer": "word " * 41}, "forty"),
        ({"reasons": MINTO["reasons"][:1]}, "1 < 2"),
        ({"reasons": [MINTO["reasons"][0]] * 2}, "near copy"),
        ({"reasons": [{"text": "a", "support": ""}, {"text": "b", "support": "x"}]}, "evidence"),
        ({"complication": "We sell bread in one town."}, "not the situation"),
    ],
)
def test_the_pyramid(change: dict[str, Any], fault: str) -> None:
    said = faults("minto-pyramid", {**MINTO, **change}, PARTS)
    assert fault in said
    assert bool(said) is bool(fault)


def test_the_pyramid_has_its_parts_in_order() -> None:
    assert "out of order" in faults(
        "minto-pyramid", MINTO, "# Complication\n# Situation\n# Question\n# Answer"
    )


def test_the_validation() -> None:
    scores = {"problem": 22, "solution": 18, "business_case": 20, "people": 12}
    pillars = {name: {"score": score, "evidence": ["seen"]} for name, score in scores.items()}
    done = compute("pws", {"pillars": pillars, "total": 99, "verdict": "GO"}).data
    assert (done["total"], done["verdict"]) == (72, "PIVOT")
    assert faults("pws-validation", done) == ""
    assert "72, not 99" in faults("pws-validation", {**done, "total": 99})
    assert "is missing" not in faults("pws-validation", done)
    assert "26" in faults(
        "pws-validation", {**done, "pillars": {**pillars, "people": {"score": 26, "evidence": ["x"]}}}
    )


def test_the_jobs() -> None:
    good = [
        {
            "kind": kind,
            "statement": "When I pay, I want a receipt, so I can claim it",
            "importance": 8,
            "satisfaction": 4,
        }
        for kind in ("functional", "emotional", "social")
    ]
    assert faults("jtbd", {"jobs": good}) == ""
    assert "emotional" in faults("jtbd", {"jobs": good[:1] * 3})
    assert "When" in faults("jtbd", {"jobs": [*good, {**good[0], "statement": "I want it"}]})


def test_the_hats_cite_four_and_white_judges_nothing() -> None:
    assert faults("six-hats", {}, "So [white] [black] [red] and [blue] agree.") == ""
    assert "four" in faults("six-hats", {}, "So [white] and [blue].")
    assert "four" in faults("six-hats", {}, "[white] [black] [red] [blue] [purple]")
    white = next(one for one in spec_of("six-hats").sub_agents if one.id == "white")
    assert failed(check_all(white.criteria, Subject("It is a bad idea")))
    assert not failed(check_all(white.criteria, Subject("It took 4 hours")))


def test_four_scenarios_are_the_corners() -> None:
    four = [
        {"name": name, "corner": name, "implications": ["1", "2", "3"], "signals": ["s"]}
        for name in ("a", "b", "c", "d")
    ]
    axes = [{"name": "growth", "poles": ["slow", "fast"]}, {"name": "rules", "poles": ["loose", "tight"]}]
    good = {"axes": axes, "scenarios": four, "options": [{"name": "x", "survives": ["a"]}]}
    assert faults("scenario-analysis", good) == ""
    assert "2 < 3" in faults(
        "scenario-analysis", {**good, "scenarios": [{**four[0], "implications": ["1", "2"]}, *four[1:]]}
    )
    assert "corners" in faults(
        "scenario-analysis", {**good, "scenarios": [{**one, "corner": "a"} for one in four]}
    )


def test_the_canvas_names_a_segment_in_its_revenue() -> None:
    good = {"segments": "bakeries\ncafés", "value": "v", "revenue": "Bakeries pay monthly", "costs": "c"}
    assert faults("bmc-wizard", good) == ""
    assert "segments" in faults("bmc-wizard", {**good, "revenue": "somebody pays"})
