"""What criteria look at besides the answer: what the run found, and what a model says of rubrics (§1.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.agents.criteria import Subject, look, needs_log, words
from engine.agents.rubrics import Rubric, RubricVerdict, rubrics_in
from engine.agents.spec import Criterion
from engine.crew.tool.work import Work

RUBRIC = "rubric"
NOTHING = "there is nothing to judge"


async def whole(work: Work, criteria: Sequence[Criterion], subject: Subject) -> Subject:
    """What is looked at, with all that the criteria need of it."""
    if needs_log(criteria):
        given = work.handoff.context.metadata.get("sources")
        names = frozenset(map(str, given)) if isinstance(given, Mapping) else frozenset()
        subject = replace(subject, log=names | await work.desk.log(work.run))
    return await _judged(work, criteria, subject)


async def _judged(work: Work, criteria: Sequence[Criterion], subject: Subject) -> Subject:
    """What is looked at, with a verdict on each rubric among the criteria; verdicts are kept on record.

    Without a model, and where it says nothing that can be used, a rubric stays open with the reason.
    """
    rubrics = rubrics_in(criteria)
    if not rubrics:
        return subject
    asked = tuple(one for one in rubrics if _something(subject, one))
    nothing = RubricVerdict(reason=NOTHING)
    verdicts = {one: RubricVerdict() if one in asked else nothing for one in rubrics}
    if asked:
        verdicts |= await work.desk.judge(work.run, asked, subject)
    note = "; ".join(f"{rubric.text}: {verdict.said}" for rubric, verdict in verdicts.items())
    await work.keep(RUBRIC, {}, note)
    return replace(subject, verdicts=verdicts)


def _something(subject: Subject, rubric: Rubric) -> bool:
    found = look(subject, rubric.field)
    return bool(words(found).strip()) or (not rubric.field and bool(words(dict(subject.data)).strip()))
