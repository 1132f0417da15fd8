"""What the end of a proof shows of an agent, and what it does not (ontology spec §2.8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.agents.computing import BUILD
from engine.agents.criteria import failed, fault
from engine.agents.kinds import AgentType, ErrorCode
from engine.agents.methods.pipeline import PipelineRun
from engine.agents.result import GateOutcome, HandoffResult
from engine.agents.spec import AgentSpec
from engine.building.registering import Proof
from engine.crew.builds.sampling import sample
from engine.crew.builds.scripted import phase_sample, result_sample, sources_of
from engine.crew.state import Handoff
from engine.domain.running import PIPELINE
from engine.domain.text import clean_line
from engine.thinkers.brief import Brief

NAMED_MOST = 4
"""Criteria that are named; the others are counted."""


def judged(spec: AgentSpec, handoff: Handoff, *, live: bool) -> Proof:
    """What a handoff that has ended proves of an agent.

    Only what shows that its own path ran counts. Where no script meets a criterion, that it can be met was
    not shown, and the message says so.
    """
    result = handoff.result
    assert result is not None
    if live:
        return _live(result)
    brief = Brief(spec, handoff.context, handoff.progress)
    if not result.success:
        return _failed(brief, result)
    if spec.type is AgentType.COLLABORATIVE and (wrong := _views(brief, result)) is not None:
        return wrong
    run = PipelineRun.loaded(handoff.progress.get(PIPELINE) or {})[0]
    said = f"a handoff came back after {result.duration_seconds:.1f} s"
    return Proof(True, "; ".join((said, *_shown(brief, result, run))))


def _live(result: HandoffResult) -> Proof:
    if not result.success:
        return Proof(False, clean_line(f"{result.error_code}: {result.error}", limit=300))
    calls = f"{result.usage.calls} call{'s' * (result.usage.calls != 1)} of its model"
    said = f"a handoff came back after {result.duration_seconds:.1f} s and {calls}"
    return Proof(True, "; ".join((said, *_left_open(result.quality))))


def _failed(brief: Brief, result: HandoffResult) -> Proof:
    """A proof whose handoff failed: it counts where the script alone was the reason, and that is told."""
    spec, code = brief.spec, result.error_code
    if code is ErrorCode.CHECKPOINT and spec.compute == BUILD:
        return Proof(
            True,
            "its phases are those of a build and its proof names no skill: it ran and said so; a build by it "
            "was not shown",
        )
    unmet: Sequence[GateOutcome] = ()
    if code is ErrorCode.QUALITY_GATE:
        unmet = result_sample(brief).unmet
    elif code is ErrorCode.CHECKPOINT and (found := phase_sample(brief, {})) is not None:
        unmet = found.unmet
    elif code is ErrorCode.QUORUM:
        unmet = _unmet_views(brief, result)
    by_others = {one.message for one in failed(result.quality)} - {one.message for one in unmet}
    if not unmet or by_others:
        return Proof(False, clean_line(f"{code}: {result.error}", limit=300))
    return Proof(True, f"it ran and ended as {code}, as its own checks want: {_not_shown(unmet)}")


def _views(brief: Brief, result: HandoffResult) -> Proof | None:
    """What is wrong with the views that were put together, or not shown of them; None where all is well."""
    if result.missing:
        unmet = _unmet_views(brief, result)
        return Proof(
            bool(unmet),
            f"{', '.join(result.missing)} gave nothing" + (f": {_not_shown(unmet)}" if unmet else ""),
        )
    if not result.partial:
        return None
    unmet = result_sample(brief).unmet
    if unmet:
        return Proof(True, f"its views came back; they were not put together: {_not_shown(unmet)}")
    why = f"its views were not put together: {'; '.join(result.warnings)}"
    return Proof(False, clean_line(why, limit=300))


def _unmet_views(brief: Brief, result: HandoffResult) -> tuple[GateOutcome, ...]:
    """What no script meets of the views that are missing; nothing where one is missing without that."""
    missing = [sub.criteria for sub in brief.spec.sub_agents if sub.id in result.missing]
    samples = [sample(criteria, sources=sources_of(brief)).unmet for criteria in missing]
    return tuple(one for unmet in samples for one in unmet) if samples and all(samples) else ()


def _shown(brief: Brief, result: HandoffResult, run: PipelineRun) -> Iterator[str]:
    spec = brief.spec
    criteria = [one for one in result.quality if one.hard and one.passed]
    if criteria:
        yield f"it passed {len(criteria)} of its checks"
    if spec.debate is not None:
        yield f"{result.data.get('calls', 0)} calls of its sides and its judge"
    elif spec.sub_agents:
        yield f"{len(spec.sub_agents)} views were put together"
    if spec.phases:
        yield f"{len(run.records)} of {len(spec.phases)} phases were committed"
    outcomes = [*result.quality, *(one for record in run.records for one in record.criteria)]
    if wrong := failed(outcomes):
        yield _not_shown(wrong)
    yield from _left_open(outcomes)


def _left_open(outcomes: Iterable[GateOutcome]) -> Iterator[str]:
    if left := sum(one.passed is None for one in outcomes):
        yield f"{left} rubric{'s' * (left != 1)} not judged"


def _not_shown(unmet: Iterable[GateOutcome]) -> str:
    said = list(dict.fromkeys(clean_line(fault(one), limit=120) for one in unmet))
    more = f" and {len(said) - NAMED_MOST} more" if len(said) > NAMED_MOST else ""
    return f"no script meets {'; '.join(said[:NAMED_MOST])}{more}, so that they can be met was not shown"
