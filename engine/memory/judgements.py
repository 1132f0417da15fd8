"""What the operator says of memories as answers to queries: a workspace's own test of its search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from engine.core import memory_events as ev
from engine.core.memory import Judgement
from engine.memory import requests as rq
from engine.memory.errors import MemoryInputError
from engine.memory.requests import Request, View
from engine.memory.tables import JUDGEMENTS
from engine.memory.writer import Unit
from engine.value import dataclass

FIRST = 5
"""Places in which what is right must be."""


class JudgeMemory(Request[Judgement]):
    """A memory is right or wrong as an answer to a query; a later judgement of the same replaces this one."""

    verb: ClassVar[str] = "judge_memory"
    query: Annotated[str, Field(max_length=2_000), rq.Whole]
    memory_id: rq.Ident
    right: bool
    workflow_id: rq.MaybeIdent = ""
    """Where was looked; everywhere if left out."""

    def write(self, unit: Unit) -> Judgement:
        memory = unit.reading.need_memory(self.memory_id)
        if self.workflow_id:
            unit.reading.need_workflow(self.workflow_id)
        query = " ".join(self.query.split())
        if not query:
            raise MemoryInputError("query", "query: say what was looked for; it is empty.")
        judgement = Judgement(query, memory.id, self.workflow_id, self.right, unit.now)
        unit.emit(ev.MemoryJudged(workflow=memory.workflow, judgement=judgement))
        return judgement


class ListJudgements(Request[tuple[Judgement, ...]]):
    """What was judged, oldest first; of one query where it is named."""

    query: Annotated[str, Field(max_length=2_000), rq.Whole] = ""

    def answer(self, view: View) -> tuple[Judgement, ...]:
        query = " ".join(self.query.split())
        return tuple(view.reading.many(JUDGEMENTS, "? in ('', t.query)", (query,)))


Asked = tuple[str, str]
"""A query, and the workflow in which was looked."""


@dataclass(frozen=True, slots=True)
class JudgedSearch:
    """How well a search answers the queries of which something is known to be right."""

    queries: int
    recall: float
    """Share of what is right that is among the first five."""
    mrr: float
    """Mean of 1 / the place of the first that is right."""
    wrong: int
    """Memories that were judged wrong."""
    wrong_first: int
    """Of these: those that are among the first five all the same."""


def measured(judgements: Sequence[Judgement], found: Mapping[Asked, Sequence[str]]) -> JudgedSearch:
    """Compare what a search finds with what the operator says.

    Args:
        judgements: all of them.
        found: ids of memories for each query, best first.
    """
    recalls, ranks = [], []
    for query, right in _by_query(one for one in judgements if one.right).items():
        hits = [ident in right for ident in found[query]]
        recalls.append(sum(hits[:FIRST]) / min(FIRST, len(right)))
        ranks.append(next((1 / place for place, hit in enumerate(hits, 1) if hit), 0.0))
    wrong = [one for one in judgements if not one.right]
    first = sum(one.memory in found[one.query, one.workflow][:FIRST] for one in wrong)
    count = len(recalls)
    return JudgedSearch(count, sum(recalls) / max(1, count), sum(ranks) / max(1, count), len(wrong), first)


def _by_query(judgements: Iterable[Judgement]) -> dict[Asked, set[str]]:
    out: dict[Asked, set[str]] = {}
    for one in judgements:
        out.setdefault((one.query, one.workflow), set()).add(one.memory)
    return out
