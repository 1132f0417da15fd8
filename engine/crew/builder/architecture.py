"""Phases 2, 3 and 5 of a build: an agent's type and parts, its handoff protocol, its place in the graph.

The type is declared, else it is what the text states (`reading`); where the text does not tell, the whole is
an operator's. Phases, steps and sub-agents are those that the text states.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engine.core.text import clean, clean_line
from engine.crew.builder.findings import Findings
from engine.crew.builder.skill import SkillDefinition, slug, unique, words_of
from engine.crew.ontology.context import SLOTS, ConversationSummary, HandoffContext, ProblemClarity
from engine.crew.ontology.kinds import AgentType, ReturnBehavior
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec
from engine.crew.selection import normalise, normalised
from engine.value import dataclass

_GATE = re.compile(
    r"\bcheckpoints?\b|\bgates?\b|\bexit (condition|criteri(a|on))\b|\bdecision points?\b"
    r"|\bdo not (skip|proceed)\b|\bbefore (proceeding|moving)\b|\bmust (pass|complete)\b|\bdeliverables?\b",
    re.I,
)
_MOST_TEXT, _MOST_PARTS = 4_000, 60
_SENTENCE = re.compile(r"[^.!?\n]*[.!?]?")


def phases_of(skill: SkillDefinition, findings: Findings) -> list[dict[str, Any]]:
    """Phases of a pipeline: the skill's steps, each with what holds at its end."""
    phases: list[dict[str, Any]] = []
    parts = _parts(skill, findings, "phases")
    for phase_id, (title, text) in zip(_ids([title for title, _ in parts]), parts, strict=True):
        criteria: list[dict[str, Any]] = [{"check": "non_empty", "message": f"{title}: there is no output"}]
        criteria += [
            {"check": "llm_rubric", "hard": False, "args": {"rubric": sentence}, "message": sentence}
            for sentence in _gates(text)
        ]
        before = phases[-1]["outputs"] if phases else ["task"]
        phase = {"id": phase_id, "name": title, "description": text, "inputs": before, "outputs": [phase_id]}
        phases.append({**phase, "checkpoint": {"criteria": criteria}})
    return phases


def steps_of(skill: SkillDefinition, findings: Findings) -> list[dict[str, Any]]:
    """Steps of a guided agent."""
    parts = _parts(skill, findings, "steps")
    usual = {"input": "long_text", "required": False, "skippable": True}
    return [
        {
            "id": ident,
            "title": title,
            "prompt": text or title,
            **usual,
            "suggest": f"Draft an answer to: {title}",
        }
        for ident, (title, text) in zip(_ids([title for title, _ in parts]), parts, strict=True)
    ]


def _parts(skill: SkillDefinition, findings: Findings, what: str) -> list[tuple[str, str]]:
    """Title and text of each part that the text states; of none that does, the whole is one."""
    named = [(part.title, part.text) for part in skill.reading.parts(AgentType.PIPELINE)]
    if not named:
        hint = "number the steps as `## Step 1: …`, or name them in agent.yaml"
        findings.warn("NO_PARTS", f"the text states no steps; the whole is one of its {what}", what, hint)
        named = [(skill.name, skill.description)]
    if len(named) > _MOST_PARTS:
        findings.warn("MANY_PARTS", f"{len(named)} {what}; the first {_MOST_PARTS} are taken", what)
    return [
        (clean_line(title, limit=200) or f"Part {number}", _cut(text))
        for number, (title, text) in enumerate(named[:_MOST_PARTS], 1)
    ]


def _cut(text: str) -> str:
    text = clean(text, limit=max(len(text), 1)).strip()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} [cut, {len(text) - _MOST_TEXT:,} more]"


def _gates(text: str) -> list[str]:
    sentences = (clean_line(match_[0], limit=300).lstrip("-*# ") for match_ in _SENTENCE.finditer(text))
    return list(dict.fromkeys(sentence for sentence in sentences if _GATE.search(sentence)))[:5]


def _ids(titles: Sequence[str]) -> list[str]:
    """An id for each title, of its words; one that is taken gets a number."""
    taken: set[str] = set()
    return [unique(slug(title, 48) or f"part-{place}", taken) for place, title in enumerate(titles, 1)]


def sub_agents_of(skill: SkillDefinition, findings: Findings) -> list[dict[str, Any]]:
    """The sub-agents that the text names."""
    named = skill.reading.parts(AgentType.COLLABORATIVE)[:_MOST_PARTS]
    if not named:
        words = "the text names no sub-agents"
        findings.error("NO_PARTS", words, "sub_agents", "name them in agent.yaml beside SKILL.md")
    parts = []
    for ident, part in zip(_ids([part.title for part in named]), named, strict=True):
        role = clean_line(part.text.replace("*", "").lstrip("-+ "), limit=200) or part.title
        parts.append({"id": ident, "role": role, "instructions": _cut(part.text)})
    return parts


_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, slots=True)
class TypeDecision:
    """Which type, and by which rule."""

    type: AgentType
    rule: str
    """`override`, `sidecar`, `declared` or `reading`."""
    confidence: float = 1.0
    """How sure a reading is; at or below `reading.SURE` it is a guess."""


def decide_type(
    skill: SkillDefinition, sidecar: Mapping[str, Any], overrides: Mapping[str, Any], findings: Findings
) -> TypeDecision | None:
    """The first rule that decides; None when what an operator or a sidecar says is no type."""
    declared = skill.declared("type").lower()
    given = (overrides.get("type"), sidecar.get("type"), declared)
    if given[1] and declared and given[1] != declared and not given[0]:
        words = f"agent.yaml says {given[1]} and the front matter {declared}; agent.yaml counts"
        findings.warn("TYPES_DIFFER", words, skill.at("metadata"), "let both say the same")
    for rule, word in zip(("override", "sidecar", "declared"), given, strict=True):
        if not word:
            continue
        try:
            return TypeDecision(AgentType(word), rule)
        except ValueError:
            words = f"{clean_line(str(word), limit=60)!r} is no type"
        if rule == "declared":
            findings.warn("UNKNOWN_TYPE", f"{words} and left out", skill.at("metadata"))
        else:
            findings.error("UNKNOWN_TYPE", words, f"{rule} type", f"one of {', '.join(AgentType)}")
            return None
    return TypeDecision(skill.reading.type, "reading", skill.reading.confidence)


def draft_spec(
    skill: SkillDefinition, decision: TypeDecision, findings: Findings, given: Collection[str] = ()
) -> dict[str, Any]:
    """The spec so far: who it is, its instructions, and the parts of its type.

    Args:
        skill: what was read.
        decision: its type.
        findings: what is noticed.
        given: parts that agent.yaml or the operator says; they are not looked for in the text.
    """
    draft: dict[str, Any] = {
        "id": skill.id,
        "name": clean_line(skill.name, limit=200) or skill.id,
        "type": decision.type.value,
        "description": clean(skill.description, limit=10_000).strip(),
        "instructions": {"system_file": "instructions.md"},
        "metadata": {
            "source_sha256": skill.source_sha256,
            "license": clean_line(skill.license, limit=500),
            "author": clean_line(skill.metadata.get("author", ""), limit=200),
        },
    }
    match decision.type:
        case AgentType.PIPELINE if "phases" not in given:
            draft["phases"] = phases_of(skill, findings)
        case AgentType.GUIDED if "steps" not in given:
            draft["steps"] = steps_of(skill, findings)
        case AgentType.COLLABORATIVE if not {"sub_agents", "debate"} & set(given):
            draft["sub_agents"] = sub_agents_of(skill, findings)
        case AgentType.OPERATOR:
            criterion = {"check": "non_empty", "message": "the answer is empty"}
            draft["instructions"]["quality_criteria"] = [criterion]
        case _:
            pass
    return draft


def read_version(declared: Any, findings: Findings) -> str | None:
    """A declared version as three numbers; None where none is declared that can be read."""
    if not isinstance(declared, str) or not declared.strip():
        return None
    if not (parts := _VERSION.fullmatch(declared.strip())):
        words = f"the version {clean_line(declared, limit=40)!r} is none and left out"
        findings.warn("BAD_VERSION", words, "version", "write three numbers, as 1.2.0")
        return None
    return f"{int(parts[1])}.{int(parts[2] or 0)}.{int(parts[3] or 0)}{parts[4] or ''}"


def version_key(version: str) -> tuple[int, int, int, bool, str]:
    """What versions are ordered by; `1.0.0-beta` comes before `1.0.0`."""
    numbers, _, suffix = version.partition("-")
    major, minor, patch = (int(number) for number in numbers.split("."))
    return major, minor, patch, not suffix, suffix


def patched(version: str) -> str:
    """The version with its last number one up."""
    major, minor, patch, *_ = version_key(version)
    return f"{major}.{minor}.{patch + 1}"


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
