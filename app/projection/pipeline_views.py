"""The models of the dialogs on a pipeline and on a build."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.projection.fleet_views import handoff_status, handoff_style, handoff_title, open_request, value_text
from engine.core.agents import PIPELINE
from engine.crew.builder.agent_files import spec_text
from engine.crew.builder.findings import BuildResult, CheckOutcome, Finding, Level, Status
from engine.crew.builder.findings import PhaseRecord as BuildRecord
from engine.crew.builder.phases import PHASES
from engine.crew.methods.pipeline import PhaseRecord, PipelineRun, next_phase
from engine.crew.ontology.context import HumanRequest
from engine.crew.ontology.kinds import HandoffState
from engine.crew.ontology.results import GateOutcome
from engine.crew.ontology.spec import Phase
from engine.crew.state import CrewState, Handoff
from widgets.base.facts import Section
from widgets.dialogs.pipeline import (
    BuilderModel,
    CheckLine,
    FindingLine,
    PhaseLine,
    PipelineModel,
    PipelineWish,
)

_FAILED = "not committed: its checkpoint is not passed"
STEP, CHECKPOINT = "pipeline.step", "checkpoint"


def pipeline(state: CrewState, handoff: Handoff, message: str = "") -> PipelineModel:
    """A pipeline as its run kept it last."""
    phases = handoff.spec.phases if handoff.spec is not None else ()
    run, request = run_of(handoff), question_of(state, handoff)
    options = request.options if request is not None else ()
    edit = next((option for option in options if option.id == "edit"), None)
    draft = edit.args.get("outputs") if edit is not None else None
    now = next_phase(phases, run)
    failed = ((now.id, _sections_of(draft, _FAILED)),) if now is not None and draft else ()
    return PipelineModel(
        handoff=handoff.id,
        title=handoff_title(handoff),
        state=f"{handoff_status(handoff)} · {len(run.records)} of {len(phases)} phases"
        + (" · step mode" if handoff.spec is not None and handoff.as_running.steps else ""),
        phases=tuple(_phase(phase, at, handoff, phases, run) for at, phase in enumerate(phases)),
        outputs=(*((record.phase, _sections(record)) for record in run.records), *failed),
        question=f"{request.title}: {request.question}" if request is not None else "",
        asked=request.id if request is not None else "",
        draft=json.dumps(draft, ensure_ascii=False, indent=2) if draft else "",
        may=_may(handoff, request),
        why_not=_why_not(handoff, request),
        said=message,
    )


def run_of(handoff: Handoff) -> PipelineRun:
    """How far it is, as kept last."""
    kept = handoff.progress.get(PIPELINE)
    return PipelineRun.loaded(kept)[0] if isinstance(kept, dict) else PipelineRun()


def question_of(state: CrewState, handoff: Handoff) -> HumanRequest | None:
    """What it asks at a checkpoint, or after one."""
    return open_request(state, handoff.id, CHECKPOINT) or open_request(state, handoff.id, STEP)


def check_lines(outcomes: Iterable[GateOutcome]) -> tuple[CheckLine, ...]:
    """Criteria with what was measured."""
    return tuple(map(_check, outcomes))


def _check(gate: GateOutcome) -> CheckLine:
    mark = {True: "✓", False: "✗", None: "·"}[gate.passed]
    what = " ".join(filter(None, (gate.check.value, gate.wanted)))
    texts = (gate.message,) if gate.measured in gate.message else (gate.measured, gate.message)
    measured = gate.measured if gate.passed else " · ".join(part for part in texts if part != gate.wanted)
    soft = "" if gate.hard else "(soft) "
    return CheckLine(mark, handoff_style(mark), soft + what, measured.strip(" ·"))


def _phase(phase: Phase, at: int, handoff: Handoff, phases: tuple[Phase, ...], run: PipelineRun) -> PhaseLine:
    current = next_phase(phases, run) is phase
    checks = (check_lines(run.failures) if current else ()) or tuple(_required(phase))
    if at < len(run.records):
        record = run.records[at]
        mark, word, checks = "✓", "committed", check_lines(record.criteria)
        if record.skipped:
            mark, word = "»", "skipped"
        if record.accepted:
            mark, word = "!", f"accepted: {record.accepted}"
    elif current and handoff.open:
        wrong = any(failure.passed is False for failure in run.failures)
        tries = run.attempts.get(phase.id, 0)
        mark, word = ("✗", f"try {tries} failed") if wrong else ("▶", handoff.state.words)
    elif current and run.failures:
        mark, word = "✗", "its checkpoint failed"
    else:
        mark, word = ("·", "to come") if handoff.open else ("⊘", "not done")
    return PhaseLine(phase.id, phase.name, mark, handoff_style(mark), word, checks, phase.description)


def _required(phase: Phase) -> Iterable[CheckLine]:
    """What its checkpoint will look at."""
    for name in phase.outputs:
        yield CheckLine("·", "dim", f"non_empty {name}")
    for criterion in phase.checkpoint.criteria:
        args = ", ".join(f"{key} {value_text(value)}" for key, value in criterion.args.items())
        yield CheckLine("·", "dim", " ".join(filter(None, (criterion.check.value, criterion.field, args))))


def _sections(record: PhaseRecord) -> tuple[Section, ...]:
    note = f"accepted although it failed: {record.accepted}" if record.accepted else ""
    return _sections_of(record.outputs, note)


def _sections_of(outputs: Mapping[str, Any], note: str) -> tuple[Section, ...]:
    notes = (note,) if note else ()
    sections = tuple(Section(name, value_text(value), notes=notes) for name, value in outputs.items())
    return sections or (Section("no outputs", notes=notes),)


def _may(handoff: Handoff, request: HumanRequest | None) -> frozenset[PipelineWish]:
    may: set[PipelineWish] = set()
    options = {option.id for option in request.options} if request is not None else set()
    if "go_on" in options or handoff.state is HandoffState.PAUSED:
        may.add("go_on")
    named: tuple[PipelineWish, ...] = ("edit", "retry", "accept")
    may |= {option for option in named if option in options}
    if handoff.open:
        may |= {"abort", "step_mode"}
    return frozenset(may)


def _why_not(handoff: Handoff, request: HumanRequest | None) -> str:
    if not handoff.open:
        return f"the pipeline is over ({handoff.state.words})"
    if request is None:
        return "nothing is asked now; it goes on by itself"
    return "its question has no such answer"


# ------------------------------------------------------------------ builds

_LATER = ("files", "registration")
"""The phases that write."""
_STANDING = {
    Status.BUILT: "✓ built",
    Status.UP_TO_DATE: "✓ up to date: nothing was written",
    Status.FAILED: "✗ failed",
    Status.NEEDS_OPERATOR: "? needs you",
    Status.DRY_RUN: "✓ dry run: nothing was registered",
}


def build(
    ident: str,
    source: str,
    records: Sequence[BuildRecord],
    result: BuildResult | None = None,
    message: str = "",
) -> BuilderModel:
    """A build while it runs, or as it ended.

    Args:
        ident: by what whoever opened it knows it.
        source: what is built.
        records: the phases that are over.
        result: how it ended; None while it runs.
        message: the result of the last key.
    """
    records = result.phases if result is not None else records
    findings = (
        result.findings if result is not None else [finding for each in records for finding in each.findings]
    )
    choice = result.choice if result is not None else None
    at = records[-1].name if records and result is None else ""
    return BuilderModel(
        build=ident,
        source=source,
        state=_STANDING[result.status] if result is not None else f"▶ running {at}".rstrip(),
        phases=_build_phases(records, running=result is None, asks=choice is not None),
        findings=tuple(
            _finding(finding)
            for finding in sorted(findings, key=lambda finding: finding.level is not Level.ERROR)
        ),
        decision=_decision(records),
        preview=spec_text(result.spec) if result is not None and result.spec is not None else "",
        question=choice.question if choice is not None else "",
        options=choice.options if choice is not None else (),
        running=result is None,
        said=message or _ended(result),
    )


def _ended(result: BuildResult | None) -> str:
    if result is None:
        return ""
    spec = f"{result.spec.id} {result.spec.version}" if result.spec is not None else ""
    where = result.output_path
    return " · ".join(filter(None, (spec, where, f"it took {result.duration_seconds:.1f} s")))


def _build_phases(records: Sequence[BuildRecord], *, running: bool, asks: bool) -> tuple[PhaseLine, ...]:
    done = {record.number: record for record in records}
    lines = []
    for number, name in enumerate((*(name for name, _ in PHASES), *_LATER), 1):
        record = done.get(number)
        if record is not None and asks and number == len(records):
            mark, word, checks = "?", "asks you", tuple(_build_check(check) for check in record.checks)
        elif record is not None:
            mark, word = ("✓", "passed") if record.passed else ("✗", "failed")
            word += f" {record.duration_seconds:.1f} s"
            checks = tuple(_build_check(check) for check in record.checks)
        else:
            mark, word, checks = "·", "to come" if running else "not begun", ()
            if running and number == len(records) + 1:
                mark, word = "▶", "running"
        lines.append(PhaseLine(str(number), f"{number} {name}", mark, handoff_style(mark), word, checks))
    return tuple(lines)


def _build_check(check_outcome: CheckOutcome) -> CheckLine:
    mark = "✓" if check_outcome.passed else "✗"
    return CheckLine(mark, handoff_style(mark), check_outcome.name, check_outcome.measured)


def _finding(finding: Finding) -> FindingLine:
    mark = "✗" if finding.level is Level.ERROR else "!"
    return FindingLine(mark, handoff_style(mark), finding.code, finding.where, finding.message, finding.hint)


def _decision(records: Sequence[BuildRecord]) -> str:
    """The type with the points of all five; where it is asked for, the question has them."""
    for record in records:
        for check in record.checks:
            if check.name == "type_determined":
                return f"type: {check.measured}"
    return ""
