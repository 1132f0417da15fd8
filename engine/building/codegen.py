"""Phase 6, first half: the files of an agent, the same bytes for the same input (ontology spec §2.7)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from engine.agents.reading import read_spec
from engine.agents.spec import AgentSpec
from engine.building import templates
from engine.building.agent_base import CLASSES
from engine.building.findings import Findings
from engine.building.naming import class_name
from engine.building.resources import SkillFolder
from engine.building.skill import SkillDefinition
from engine.building.yaml_text import YamlError, read_mapping, write_mapping
from engine.selection.cypher import schema_cypher, schema_parameters
from engine.selection.registering import edges_of, node_of

SKILL = "skill"
"""Directory of the agent's folder that holds the skill as it was, read-only."""


def spec_text(spec: AgentSpec) -> str:
    """agent.yaml of a spec; what is as usual for everybody is left out."""
    return write_mapping(_plain(spec))


def _plain(spec: AgentSpec) -> dict[str, Any]:
    said: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    # Defaults differ by type, so the parts in which they do are said in full.
    said["type"] = spec.type.value
    said["version"] = spec.version
    said["handoff"] = spec.handoff.model_dump(mode="json", by_alias=True)
    said["model"] = spec.model.model_dump(mode="json")
    return said


def spec_sha256(spec: AgentSpec) -> str:
    """SHA-256 of agent.yaml."""
    return hashlib.sha256(spec_text(spec).encode()).hexdigest()


def generate(
    spec: AgentSpec, skill: SkillDefinition, folder: SkillFolder, found: Findings
) -> dict[str, bytes]:
    """Every file of the agent's folder but BUILD.json, by path; none where one cannot be made."""
    yaml = spec_text(spec)
    try:
        same = read_spec(read_mapping(yaml, typed=True)[0]) == spec
    except (YamlError, ValueError):
        same = False
    if not same:
        found.error("BAD_SPEC", "agent.yaml would not say what the spec says", "agent.yaml")
        return {}
    graph = schema_parameters(node_of(spec), edges_of(spec))
    files = {
        "agent.yaml": yaml,
        "agent.py": _filled(templates.AGENT, spec),
        "schema.cypher": schema_cypher(),
        "graph.json": json.dumps(graph, indent=2, sort_keys=True, ensure_ascii=False) + "\n",
        "tests/test_agent.py": _filled(templates.TEST_AGENT, spec),
        "tests/test_handoff.py": _filled(templates.test_handoff(spec.type), spec),
    }
    if spec.tools.custom_tools:
        rows = sorted((tool.name, tool.function) for tool in spec.tools.custom_tools)
        lines = "\n".join(f"    {json.dumps(name)}: {json.dumps(function)}," for name, function in rows)
        files["tools.py"] = _filled(templates.TOOLS, spec).replace("@FUNCTIONS@", lines)
    written = {path: text.encode() for path, text in files.items()}
    written["instructions.md"] = skill.body
    written |= {f"{SKILL}/{path}": data for path, data in folder.files.items()}
    return dict(sorted(written.items()))


def _filled(template: str, spec: AgentSpec) -> str:
    for mark, value in (
        ("@ID@", spec.id),
        ("@TYPE@", spec.type.value),
        ("@CLASS@", class_name(spec.id)),
        ("@BASE@", CLASSES[spec.type].__name__),
    ):
        template = template.replace(mark, value)
    return template
