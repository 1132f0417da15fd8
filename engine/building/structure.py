"""The parts that a type needs: phases, steps and sub-agents, taken from what the skill says."""

from __future__ import annotations

import re
from typing import Any

from engine.building.cues import GATE_CUES, PARALLEL_CUES
from engine.building.findings import Findings
from engine.building.markdown import Section
from engine.building.naming import slug, unique
from engine.building.skill import SkillDefinition
from engine.domain.text import clean, clean_line

_MOST_TEXT, _MOST_PARTS = 4_000, 60
_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|\d+[.)])[ \t]+(\S.*)")
_ROW = re.compile(r"[ \t]*\|(.+)\|[ \t]*")
_RULE = re.compile(r"[\s|:-]+")
_SENTENCE = re.compile(r"[^.!?\n]*[.!?]?")
_ASIDE = re.compile(
    r"\b(overview|introduction|when (not )?to use|examples?|references?|resources|pitfalls?|notes?|tips|about"
    r"|see also|prerequisites|requirements|troubleshooting|faq|license)\b",
    re.I,
)
_GENERIC = (
    ("analyst", "Looks for what is known, what is measured and what is missing"),
    ("critic", "Looks for what is wrong, risky or not proven"),
    ("builder", "Looks for what can be made of it and how to begin"),
)


def phases_of(skill: SkillDefinition, found: Findings) -> list[dict[str, Any]]:
    """Phases of a pipeline: the skill's steps, each with what holds at its end."""
    taken: set[str] = set()
    phases: list[dict[str, Any]] = []
    for title, text in _parts(skill, found, "phases"):
        phase_id = unique(_key(title, len(phases) + 1), taken)
        criteria: list[dict[str, Any]] = [{"check": "non_empty", "message": f"{title}: there is no output"}]
        criteria += [
            {"check": "llm_rubric", "hard": False, "args": {"rubric": sentence}, "message": sentence}
            for sentence in _gates(text)
        ]
        phases.append(
            {
                "id": phase_id,
                "name": title,
                "description": text,
                "inputs": [phases[-1]["outputs"][0]] if phases else ["task"],
                "outputs": [phase_id],
                "checkpoint": {"criteria": criteria},
            }
        )
    return phases


def steps_of(skill: SkillDefinition, found: Findings) -> list[dict[str, Any]]:
    """Steps of a guided agent."""
    taken: set[str] = set()
    return [
        {
            "id": unique(_key(title, number), taken),
            "title": title,
            "prompt": text or title,
            "input": "long_text",
            "required": False,
            "skippable": True,
            "suggest": f"Draft an answer to: {title}",
        }
        for number, (title, text) in enumerate(_parts(skill, found, "steps"), 1)
    ]


def _parts(skill: SkillDefinition, found: Findings, what: str) -> list[tuple[str, str]]:
    """Title and text of each part: the steps, else the main sections, else the whole skill as one."""
    named = [(step.title, step.text) for step in skill.steps]
    if not named:
        top = min((one.level for one in skill.sections if one.level > 1), default=0)
        named = [
            (one.title, one.text)
            for one in skill.sections
            if one.level == top and not _ASIDE.search(one.title)
        ]
        words = f"the text has no steps; {f'{len(named)} sections' if named else 'the whole'} made {what}"
        found.warn(
            "PARTS_GUESSED", words, what, "number the steps as `## Step 1: …`, or name them in agent.yaml"
        )
    if not named:
        named = [(skill.name, skill.description)]
    if len(named) > _MOST_PARTS:
        found.warn("MANY_PARTS", f"{len(named)} {what}; the first {_MOST_PARTS} are taken", what)
    return [
        (clean_line(title, limit=200) or f"Part {number}", _cut(text))
        for number, (title, text) in enumerate(named[:_MOST_PARTS], 1)
    ]


def _cut(text: str) -> str:
    text = clean(text, limit=max(len(text), 1)).strip()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} [cut, {len(text) - _MOST_TEXT:,} more]"


def _gates(text: str) -> list[str]:
    sentences = (clean_line(one[0], limit=300).lstrip("-*# ") for one in _SENTENCE.finditer(text))
    return list(dict.fromkeys(one for one in sentences if GATE_CUES.search(one)))[:5]


def _key(title: str, number: int) -> str:
    return slug(title, 48) or f"part-{number}"


def sub_agents_of(skill: SkillDefinition, found: Findings) -> list[dict[str, Any]]:
    """Sub-agents: what the section with most cues of parallel work lists, else three general ones."""
    ranked = sorted(
        (
            (
                -len(PARALLEL_CUES.findall(f"{section.title}\n{section.text}")),
                -section.level,
                section.line,
                section,
            )
            for section in skill.sections
        ),
        key=lambda one: one[:3],
    )
    named: list[tuple[str, str]] = []
    for cues, _, _, section in ranked:
        if cues and len(named := _listed(section, skill)) >= 2:
            break
    else:
        named = list(_GENERIC)
        words = "no section lists the views; three general ones are taken"
        found.warn("SUB_AGENTS_GENERIC", words, "sub_agents", "name them in agent.yaml beside SKILL.md")
    taken: set[str] = set()
    return [
        {"id": unique(_key(title, number), taken), "role": role, "instructions": ""}
        for number, (title, role) in enumerate(named[:12], 1)
    ]


def _listed(section: Section, skill: SkillDefinition) -> list[tuple[str, str]]:
    """Name and role of each item or row right under a heading."""
    plain = skill.document.plain
    rows: list[str] = []
    for at in range(section.line, len(plain)):
        if plain[at].lstrip().startswith("#"):
            break
        rows.append(plain[at])
    items = [found[1] for line in rows if (found := _ITEM.fullmatch(line))]
    table = [found[1] for line in rows if (found := _ROW.fullmatch(line))]
    if len(items) < 2 and len(table) > 3 and _RULE.fullmatch(table[1]):
        cells = [
            [clean_line(cell.replace("*", ""), limit=200) for cell in row.split("|")] for row in table[2:]
        ]
        return [(row[0], " — ".join(filter(None, row))) for row in cells if row[0]]
    told = []
    for item in items:
        text = clean_line(item.replace("**", "").replace("`", ""), limit=400)
        head = re.split(r"\s*[:–—]\s|\s-\s", text, maxsplit=1)[0]
        told.append((clean_line(head, limit=60), text))
    return [one for one in told if one[0]]
