"""Phases 3 and 5 of a build: an agent's handoff protocol, and its node and edges in the selection graph."""

from __future__ import annotations

import re
from typing import Any

from engine.core.text import clean_line
from engine.crew.builder.findings import Findings
from engine.crew.builder.skill import SkillDefinition, words_of
from engine.crew.ontology.context import SLOTS, ConversationSummary, HandoffContext, ProblemClarity
from engine.crew.ontology.kinds import AgentType, ReturnBehavior
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec
from engine.crew.selection import normalise, normalised

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


def draft_graph(skill: SkillDefinition, findings: Findings) -> dict[str, Any]:
    """Triggers, problem types and chaining: declared, else taken from name and description."""
    draft: dict[str, Any] = {
        "triggers": {"keywords": _keywords(skill, findings), "problem_types": _problems(skill, findings)}
    }
    pairs = _weighed(skill.declared("chains-to"), DEFAULT_WEIGHT, findings, "chains-to")
    if pairs:
        draft["chaining"] = {"precedes": [{"id": name, "weight": weight} for name, weight in pairs]}
    return draft


def _keywords(skill: SkillDefinition, findings: Findings) -> list[str]:
    declared = words_of(skill.declared("triggers"))
    words = list(normalised(clean_line(word, limit=120) for word in declared))
    if not words:
        text = skill.description
        quoted = [word[1] or word[2] for word in _QUOTED.finditer(text)]
        named = _WORD.findall(skill.name.replace("-", " ").replace("_", " "))
        when = [word for clause in _USE_WHEN.finditer(text) for word in _WORD.findall(clause[1])]
        content = [word for word in (*named, *when) if len(word) > 2 and word.casefold() not in _STOP]
        words = list(normalised(clean_line(word.strip(" .,;:"), limit=120) for word in (*quoted, *content)))
    if not words:
        message = "there are no triggers: it is found by its problem types only"
        findings.warn("NO_TRIGGERS", message, "triggers")
    elif len(words) > MOST_TRIGGERS and declared:
        message = f"{len(words)} triggers; the first {MOST_TRIGGERS} are taken"
        findings.warn("MANY_TRIGGERS", message, "triggers")
    return words[:MOST_TRIGGERS]


def _problems(skill: SkillDefinition, findings: Findings) -> list[dict[str, Any]]:
    pairs = _weighed(
        skill.declared("problem-types"), DEFAULT_PROBLEM[1], findings, "problem-types", zero=True
    )
    known = {normalise(name): weight for name, weight in pairs}
    known.pop("", None)
    rows = list(known.items())[:MOST_TRIGGERS] or [DEFAULT_PROBLEM]
    return [{"type": name, "confidence": weight} for name, weight in rows]


def _weighed(
    text: str, usual: float, findings: Findings, where: str, *, zero: bool = False
) -> list[tuple[str, float]]:
    """Names with their weights, of `pws-validation:0.9, devil`."""
    pairs = []
    for entry in words_of(text):
        name, mark, number = entry.partition(":")
        try:
            weight = float(number) if mark else usual
        except ValueError:
            weight = -1.0
        if weight < 0 or weight > 1 or weight != weight or (weight == 0 and not zero):
            span = "from 0 to 1" if zero else "above 0, up to 1"
            words = f"{entry}: {number.strip()!r} is no number {span}"
            findings.error("WEIGHT_RANGE", words, f"metadata.mindrian-{where}")
            continue
        pairs.append((name.strip(), weight))
    return pairs


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


def draft_handoffs(skill: SkillDefinition, findings: Findings) -> dict[str, Any]:
    """What the skill declares, above the table of its type."""
    receives: dict[str, Any] = {}
    models = (HandoffContext, ProblemClarity, ConversationSummary)
    known = {name for model in models for name in model.model_fields}
    for name in words_of(skill.declared("inputs")):
        plain = name.rpartition(".")[2].replace("-", "_").lower()
        if plain in SLOTS:
            receives[f"requires_{plain}"] = True
        elif plain not in known:
            words = f"the input {name} is no field of a handoff; the task has to say it"
            findings.warn("UNKNOWN_INPUT", words, "inputs")
    scores = [name for name in words_of(skill.declared("outputs")) if _NAME.fullmatch(name)]
    plain_results = set(HandoffResult.model_fields)
    returns = {"score_names": [name for name in scores if name.replace("-", "_") not in plain_results]}
    return {"receives": receives, "returns": returns if returns["score_names"] else {}}


def check_protocol(spec: AgentSpec, findings: Findings) -> tuple[bool, bool]:
    """Whether what it receives and what it returns hold."""
    routing = spec.handoff.routing
    if spec.type is AgentType.ROLE and routing.return_behavior is ReturnBehavior.ITERATE:
        words = "a role talks and returns no partial results"
        where = "handoff.routing.return_behavior"
        findings.error("BAD_RETURN_BEHAVIOR", words, where, "take passthrough or synthesize")
    bad = {finding.where.partition(".")[2].partition(".")[0] for finding in findings.errors}
    return "receives" not in bad, not bad & {"returns", "routing"}
