"""A graph with worked examples: signals and the scores that they give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.crew.ontology.spec import AgentSpec
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.selection import Selection, Signal

UN, ILL, WELL = "un-defined", "ill-defined", "well-defined"
IDS = {"minto": "minto-pyramid", "pws": "pws-validation", "hats": "six-hats", "scenario": "scenario-analysis"}
_NODES = {
    "minto": (("structure", "scqa", "communicate"), (ILL, WELL)),
    "pws": (("validate", "opportunity", "go-no-go"), (WELL,)),
    "jtbd": (("jobs", "customer", "needs"), (ILL,)),
    "hats": (("perspectives", "decide"), (UN, ILL)),
    "scenario": (("future", "uncertainty"), (UN,)),
    "devil": (("challenge", "validate"), ()),
}
_CHAINS = (
    ("minto", "pws", 0.9),
    ("jtbd", "pws", 0.8),
    ("jtbd", "minto", 0.5),
    ("scenario", "hats", 0.7),
    ("pws", "devil", 0.6),
)


def _id(name: str) -> str:
    return IDS.get(name, name)


def agent(
    name: str,
    triggers: tuple[str, ...] = (),
    types: tuple[str, ...] = (),
    sure: float = 1.0,
    precedes: dict[str, float] | None = None,
    **more: Any,
) -> AgentSpec:
    given = {
        "id": _id(name),
        "name": name,
        "type": "operator",
        "description": name,
        "triggers": {
            "keywords": triggers,
            "problem_types": [{"type": kind, "confidence": sure} for kind in types],
        },
        "chaining": {"precedes": [{"id": _id(to), "weight": w} for to, w in (precedes or {}).items()]},
    }
    return parse_spec(given | more)


def agents(**others: AgentSpec) -> list[AgentSpec]:
    """The agents of the examples, some of them other ones."""
    usual = {
        name: agent(name, *words, precedes={to: w for src, to, w in _CHAINS if src == name})
        for name, words in _NODES.items()
    }
    return list((usual | others).values())


@dataclass(frozen=True)
class Example:
    name: str
    signal: Signal
    result: dict[str, float]
    others: dict[str, AgentSpec] = field(default_factory=dict)
    uses: dict[tuple[str, str], bool] = field(default_factory=dict)


def _signal(triggers: str = "", types: str = "", previous: str = "", **more: Any) -> Signal:
    def split(text: str) -> tuple[str, ...]:
        return tuple(text.split("|")) if text else ()

    return Signal(split(triggers), split(types), tuple(map(_id, split(previous))), **more)


_RATED = {"jtbd": agent("jtbd", ("jobs",), (ILL,), 0.8)}
_HUB = {"hub": agent("hub", (), (ILL,), precedes={"minto": 1.0, "jtbd": 1.0, "hats": 1.0})}
_USED = {
    (_id(name), f"session {n}"): n < successes
    for name, uses, successes in (("pws", 8, 1), ("devil", 10, 9))
    for n in range(uses)
}
EXAMPLES = (
    Example("E1", _signal("structure", WELL), {"minto": 1.0, "pws": 0.4}),
    Example("E2", _signal("validate", WELL, "minto"), {"pws": 1.27, "devil": 0.6}),
    Example("E3", _signal("structure", WELL, "pws"), {"minto": 1.0, "devil": 0.18}),
    Example("E4", _signal("brainstorm", "", "scenario"), {"hats": 0.21}),
    Example("E5", _signal("validate", WELL, "minto|jtbd"), {"pws": 1.3, "devil": 0.6}),
    Example("E6", _signal("SCQA |  Structure", "Ill_Defined"), {"minto": 1.0, "jtbd": 0.4, "hats": 0.4}),
    Example("E7", _signal("jobs|perspectives", ILL), {"hats": 1.0, "jtbd": 0.92, "minto": 0.4}, _RATED),
    Example("E8", _signal("validate", WELL), {"pws": 0.97, "devil": 0.633333, "minto": 0.4}, {}, _USED),
    Example("E9", _signal(), {}),
    Example("E10", _signal("validate"), {"devil": 0.6, "pws": 0.6}),
    Example("E11", _signal("validate", WELL, "minto", available=("devil", "jtbd")), {"devil": 0.6}),
    Example("E14", _signal("structure", ILL, "minto|jtbd|hats"), {"hub": 0.4, "pws": 0.3}, _HUB),
)


def scores(selection: Selection) -> list[tuple[str, float]]:
    return [(row.id, row.score) for row in selection.rows]


def expected(found: dict[str, float]) -> list[tuple[str, float]]:
    return [(_id(name), score) for name, score in found.items()]
