"""What a build says: findings with their places, records of phases, the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.agents.spec import AgentSpec
from engine.agents.values import InvalidError, Problem
from engine.domain.text import clean_line

_MESSAGE, _WHERE = 500, 300
_MOST_OF_A_KIND = 50


class Level(StrEnum):
    """How much a finding weighs."""

    ERROR = "error"
    WARNING = "warning"


class Mode(StrEnum):
    """How a skill is read: as a client does, or as the standard's validator does."""

    LENIENT = "lenient"
    STRICT = "strict"


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
    strict: bool = False
    """Whether it keeps a skill from being a valid one by the standard."""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.level} {self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")

    def as_json(self) -> dict[str, Any]:
        """Its JSON."""
        return {
            "level": str(self.level),
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
        }


def _code_of(problem: Problem) -> str:
    name, mark, _ = problem.message.partition(": ")
    if problem.path.startswith("chaining."):
        return (
            "SELF_EDGE"
            if name == "SELF_ROUTE"
            else "WEIGHT_RANGE"
            if "weight" in problem.path
            else "BAD_EDGE"
        )
    if mark and name.isupper():
        return name
    protocol = problem.path.startswith(("handoff.receives", "handoff.returns"))
    return "UNKNOWN_FIELD" if protocol and "not permitted" in problem.message else "BAD_SPEC"


class Findings:
    """Collects what is noticed; all text is cleaned here, for it quotes what others wrote."""

    def __init__(self) -> None:
        self.all: list[Finding] = []
        self._times: Counter[tuple[Level, str, bool]] = Counter()

    def error(self, code: str, message: str, where: str = "", hint: str = "") -> None:
        """Something for which the build fails, strict or not."""
        self._add(Level.ERROR, code, message, where, hint, strict=True)

    def warn(self, code: str, message: str, where: str = "", hint: str = "", *, strict: bool = False) -> None:
        """Something that a client lives with; `strict` when the standard does not."""
        self._add(Level.WARNING, code, message, where, hint, strict=strict)

    def _add(self, level: Level, code: str, message: str, where: str, hint: str, *, strict: bool) -> None:
        kind = (level, code, strict)
        if self._times[kind] > _MOST_OF_A_KIND:
            return
        if self._times[kind] == _MOST_OF_A_KIND:
            message, hint = f"there are more than {_MOST_OF_A_KIND} of these; this is the next", ""
        one = Finding(
            level,
            code,
            clean_line(message, limit=_MESSAGE),
            clean_line(where, limit=_WHERE),
            clean_line(hint, limit=_MESSAGE),
            strict,
        )
        if one not in self.all:
            self._times[kind] += 1
            self.all.append(one)

    def invalid(self, error: InvalidError) -> None:
        """Every problem of a spec, each with its YAML path."""
        for problem in error.problems:
            name, mark, rest = problem.message.partition(": ")
            told = rest if mark and name.isupper() else problem.message
            self.error(_code_of(problem), told, problem.path)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Those for which a build fails."""
        return tuple(one for one in self.all if one.level is Level.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The others."""
        return tuple(one for one in self.all if one.level is Level.WARNING)

    @property
    def strict_ok(self) -> bool:
        """Whether the standard's validator would say yes."""
        return not any(one.strict for one in self.all)


@dataclass(frozen=True, slots=True)
class CheckOutcome:
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
    checks: tuple[CheckOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    duration_seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Its JSON, without its duration."""
        return {
            "number": self.number,
            "name": self.name,
            "passed": self.passed,
            "checks": [
                {"name": one.name, "passed": one.passed, "measured": one.measured} for one in self.checks
            ],
            "findings": [one.as_json() for one in self.findings],
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """What the operator is asked when a build cannot go on by itself."""

    question: str
    options: tuple[str, ...] = ()
    """Values of `overrides[key]` to build again with."""
    key: str = ""
    counts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What came of a build (ontology spec §2.0)."""

    status: Status
    spec: AgentSpec | None = None
    code_files: dict[str, str] = field(default_factory=dict)
    """Text by path in the agent's folder."""
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
    def errors(self) -> tuple[Finding, ...]:
        """Why it failed."""
        return tuple(one for one in self.findings if one.level is Level.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is worth knowing."""
        return tuple(one for one in self.findings if one.level is Level.WARNING)

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
            "files": sorted(self.code_files),
            "phases": [
                one.as_json() | {"duration_seconds": round(one.duration_seconds, 3)} for one in self.phases
            ],
            "errors": [one.as_json() for one in self.errors],
            "warnings": [one.as_json() for one in self.warnings],
            "choice": {
                "question": self.choice.question,
                "options": list(self.choice.options),
                "key": self.choice.key,
            }
            if self.choice
            else None,
            "duration_seconds": round(self.duration_seconds, 3),
        }


def read_record(given: Mapping[str, Any]) -> PhaseRecord:
    """A phase's record of its JSON, as the journal has it."""
    return PhaseRecord(
        int(given["number"]),
        str(given["name"]),
        bool(given["passed"]),
        tuple(CheckOutcome(one["name"], one["passed"], one["measured"]) for one in given["checks"]),
        tuple(map(_read_finding, given["findings"])),
        float(given.get("duration_seconds", 0.0)),
    )


def read_result(given: Mapping[str, Any]) -> BuildResult:
    """What came of a build, of its JSON (`BuildResult.as_json`); files are named in it and not contained."""
    choice, spec = given.get("choice"), given.get("spec")
    return BuildResult(
        Status(given["status"]),
        AgentSpec.model_validate(spec) if spec else None,
        dict.fromkeys(given["files"], ""),
        str(given["output_path"]),
        tuple(map(read_record, given["phases"])),
        tuple(map(_read_finding, (*given["errors"], *given["warnings"]))),
        Choice(choice["question"], tuple(choice["options"]), choice["key"]) if choice else None,
        float(given["duration_seconds"]),
    )


def _read_finding(given: Mapping[str, Any]) -> Finding:
    return Finding(Level(given["level"]), given["code"], given["message"], given["where"], given["hint"])
