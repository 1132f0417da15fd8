"""Phase 2: which of the five types a skill is, and the parts that this type needs (ontology spec §2.3)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from engine.agents.kinds import AgentType
from engine.building.cues import Counts, count
from engine.building.findings import Findings
from engine.building.skill import SkillDefinition
from engine.building.structure import phases_of, steps_of, sub_agents_of
from engine.domain.text import clean, clean_line

_FOREIGN: Mapping[AgentType, str] = {
    AgentType.GUIDED: "interactive wizard guide tutorial workshop advisor canvas",
    AgentType.PIPELINE: "workflow process procedure playbook",
    AgentType.OPERATOR: "component tool technique framework domain fuzzer template",
    AgentType.ROLE: "persona character",
    AgentType.COLLABORATIVE: "team panel council swarm multi-agent",
}
FOREIGN = {word: kind for kind, words in _FOREIGN.items() for word in words.split()}
"""Words of others for a type, and ours for them."""
_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, slots=True)
class TypeDecision:
    """Which type, how sure, and by which rule."""

    type: AgentType
    confidence: float
    rule: str
    """`declared`, `override`, `sidecar`, `foreign`, `points` or `ambiguous`."""
    counts: Counts

    def as_json(self) -> dict[str, Any]:
        """Its JSON, for BUILD.json."""
        said = {"type": str(self.type), "confidence": self.confidence, "rule": self.rule}
        return said | {"counts": self.counts.as_json()}


def decide_type(
    skill: SkillDefinition, sidecar: Mapping[str, Any], overrides: Mapping[str, Any], found: Findings
) -> TypeDecision | None:
    """The first rule that decides; None when what an operator or a sidecar says is no type."""
    counts = count(skill)
    for rule, given in (("override", overrides), ("sidecar", sidecar)):
        if "type" in given:
            try:
                return TypeDecision(AgentType(given["type"]), 1.0, rule, counts)
            except ValueError:
                words = f"{clean_line(str(given['type']), limit=60)!r} is no type"
                found.error("UNKNOWN_TYPE", words, f"{rule} type", f"one of {', '.join(AgentType)}")
                return None
    if (declared := _declared(skill, counts, found)) is not None:
        return declared
    (best, _), *_ = counts.ranked
    if counts.margin >= 1:
        return TypeDecision(best, 0.75 if counts.margin >= 2 else 0.6, "points", counts)
    words = f"the text does not tell its type: {counts}; operator is taken"
    found.warn("TYPE_AMBIGUOUS", words, "type", "say metadata.mindrian-type, or choose one")
    return TypeDecision(AgentType.OPERATOR, 0.4, "ambiguous", counts)


def _declared(skill: SkillDefinition, counts: Counts, found: Findings) -> TypeDecision | None:
    said = skill.declared("type")
    if not isinstance(said, str) or not said.strip():
        return None
    word = said.strip().lower()
    try:
        return TypeDecision(AgentType(word), 1.0, "declared", counts)
    except ValueError:
        pass
    if (kind := FOREIGN.get(word)) is not None:
        found.warn("FOREIGN_TYPE", f"the type {word} is read as {kind}", "type")
        return TypeDecision(kind, 0.8, "foreign", counts)
    found.warn("UNKNOWN_TYPE", f"the type {clean_line(said, limit=60)!r} is not known and left out", "type")
    return None


def draft_spec(
    skill: SkillDefinition, decision: TypeDecision, found: Findings, given: Collection[str] = ()
) -> dict[str, Any]:
    """The spec so far: who it is, its instructions, and the parts of its type.

    Args:
        skill: what was read.
        decision: its type.
        found: what is noticed.
        given: parts that agent.yaml or the operator says; they are not looked for in the text.
    """
    draft: dict[str, Any] = {
        "id": skill.id,
        "name": clean_line(skill.name, limit=200) or skill.id,
        "type": decision.type.value,
        "description": clean(skill.description, limit=10_000).strip(),
        "instructions": {"system_file": "instructions.md", **_behaviour(skill)},
        "metadata": {
            "source_sha256": skill.source_sha256,
            "license": clean_line(skill.license, limit=500),
            "author": clean_line(skill.metadata.get("author", ""), limit=200),
        },
    }
    match decision.type:
        case AgentType.PIPELINE if "phases" not in given:
            draft["phases"] = phases_of(skill, found)
        case AgentType.GUIDED if "steps" not in given:
            draft["steps"] = steps_of(skill, found)
        case AgentType.COLLABORATIVE if not {"sub_agents", "debate"} & set(given):
            draft["sub_agents"] = sub_agents_of(skill, found)
        case AgentType.OPERATOR:
            wanted = {"check": "non_empty", "message": "the answer is empty"}
            draft["instructions"]["quality_criteria"] = [wanted]
        case _:
            pass
    return draft


def _behaviour(skill: SkillDefinition) -> dict[str, Any]:
    """The ancestor's fields for behaviour."""
    said: dict[str, Any] = {}
    rules = skill.extra.get("behavioral_rules")
    if isinstance(rules, list):
        said["behavioral_rules"] = [one for rule in rules[:50] if (one := clean_line(str(rule), limit=2_000))]
    if isinstance(tone := skill.extra.get("tone"), str):
        said["tone"] = clean_line(tone, limit=200)
    return said


def read_version(said: Any, found: Findings) -> str | None:
    """A declared version as three numbers; None where none is declared that can be read."""
    if not isinstance(said, str) or not said.strip():
        return None
    if not (parts := _VERSION.fullmatch(said.strip())):
        words = f"the version {clean_line(said, limit=40)!r} is none and left out"
        found.warn("BAD_VERSION", words, "version", "write three numbers, as 1.2.0")
        return None
    return f"{int(parts[1])}.{int(parts[2] or 0)}.{int(parts[3] or 0)}{parts[4] or ''}"


def version_key(version: str) -> tuple[int, int, int, bool, str]:
    """What versions are ordered by; `1.0.0-beta` comes before `1.0.0`."""
    numbers, _, suffix = version.partition("-")
    major, minor, patch = (int(one) for one in numbers.split("."))
    return major, minor, patch, not suffix, suffix


def patched(version: str) -> str:
    """The version with its last number one up."""
    major, minor, patch, *_ = version_key(version)
    return f"{major}.{minor}.{patch + 1}"
