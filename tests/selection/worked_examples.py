"""A graph with worked examples: signals and the scores that both policies give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.crew.selection import Edge, Node, Selection, Signal

UN, ILL, WELL = "un-defined", "ill-defined", "well-defined"
IDS = {
    "minto": "minto-pyramid",
    "pws": "pws-validation",
    "jtbd": "jtbd",
    "hats": "six-hats",
    "scenario": "scenario-analysis",
    "devil": "devil",
    "hub": "hub",
}
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
Rows = tuple[list[Node], list[Edge]]
Change = Callable[[list[Node], list[Edge]], None]
Scores = dict[str, float]


def node(name: str, triggers: tuple[str, ...], types: tuple[str, ...], **more: object) -> Node:
    return Node(IDS.get(name, name), triggers, types, **more)  # type: ignore[arg-type]


NODES = tuple(node(name, *words) for name, words in _NODES.items())
EDGES = tuple(Edge(IDS[src], "CHAINS_TO", IDS[dst], weight) for src, dst, weight in _CHAINS)


def rows() -> Rows:
    return list(NODES), list(EDGES)


def _rated(_nodes: list[Node], edges: list[Edge]) -> None:
    edges.append(Edge("jtbd", "GOOD_FOR", ILL, 0.8))


def _used(_nodes: list[Node], edges: list[Edge]) -> None:
    for name, uses, successes in (("pws", 8, 1), ("devil", 10, 9)):
        edges += [Edge(IDS[name], "USED_BY", f"session {n}", float(n < successes)) for n in range(uses)]


def _parallel(_nodes: list[Node], edges: list[Edge]) -> None:
    edges.append(Edge(IDS["minto"], "CHAINS_TO", IDS["pws"], 0.7, IDS["pws"]))


def _hub(nodes: list[Node], edges: list[Edge]) -> None:
    nodes.append(node("hub", (), (ILL,)))
    edges += [Edge("hub", "CHAINS_TO", IDS[name], 1.0) for name in ("minto", "jtbd", "hats")]


@dataclass(frozen=True)
class Example:
    name: str
    signal: Signal
    result: Scores
    change: Change | None = None


def _signal(triggers: str = "", types: str = "", previous: str = "", **more: object) -> Signal:
    def split(text: str) -> tuple[str, ...]:
        return tuple(text.split("|")) if text else ()

    done = tuple(IDS[one] for one in split(previous))
    return Signal(split(triggers), split(types), done, **more)  # type: ignore[arg-type]


EXAMPLES = (
    Example("E1", _signal("structure", WELL), {"minto": 1.0, "pws": 0.4}),
    Example("E2", _signal("validate", WELL, "minto"), {"pws": 1.27, "devil": 0.6}),
    Example("E3", _signal("structure", WELL, "pws"), {"minto": 1.0, "devil": 0.18}),
    Example("E4", _signal("brainstorm", "", "scenario"), {"hats": 0.21}),
    Example("E5", _signal("validate", WELL, "minto|jtbd"), {"pws": 1.3, "devil": 0.6}),
    Example("E6", _signal("SCQA |  Structure", "Ill_Defined"), {"minto": 1.0, "jtbd": 0.4, "hats": 0.4}),
    Example("E7", _signal("jobs|perspectives", ILL), {"hats": 1.0, "jtbd": 0.92, "minto": 0.4}, _rated),
    Example("E8", _signal("validate", WELL), {"pws": 0.97, "devil": 0.633333, "minto": 0.4}, _used),
    Example("E9", _signal(), {}),
    Example("E10", _signal("validate"), {"devil": 0.6, "pws": 0.6}),
    Example("E11", _signal("validate", WELL, "minto", available=("devil", "jtbd")), {"devil": 0.6}),
    Example(
        "E12",
        _signal("validate", WELL, "minto", allow_repeat=True),
        {"pws": 1.27, "devil": 0.6, "minto": 0.4},
    ),
    Example("E13", _signal("structure", WELL, "pws"), {"minto": 1.0, "devil": 0.18}, _parallel),
    Example("E13 from minto", _signal("validate", WELL, "minto"), {"pws": 1.27, "devil": 0.6}, _parallel),
    Example("E14", _signal("structure", ILL, "minto|jtbd|hats"), {"hub": 0.4, "pws": 0.3}, _hub),
)


def scores(selection: Selection) -> list[tuple[str, float]]:
    return [(row.id, row.score) for row in selection.rows]


def expected(found: Scores) -> list[tuple[str, float]]:
    return [(IDS[name], score) for name, score in found.items()]
