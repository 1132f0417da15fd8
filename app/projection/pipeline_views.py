"""The model of the dialog on a pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from app.projection.crew_parts import asked, shown, standing, style_of, title_of
from engine.agents.human import HumanRequest
from engine.agents.kinds import HandoffState
from engine.agents.methods.pipeline import PhaseRecord, PipelineRun, under_way
from engine.agents.result import GateOutcome
from engine.agents.spec import Phase
from engine.crew.state import CrewState, Handoff
from engine.domain.running import PIPELINE
from widgets.dialogs.long_text import Section
from widgets.dialogs.pipeline import PipelineModel, PipelineWish
from widgets.phase_list import CheckLine, PhaseLine

_FAILED = "not committed: its checkpoint is not passed"
STEP, CHECKPOINT = "pipeline.step", "checkpoint"


def pipeline(state: CrewState, handoff: Handoff, said: str = "") -> PipelineModel:
    """A pipeline as its run kept it last."""
    phases = handoff.spec.phases if handoff.spec is not None else ()
    run, request = run_of(handoff), question_of(state, handoff)
    edit = next((one for one in request.options if one.id == "edit"), None) if request is not None else None
    draft = edit.args.get("outputs") if edit is not None else None
    now = under_way(phases, run)
    failed = ((now.id, _sections_of(draft, _FAILED)),) if now is not None and draft else ()
    return PipelineModel(
        handoff=handoff.id,
        title=title_of(handoff),
        state=f"{standing(handoff)} · {len(run.records)} of {len(phases)} phases"
        + (" · step mode" if handoff.spec is not None and handoff.as_running.steps else ""),
        phases=tuple(_phase(one, at, handoff, phases, run) for at, one in enumerate(phases)),
        outputs=(*((one.phase, _sections(one)) for one in run.records), *failed),
        question=f"{request.title}: {request.question}" if request is not None else "",
        asked=request.id if request is not None else "",
        draft=_draft(draft),
        may=_may(handoff, request),
        why_not=_why_not(handoff, request),
        said=said,
    )


def run_of(handoff: Handoff) -> PipelineRun:
    """How far it is, as kept last."""
    kept = handoff.progress.get(PIPELINE)
    return PipelineRun.loaded(kept)[0] if isinstance(kept, dict) else PipelineRun()


def question_of(state: CrewState, handoff: Handoff) -> HumanRequest | None:
    """What it asks at a checkpoint, or after one."""
    return asked(state, handoff.id, CHECKPOINT) or asked(state, handoff.id, STEP)


def check_lines(outcomes: Iterable[GateOutcome]) -> tuple[CheckLine, ...]:
    """Criteria with what was measured."""
    return tuple(_check(one) for one in outcomes)


def _check(one: GateOutcome) -> CheckLine:
    mark = {True: "✓", False: "✗", None: "·"}[one.passed]
    what = " ".join(filter(None, (one.check.value, one.wanted)))
    told = (one.message,) if one.measured in one.message else (one.measured, one.message)
    measured = one.measured if one.passed else " · ".join(part for part in told if part != one.wanted)
    soft = "" if one.hard else "(soft) "
    return CheckLine(mark, style_of(mark), soft + what, measured.strip(" ·"))


def _phase(phase: Phase, at: int, handoff: Handoff, phases: tuple[Phase, ...], run: PipelineRun) -> PhaseLine:
    if at < len(run.records):
        record = run.records[at]
        mark, word = ("»", "skipped") if record.skipped else ("✓", "committed")
        if record.accepted:
            mark, word = "!", f"accepted: {record.accepted}"
        return PhaseLine(
            phase.id, phase.name, mark, style_of(mark), word, check_lines(record.criteria), phase.description
        )
    wanted = tuple(_wanted(phase))
    if under_way(phases, run) is not phase or not handoff.open:
        mark = "·" if handoff.open else "⊘"
        word = "to come" if handoff.open else "not done"
        failed = run.failures if under_way(phases, run) is phase else ()
        if failed:
            mark, word = "✗", "its checkpoint failed"
        return PhaseLine(
            phase.id, phase.name, mark, style_of(mark), word, check_lines(failed) or wanted, phase.description
        )
    tries = run.attempts.get(phase.id, 0)
    wrong = any(one.passed is False for one in run.failures)
    mark = "✗" if wrong else "▶"
    word = f"try {tries} failed" if wrong else handoff.state.words
    return PhaseLine(
        phase.id,
        phase.name,
        mark,
        style_of(mark),
        word,
        check_lines(run.failures) or wanted,
        phase.description,
    )


def _wanted(phase: Phase) -> Iterable[CheckLine]:
    """What its checkpoint will look at."""
    for name in phase.outputs:
        yield CheckLine("·", "dim", f"non_empty {name}")
    for one in phase.checkpoint.criteria:
        args = ", ".join(f"{key} {shown(value)}" for key, value in one.args.items())
        yield CheckLine("·", "dim", " ".join(filter(None, (one.check.value, one.field, args))))


def _sections(record: PhaseRecord) -> tuple[Section, ...]:
    return _sections_of(
        record.outputs, f"accepted although it failed: {record.accepted}" if record.accepted else ""
    )


def _sections_of(outputs: Mapping[str, Any], note: str) -> tuple[Section, ...]:
    notes = (note,) if note else ()
    found = tuple(Section(name, shown(value), notes=notes) for name, value in outputs.items())
    return found or (Section("no outputs", notes=notes),)


def _draft(outputs: Any) -> str:
    return json.dumps(outputs, ensure_ascii=False, indent=2) if outputs else ""


def _may(handoff: Handoff, request: HumanRequest | None) -> frozenset[PipelineWish]:
    may: set[PipelineWish] = set()
    options = {one.id for one in request.options} if request is not None else set()
    if "go_on" in options or handoff.state is HandoffState.PAUSED:
        may.add("go_on")
    named: tuple[PipelineWish, ...] = ("edit", "retry", "accept")
    may |= {one for one in named if one in options}
    if handoff.open:
        may |= {"abort", "step_mode"}
    return frozenset(may)


def _why_not(handoff: Handoff, request: HumanRequest | None) -> str:
    if not handoff.open:
        return f"the pipeline is over ({handoff.state.words})"
    if request is None:
        return "nothing is asked now; it goes on by itself"
    return "its question has no such answer"
