"""The first five phases of a build, and the checks of a build against its skill; nothing is written or run.

What agent.yaml beside SKILL.md and the operator say takes precedence over what the skill gives. A program
that the skill names is looked for and a script is not started.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from engine.core.offload import in_thread
from engine.core.text import clean_line
from engine.crew.builder.architecture import (
    TypeDecision,
    check_protocol,
    decide_type,
    draft_graph,
    draft_handoffs,
    draft_spec,
    patched,
    read_version,
    version_key,
)
from engine.crew.builder.findings import CheckResult, Choice, Findings, PendingBuild
from engine.crew.builder.model_reading import ModelReader
from engine.crew.builder.reading import SURE, words
from engine.crew.builder.registration import BuildPaths
from engine.crew.builder.skill import SkillDefinition, SkillFolder, parse_skill, read_folder
from engine.crew.builder.tools import check_tools, draft_tools, names_none
from engine.crew.builder.yaml_text import YamlError, read_mapping
from engine.crew.ontology.kinds import WORDS_LIMIT, AgentType, InvalidError
from engine.crew.ontology.spec import VARIABLE, AgentSpec
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import Lacks
from engine.crew.selection import choose, signal_in
from engine.models.errors import ModelError
from engine.value import replace

_LONGEST_LINE, _MOST_SENTENCES = 5_000, 40
_FOLDERS = "scripts|references?|assets|resources|templates|examples|workflows"
_NAMED = re.compile(rf"\]\(([^()\s]+)\)|(?<![\w/.:~-])((?:\./)?(?:{_FOLDERS})/[\w./-]*\w\.\w+)")
_COMMAND = re.compile(
    r"(?:^|[`\s])(python3?|uv|node|npx|bash|sh|bun|deno|ruby|perl|go|make)\s[^`]{0,200}?(scripts/[\w./-]*\w)"
)
_USE, _NOT = words("use"), words("use_not")
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+")
_UNRELATED = (
    "Thank you, that is all that I wanted to know today.",
    "What time is it in Lisbon, and will it rain there tomorrow?",
    "Please say hello to my sister and tell her that I will be late.",
)


def check_quotes(skill: SkillDefinition) -> CheckResult:
    """Whether each part stands where the reading says, in the words that it quotes."""
    lines = skill.body.decode().replace("\r\n", "\n").split("\n")
    parts = [part for structure in skill.reading.structures for part in structure.parts]
    good = all(lines[part.line - 1].strip() == part.quote != "" for part in parts)
    return CheckResult("parts_quoted", good, f"{len(parts)} parts of the text")


def check_files(skill: SkillDefinition, folder: SkillFolder, findings: Findings) -> CheckResult:
    """Which of the files that the text names are there, and which programs that start its scripts."""
    named: dict[str, str] = {}
    for at, line in enumerate(skill.body.decode().split("\n"), 1):
        if len(line) > _LONGEST_LINE:
            continue
        line = VARIABLE.sub(".", line)
        for match in _NAMED.finditer(line):
            path = (match[1] or match[2]).partition("#")[0]
            if path and not re.match(r"[a-z]+:|[/$<{~]|.*[*<{]", path):
                named.setdefault(PurePosixPath(path).as_posix(), skill.line(at))
        if (command := _COMMAND.search(line)) and shutil.which(command[1]) is None:
            message = f"{command[2]} is started by {command[1]}: none is here"
            findings.warn("NO_PROGRAM", message, skill.line(at))
    there = {*folder.files, *(str(above) for path in folder.files for above in PurePosixPath(path).parents)}
    missing = [path for path in named if path not in there]
    for path in missing:
        findings.warn("MISSING_FILE", f"{path} is named and is not in the folder", named[path])
    there_are = f"{len(named) - len(missing)} of {len(named)} that the text names"
    return CheckResult("files_exist", True, there_are)


def check_sentences(skill: SkillDefinition, spec: AgentSpec, findings: Findings) -> CheckResult:
    """Whether the sentences that say when to use the skill select its agent, and others do not."""
    sentences = _SENTENCE.findall(skill.description)
    when = [line for line in sentences if _USE.search(line) and not _NOT.search(line)]
    if not spec.selectable:
        return CheckResult("sentences", True, "never selected")
    tried = {True: when[:_MOST_SENTENCES], False: [*_UNRELATED, *_refused(skill)][:_MOST_SENTENCES]}
    right = dict.fromkeys(tried, 0)
    for wanted, sentences in tried.items():
        for sentence in sentences:
            signal = signal_in(sentence, (spec,))
            if bool(signal.triggers and choose((spec,), {}, signal).rows) == wanted:
                right[wanted] += 1
                continue
            if wanted and skill.declared("triggers"):
                continue
            code, said = ("NOT_SELECTED", "does not select it") if wanted else ("SELECTED", "selects it")
            shown = clean_line(sentence, limit=120)
            why = "" if wanted else f", by {', '.join(signal.triggers[:5])}"
            findings.warn(code, f"{shown!r} {said}{why}", "triggers", "say metadata.mindrian-triggers")
    counts = [f"{right[wanted]} of {len(sentences)}" for wanted, sentences in tried.items()]
    return CheckResult("sentences", True, f"{counts[0]} select it, {counts[1]} others do not")


def _refused(skill: SkillDefinition) -> Iterator[str]:
    """Sentences that say when the skill is not to be used."""
    yield from (line for line in _SENTENCE.findall(skill.description) if _NOT.search(line))
    inside = False
    for line in skill.body.decode().split("\n"):
        if line.startswith("#"):
            inside = len(line) < _LONGEST_LINE and _NOT.search(line) is not None
        elif inside and line.lstrip().startswith(("- ", "* ")):
            yield line.strip("-* \r")[:_LONGEST_LINE]


SIDECAR = "agent.yaml"


def merge_sidecar(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings in one; where both say something the upper one wins, lists and all but mappings whole."""
    whole = dict(below)
    for key, value in above.items():
        under = whole.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        whole[key] = merge_sidecar(under, value) if both and isinstance(under, Mapping) else value
    return whole


def read_sidecar(folder: SkillFolder, findings: Findings) -> dict[str, Any]:
    """The partial spec beside SKILL.md; empty where there is none that can be read."""
    try:
        return read_mapping(folder.files[SIDECAR].decode("utf-8-sig"), typed=True)[0]
    except KeyError:
        return {}
    except UnicodeDecodeError:
        findings.error("BAD_SIDECAR", "is no UTF-8", SIDECAR)
    except YamlError as error:
        where, hint = f"{SIDECAR}:{error.line}", "write it as a partial agent spec"
        findings.error("BAD_SIDECAR", str(error), where, hint)
    return {}


_UNREADABLE = frozenset(
    (
        *("NO_FRONTMATTER", "UNCLOSED_FRONTMATTER", "BAD_YAML", "NOT_A_MAPPING", "DUPLICATE_KEY"),
        *("ENCODING", "YAML_ALIAS", "YAML_TAG", "NO_SKILL_MD", "TWO_FRONTMATTERS"),
    )
)
"""Findings after which there is no front matter."""
_LATER = {"handoff": 3, "tools": 4, "triggers": 5, "chaining": 5, "graph": 5}
"""The phase in which a part of the spec is looked at."""
_DOERS = (AgentType.OPERATOR, AgentType.PIPELINE, AgentType.COLLABORATIVE)
"""Types that work with tools of their own accord; the others talk."""


@dataclass(slots=True)
class BuildState:
    """A build under way."""

    request: PendingBuild
    lacks: Lacks
    folder: SkillFolder | None = None
    """Read by the first phase where it is not given."""
    ask: ModelReader | None = None
    """Has a model read what the text alone does not tell."""
    skill: SkillDefinition = field(init=False)
    """There once the first phase has passed."""
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    decision: TypeDecision | None = None
    draft: dict[str, Any] = field(default_factory=dict)
    spec: AgentSpec | None = None
    former: AgentSpec | None = None
    """The version that is registered now."""
    question: Choice | None = None
    """What the operator has to say before the build continues."""
    former_sha256: str = ""
    """Of the source that it was built from."""

    @property
    def agent_id(self) -> str:
        """The id, once the skill is read."""
        given = self.request.overrides.get("id", self.sidecar.get("id"))
        return given if isinstance(given, str) and BuildPaths.names(given) else self.skill.id

    def read(self, phase: int) -> AgentSpec:
        """The spec with what is drafted so far, sidecar and overrides above it.

        Raises:
            InvalidError: it is none.
        """
        above = merge_sidecar(self.sidecar, self.request.overrides)
        said = {key: value for key, value in above.items() if _LATER.get(key, 2) <= phase}
        self.spec = parse_spec(merge_sidecar(self.draft, said))
        return self.spec


Checks = tuple[CheckResult, ...]
"""The checkpoint of a phase."""


async def run_phase(
    phase: Callable[[BuildState, Findings], Awaitable[Checks]], work: BuildState, findings: Findings
) -> Checks:
    """A phase with what it checked; a draft that makes no spec is a finding for each of its problems."""
    try:
        return await phase(work, findings)
    except InvalidError as error:
        findings.invalid(error)
        return ()


async def analysis(work: BuildState, findings: Findings) -> Checks:
    """Phase 1: the skill, read. Checks valid_yaml and required_fields."""
    folder = work.folder or await asyncio.to_thread(read_folder, work.request.path, findings)
    skill = await in_thread(parse_skill, folder, findings) if folder is not None else None
    if folder is None or skill is None:
        yaml = folder is not None and not _UNREADABLE & {finding.code for finding in findings.errors}
        return (
            CheckResult("valid_yaml", yaml, "a mapping" if yaml else "none"),
            CheckResult("required_fields", False, "no description or no id"),
        )
    work.folder, work.skill = folder, skill
    if (length := len(skill.body.decode())) > WORDS_LIMIT:
        message = f"the body has {length:,} characters; {WORDS_LIMIT:,} is the most"
        hint = "move what is not always needed into files beside it"
        findings.error("TOO_BIG", message, skill.line(1), hint)
    work.sidecar = read_sidecar(folder, findings)
    measured = f"id {work.agent_id}, {skill.structures or 'no steps'}"
    return CheckResult("valid_yaml", True, "a mapping"), CheckResult("required_fields", True, measured)


async def architecture(work: BuildState, findings: Findings) -> Checks:
    """Phase 2: type, parts, model and version. Checks type_determined and model_selected."""
    skill = work.skill
    typed = work.request.overrides.get("type") or work.sidecar.get("type") or skill.declared("type")
    if work.ask is not None and not typed and skill.reading.confidence <= SURE:
        try:
            skill = work.skill = replace(skill, reading=await work.ask(skill))
        except ModelError as error:
            findings.warn("MODEL_NOT_READ", f"the model gave no reading that the text bears out: {error}")
    decision = await in_thread(decide_type, skill, work.sidecar, work.request.overrides, findings)
    work.decision = decision
    if decision is None:
        return (CheckResult("type_determined", False, "no type"),)
    given = {*work.sidecar, *work.request.overrides}
    if decision.rule == "reading" and decision.confidence <= SURE and skill.reading.structures:
        agents = {each.agents for each in skill.reading.structures}
        kinds = ("pipeline", "guided") * (False in agents) + ("collaborative",) * (True in agents)
        words = f"What is it? Its text has {skill.structures}"
        work.question = Choice(clean_line(words, limit=400), ("operator", *kinds, "abort"), "type")
    work.draft = await in_thread(draft_spec, skill, decision, findings, given)
    work.draft["version"] = _version(work, skill, findings)
    model = work.read(2).model
    chosen = model.id or "the workspace's model"
    sure = f", confidence {decision.confidence:g}" if decision.rule == "reading" else ""
    return (
        CheckResult("type_determined", True, f"{decision.type}, by {decision.rule}{sure}"),
        CheckResult("model_selected", True, f"tier {model.tier}: {chosen}"),
        await in_thread(check_quotes, skill),
    )


def _version(work: BuildState, skill: SkillDefinition, findings: Findings) -> str:
    """The declared version, else the former one's next; a lower one than the registered is an error."""
    given = work.request.overrides.get("version", work.sidecar.get("version"))
    declared = read_version(str(given) if given is not None else skill.declared("version"), findings)
    former = work.former
    if former is None:
        return declared or "1.0.0"
    if declared is None:
        return patched(former.version)
    if version_key(declared) < version_key(former.version):
        words = f"{declared} is lower than {former.version}, which is registered"
        findings.error("VERSION_LOWER", words, "version", "raise it, or take it out to have it counted up")
    elif declared == former.version and work.former_sha256 != skill.source_sha256:
        findings.warn("VERSION_SAME", f"the source has changed and the version {declared} has not", "version")
    return declared


async def protocol(work: BuildState, findings: Findings) -> Checks:
    """Phase 3: the handoff protocol. Checks receives_defined and returns_defined."""
    work.draft["handoff"] = await in_thread(draft_handoffs, work.skill, findings)
    spec = work.read(3)
    receives, returns = check_protocol(spec, findings)
    needs = ", ".join(spec.handoff.receives.required) or "nothing"
    needs = f"requires {needs}, clarity {spec.handoff.receives.min_clarity:g}"
    return (
        CheckResult("receives_defined", receives, needs),
        CheckResult("returns_defined", returns, f"{spec.handoff.returns.output_format}"),
    )


async def assembly(work: BuildState, findings: Findings) -> Checks:
    """Phase 4: the tools. Checks mcps_connected and tools_available."""
    skill = work.skill
    usual = not work.sidecar and work.spec is not None and work.spec.type in _DOERS
    work.draft["tools"] = await in_thread(draft_tools, skill, findings, usual=usual)
    spec = work.read(4)
    declared = merge_sidecar(work.sidecar, work.request.overrides).get("tools", {})
    read = () if "mcp_servers" in declared else [use.server for use in spec.tools.mcp_servers]
    degraded = await check_tools(spec, work.lacks, findings, read=read)
    work.draft["tools"]["degraded"] = degraded
    work.read(4)
    why = ", the usual ones, as the skill names none" if usual and names_none(skill) else ""
    codes = {finding.code for finding in findings.errors}
    down = {finding.where.rpartition(".")[2] for finding in findings.all if finding.code == "MCP_NEEDED"}
    needed = f", needed and not there: {', '.join(sorted(down))}" if down else ""
    servers = f"{len(spec.tools.mcp_servers)} servers, {len(degraded)} degraded{needed}"
    commands = f"{len(spec.tools.local)} local commands{why}"
    return (
        CheckResult("mcps_connected", "MCP_DOWN" not in codes, servers),
        CheckResult("tools_available", "BAD_FUNCTION" not in codes, commands),
        await in_thread(check_files, skill, work.folder or SkillFolder(None), findings),
    )


async def graph_schema(work: BuildState, findings: Findings) -> Checks:
    """Phase 5: the node and its edges, tried with its sentences. Checks schema_valid and sentences."""
    work.draft |= draft_graph(work.skill, findings)
    spec = work.read(5)
    if findings.errors:
        return (CheckResult("schema_valid", False, "the rows cannot be read"),)
    found_by = f"{len(spec.triggers.keywords)} triggers, {len(spec.triggers.problem_types)} problem types"
    tried = await in_thread(check_sentences, work.skill, spec, findings)
    return (CheckResult("schema_valid", True, found_by), tried)


PHASES = (
    ("SKILL analysis", analysis),
    ("architecture", architecture),
    ("handoff protocol", protocol),
    ("tool assembly", assembly),
    ("graph schema", graph_schema),
)
"""The phases that write nothing, in order, with what they are called."""
