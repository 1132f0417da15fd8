"""The model of the dialog on a build, from what the builder says."""

from __future__ import annotations

from collections.abc import Sequence

from app.projection.crew_parts import style_of
from engine.building.codegen import spec_text
from engine.building.findings import BuildResult, CheckOutcome, Finding, Level, PhaseRecord, Status
from engine.building.phases import PHASES
from widgets.dialogs.builder import BuilderModel, FindingLine
from widgets.phase_list import CheckLine, PhaseLine

_LATER = ("code generation", "registration")
"""The phases that write."""
_STANDING = {
    Status.BUILT: "✓ built",
    Status.UP_TO_DATE: "✓ up to date: nothing was written",
    Status.FAILED: "✗ failed",
    Status.NEEDS_OPERATOR: "? needs you",
    Status.DRY_RUN: "✓ dry run: nothing was registered",
}


def build(
    ident: str, source: str, records: Sequence[PhaseRecord], result: BuildResult | None = None, said: str = ""
) -> BuilderModel:
    """A build while it runs, or as it ended.

    Args:
        ident: by what whoever opened it knows it.
        source: what is built.
        records: the phases that are over.
        result: how it ended; None while it runs.
        said: what came of the last key.
    """
    records = result.phases if result is not None else records
    findings = result.findings if result is not None else [one for each in records for one in each.findings]
    choice = result.choice if result is not None else None
    at = records[-1].name if records and result is None else ""
    return BuilderModel(
        build=ident,
        source=source,
        state=_STANDING[result.status] if result is not None else f"▶ running {at}".rstrip(),
        phases=_phases(records, running=result is None, asks=choice is not None),
        findings=tuple(
            _finding(one) for one in sorted(findings, key=lambda one: one.level is not Level.ERROR)
        ),
        decision=_decision(records),
        preview=spec_text(result.spec) if result is not None and result.spec is not None else "",
        question=choice.question if choice is not None else "",
        options=choice.options if choice is not None else (),
        running=result is None,
        said=said or _ended(result),
    )


def _ended(result: BuildResult | None) -> str:
    if result is None:
        return ""
    spec = f"{result.spec.id} {result.spec.version}" if result.spec is not None else ""
    where = result.output_path
    return " · ".join(filter(None, (spec, where, f"it took {result.duration_seconds:.1f} s")))


def _phases(records: Sequence[PhaseRecord], *, running: bool, asks: bool) -> tuple[PhaseLine, ...]:
    done = {one.number: one for one in records}
    lines = []
    for number, name in enumerate((*(name for name, _ in PHASES), *_LATER), 1):
        record = done.get(number)
        if record is not None and asks and number == len(records):
            mark, word, checks = "?", "asks you", tuple(_check(one) for one in record.checks)
        elif record is not None:
            mark, word = ("✓", "passed") if record.passed else ("✗", "failed")
            word += f" {record.duration_seconds:.1f} s"
            checks = tuple(_check(one) for one in record.checks)
        else:
            mark, word, checks = "·", "to come" if running else "not begun", ()
            if running and number == len(records) + 1:
                mark, word = "▶", "running"
        lines.append(PhaseLine(str(number), f"{number} {name}", mark, style_of(mark), word, checks))
    return tuple(lines)


def _check(one: CheckOutcome) -> CheckLine:
    mark = "✓" if one.passed else "✗"
    return CheckLine(mark, style_of(mark), one.name, one.measured)


def _finding(one: Finding) -> FindingLine:
    mark = "✗" if one.level is Level.ERROR else "!"
    return FindingLine(mark, style_of(mark), one.code, one.where, one.message, one.hint)


def _decision(records: Sequence[PhaseRecord]) -> str:
    """The type with the points of all five; where it is asked for, the question has them."""
    for record in records:
        for one in record.checks:
            if one.name == "type_determined":
                return f"type: {one.measured}"
    return ""
