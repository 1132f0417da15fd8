"""Rubrics: criteria in words, which a model judges (ontology spec §1.6); never passed by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.agents.kinds import Check
from engine.agents.result import GateOutcome
from engine.agents.spec import Criterion

NEEDS_MODEL = "needs a model"


@dataclass(frozen=True, slots=True)
class Rubric:
    """A criterion in words, which a model judges."""

    text: str
    field: str = ""
    """What is looked at; empty is the output."""


@dataclass(frozen=True, slots=True)
class RubricVerdict:
    """What a model says of a rubric."""

    passed: bool | None = None
    """None where nobody judged it."""
    reason: str = NEEDS_MODEL
    """Why; of one that was not judged, why not."""
    by: str = ""
    """The model."""

    @property
    def said(self) -> str:
        """The verdict in words."""
        if self.passed is None:
            return f"not judged: {self.reason}"
        return f"{'satisfied' if self.passed else 'not satisfied'} ({self.by}): {self.reason}"


def rubric_of(criterion: Criterion) -> Rubric:
    """What a model judges by."""
    text = str(criterion.args.get("rubric") or criterion.message).strip()
    return Rubric(text or "a rubric", criterion.field)


def rubrics_in(criteria: Iterable[Criterion]) -> tuple[Rubric, ...]:
    """The rubrics among criteria, each once."""
    found = (rubric_of(one) for one in criteria if one.check is Check.LLM_RUBRIC)
    return tuple(dict.fromkeys(found))


def outcome(criterion: Criterion, verdicts: Mapping[Rubric, RubricVerdict]) -> GateOutcome:
    """What is known of a rubric; nothing can be said where nobody judged it."""
    rubric = rubric_of(criterion)
    verdict = verdicts.get(rubric, RubricVerdict())
    message = "" if verdict.passed else criterion.message or rubric.text
    return GateOutcome(
        check=criterion.check,
        passed=verdict.passed,
        hard=criterion.hard,
        wanted=rubric.text,
        measured="" if verdict.passed is None else verdict.said,
        message=verdict.said if verdict.passed is None else message,
    )
