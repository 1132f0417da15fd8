"""A pipeline's run: phases in order, each with a checkpoint that can fail, as pure functions.

The outputs of a phase become a record, or a list of failures with what follows from them. A record holds the
hash of its inputs and its phase, so that resuming skips exactly what is still valid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from engine.crew.ontology.criteria import Subject, check_all, failed, failure_text, not_passed, unjudged
from engine.crew.ontology.kinds import Check, OnFail, OntologyValue
from engine.crew.ontology.results import CriterionResult, Usage
from engine.crew.ontology.spec import Phase
from engine.value import dataclass, replace


class PhaseRecord(OntologyValue):
    """A phase that is committed."""

    phase: str
    outputs: dict[str, Any] = Field(default_factory=dict)
    criteria: tuple[CriterionResult, ...] = ()
    usage: Usage = Usage()
    key: str
    """Hash of the inputs and of the phase's spec."""
    accepted: str = ""
    """Why the operator accepted it although a criterion failed."""
    skipped: bool = False


class PipelineRun(OntologyValue):
    """How far a pipeline is."""

    records: tuple[PhaseRecord, ...] = ()
    attempts: dict[str, int] = Field(default_factory=dict)
    """Tries of the phase that is under way."""
    failures: tuple[CriterionResult, ...] = ()
    """Why its last try was not taken."""

    def outputs(self) -> dict[str, Any]:
        """Everything that committed phases gave."""
        return {name: value for record in self.records for name, value in record.outputs.items()}


@dataclass(frozen=True, slots=True)
class Next:
    """What follows a checkpoint."""

    run: PipelineRun
    what: str
    """`committed`, `retry`, `ask_user`, `abort`, `skipped`."""
    outcomes: tuple[CriterionResult, ...] = ()
    message: str = ""


def key_of(phase: Phase, inputs: Mapping[str, Any]) -> str:
    """The hash by which a record is known to count still."""
    text = json.dumps([phase.model_dump(mode="json"), dict(inputs)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def inputs_of(phase: Phase, context: Mapping[str, Any], run: PipelineRun) -> dict[str, Any]:
    """What a phase begins with: of the context, and of the phases before it."""
    have = {**context, **run.outputs()}
    return {name: have[name] for name in phase.inputs if name in have}


def missing_inputs(phase: Phase, context: Mapping[str, Any], run: PipelineRun) -> tuple[str, ...]:
    """What a phase needs and is not there."""
    have = inputs_of(phase, context, run)
    return tuple(name for name in phase.inputs if not _something(have.get(name)))


def resumed(phases: Sequence[Phase], context: Mapping[str, Any], run: PipelineRun) -> PipelineRun:
    """A new run with the records that still count: up to the first phase whose hash is another one."""
    kept: list[PhaseRecord] = []
    for phase, record in zip(phases, run.records, strict=False):
        so_far = PipelineRun(records=tuple(kept))
        if record.phase != phase.id or record.key != key_of(phase, inputs_of(phase, context, so_far)):
            break
        kept.append(record)
    return PipelineRun(records=tuple(kept))


def next_phase(phases: Sequence[Phase], run: PipelineRun) -> Phase | None:
    """The phase that comes next; None when all are committed."""
    return phases[len(run.records)] if len(run.records) < len(phases) else None


def examine(
    phase: Phase, outputs: Mapping[str, Any], seen: Subject | None = None
) -> tuple[CriterionResult, ...]:
    """Whether the outputs exist and what every criterion says of them; all of them, not the first that
    fails.
    """
    there = []
    for name in phase.outputs:
        good = _something(outputs.get(name))
        lacks = {} if good else {"measured": "missing", "message": f"{name}: is missing"}
        there.append(CriterionResult(check=Check.NON_EMPTY, passed=good, wanted=name, **lacks))
    subject = replace(seen or Subject(), data=dict(outputs))
    return (*there, *check_all(phase.checkpoint.criteria, subject))


def checkpoint(
    phases: Sequence[Phase],
    context: Mapping[str, Any],
    run: PipelineRun,
    outputs: Mapping[str, Any],
    *,
    seen: Subject | None = None,
) -> Next:
    """Look at what the phase under way gave, and say what follows.

    A hard rubric that was not judged is neither passed nor failed: the operator decides.

    Args:
        phases: all of them.
        context: what the handoff gives.
        run: how far it is.
        outputs: what the phase gave, by name.
        seen: what its criteria look at besides: its words, what can be cited, verdicts.

    Raises:
        ValueError: no phase is under way.
    """
    phase = next_phase(phases, run)
    if phase is None:
        raise ValueError("every phase is committed")
    results = examine(phase, outputs, seen)
    wrong = failed(results)
    if not wrong and (open_ones := unjudged(results)):
        held = run.model_copy(update={"failures": open_ones})
        message = "; ".join(f"{gate.wanted}: {gate.message}" for gate in open_ones)
        return Next(held, "ask_user", results, message)
    if not wrong:
        return Next(_committed(phase, context, run, outputs, results), "committed", results)
    message = "; ".join(map(failure_text, wrong))
    tries = run.attempts.get(phase.id, 0) + 1
    again = PipelineRun(records=run.records, attempts={phase.id: tries}, failures=wrong)
    on_fail = phase.checkpoint.on_fail
    if on_fail is OnFail.RETRY and tries <= phase.checkpoint.max_retries:
        return Next(again, "retry", results, message)
    if on_fail is OnFail.SKIP and not _needed_later(phases, phase):
        skipped = _committed(phase, context, run, {}, results, skipped=True)
        return Next(skipped, "skipped", results, message)
    if on_fail in (OnFail.RETRY, OnFail.ASK_USER):
        return Next(again, "ask_user", results, not_passed(results))
    why = f"{phase.name} is needed later and cannot be skipped: " if on_fail is OnFail.SKIP else ""
    return Next(again, "abort", results, why + not_passed(results))


def accept_anyway(
    phases: Sequence[Phase],
    context: Mapping[str, Any],
    run: PipelineRun,
    outputs: Mapping[str, Any],
    reason: str,
    outcomes: tuple[CriterionResult, ...] | None = None,
) -> PipelineRun:
    """Commit the phase under way although it failed, by the operator's word.

    Args:
        phases: all of them.
        context: what the handoff gives.
        run: how far it is.
        outputs: what is accepted.
        reason: why.
        outcomes: what its criteria said; looked at once more by default.

    Raises:
        ValueError: no reason is given, or no phase is under way.
    """
    phase = next_phase(phases, run)
    if phase is None:
        raise ValueError("every phase is committed")
    if not reason.strip():
        raise ValueError("accepting what failed needs a reason")
    results = outcomes or examine(phase, outputs)
    return _committed(phase, context, run, outputs, results, accepted=reason.strip())


def failure_report(run: PipelineRun) -> str:
    """The message for the next try: exactly what failed."""
    return "\n".join(f"- {failure_text(failure)}" for failure in run.failures)


def _committed(
    phase: Phase,
    context: Mapping[str, Any],
    run: PipelineRun,
    outputs: Mapping[str, Any],
    results: tuple[CriterionResult, ...],
    **how: Any,
) -> PipelineRun:
    key = key_of(phase, inputs_of(phase, context, run))
    record = PhaseRecord(phase=phase.id, outputs=dict(outputs), criteria=results, key=key, **how)
    return PipelineRun(records=(*run.records, record))


def _needed_later(phases: Sequence[Phase], phase: Phase) -> bool:
    after = phases[list(phases).index(phase) + 1 :]
    return any(name in later.inputs for later in after for name in phase.outputs)


def _something(value: object) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return False
    return not (isinstance(value, list | tuple | dict) and not value)
