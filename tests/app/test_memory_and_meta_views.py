"""What panes show of memory, meta-cognition and the prompt: pure functions, without a screen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.projection import memory_views, steering_views
from app.projection import metacognition_views as context_views
from app.projection import metacognition_views as meta_views
from app.projection import pane_views as views
from engine.agent.steering.budget_status import budget_statuses
from engine.agent.steering.ledger import Ledger
from engine.core.breakpoints import BreakKind, Breakpoint, BreakSpec
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
)
from engine.core.state import AgentState
from engine.core.thinking import ModelCalled
from engine.memory.memories import LinkedMemory, MemoryCard, MemoryVersion
from engine.memory.search import SearchMatch
from engine.memory.working_memory import WorkingItem, WorkingMemory
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, plain

NOW = 1_800_000_000.0
AT = "2027-01-15T08:00:00.000000Z"
"""The moment `NOW` as the journal has it."""


@pytest.mark.parametrize(
    ("seconds", "word"),
    [(-5, "now"), (59, "now"), (60, "1m"), (7_300, "2h"), (90_000, "1d"), (15 * 86_400, "15d")],
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
    assert [row.key for row in lines] == ["memory:m2", "memory:m3", "memory:m1"]
    assert text_of(lines) == [
        "m2 observation: what m2 says ◆ ▓░░░░ 2m",
        "m3 observation: what m3 says ▓▓▓▓░ 2m",
        "m1 observation: what m1 says ▓░░░░ 2m",
    ]


def text_of(rows: Sequence[Row]) -> list[str]:
    """Rows as text, blanks made one."""
    return [" ".join(plain((*row.pieces, Piece(" "), *row.tail)).split()) for row in rows]


def test_only_a_search_for_words_has_scores() -> None:
    hits = [SearchMatch(memory("m1"), 0.5, 0.2, 0.9)]
    newest = memory_views.search_results(hits, NOW, scored=False)
    assert text_of(newest) == ["m1 observation: what m1 says !5 2m"]
    scored = memory_views.search_results(hits, NOW, scored=True)
    assert text_of(scored) == ["m1 observation: what m1 says ▓▓░░░ 0.50 !5 2m"]


def test_what_was_judged_and_what_is_superseded_look_so() -> None:
    hits = [SearchMatch(memory("m1"), 0.5), SearchMatch(memory("m2"), 0.4, superseded="m1")]
    rows = memory_views.search_results(hits, NOW, scored=False, judged={"m1": True, "m2": False})
    assert text_of(rows) == [
        "✓ m1 observation: what m1 says !5 2m",
        "✗ m2 observation: superseded by m1: what m2 says !5 2m",
    ]
    assert rows[1].pieces[-1].style == "dim"


def test_the_detail_says_why_a_memory_was_found() -> None:
    item, link = memory("m1"), MemoryLink("m1", "m9", LinkType.SUPPORTS)
    card = MemoryCard(item, (), (), Workflow("w1", "build"), WorkingMemory(CognitiveState("w1"), ()))
    found = {"keyword": 0.4, "semantic": 0.31, "words": ("disk", "full"), "relevance": 2.0}
    hit = SearchMatch(item, 0.5, **found, link=link, timely=True, superseded="m9")
    lines = text_of(memory_views.detail(card, NOW, hit).rows)
    why = "words 0.40 (disk, full) · likeness 0.31 · link: supports m9 · the time asked for"
    assert f"found by {why} · 2m ago, relevance 2.0" in lines
    assert "newer m9 supersedes it" in lines
    assert not any(line.startswith("found by") for line in text_of(memory_views.detail(card, NOW).rows))


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
    lines = text_of(shown.rows)
    assert lines[lines.index("history") + 1 :] == [
        "2027-01-15 08:00:00 operator:ada level working → episodic; importance 5 → 7.5; tags a → none",
        "2027-01-15 07:59:00 agent made",
    ]
    assert ("link:m9 0", "← supports what m9 says 0.50") in zip(
        [row.key for row in shown.rows], lines, strict=True
    )
    assert "made 2027-01-15 07:58:00, 2m ago" in lines
    assert "used never by the agent" in lines
    assert not shown.pinned


@pytest.mark.parametrize("text", ["\x1b[2J", "safe\u202egnp.exe", "\ud800 x", "two\nlines"])
def test_rows_of_dialogs_are_clean_whatever_agents_say(text: str) -> None:
    item = replace(memory("m1"), content=text, description=text, tags=(text,), source=text)
    version = MemoryVersion(7, NOW, "agent", "memory.changed", item)
    card = MemoryCard(item, (), (version,), Workflow("w1", text), WorkingMemory(CognitiveState("w1"), ()))
    job = BackgroundJob("bg1", MetaTask.REFLECT, text, 3, kind=text, at=AT)
    goals = {"g1": Goal("g1", text)}
    point = BreakSpec(BreakKind.BELIEF, text)
    state = agent(running=(job,), ended=(EndedJob(job, JobOutcome.DONE, text, at=AT),))
    state = replace(state, goals=goals, points={"b1": Breakpoint("b1", point)}, came=Counter(b1=1))
    rows = [
        *memory_views.detail(card, NOW).rows,
        *memory_views.search_results([SearchMatch(item, 0.5, 0.2, 0.9)], NOW, scored=True),
        *meta_views.metacognition(state, NOW).rows,
        *steering_views.breakpoints(state).rows,
        *steering_views.budgets(budget_statuses(Ledger(), state, "g1"), state).rows,
    ]
    shown = "".join(plain((*row.pieces, *row.tail)) for row in rows)
    assert "\n" not in shown
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", shown)


# ------------------------------------------------------------------ meta-cognition


def agent(**meta: object) -> AgentState:
    own = replace(MetaState(on=True, memory=True), **meta)  # type: ignore[arg-type]
    return AgentState(agent_id="pilot", meta=own, successes_since_reflection=4.5)


def standing(state: AgentState) -> dict[str, tuple[str, str]]:
    """The mark of each task, and when it is due."""
    rows = [row for row in meta_views.metacognition(state, NOW).rows if row.key.startswith("task:")]
    return {row.key.removeprefix("task:"): (row.mark.text, plain(row.tail)) for row in rows}


def test_gauges_say_when_each_task_is_due() -> None:
    assert standing(agent(loop=12, last={MetaTask.OPTIMISE: 10})) == {
        "reflect": (" ", "in 3 successes"),
        "consolidate": (" ", "in 12 successes"),
        "adapt": ("!", "due now"),
        "optimise": (" ", "in 6 loops"),
        "promote": (" ", "in 3 loops"),
        "maintain": (" ", "in 38 loops"),
        "link": (" ", "once something is new"),
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
    assert found["promote"] == ("▶", "runs now")
    assert found["maintain"][0] == "–"
    assert found["optimise"] == ("‖", "rests 3 loops")
    assert found["reflect"] == ("‖", "rests 1 loop")
    assert found["consolidate"] == found["adapt"] == ("!", "due now")
    without = standing(agent(memory=False))
    assert without["link"] == ("·", "needs memory")
    assert without["reflect"][0] == " "


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
    )
    lines = text_of(meta_views.metacognition(state, NOW + 75).rows)
    assert "last: 7 successes, threshold 7 → timed out: 60 s were over" in lines
    assert "bg2 reflection gaps 7 successes, threshold 7 1m" in lines
    assert any(line.startswith("bg1 reflection gaps timed out") and line.endswith("1m ago") for line in lines)
    assert lines[lines.index("waits for the next prompt") + 1] == "operator: look first"
    assert lines[lines.index("may be stuck") + 1] == "3 times the same: ls src"


def test_an_agent_without_meta_cognition_says_so() -> None:
    model = meta_views.metacognition(AgentState(agent_id="pilot"), NOW)
    assert model.notice is not None
    assert not model.rows


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


def sections(state: AgentState, call: ModelCalled) -> dict[str, str]:
    return {section.title.strip("─ "): section.text for section in context_views.context(state, call, AT)}


def test_each_block_of_the_prompt_has_its_share_and_the_words_that_were_sent() -> None:
    shown = sections(AgentState(agent_id="pilot"), called())
    assert [line.split()[:4] for line in shown["Shares of the prompt"].split("\n")] == [
        ["block", "tokens", "prompt", "of"],
        ["tools", "4", "22%", "4.0%"],
        ["role", "2", "11%", "2.0%"],
        ["goal", "3", "17%", "3.0%"],
        ["exchange", "9", "50%", "9.0%"],
        ["in", "all", "18", "100%"],
    ]
    assert (shown["role"], shown["goal"]) == ("you plan", "do [b]it[/b]")
    assert '"tool_use"' in shown["exchange"]
    assert "messages" not in shown["sent with it"]


def test_a_prompt_whose_blocks_do_not_fit_its_shares_keeps_the_shares_alone() -> None:
    shown = sections(AgentState(agent_id="pilot"), called().model_copy(update={"shares": SHARES[:2]}))
    assert "role" in shown["Shares of the prompt"]
    assert "role" not in shown


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
    shown = sections(state, call)
    assert shown["All calls by goal"].split("\n") == [
        "g1 build: 2 calls, 300 tok, $0.500",
        "for no goal: 1 call, 9 tok, $0.000",
        "in all 3 calls, 309 tokens, $0.500 and 1 calls without a known price",
    ]
    assert shown["Last call"].split("\n") == [
        "claude-test · plan · for g1 · 08:00:00",
        "tokens 5 in · 2 out · price unknown · 1.5 s · 2 retries",
        "cut off",
    ]
    assert shown["the answer"] == "done"


def test_working_memory_lists_beliefs_beside_what_is_in_mind() -> None:
    assert views.working_memory(AgentState()).rows == []
