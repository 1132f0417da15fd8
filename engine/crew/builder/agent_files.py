"""An agent's folder: agent.yaml and instructions.md, with a copy of the skill, read-only.

The files are the same bytes for the same input.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from engine.core.text import clean_line
from engine.crew.builder.skill_folder import SkillFolder
from engine.crew.builder.yaml_text import YamlError, read_mapping, write_mapping
from engine.crew.ontology.kinds import InvalidError
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ontology.spec_parser import parse_spec

SPEC = "agent.yaml"
INSTRUCTIONS = "instructions.md"
SKILL = "skill"
"""Directory of the agent's folder that holds the skill as it was, read-only."""


class AgentFolderError(Exception):
    """A folder holds no agent; the message says what is wrong with it."""


def read_agent(folder: Path) -> AgentSpec:
    """The spec of an agent's folder; blocking.

    Raises:
        AgentFolderError: there is none that can be read.
    """
    try:
        return parse_spec(read_mapping((folder / SPEC).read_text(encoding="utf-8"), typed=True)[0])
    except (OSError, UnicodeDecodeError, YamlError, InvalidError) as error:
        raise AgentFolderError(f"{folder.name}/{SPEC}: {clean_line(str(error), limit=500)}") from error


def read_instructions(folder: Path, spec: AgentSpec) -> str:
    """The instructions of an agent, as they stand; blocking.

    Raises:
        AgentFolderError: they cannot be read, or lie outside the folder.
    """
    name = spec.instructions.system_file
    if not name:
        return spec.instructions.system
    if "/" in name or name in (".", ".."):
        raise AgentFolderError(f"{folder.name}: instructions are a file of the folder, not {name!r}")
    try:
        return (folder / name).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentFolderError(f"{folder.name}/{name}: {error}") from error


def spec_text(spec: AgentSpec) -> str:
    """agent.yaml of a spec; what is as usual for everybody is left out."""
    fields: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    # Defaults differ by type, so the parts in which they do are said in full.
    fields |= {"type": spec.type.value, "version": spec.version}
    fields["handoff"] = spec.handoff.model_dump(mode="json", by_alias=True)
    fields["model"] = spec.model.model_dump(mode="json")
    return write_mapping(fields)


def spec_sha256(spec: AgentSpec) -> str:
    """SHA-256 of agent.yaml."""
    return hashlib.sha256(spec_text(spec).encode()).hexdigest()


def agent_files(spec: AgentSpec, body: bytes, folder: SkillFolder) -> dict[str, bytes]:
    """Every file of the agent's folder but BUILD.json, by path.

    Args:
        spec: the agent.
        body: the skill's instructions, byte for byte.
        folder: the skill.
    """
    copies = {f"{SKILL}/{path}": data for path, data in folder.files.items()}
    return {SPEC: spec_text(spec).encode(), INSTRUCTIONS: body, **copies}
