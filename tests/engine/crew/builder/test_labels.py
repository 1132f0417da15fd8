"""The reader against 60 public skills that were labelled by hand before it was written (`labels.toml`).

The folders are not in the repository: `PILOTHOUSE_SKILLS` names the directory that has them.
"""

from __future__ import annotations

import os
import re
import tomllib
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.crew.builder.findings import Findings
from engine.crew.builder.phases import check_quotes
from engine.crew.builder.reading import SURE
from engine.crew.builder.skill import SkillDefinition, parse_skill, read_folder
from engine.crew.builder.tools import bare, needs_of

LABELS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))
PLACE = os.environ.get("PILOTHOUSE_SKILLS", "")


def plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def skill_of(name: str) -> SkillDefinition:
    folder = read_folder(Path(PLACE) / name, Findings())
    assert folder is not None
    assert folder.sha256 == LABELS[name]["sha256"], f"{name} is not the folder that was labelled"
    skill = parse_skill(folder, Findings())
    assert skill is not None
    return skill


def right_parts(titles: list[str], label: dict[str, Any]) -> bool:
    wanted = label.get("parts", [])
    return len(titles) == len(wanted) and all(
        any(plain(title).startswith(plain(name)) for name in names.split("|"))
        for title, names in zip(titles, wanted, strict=True)
    )


def right_needs(skill: SkillDefinition, label: dict[str, Any]) -> bool:
    needs = {bare(name): need for name, need in needs_of(skill).items()}
    wanted = label.get("servers", {})
    required = {name for name, need in needs.items() if need.required}
    named = all(
        set(tools) <= needs[name].tools | needs[name].coded for name, tools in wanted.items() if name in needs
    )
    return (required, set(needs) - required) == (set(wanted), set(label.get("optional", []))) and named


def test_labels_are_whole() -> None:
    assert Counter(label["half"] for label in LABELS.values()) == {"dev": 30, "held": 30}
    assert len({name.split("--")[0] for name in LABELS}) >= 6
    assert all(re.fullmatch("[0-9a-f]{64}", label["sha256"]) for label in LABELS.values())
    assert all(len(label.get("parts", "abc")) >= 3 for label in LABELS.values())


def test_public_skills_are_read_as_they_are_labelled() -> None:
    if not PLACE:
        warnings.warn("PILOTHOUSE_SKILLS is not set: the 60 labelled skills were not read", stacklevel=1)
        pytest.skip("PILOTHOUSE_SKILLS names no directory with the labelled skills")
    right: Counter[str] = Counter()
    stated = []
    for name, label in LABELS.items():
        skill = skill_of(name)
        reading = skill.reading
        kind = reading.type == label["type"]
        parts = right_parts([part.title for part in reading.parts(reading.type)], label)
        right.update(
            type=kind, parts=parts, needs=right_needs(skill, label), quotes=check_quotes(skill).passed
        )
        right.update(tools=list(skill.allowed_tools) == label.get("tools", []))
        right.update(scripts=set(label.get("scripts", [])) <= set(skill.scripts))
        if not (kind and parts) and reading.confidence > SURE:
            stated.append(name)
    assert right["type"] >= 54
    assert right["parts"] >= 50
    assert stated == []
    assert {right[what] for what in ("needs", "quotes", "tools", "scripts")} == {len(LABELS)}
