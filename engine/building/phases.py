"""The first five phases of a build, functions of the work so far; they write nothing (spec §2.2–§2.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.agents.kinds import AgentType, Tier
from engine.agents.reading import read_spec
from engine.agents.spec import AgentSpec
from engine.agents.values import InvalidError
from engine.building.architecture import (
    TypeDecision,
    decide_type,
    draft_spec,
    patched,
    read_version,
    version_key,
)
from engine.building.assembly import ToolsAt, check_tools, draft_tools, names_none
from engine.building.findings import CheckOutcome, Choice, Findings, Mode
from engine.building.graphing import check_graph, draft_graph
from engine.building.merging import merged, read_sidecar
from engine.building.protocol import chains_of, check_protocol, draft_handoffs, routes_of, tell_pending
from engine.building.registering import Registrar
from engine.building.resources import SkillFolder, from_text, read_folder
from engine.building.skill import SkillDefinition, read_skill
from engine.building.staging import Places

_LATER = {
    "handoff": 3,
    "tools": 4,
    "triggers": 5,
    "chaining": 5,
    "graph": 5,
}
"""The phase in which a part of the spec is looked at."""
_DOERS = (AgentType.OPERATOR, AgentType.PIPELINE, AgentType.COLLABORATIVE)
"""Types that work with tools of their own accord; the others talk."""
MCP_ANSWERS = ("retry", "optional", "abort")


class NeedsOperatorError(Exception):
    """A build cannot go on by itself; the choice says what is to be decided."""

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice.question)
        self.choice = choice


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a build asks of the workspace."""

    tools: ToolsAt
    registrar: Registrar
    models: Mapping[Tier, str] = field(default_factory=dict)
    """The configured model of each tier; a tier that is not named takes the workspace's model."""


@dataclass(slots=True)
class Work:
    """A build under way."""

    source: Path | str
    mode: Mode
    overrides: Mapping[str, Any]
    interactive: bool
    around: Surroundings
    folder: SkillFolder | None = None
    skill: SkillDefinition | None = None
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    decision: TypeDecision | None = None
    draft: dict[str, Any] = field(default_factory=dict)
    spec: AgentSpec | None = None
    former: AgentSpec | None = None
    """The version that is registered now."""
    former_sha256: str = ""
    """Of the source that it was built from."""

    @property
    def agent_id(self) -> str:
        """The id, once the skill is read."""
        told = self.overrides.get("id", self.sidecar.get("id"))
        if isinstance(told, str) and Places.names(told):
            return told
        return self.skill.id if self.skill else ""

    def read(self, phase: int, found: Findings) -> AgentSpec | None:
        """The spec with what is drafted so far, sidecar and overrides above it."""
        above = merged(self.sidecar, {key: value for key, value in self.overrides.items() if key != "mcp"})
        said = merged(self.draft, {key: value for key, value in above.items() if _LATER.get(key, 2) <= phase})
        try:
            self.spec = read_spec(said)
        except InvalidError as error:
            found.invalid(error)
            return None
        return self.spec


async def analysis(work: Work, found: Findings) -> tuple[CheckOutcome, ...]:
    """Phase 1: the skill, read. Checks valid_yaml and required_fields."""
    source = work.source
    if isinstance(source, str):
        work.folder = from_text(source)
    else:
        work.folder = await asyncio.to_thread(read_folder, source, found)
    if work.folder is None:
        return (
            CheckOutcome("valid_yaml", False, "not read"),
            CheckOutcome("required_fields", False, "not read"),
        )
    work.skill = await asyncio.to_thread(read_skill, work.folder, found)
    sidecar = read_sidecar(work.folder, found)
    work.sidecar = sidecar or {}
    if work.mode is Mode.STRICT:
        for one in [one for one in found.warnings if one.strict]:
            found.error(one.code, one.message, one.where, one.hint)
            found.all.remove(one)
    broken = {
        "NO_FRONTMATTER",
        "UNCLOSED_FRONTMATTER",
        "BAD_YAML",
        "NOT_A_MAPPING",
        "DUPLICATE_KEY",
        "ENCODING",
    }
    broken |= {"YAML_ALIAS", "YAML_TAG", "NO_SKILL_MD"}
    yaml = not broken & {one.code for one in found.errors}
    skill = work.skill
    told = f"id {work.agent_id}, {len(skill.steps)} steps" if skill else "no description or no id"
    return (
        CheckOutcome("valid_yaml", yaml, "a mapping" if yaml else "none"),
        CheckOutcome("required_fields", skill is not None, told),
    )


async def architecture(work: Work, found: Findings) -> tuple[CheckOutcome, ...]:
    """Phase 2: type, parts, model and version. Checks type_determined and model_selected."""
    skill = _given(work.skill)
    if skill.placeholder and "description" not in {**work.sidecar, **work.overrides}:
        raise NeedsOperatorError(
            Choice("The description is still the template's; what does the skill do?", (), "description")
        )
    decision = work.decision = decide_type(skill, work.sidecar, work.overrides, found)
    if decision is None:
        return (CheckOutcome("type_determined", False, "no type"),)
    if decision.rule == "ambiguous" and work.interactive:
        counts = {str(kind): float(points) for kind, points in decision.counts.points.items()}
        question = f"The text does not tell its type: {decision.counts}. Which is it?"
        raise NeedsOperatorError(Choice(question, tuple(map(str, AgentType)), "type", counts))
    work.draft = draft_spec(skill, decision, found, {*work.sidecar, *work.overrides})
    work.draft["version"] = _version(work, skill, found)
    spec = work.read(2, found)
    if spec is None:
        return (
            CheckOutcome("type_determined", True, str(decision.type)),
            CheckOutcome("model_selected", False),
        )
    determined = decision.confidence >= 0.6 or decision.rule == "ambiguous"
    model = spec.model.id or work.around.models.get(spec.model.tier, "the workspace's model")
    told = f"{decision.type}, {decision.confidence:g}, by {decision.rule} ({decision.counts})"
    return (
        CheckOutcome("type_determined", determined, told),
        CheckOutcome("model_selected", True, f"tier {spec.model.tier}: {model}"),
    )


def _version(work: Work, skill: SkillDefinition, found: Findings) -> str:
    """The declared version, else the former one's next; a lower one than the registered is an error."""
    said = next((one["version"] for one in (work.overrides, work.sidecar) if "version" in one), None)
    declared = read_version(str(said) if said is not None else skill.declared("version"), found)
    former = work.former
    if former is None:
        return declared or "1.0.0"
    if declared is None:
        return patched(former.version)
    if version_key(declared) < version_key(former.version):
        words = f"{declared} is lower than {former.version}, which is registered"
        found.error("VERSION_LOWER", words, "version", "raise it, or take it out to have it counted up")
    elif declared == former.version and work.former_sha256 != skill.source_sha256:
        found.warn("VERSION_SAME", f"the source has changed and the version {declared} has not", "version")
    return declared


async def protocol(work: Work, found: Findings) -> tuple[CheckOutcome, ...]:
    """Phase 3: the handoff protocol. Checks receives_defined and returns_defined."""
    work.draft["handoff"] = draft_handoffs(_given(work.skill), found)
    spec = work.read(3, found)
    if spec is None:
        bad = {one.where.split(".")[1] for one in found.errors if one.where.startswith("handoff.")}
        return (
            CheckOutcome("receives_defined", "receives" not in bad),
            CheckOutcome("returns_defined", "receives" in bad and len(bad) == 1),
        )
    there = await _registered(work, routes_of(spec))
    receives, returns = check_protocol(spec, there.__contains__, found)
    needs = ", ".join(spec.handoff.receives.required) or "nothing"
    return (
        CheckOutcome(
            "receives_defined", receives, f"requires {needs}, clarity {spec.handoff.receives.min_clarity:g}"
        ),
        CheckOutcome("returns_defined", returns, f"{spec.handoff.returns.output_format}"),
    )


async def assembly(work: Work, found: Findings) -> tuple[CheckOutcome, ...]:
    """Phase 4: the tools. Checks mcps_connected and tools_available."""
    skill = _given(work.skill)
    usual = not work.sidecar and work.spec is not None and work.spec.type in _DOERS
    work.draft["tools"] = draft_tools(skill, work.around.tools, found, usual=usual)
    spec = work.read(4, found)
    if spec is None:
        return (CheckOutcome("tools_available", False, "the tools cannot be read"),)
    if work.overrides.get("mcp") == "optional":
        uses = tuple(use.model_copy(update={"required": False}) for use in spec.tools.mcp_servers)
        spec = spec.model_copy(update={"tools": spec.tools.model_copy(update={"mcp_servers": uses})})
        work.draft["tools"]["mcp_servers"] = [use.model_dump(mode="json") for use in uses]
    facts = await check_tools(spec, work.around.tools, found)
    if not facts.connected and work.interactive:
        down = "; ".join(one.message for one in found.errors if one.code == "MCP_DOWN")
        raise NeedsOperatorError(Choice(f"A required server is down: {down}", MCP_ANSWERS, "mcp"))
    work.draft["tools"]["degraded"] = list(facts.degraded)
    work.read(4, found)
    why = ", the usual ones, as the skill names none" if usual and names_none(skill) else ""
    servers = f"{len(spec.tools.mcp_servers)} servers, {len(facts.degraded)} degraded"
    return (
        CheckOutcome("mcps_connected", facts.connected, servers),
        CheckOutcome("tools_available", facts.available, f"{len(spec.tools.local)} local commands{why}"),
    )


async def graph_schema(work: Work, found: Findings) -> tuple[CheckOutcome, ...]:
    """Phase 5: the node and its edges, tried in the graph. Checks schema_valid and queries_generated."""
    work.draft |= draft_graph(_given(work.skill), found)
    spec = work.read(5, found)
    if spec is None or found.errors:
        return (CheckOutcome("schema_valid", False, "the rows cannot be read"),)
    chains = chains_of(spec)
    tell_pending(chains, (await _registered(work, chains)).__contains__, found)
    good = await check_graph(spec, work.around.registrar.graph, found)
    found_by = f"{len(spec.triggers.keywords)} triggers, {len(spec.triggers.problem_types)} problem types"
    return (
        CheckOutcome("schema_valid", good, found_by),
        CheckOutcome("queries_generated", good, "found by its own triggers" if good else ""),
    )


async def _registered(work: Work, named: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Which of the named agents are there."""
    ids = {one for several in named.values() for one in several}
    return frozenset([one for one in sorted(ids) if await work.around.registrar.resolve(one) is not None])


def _given(skill: SkillDefinition | None) -> SkillDefinition:
    if skill is None:
        raise RuntimeError("a phase ran before the skill was read")
    return skill


PHASES = (
    ("SKILL analysis", analysis),
    ("architecture", architecture),
    ("handoff protocol", protocol),
    ("tool assembly", assembly),
    ("graph schema", graph_schema),
)
"""The phases that write nothing, in order, with what they are called."""
