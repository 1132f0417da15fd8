"""What is due, when and why: the worked numbers of the specification, event by event."""

from __future__ import annotations

from typing import Any, cast

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.memory import ReflectionKind
from engine.core.metacognition import COOLDOWN_LOOPS, JobOutcome, MetaSettings, MetaTask
from engine.core.recovery import FailureKind
from tests.engine.memory.metacognition.meta_desk import MetaDesk

REFLECT, CONSOLIDATE, ADAPT = MetaTask.REFLECT, MetaTask.CONSOLIDATE, MetaTask.ADAPT
SOME_MEMORY = cast("Any", object())
"""Stands for a memory where nothing is run that would ask it."""


@pytest.fixture
async def desk() -> MetaDesk:
    made = MetaDesk(memory=SOME_MEMORY).open()
    made.goal()
    return made


def adapt(desk: MetaDesk, **counts: int) -> tuple[int, int]:
    """Have memories counted; the thresholds that come of it."""
    desk.do(cmd.ForceMeta, task="adapt")
    assert ADAPT in desk.boundary()
    desk.end(ADAPT, counts=counts)
    desk.boundary()
    return desk.state.meta.reflection_threshold, desk.state.meta.consolidation_threshold


def fail(desk: MetaDesk) -> None:
    desk.say(ev.FailureRecorded(failure=FailureKind.PLANNING_ERROR, message="no such file", goal="g1"))


async def test_reflection_waits_longer_while_nothing_fails(desk: MetaDesk) -> None:
    """T_r is 9, 11, 14, 15, 15 after five counts over ten calls without a failure."""
    for _ in range(10):
        desk.act()
    assert [adapt(desk)[0] for _ in range(5)] == [9, 11, 14, 15, 15]


async def test_a_pending_error_takes_the_momentum_away(desk: MetaDesk) -> None:
    """With one consecutive error T_r becomes 8."""
    for _ in range(10):
        desk.act()
    fail(desk)
    assert desk.state.consecutive_errors == 1
    assert adapt(desk)[0] == 8


@pytest.mark.parametrize(
    ("failures", "threshold"), [(2, 8), (3, 7), (6, 7), (10, 5), (15, 4), (25, 3), (50, 3)]
)
async def test_failures_bring_reflection_sooner(desk: MetaDesk, failures: int, threshold: int) -> None:
    """Of 50 actions so many failed, and T_r follows, never below 3."""
    for number in range(50):
        desk.act(ok=number >= failures)
    assert adapt(desk)[0] == threshold


async def test_the_failure_rate_is_that_of_the_last_fifty_actions(desk: MetaDesk) -> None:
    for number in range(90):
        desk.act(ok=number >= 40)
    assert (len(desk.state.meta.window), desk.state.meta.failed) == (50, 0)
    told = desk.state.meta.tools["simple_coder.write"]
    assert (told.succeeded, told.failed, told.duration_ms) == (50, 40, 450)


async def test_four_calls_say_nothing(desk: MetaDesk) -> None:
    """Four calls that all failed leave T_r as it is."""
    for _ in range(4):
        desk.act(ok=False)
    assert adapt(desk)[0] == 7


@pytest.mark.parametrize(("episodic", "thresholds"), [(0, [15, 19, 24, 25]), (50, [6]), (100, [5])])
async def test_consolidation_follows_the_share_of_episodic_memories(
    desk: MetaDesk, episodic: int, thresholds: list[int]
) -> None:
    """From 12, no episodic memory gives 15, 19, 24, 25; half of them 6; all of them 5."""
    assert [adapt(desk, episodic=episodic, total=100)[1] for _ in thresholds] == thresholds


@pytest.mark.parametrize("episodic", [10, 15, 20, 25, 30])
async def test_within_the_band_consolidation_stays(desk: MetaDesk, episodic: int) -> None:
    """From a tenth to three tenths T_c does not move."""
    assert [adapt(desk, episodic=episodic, total=100)[1] for _ in range(3)] == [12, 12, 12]


async def test_a_count_that_fails_or_finds_nothing_leaves_the_thresholds(desk: MetaDesk) -> None:
    """The thresholds stay, and the loop goes on."""
    assert adapt(desk, episodic=0, total=0) == (7, 12)
    for _ in range(10):
        desk.act()
    assert ADAPT in desk.boundary()
    desk.end(ADAPT, JobOutcome.FAILED)
    assert desk.boundary() == []
    assert (desk.state.meta.reflection_threshold, desk.state.meta.consolidation_threshold) == (7, 12)
    for _ in range(3):
        desk.act()
    assert ADAPT not in [job.task for job in desk.state.meta.running]
    for _ in range(7):
        desk.act()
    assert ADAPT in desk.boundary()


@pytest.mark.parametrize(("waiting", "begun"), [(24, []), (25, [CONSOLIDATE])])
async def test_too_many_episodic_memories_are_consolidated_at_once(
    desk: MetaDesk, waiting: int, begun: list[MetaTask]
) -> None:
    """With T_c at 12, 25 that wait begin one consolidation and 24 none."""
    desk.do(cmd.ForceMeta, task="adapt")
    desk.boundary()
    desk.end(ADAPT, counts={"episodic": waiting, "total": 100, "unconsolidated": waiting})
    assert desk.boundary() == begun
    assert desk.boundary() == []


async def test_intervals_count_loops(desk: MetaDesk) -> None:
    """Focus at 8, 16, …, counts at 10, …, promotion at 15, 30, 45, maintenance at 50."""
    fired: dict[MetaTask, list[int]] = {}
    for loop in range(1, 51):
        desk.act()
        for task in desk.boundary():
            fired.setdefault(task, []).append(loop)
        desk.end_all()
    assert fired[MetaTask.OPTIMISE] == [8, 16, 24, 32, 40, 48]
    assert fired[ADAPT] == [10, 20, 30, 40, 50]
    assert fired[MetaTask.PROMOTE] == [15, 30, 45]
    assert fired[MetaTask.MAINTAIN] == [50]


async def test_a_thought_counts_half(desk: MetaDesk) -> None:
    """At 6.5 of 7 a thought makes a reflection due at the next boundary."""
    for _ in range(6):
        desk.act()
    desk.say(ev.ThoughtRecorded(text="hm"))
    assert desk.state.successes_since_reflection == 6.5
    assert REFLECT not in desk.boundary()
    desk.say(ev.ThoughtRecorded(text="aha"))
    assert desk.state.successes_since_reflection == 7.0
    assert REFLECT in desk.boundary()
    (job,) = [one for one in desk.state.meta.running if one.task is REFLECT]
    assert (job.why, job.kind) == ("7 successes, threshold 7", "summary")


async def test_the_twelfth_success_begins_one_consolidation(desk: MetaDesk) -> None:
    """Exactly one, and the counter goes back only once it has succeeded."""
    begun = []
    for _ in range(12):
        desk.act()
        begun.append(CONSOLIDATE in desk.boundary())
    assert begun == [False] * 11 + [True]
    desk.act()
    assert CONSOLIDATE not in desk.boundary()
    assert desk.state.successes_since_consolidation == 13
    desk.end(CONSOLIDATE, JobOutcome.FAILED)
    assert desk.state.successes_since_consolidation == 13
    assert CONSOLIDATE not in desk.boundary(), "what failed rests for a while"
    for _ in range(3):
        desk.act()
    assert CONSOLIDATE in desk.boundary()
    desk.act()
    desk.end(CONSOLIDATE)
    assert desk.state.successes_since_consolidation == 1, "what came meanwhile counts for the next"


async def test_reflections_take_turns(desk: MetaDesk) -> None:
    """Six reflections are summary, progress, gaps, strengths, plan, summary."""
    kinds = []
    while len(kinds) < 6:
        desk.act()
        if REFLECT in desk.boundary():
            job = desk.state.meta.doing(REFLECT)
            assert job is not None
            kinds.append(job.kind)
            desk.end(REFLECT)
    assert kinds == [*ReflectionKind, "summary"]


async def test_a_reflection_is_no_cause_of_the_next(desk: MetaDesk) -> None:
    """After one that asks for another plan none begins for three loops."""
    for _ in range(7):
        desk.act()
    assert REFLECT in desk.boundary()
    desk.do(cmd.SetThresholds, reflection=3)
    desk.act()
    desk.act()
    desk.act()
    desk.end(REFLECT, replan=True)
    quiet = []
    for _ in range(COOLDOWN_LOOPS):
        quiet.append(REFLECT in desk.boundary())
        desk.act()
    assert quiet == [False] * COOLDOWN_LOOPS
    assert REFLECT in desk.boundary()


async def test_a_failure_ends_the_rest_after_a_reflection(desk: MetaDesk) -> None:
    """Without new errors only."""
    for _ in range(7):
        desk.act()
    desk.boundary()
    desk.end(REFLECT, replan=True)
    fail(desk)
    assert REFLECT in desk.boundary()
    job = desk.state.meta.doing(REFLECT)
    assert job is not None
    assert job.why == "1 new failure, and no way on yet"
    desk.end(REFLECT)
    assert desk.boundary() == [], "the failure was looked at"


async def test_what_background_work_meets_is_no_error_of_the_agents(desk: MetaDesk) -> None:
    """Last action, errors and failure rate are those of the agent's own doing."""
    for _ in range(7):
        desk.act(path="mine")
    desk.boundary()

    def turn() -> tuple[object, ...]:
        state = desk.state
        return (
            state.last_summary, state.failures, state.consecutive_errors, state.needs_replan,
            state.meta.failed, state.meta.tools, state.actions, state.model, state.context,
        )  # fmt: skip

    before = turn()
    desk.end(REFLECT, JobOutcome.FAILED)
    desk.say(
        ev.ModelCalled(
            purpose="background reflect", model="m", request={}, error="no", shares=(("record", 9),), window=9
        ),
        "thinker",
    )
    assert turn() == before


async def test_a_paused_or_idle_agent_begins_nothing_by_itself_and_forced_work_all_the_same(
    desk: MetaDesk,
) -> None:
    for _ in range(12):
        desk.act()
    desk.do(cmd.Pause)
    assert desk.boundary() == []
    desk.do(cmd.ForceMeta, task="maintain")
    assert desk.boundary() == [MetaTask.MAINTAIN]
    assert desk.state.meta.running[0].why == "the operator wants it"
    desk.do(cmd.Run)
    assert set(desk.boundary()) >= {REFLECT, CONSOLIDATE}


async def test_a_veto_keeps_a_task_from_beginning_until_it_is_lifted(desk: MetaDesk) -> None:
    desk.do(cmd.VetoMeta, task="reflect")
    for _ in range(9):
        desk.act()
    assert REFLECT not in desk.boundary()
    desk.do(cmd.VetoMeta, task="reflect", lifted=True)
    assert desk.boundary() == [REFLECT]


async def test_thresholds_that_go_too_far_are_clamped_and_said_to_be(desk: MetaDesk) -> None:
    """A threshold of 99 becomes 15, visibly."""
    receipt = desk.agent.handle(cmd.SetThresholds(reflection=99, consolidation=6), "operator:test")
    assert receipt.message == "reflection after 15 (not 99: it goes from 3 to 15); consolidation after 6"
    assert (desk.state.meta.reflection_threshold, desk.state.meta.consolidation_threshold) == (15, 6)


async def test_without_memory_only_what_needs_none_is_due() -> None:
    desk = MetaDesk().open()
    desk.goal()
    begun = set()
    for _ in range(60):
        desk.act()
        begun |= set(desk.boundary())
        desk.end_all()
    assert begun == {REFLECT, ADAPT}
    refused = desk.agent.handle(cmd.ForceMeta(task="promote"), "operator:test")
    assert refused.message == "promote needs a memory, and there is none in this session"


async def test_switched_off_nothing_is_due_and_commands_say_so() -> None:
    desk = MetaDesk(memory=SOME_MEMORY).open(MetaSettings(enabled=False))
    desk.goal()
    for _ in range(60):
        desk.act()
    assert desk.boundary() == []
    refused = desk.agent.handle(cmd.ForceMeta(task="reflect"), "operator:test")
    assert "switched off" in refused.message


async def test_links_are_looked_for_after_actions_that_brought_something_and_after_nothing_else(
    desk: MetaDesk,
) -> None:
    for _ in range(20):
        desk.act(command="read")
    assert MetaTask.LINK not in desk.boundary()
    desk.act(command="write")
    assert MetaTask.LINK in desk.boundary()
    desk.end_all()
    for _ in range(20):
        desk.say(ev.ThoughtRecorded(text="hm"))
    assert MetaTask.LINK not in desk.boundary()
