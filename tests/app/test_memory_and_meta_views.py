"""What panes show of memory, meta-cognition and the prompt: pure functions, without a screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.projection import memory_views
from app.projection import metacognition_views as context_views
from app.projection import metacognition_views as meta_views
from app.projection import pane_views as views
from engine.core.budgets import Spent
from engine.core.goals import Goal
from engine.core.memory import CognitiveState, LinkType, MemoryItem, MemoryLevel, MemoryLink, Workflow
from engine.core.metacognition import (
    BackgroundJob,
    EndedJob,
    Feedback,
    JobOutcome,
    MetaState,
    MetaTask,
    PastAction,
    ToolStatistics,
)
from engine.core.state import AgentState
from engine.core.thinking import ModelCalled
from engine.memory.memories import LinkedMemory, MemoryCard, MemoryVersion
from engine.memory.search import SearchMatch
from engine.memory.working_memory import WorkingItem, WorkingMemory

NOW = 1_800_000_000.0
AT = "2027-01-15T08:00:00.000000Z"
"""The moment `NOW` as the journal has it."""


@pytest.mark.parametrize(
    ("seconds", "word"),
    [(-5, "now"), (59, "now"), (60, "1m"), (7_300, "2h"), (90_000, "1d"), (15 * 86_400, "2w")],
)
def test_ages_are_words_of_few_cells(seconds: float, word: str) -> None:
    assert memory_views.age(seconds) == word


def memory(ident: str, **more: object) -> MemoryItem:
    return replace(MemoryItem(ident, "w1", f"what {ident} says", created_at=NOW - 120), **more)  # type: ignore[arg-type]


def test_the_focal_memory_stands_first_and_then_the_most_relevant() -> None:
    items = (
        WorkingItem(memory("m1"), 2.04),
        WorkingItem(memory("m2"), 1.0, focal=True, pinned=True),
        WorkingItem(memory("m3"), 7.25),
    )
    lines = memory_views.working_set(WorkingMemory(CognitiveState("w1"), items), NOW)
    assert [(one.id, one.relevance, one.age) for one in lines] == [
        ("m2", 1.0, "2m"),
        ("m3", 7.2, "2m"),
        ("m1", 2.0, "2m"),
    ]
    assert lines[0].pinned


def test_a_search_without_words_has_no_scores() -> None:
    hits = [SearchMatch(memory("m1"), 0.5, 0.2, 0.9)]
    assert memory_views.search_results(hits, NOW, scored=False)[0].score is None
    (scored,) = memory_views.search_results(hits, NOW, scored=True)
    assert (scored.score, scored.how) == (0.5, "words 0.90 likeness 0.20")


def test_the_history_says_in_words_what_each_version_changed() -> None:
    first = memory("m1", level=MemoryLevel.WORKING, tags=("a",), ttl=60, expires_at=NOW)
    second = replace(first, importance=7.5, tags=(), level=MemoryLevel.EPISODIC)
    card = MemoryCard(
        second,
        (LinkedMemory(MemoryLink("m9", "m1", LinkType.SUPPORTS, 0.5), memory("m9")),),
        (
            MemoryVersion(7, NOW, "operator:ada", "memory.changed", second),
            MemoryVersion(3, NOW - 60, "agent", "memory.stored", first),
        ),
        Workflow("w1", "build"),
        WorkingMemory(CognitiveState("w1"), ()),
    )
    shown = memory_views.detail(card, NOW)
    assert [one.what for one in shown.history] == [
        "level working → episodic; importance 5 → 7.5; tags a → none",
        "made",
    ]
    assert shown.history[0].at == "2027-01-15 08:00:00"
    assert [(one.memory_id, one.outward) for one in shown.links] == [("m9", False)]
    assert (shown.created, shown.used, shown.in_mind) == (
        "2027-01-15 07:58:00, 2m ago",
        "never by the agent",
        False,
    )


# ------------------------------------------------------------------ meta-cognition


def agent(**meta: object) -> AgentState:
    own = replace(MetaState(on=True, memory=True), **meta)  # type: ignore[arg-type]
    return AgentState(agent_id="pilot", meta=own, successes_since_reflection=4.5)


def standing(state: AgentState) -> dict[str, tuple[str, str]]:
    return {one.task: (one.standing, one.due) for one in meta_views.metacognition(state, NOW).gauges}


def test_gauges_say_when_each_task_is_due() -> None:
    assert standing(agent(loop=12, last={MetaTask.OPTIMISE: 10})) == {
        "reflect": ("waits", "in 3 successes"),
        "consolidate": ("waits", "in 12 successes"),
        "adapt": ("due", "due now"),
        "optimise": ("waits", "in 6 loops"),
        "promote": ("waits", "in 3 loops"),
        "maintain": ("waits", "in 38 loops"),
        "link": ("waits", "once something is new"),
    }


def test_gauges_say_why_a_task_is_not_begun() -> None:
    job = BackgroundJob("bg1", MetaTask.PROMOTE, "every 15 loops", 3, at=AT)
    state = agent(
        running=(job,),
        vetoed=(MetaTask.MAINTAIN,),
        resting={MetaTask.OPTIMISE: 3},
        cooldown_until=1,
        overdue=True,
        forced=(MetaTask.ADAPT,),
    )
    found = standing(state)
    assert found["promote"] == ("runs", "runs now")
    assert found["maintain"][0] == "vetoed"
    assert found["optimise"] == ("rests", "rests 3 loops")
    assert found["reflect"] == ("rests", "rests 1 loop")
    assert found["consolidate"] == found["adapt"] == ("due", "due now")
    without = standing(agent(memory=False))
    assert without["link"] == ("off", "needs memory")
    assert without["reflect"][0] == "waits"


def test_why_a_task_fired_last_and_what_came_of_it_stand_by_its_gauge() -> None:
    job = BackgroundJob("bg1", MetaTask.REFLECT, "7 successes, threshold 7", 3, kind="gaps", at=AT)
    state = agent(
        ended=(EndedJob(job, JobOutcome.TIMED_OUT, "60 s were over", at=AT),),
        running=(replace(job, id="bg2"),),
        feedback=(Feedback("look first", "operator", "pilot:3"),),
        window=(
            PastAction("simple_coder.ls", "d", "ls", True),
            PastAction("simple_coder.rm", "d", "rm", False),
            *[PastAction("simple_coder.ls", "e", "ls src", True)] * 3,
        ),
        tools={"simple_coder.ls": ToolStatistics(1, 1, 3_000)},
    )
    model = meta_views.metacognition(state, NOW + 75)
    assert (model.gauges[0].why, model.gauges[0].last) == (
        "7 successes, threshold 7",
        "timed out: 60 s were over",
    )
    assert [(one.id, one.name, one.age) for one in model.running] == [("bg2", "reflection gaps", "1m")]
    assert model.ended[0].age == "1m ago"
    assert model.feedback == ("operator: look first",)
    assert model.signals == ("3 times the same: ls src",)
    assert ("failures", "1 of the last 5 actions (20%)") in model.facts
    assert ("tool", "simple_coder.ls: 1 of 2 worked, 1.5 s each") in model.facts


def test_an_agent_without_meta_cognition_says_so() -> None:
    model = meta_views.metacognition(AgentState(agent_id="pilot"), NOW)
    assert model.notice is not None
    assert not model.gauges


# ------------------------------------------------------------------ the prompt

REQUEST = {
    "model": "claude-test",
    "max_tokens": 9,
    "tools": [{"name": "plan"}],
    "system": [{"type": "text", "text": "you plan"}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "do [b]it[/b]"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "plan", "input": {}}]},
    ],
}
SHARES = (("tools", 4), ("role", 2), ("goal", 3), ("exchange", 9))


def called(**more: object) -> ModelCalled:
    return ModelCalled(model="claude-test", request=REQUEST, shares=SHARES, window=100, **more)  # type: ignore[arg-type]


def test_each_block_of_the_prompt_has_the_words_that_were_sent() -> None:
    model = context_views.context(AgentState(agent_id="pilot"), called(), AT)
    assert [(one.name, one.tokens) for one in model.blocks] == list(SHARES)
    assert [one.text for one in model.blocks[1:3]] == ["you plan", "do [b]it[/b]"]
    assert '"tool_use"' in model.blocks[3].text
    assert "messages" not in model.settings
    assert model.notice is None


def test_a_prompt_whose_blocks_do_not_fit_its_shares_keeps_the_shares_alone() -> None:
    call = called().model_copy(update={"shares": SHARES[:2]})
    model = context_views.context(AgentState(agent_id="pilot"), call, AT)
    assert [(one.name, one.text) for one in model.blocks] == [("tools", ""), ("role", "")]


def test_what_calls_took_is_told_by_goal_and_unknown_prices_are_named() -> None:
    state = AgentState(
        agent_id="pilot",
        goals={"g1": Goal("g1", "build")},
        spent={"g1": Spent(2, 300, 0.5), "": Spent(1, 9, 0.0)},
        model_calls=3,
        tokens=309,
        cost_usd=0.5,
        unpriced_calls=1,
    )
    answer = {"content": [{"type": "text", "text": "done"}], "usage": {"input_tokens": 5, "output_tokens": 2}}
    call = called(purpose="plan", goal="g1", answer=answer, duration_ms=1_500, retries=2, error="cut off")
    model = context_views.context(state, call, AT)
    assert [one.goal for one in model.goals] == ["g1 build", ""]
    assert "1 calls without a known price" in model.total
    assert model.call is not None
    assert model.call.what == "plan · for g1 · 08:00:00"
    assert model.call.took == "tokens 5 in · 2 out · price unknown · 1.5 s · 2 retries"
    assert (model.call.error, model.answer) == ("cut off", "done")


def test_working_memory_lists_beliefs_beside_what_is_in_mind() -> None:
    assert views.working_memory(AgentState()).memories == ()
