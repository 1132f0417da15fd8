"""The cues by which a skill's type is told from its text (ontology spec §2.3, rule 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from engine.agents.kinds import AgentType
from engine.building.skill import SkillDefinition

RATE = 2.0
"""Occurrences in 1,000 words from which cues count; long reference texts mention everything."""

_ASKS = re.compile(
    r"\bask (the user|them|for)\b|\bwait for (the )?(user|response|answer|approval|confirmation)\b"
    r"|\bconfirm with\b|\bone (question|step|section) at a time\b"
    r"|\b(the )?user (answers|responds|chooses|selects|indicates|says|signals|approves|declines)\b"
    r"|\b(the )?user (wants|mentions)\b"
    r"|\bAskUserQuestion\b|\bpresent (the )?(options|choices)\b|\bget (user )?approval\b"
    r"|\bclarifying questions?\b",
    re.I,
)
_PARALLEL = re.compile(
    r"\b(in )?parallel\b|\bsub-?agents?\b|\beach (agent|perspective|hat)\b|\bperspectives\b|\bmulti-agent\b"
    r"|\bcouncil\b|\bdebate\b|\bconcurrently\b",
    re.I,
)
_PERSONA = re.compile(
    r"\byou are (an?|the)\b|\bact as\b|\bpersona\b|\bpersonality\b|\btone\b|\bvoice\b|\bsocratic\b"
    r"|\bone question per (response|turn)\b|\bdevil['’]s advocate\b|\bmax(imum)? \d+ sentences\b"
    r"|\bnever (give|provide) (answers|solutions)\b",
    re.I,
)
_GATE = re.compile(
    r"\bcheckpoints?\b|\bgates?\b|\bexit (condition|criteri(a|on))\b|\bdecision points?\b"
    r"|\bdo not (skip|proceed)\b|\bbefore (proceeding|moving)\b|\bmust (pass|complete)\b|\bdeliverables?\b",
    re.I,
)
_GUIDED_SAID = re.compile(
    r"\bguid(e|es|ing) (users?|teams?|the user)\b|\bwizard\b|\binteractive\b|\bwalks? (you|users?) through\b"
    r"|\bco-author",
    re.I,
)
_COLLABORATIVE_SAID = re.compile(
    r"\bparallel\b|\bmulti-agent\b|\bsub-?agents?\b|\bperspectives\b|\bcouncil\b|\bindependent tasks\b", re.I
)
_PIPELINE_SAID = re.compile(r"\bworkflows?\b|\bpipelines?\b|\bphases\b|\bend-to-end\b|\bstep-by-step\b", re.I)
_ROLE_SAID = re.compile(r"\bpersona\b|\bpersonality\b|\bdevil['’]s advocate\b|\bcoach\b", re.I)
_OUTPUT_SECTION = re.compile(r"\b(output|template|format)s?\b", re.I)
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
PARALLEL_CUES, GATE_CUES = _PARALLEL, _GATE


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted in a skill."""

    words: int
    steps: int
    asks: int
    parallel: int
    persona: int
    gate: int
    points: dict[AgentType, int]

    @property
    def ranked(self) -> list[tuple[AgentType, int]]:
        """Types with their points, best first."""
        return sorted(self.points.items(), key=lambda one: (-one[1], one[0].value))

    @property
    def margin(self) -> int:
        """Points between the best and the next."""
        (_, first), (_, second), *_ = self.ranked
        return first - second

    def as_json(self) -> dict[str, Any]:
        """Its JSON."""
        return {
            "words": self.words,
            "steps": self.steps,
            "cues": {
                "asks": self.asks,
                "parallel": self.parallel,
                "persona": self.persona,
                "gate": self.gate,
            },
            "points": {str(kind): points for kind, points in self.points.items()},
            "margin": self.margin,
        }

    def __str__(self) -> str:
        return ", ".join(f"{kind} {points}" for kind, points in self.ranked)


def count(skill: SkillDefinition) -> Counts:
    """Count cues and give each type its points."""
    prose = skill.document.prose
    words = len(_WORD.findall(prose))

    def counted(cue: re.Pattern[str]) -> int:
        seen = sum(1 for _ in cue.finditer(prose))
        return seen if words and seen * 1000 / words >= RATE else 0

    asks, parallel, persona, gate = map(counted, (_ASKS, _PARALLEL, _PERSONA, _GATE))
    n, said = len(skill.steps), skill.description
    shaped = any(_OUTPUT_SECTION.search(section.title) for section in skill.sections)
    points = {
        AgentType.GUIDED: 2 * bool(_GUIDED_SAID.search(said))
        + (asks >= 3)
        + (asks >= 8)
        + (asks >= 3 and n >= 2),
        AgentType.COLLABORATIVE: 2 * bool(_COLLABORATIVE_SAID.search(said))
        + (parallel >= 4)
        + (parallel >= 8),
        AgentType.PIPELINE: bool(_PIPELINE_SAID.search(said))
        + 2 * (n >= 3)
        + (n >= 4 and gate >= 2)
        + (gate >= 4),
        AgentType.ROLE: 2 * bool(_ROLE_SAID.search(said))
        + (persona >= 3)
        + (n == 0 and persona >= 5)
        - 2 * (n >= 3),
        AgentType.OPERATOR: 1 + (shaped and n < 3),
    }
    return Counts(
        words, n, asks, parallel, persona, gate, {kind: int(value) for kind, value in points.items()}
    )
