"""Phase 5: an agent as a node of the selection graph, with its edges (ontology spec §2.6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.agents.spec import AgentSpec
from engine.building.findings import Findings
from engine.building.skill import SkillDefinition, words_of
from engine.domain.text import clean_line
from engine.selection.errors import GraphFault
from engine.selection.normalising import normalise, normalised
from engine.selection.registering import edges_of, node_of, register
from engine.selection.values import Node, Signal

if TYPE_CHECKING:
    from engine.selection.graph import FrameworkGraph

MOST_TRIGGERS = 20
DEFAULT_PROBLEM = ("ill-defined", 0.5)
DEFAULT_WEIGHT = 0.5
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{2,60})[\"”]|(?<!\w)['‘]([^'‘’\n]{2,60})['’](?!\w)")
_USE_WHEN = re.compile(r"\b(?:use (?:it |this )?(?:when|for|if|whenever)|when)\b([^.!?\n]*)", re.I)
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_STOP_WORDS = """
    a about after all also an and any are as asks at be been being but by can could do does doing
    each either etc for from get has have how if in into is it its like make may more most must need
    needs new no not of on one only or other our out over same should so some such than that the
    their them then there these they this those to up us use used user users using want wants was we
    were what when where whether which while who will with within work working would you your when
    skill agent claude
"""
_STOP = frozenset(_STOP_WORDS.split())


def draft_graph(skill: SkillDefinition, found: Findings) -> dict[str, Any]:
    """Triggers, problem types and chaining: declared, else taken from name and description."""
    found_by = {"keywords": _keywords(skill, found), "problem_types": _problems(skill, found)}
    draft: dict[str, Any] = {"triggers": found_by}
    chains = skill.declared("chains-to")
    chaining: dict[str, Any] = {}
    if isinstance(chains, str):
        pairs = _weighed(chains, DEFAULT_WEIGHT, found, "chains-to")
        chaining["precedes"] = [{"id": name, "weight": weight} for name, weight in pairs]
    ancestor = skill.extra.get("chaining")
    if isinstance(ancestor, dict):
        chaining = {**_ancestor_chaining(ancestor, found), **chaining}
    return draft | ({"chaining": chaining} if chaining else {})


def _keywords(skill: SkillDefinition, found: Findings) -> list[str]:
    declared = skill.declared("triggers")
    said = declared.get("keywords") if isinstance(declared, dict) else declared
    words = list(normalised(clean_line(one, limit=120) for one in words_of(said)))
    if not words:
        text = skill.description
        quoted = [one[1] or one[2] for one in _QUOTED.finditer(text)]
        named = _WORD.findall(skill.name.replace("-", " ").replace("_", " "))
        when = [word for clause in _USE_WHEN.finditer(text) for word in _WORD.findall(clause[1])]
        content = [word for word in (*named, *when) if len(word) > 2 and word.casefold() not in _STOP]
        words = list(normalised(clean_line(one.strip(" .,;:"), limit=120) for one in (*quoted, *content)))
    if not words:
        found.warn("NO_TRIGGERS", "there are no triggers: it is found by its problem types only", "triggers")
    elif len(words) > MOST_TRIGGERS and said:
        words_told = f"{len(words)} triggers; the first {MOST_TRIGGERS} are taken"
        found.warn("MANY_TRIGGERS", words_told, "triggers")
    return words[:MOST_TRIGGERS]


def _problems(skill: SkillDefinition, found: Findings) -> list[dict[str, Any]]:
    said = skill.declared("problem-types")
    pairs: list[tuple[str, float]] = []
    if isinstance(said, list):
        said = ",".join(one for one in said if isinstance(one, str))
    if isinstance(said, str):
        pairs = _weighed(said, DEFAULT_PROBLEM[1], found, "problem-types", zero=True)
    known = {normalise(name): weight for name, weight in pairs}
    known.pop("", None)
    return [{"type": name, "confidence": weight} for name, weight in list(known.items())[:MOST_TRIGGERS]] or [
        {"type": DEFAULT_PROBLEM[0], "confidence": DEFAULT_PROBLEM[1]}
    ]


def _weighed(
    said: str, usual: float, found: Findings, where: str, *, zero: bool = False
) -> list[tuple[str, float]]:
    """Names with their weights, of `pws-validation:0.9, devil`."""
    pairs = []
    for one in words_of(said):
        name, mark, number = one.partition(":")
        try:
            weight = float(number) if mark else usual
        except ValueError:
            weight = -1.0
        if weight < 0 or weight > 1 or weight != weight or (weight == 0 and not zero):
            span = "from 0 to 1" if zero else "above 0, up to 1"
            words = f"{one}: {number.strip()!r} is no number {span}"
            found.error("WEIGHT_RANGE", words, f"metadata.mindrian-{where}")
            continue
        pairs.append((name.strip(), weight))
    return pairs


def _ancestor_chaining(said: Mapping[str, Any], found: Findings) -> dict[str, Any]:
    """The ancestor's field `chaining`: `precedes`/`chains_to` and `follows`, as names or with weights."""
    told: dict[str, Any] = {}
    for key, ours in (("precedes", "precedes"), ("chains_to", "precedes"), ("follows", "follows")):
        given = said.get(key)
        rows = []
        for one in given if isinstance(given, list) else words_of(given):
            if isinstance(one, dict):
                one = f"{one.get('id', '')}:{one.get('weight', DEFAULT_WEIGHT)}"
            rows += _weighed(str(one), DEFAULT_WEIGHT, found, "chains-to")
        if rows:
            told.setdefault(ours, []).extend({"id": name, "weight": weight} for name, weight in rows)
    return told


async def check_graph(spec: AgentSpec, graph: FrameworkGraph, found: Findings) -> bool:
    """Try the rows in a transaction that is taken back: are they kept as they are, and is the agent found?"""
    try:
        node, edges = node_of(spec), edges_of(spec)
        async with graph.trial() as trial:
            await register(trial, spec)
            before = (await trial.nodes(), await trial.edges())
            await register(trial, spec)
            if (await trial.nodes(), await trial.edges()) != before:
                found.error("NOT_IDEMPOTENT", "putting it in again changes the graph", "graph")
            if node not in before[0]:
                found.error("NODE_CHANGED", "the graph does not keep its name or words as they are", "graph")
            if node.triggers and node.enabled:
                await _is_found(node, trial, found)
    except GraphFault as error:
        code = {"dst": "SELF_EDGE", "weight": "WEIGHT_RANGE"}.get(getattr(error, "field", ""), "BAD_GRAPH")
        found.error(code, str(error), "graph")
        return False
    return not found.errors and bool(edges)


async def _is_found(node: Node, trial: FrameworkGraph, found: Findings) -> None:
    signal = Signal(triggers=node.triggers, problem_types=node.problem_types, available=(node.id,))
    selection = await trial.select(signal)
    if node.id not in [row.node.id for row in selection.rows]:
        found.error("NOT_FOUND", "selection does not find it by its own triggers", "triggers")
