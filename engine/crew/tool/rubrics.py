"""What only words can say of an output is judged by a model before it counts (ontology spec §1.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.agents.criteria import Subject, look, words
from engine.agents.rubrics import Rubric, RubricVerdict, rubrics_in
from engine.agents.spec import Criterion
from engine.crew.tool.work import Work

RUBRIC = "rubric"
NOTHING = "there is nothing to judge"


async def judged(work: Work, criteria: Sequence[Criterion], subject: Subject) -> Subject:
    """What is looked at, with a verdict on each rubric among the criteria; verdicts are kept on record.

    Without a model, and where it says nothing that can be used, a rubric stays open with the reason.
    """
    rubrics = rubrics_in(criteria)
    if not rubrics:
        return subject
    asked = tuple(one for one in rubrics if _something(subject, one))
    verdicts = dict.fromkeys(rubrics, RubricVerdict(reason=NOTHING))
    if asked:
        verdicts |= await work.desk.judge(work.run, asked, subject)
    note = "; ".join(f"{rubric.text}: {verdict.said}" for rubric, verdict in verdicts.items())
    await work.keep(RUBRIC, {}, note)
    return replace(subject, verdicts=verdicts)


def _something(subject: Subject, rubric: Rubric) -> bool:
    found = look(subject, rubric.field)
    return bool(words(found).strip()) or (not rubric.field and bool(words(dict(subject.data)).strip()))
