"""What the operator says of memories becomes a test of the search."""

from __future__ import annotations

import pytest

from engine.core.memory import Judgement
from engine.memory.errors import MemoryInputError, MemoryNotFound
from engine.memory.judgements import measured
from tests.engine.memory.memory_desk import MemoryDesk


async def test_a_judgement_is_kept_in_the_journal_and_a_later_one_replaces_it(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("the proxy listens on port 3128")
    asked = {"query": " which  port ", "memory_id": memory.id, "workflow_id": desk.workflow}
    await desk.ask("judge_memory", **asked, right=False)
    before = (await desk.store.head("workspace@memory")).version
    await desk.ask("judge_memory", **asked, right=True)
    await desk.ask("judge_memory", **asked | {"query": "proxy", "workflow_id": ""}, right=True)
    await desk.close()
    desk.lose()
    await desk.open()
    judged = await desk.ask("list_judgements")
    assert [(one.query, one.workflow, one.right) for one in judged] == [
        ("which port", desk.workflow, True),
        ("proxy", "", True),
    ]
    assert [one.query for one in await desk.ask("list_judgements", query="proxy ")] == ["proxy"]
    event = (await desk.store.read("workspace@memory", before, before))[0]
    then = await desk.ask("list_judgements", as_of=event.seq)
    assert [(one.query, one.right) for one in then] == [("which port", False)]


async def test_what_cannot_be_judged_is_refused(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("a fact")
    with pytest.raises(MemoryInputError, match="it is empty"):
        await desk.ask("judge_memory", query=" \n", memory_id=memory.id, right=True)
    with pytest.raises(MemoryNotFound, match="no memory 'm99'"):
        await desk.ask("judge_memory", query="x", memory_id="m99", right=True)
    with pytest.raises(MemoryNotFound, match="no workflow 'w99'"):
        await desk.ask("judge_memory", query="x", memory_id=memory.id, right=True, workflow_id="w99")
    assert await desk.ask("list_judgements") == ()


def test_figures_are_of_what_is_right_and_of_what_is_wrong() -> None:
    said = [("a", "m1", True), ("a", "m2", True), ("b", "m3", True), ("b", "m4", False), ("c", "m5", False)]
    judged = [Judgement(query, memory, "", right) for query, memory, right in said]
    found = {("a", ""): ["m9", "m1"], ("b", ""): ["m4", "m3"], ("c", ""): []}
    figures = measured(judged, found)
    assert (figures.queries, figures.recall, figures.mrr) == (2, 0.75, 0.5)
    assert (figures.wrong, figures.wrong_first) == (2, 1)
