"""The values of a build: request, findings with their places, records of phases, result and report."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from engine.core.text import clean_line
from engine.crew.ontology.kinds import InvalidError, SpecProblem
from engine.crew.ontology.spec import AgentSpec
from engine.value import asdict, dataclass, field

_MESSAGE, _WHERE = 500, 300
_MOST_OF_A_KIND = 50


class Level(StrEnum):
    """How much a finding weighs: a build fails for an error; a client lives with a warning."""

    ERROR = "error"
    WARNING = "warning"


class Status(StrEnum):
    """How a build ended."""

    BUILT = "built"
    UP_TO_DATE = "up_to_date"
    FAILED = "failed"
    NEEDS_OPERATOR = "needs_operator"
    DRY_RUN = "dry_run"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was noticed."""

    level: Level
    code: str
    """In capitals, as `YAML_REPAIRED`."""
    message: str
    where: str = ""
    """`SKILL.md:12`, or a path in YAML."""
    hint: str = ""
    """What to do."""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.level} {self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def _code_of(problem: SpecProblem) -> str:
    name, mark, _ = problem.message.partition(": ")
    if problem.path.startswith("chaining."):
        other = "WEIGHT_RANGE" if "weight" in problem.path else "BAD_EDGE"
        return "SELF_EDGE" if name == "SELF_ROUTE" else other
    if mark and name.isupper():
        return name
    protocol = problem.path.startswith(("handoff.receives", "handoff.returns"))
    return "UNKNOWN_FIELD" if protocol and "not permitted" in problem.message else "BAD_SPEC"


class Findings:
    """Collects what is noticed; all text is cleaned here, for it quotes what others wrote."""

    def __init__(self) -> None:
        self.all: list[Finding] = []
        self._times: Counter[tuple[Level, str]] = Counter()

    def error(self, code: str, message: str, where: str = "", hint: str = "") -> None:
        """Something for which the build fails."""
        self._add(Level.ERROR, code, message, where, hint)

    def warn(self, code: str, message: str, where: str = "", hint: str = "") -> None:
        """Something that a client lives with."""
        self._add(Level.WARNING, code, message, where, hint)

    def _add(self, level: Level, code: str, message: str, where: str, hint: str) -> None:
        kind = (level, code)
        if self._times[kind] > _MOST_OF_A_KIND:
            return
        if self._times[kind] == _MOST_OF_A_KIND:
            message, hint = f"there are more than {_MOST_OF_A_KIND} of these; this is the next", ""
        message, hint = clean_line(message, limit=_MESSAGE), clean_line(hint, limit=_MESSAGE)
        finding = Finding(level, code, message, clean_line(where, limit=_WHERE), hint)
        if finding not in self.all:
            self._times[kind] += 1
            self.all.append(finding)

    def invalid(self, error: InvalidError) -> None:
        """Every problem of a spec, each with its YAML path."""
        for problem in error.problems:
            name, mark, rest = problem.message.partition(": ")
            message = rest if mark and name.isupper() else problem.message
            self.error(_code_of(problem), message, problem.path)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Those for which a build fails."""
        return tuple(finding for finding in self.all if finding.level is Level.ERROR)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of a checkpoint."""

    name: str
    passed: bool
    measured: str = ""


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """How one phase went."""

    number: int
    name: str
    passed: bool
    checks: tuple[CheckResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    duration_seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Its JSON, without its duration."""
        fields = asdict(self)
        del fields["duration_seconds"]
        return fields


@dataclass(frozen=True, slots=True)
class Choice:
    """What the operator is asked when a build cannot continue by itself."""

    question: str
    options: tuple[str, ...] = ()
    key: str = ""
    """The option of the command that takes one of them."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of a build."""

    status: Status
    spec: AgentSpec | None = None
    files: tuple[str, ...] = ()
    """Those that were made, by their paths in the agent's folder; the skill's copy is none of them."""
    output_path: str = ""
    """The agent's folder; of a failed build the staging folder, when it is kept."""
    phases: tuple[PhaseRecord, ...] = ()
    findings: tuple[Finding, ...] = ()
    choice: Choice | None = None
    duration_seconds: float = 0.0

    @property
    def success(self) -> bool:
        """Whether the agent is there, or would be (`dry_run`)."""
        return self.status in (Status.BUILT, Status.UP_TO_DATE, Status.DRY_RUN)

    @property
    def code_files(self) -> dict[str, str]:
        """The texts of the files that were made. Blocking."""
        return {name: Path(self.output_path, name).read_text("utf-8") for name in self.files}

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Why it failed."""
        return tuple(finding for finding in self.findings if finding.level is Level.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is worth knowing."""
        return tuple(finding for finding in self.findings if finding.level is Level.WARNING)

    def as_json(self) -> dict[str, Any]:
        """Its JSON, for a program that built."""
        return {
            "success": self.success,
            "status": str(self.status),
            "agent": self.spec.id if self.spec else "",
            "type": str(self.spec.type) if self.spec else "",
            "version": self.spec.version if self.spec else "",
            "spec": self.spec.model_dump(mode="json", exclude_defaults=True) if self.spec else None,
            "output_path": self.output_path,
            "files": list(self.files),
            "phases": [
                phase.as_json() | {"duration_seconds": round(phase.duration_seconds, 3)}
                for phase in self.phases
            ],
            "errors": [asdict(finding) for finding in self.errors],
            "warnings": [asdict(finding) for finding in self.warnings],
            "choice": asdict(self.choice) if self.choice else None,
            "duration_seconds": round(self.duration_seconds, 3),
        }


def read_record(given: Mapping[str, Any]) -> PhaseRecord:
    """A phase's record of its JSON, as the journal has it."""
    return TypeAdapter(PhaseRecord).validate_python(given)


def read_result(given: Mapping[str, Any]) -> BuildResult:
    """The result of a build as `as_json` wrote it."""
    findings = [*given["errors"], *given["warnings"]]
    return TypeAdapter(BuildResult).validate_python({**given, "findings": findings})


BUILDER_VERSION = "4"
"""Raised whenever the same source would give another agent; its generated tests do not count."""
PROJECT = "project"
"""Whose skill it is, as BUILD.json says."""
BUILT_IN = "built-in"
"""What the metadata of agents that Pilothouse ships say as their source."""


@dataclass(frozen=True, slots=True)
class PendingBuild:
    """A build that is asked for."""

    path: Path
    """A skill's folder, or its SKILL.md."""
    dry_run: bool = False
    """Everything but registering; nothing is left behind."""
    trust: bool | None = None
    """Whether the folder is trusted; None asks about those that agents can write to, False about any."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the spec that count above what the skill and its agent.yaml say."""

    @property
    def overrides_sha256(self) -> str:
        """Hash of the overrides."""
        text = json.dumps([dict(self.overrides), "lenient"], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def phase_line(record: PhaseRecord) -> str:
    """A phase in a line, with what its checks measured."""
    checks = ", ".join(
        f"{'✓' if result.passed else '✗'} {result.name}"
        + (f" ({result.measured})" if result.measured else "")
        for result in record.checks
    )
    return clean_line(f"{'✓' if record.passed else '✗'} {record.number} {record.name}: {checks}", limit=400)


def build_report(result: BuildResult) -> str:
    """A result in lines: how it ended, what was noticed, what to do."""
    spec = result.spec
    who = f"{spec.id} {spec.version} ({spec.type})" if spec else "no agent"
    wrong = next((phase for phase in reversed(result.phases) if not phase.passed), None)
    head = {
        Status.BUILT: f"built {who} in {result.output_path}",
        Status.UP_TO_DATE: f"{who} is up to date in {result.output_path}",
        Status.DRY_RUN: f"{who} would be built of {len(result.files)} files; nothing was written",
        Status.NEEDS_OPERATOR: "needs you",
        Status.FAILED: "failed" + (f" in phase {wrong.number}, {wrong.name}" if wrong else ""),
    }[result.status]
    lines = [head, *(f"  {finding}" for finding in result.findings)]
    if result.choice is not None:
        lines.append(result.choice.question)
        if result.choice.options:
            lines.append(f"  --{result.choice.key}: {' | '.join(result.choice.options)}")
    if result.status is Status.FAILED and result.output_path:
        lines.append(f"  what was made so far is kept for a day in {result.output_path}")
    return "\n".join(
        clean_line(line, limit=1_000) if line[:1] != " " else f"  {clean_line(line)}" for line in lines
    )
