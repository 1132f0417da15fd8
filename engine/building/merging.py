"""Laying what a sidecar or an operator says over what a skill gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.building.findings import Findings
from engine.building.resources import SkillFolder
from engine.building.yaml_text import YamlError, read_mapping

SIDECAR = "agent.yaml"


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings in one; where both say something the upper one wins, lists and all but mappings whole."""
    whole = dict(below)
    for key, value in above.items():
        under = whole.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        whole[key] = merged(under, value) if both and isinstance(under, Mapping) else value
    return whole


def read_sidecar(folder: SkillFolder, found: Findings) -> dict[str, Any] | None:
    """The partial spec beside SKILL.md; empty where there is none, None where it cannot be read."""
    data = folder.files.get(SIDECAR)
    if data is None:
        return {}
    try:
        said, _ = read_mapping(data.decode("utf-8-sig"), typed=True)
    except UnicodeDecodeError:
        found.error("BAD_SIDECAR", "is no UTF-8", SIDECAR)
    except YamlError as error:
        found.error("BAD_SIDECAR", str(error), f"{SIDECAR}:{error.line}", "write it as a partial agent spec")
    else:
        return said
    return None
