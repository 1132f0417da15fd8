"""A build in lines, as a person is told it."""

from __future__ import annotations

from engine.building.findings import BuildResult, PhaseRecord, Status
from engine.domain.text import clean_line

_HINTS = {"type": "--type ", "mcp": "retry, or --optional-mcp: ", "trusted": "--trust: "}


def phase_line(record: PhaseRecord) -> str:
    """A phase in a line, with what its checks measured."""
    checks = ", ".join(
        f"{'✓' if one.passed else '✗'} {one.name}" + (f" ({one.measured})" if one.measured else "")
        for one in record.checks
    )
    return clean_line(f"{'✓' if record.passed else '✗'} {record.number} {record.name}: {checks}", limit=400)


def report(result: BuildResult) -> str:
    """A result in lines: how it ended, what was noticed, what to do."""
    spec = result.spec
    who = f"{spec.id} {spec.version} ({spec.type})" if spec else "no agent"
    head = {
        Status.BUILT: f"built {who} in {result.output_path}",
        Status.UP_TO_DATE: f"{who} is up to date in {result.output_path}",
        Status.DRY_RUN: f"{who} would be built of {len(result.code_files)} files; nothing was written",
        Status.NEEDS_OPERATOR: "needs you",
        Status.FAILED: "failed" + _in_phase(result),
    }[result.status]
    lines = [head, *(f"  {one}" for one in result.findings)]
    if result.choice is not None:
        lines.append(result.choice.question)
        if result.choice.options:
            lines.append(f"  {_HINTS.get(result.choice.key, '')}{' | '.join(result.choice.options)}")
    if result.status is Status.FAILED and result.output_path:
        lines.append(f"  what was made so far is kept for a day in {result.output_path}")
    return "\n".join(
        clean_line(line, limit=1_000) if line[:1] != " " else f"  {clean_line(line)}" for line in lines
    )


def _in_phase(result: BuildResult) -> str:
    wrong = next((one for one in reversed(result.phases) if not one.passed), None)
    return f" in phase {wrong.number}, {wrong.name}" if wrong else ""
