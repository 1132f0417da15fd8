"""Finding memories, whatever is asked, and the way in which SQLite looks for them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.memory.errors import MemoryInputError
from engine.memory.search import Weights
from tests.engine.memory.memory_desk import MemoryDesk

QUERIES = {
    "post-quantum": "we chose a post-quantum key exchange",
    "C++": "the driver is written in C++",
    'he said "x': 'he said "x marks the crater"',
    "snake_case": "all names are in snake_case here",
    "квантовая": "квантовая связь с орбитой",
}


@pytest.mark.parametrize("query", QUERIES)
async def test_punctuation_and_scripts_are_words_to_look_for(desk: MemoryDesk, query: str) -> None:
    """No error, and the matching memory is found."""
    wanted = (await desk.store_memory(QUERIES[query])).id
    await desk.store_memory("nothing of interest")
    found = await desk.ask("hybrid_search_memories", query=query)
    assert [one.memory.id for one in found] == [wanted]


async def test_old_words_are_forgotten_with_the_text(desk: MemoryDesk) -> None:
    """After the change giraffe 0 hits, zebra 1; after deletion 0."""
    memory = await desk.store_memory("a giraffe on the moon")
    assert await desk.found("giraffe") == [memory.id]
    await desk.ask("update_memory", memory_id=memory.id, content="a zebra on the moon")
    assert await desk.found("giraffe") == []
    assert await desk.found("zebra") == [memory.id]
    await desk.ask("forget_memories", memory_ids=[memory.id])
    assert await desk.found("zebra") == []


async def test_scores_are_blended_by_their_weights() -> None:
    """Weights 0.6/0.4, cosine 0.5, keyword 1.0, so 0.70."""
    assert Weights(0.6, 0.4).blend(0.5, 1.0) == pytest.approx(0.70)
    assert Weights(0.3, 0.2).blend(0.5, 1.0) == pytest.approx(0.70)


@pytest.mark.parametrize("weights", [(1.5, 0.4), (-0.1, 0.4), (0.0, 0.0), (float("nan"), 0.4)])
async def test_weights_that_say_nothing_are_refused(desk: MemoryDesk, weights: tuple[float, float]) -> None:
    """A weight outside 0 to 1, or 0 + 0, is refused."""
    with pytest.raises(MemoryInputError, match="semantic_weight"):
        await desk.found("dust", semantic_weight=weights[0], keyword_weight=weights[1])


async def test_filters_hold(desk: MemoryDesk) -> None:
    text = "pump three leaks at the seal"
    wanted = await desk.store_memory(text, tags=["leak", "pump"], importance=8.0, memory_type="insight")
    await desk.store_memory(text, tags=["leak"], importance=8.0, memory_type="insight")
    await desk.store_memory(text, tags=["leak", "pump"], importance=3.0, memory_type="insight")
    await desk.store_memory(text, tags=["leak", "pump"], importance=8.0)
    other = (await desk.ask("create_workflow", title="Another")).id
    await desk.store_memory(text, tags=["leak", "pump"], importance=8.0, workflow_id=other)
    found = await desk.found(
        "pump leaks",
        workflow_id=desk.workflow,
        tags=["leak", "pump"],
        min_importance=5.0,
        memory_type="insight",
        memory_level="episodic",
    )
    assert found == [wanted.id]


async def test_a_query_of_stop_words_looks_for_them(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("to be or not to be")
    assert await desk.found("to be") == [memory.id]


async def test_more_matching_words_score_higher(desk: MemoryDesk) -> None:
    both = await desk.store_memory("pump and valve")
    for n in range(20):
        await desk.store_memory(f"valve {n}")
    assert (await desk.found("pump valve"))[0] == both.id


async def test_pages_follow_one_another(desk: MemoryDesk) -> None:
    for n in range(9):
        await desk.store_memory(f"pump {n}", importance=float(n))
    whole = await desk.found("pump", limit=9)
    pages = [await desk.found("pump", limit=3, offset=at) for at in (0, 3, 6, 9)]
    assert len(set(whole)) == 9
    assert [one for page in pages for one in page] == whole


async def test_a_rare_match_is_found_behind_many_that_are_filtered_away(desk: MemoryDesk) -> None:
    wanted = await desk.store_memory("valve", confidence=1.0)
    storing = (desk.store_memory("valve valve", confidence=0.2) for _ in range(300))
    await asyncio.gather(*storing)
    assert await desk.found("valve", min_confidence=0.9) == [wanted.id]


async def test_a_search_as_of_an_event_finds_what_was_there(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("a giraffe on the moon")
    then = await desk.store.head_seq()
    await desk.ask("update_memory", memory_id=memory.id, content="a zebra on the moon")
    await desk.ask("forget_memories", memory_ids=[memory.id])
    desk.clock.seconds += 10**9
    assert await desk.found("giraffe", as_of=then) == [memory.id]
    assert await desk.found("giraffe") == []
    with pytest.raises(MemoryInputError, match="no event 999"):
        await desk.found("giraffe", as_of=999)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.text(min_size=1, max_size=40) | st.text('"*^()-+:{}ANDORNT _\\\x00é', min_size=1, max_size=20)
)
async def test_no_query_raises(hostile_desk: MemoryDesk, query: str) -> None:
    for verb in ("hybrid_search_memories", "search_semantic_memories"):
        assert len(await hostile_desk.ask(verb, query=query)) <= 1


@pytest.fixture
async def hostile_desk(desk: MemoryDesk) -> MemoryDesk:
    await desk.store_memory("AND the pump OR NOT the valve: scope content")
    return desk


# ------------------------------------------------------------------ how it is looked up


def plan_of(desk: MemoryDesk, sql: str, *parameters: object) -> str:
    rows = desk.read(lambda connection: connection.rows(f"explain query plan {sql}", parameters))
    return "\n".join(str(row["detail"]) for row in rows)


class Watched:
    """Notes every statement that the reading connection runs, with its parameters filled in."""

    def __init__(self, desk: MemoryDesk) -> None:
        self._connection = desk.inside._connection.inner
        self.seen: list[str] = []

    def __enter__(self) -> list[str]:
        self._connection.set_trace_callback(self.seen.append)
        return self.seen

    def __exit__(self, *_: object) -> None:
        self._connection.set_trace_callback(None)


SEARCHES = {
    "by words and likeness": ("hybrid_search_memories", {"query": "pump seal"}),
    "in a workflow": ("hybrid_search_memories", {"query": "pump seal", "workflow_id": "w1"}),
    "with tags": ("hybrid_search_memories", {"query": "pump", "tags": ["leak"], "workflow_id": "w1"}),
    "of a level": ("query_memories", {"workflow_id": "w1", "memory_level": "semantic"}),
    "by id": ("get_memory_by_id", {"memory_id": "m6"}),
    "links": ("get_linked_memories", {"memory_id": "m6"}),
    "in mind": ("get_working_memory", {"context_id": "w1"}),
    "to consolidate": ("consolidation_candidates", {"workflow_id": "w1"}),
}


@pytest.mark.only_in_a_file
@pytest.mark.parametrize("search", SEARCHES)
async def test_no_search_reads_a_whole_table(desk: MemoryDesk, search: str) -> None:
    """What stays quick at 100,000 memories: every table is entered by an index."""
    memory = await desk.store_memory("pump three leaks at the seal", tags=["leak"])
    await desk.ask("change_working_memory", context_id=desk.workflow, add=[memory.id])
    verb, arguments = SEARCHES[search]
    if "memory_id" in arguments:
        arguments = {**arguments, "memory_id": memory.id}
    with Watched(desk) as seen:
        await desk.ask(verb, **arguments)
    selects = [one for one in seen if one.lstrip().startswith("select") and "words_" not in one]
    assert selects
    for sql in selects:
        for line in plan_of(desk, sql).splitlines():
            # A virtual table is scanned by its own index, which it names; a subquery is what was found.
            indexed = "INDEX" in line or line.startswith("SCAN (subquery")
            assert indexed or not line.startswith("SCAN"), f"{line} in {sql}"


async def steps_of_a_search(desk: MemoryDesk, **arguments: object) -> int:
    """How many hundreds of steps SQLite takes for a search."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    desk.inside._connection.inner.set_progress_handler(count, 100)
    assert await desk.found("seal", **arguments)
    desk.inside._connection.inner.set_progress_handler(None, 100)
    return taken


@pytest.mark.only_in_a_file
async def test_eight_times_the_memories_do_not_take_more_steps(desk: MemoryDesk) -> None:
    """Whatever else is remembered, a search goes through what matches."""
    for n in range(20):
        await desk.store_memory(f"the seal of pump {n}", tags=["leak"])
    other = (await desk.ask("create_workflow", title="Another")).id
    filters: list[dict[str, object]] = [{}, {"workflow_id": "w1"}, {"tags": ["leak"]}]
    steps = []
    for more in (200, 1_400):
        places = (desk.workflow, other)
        storing = (desk.store_memory(f"sample {n} of {more}", workflow_id=places[n % 2]) for n in range(more))
        await asyncio.gather(*storing)
        steps.append([await steps_of_a_search(desk, **where) for where in filters])
    # Whether few pass a filter is counted up to a limit, whatever there is.
    for before, after in zip(*steps, strict=True):
        assert after <= before * 1.5 + 150, steps
