"""Background work and the agent's own: neither waits for the other, and a replay comes to the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from engine.agent.model_calls import BudgetClient
from engine.agent.steering.ledger import Ledger
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.goals import GoalStatus
from engine.core.metacognition import JobOutcome, MetaSettings, MetaTask
from engine.core.plan import PlanStep
from engine.core.recovery import FailureKind
from engine.core.thinking import ThinkingError
from engine.memory.metacognition.runner import BackgroundRunner
from tests.engine.memory.metacognition.meta_desk import MetaDesk, World, Writer, achieve, bad, good, write
from tests.engine.memory.metacognition.virtual_time import in_virtual_time

ADVICE = "Look into the log before the next step."


def told(advice: str = ADVICE, **more: Any) -> dict[str, Any]:
    return {"findings": "It goes well.\nNothing is amiss.", "advice": advice, **more}


def desk(world: World, model: Writer | None = None, **how: Any) -> MetaDesk:
    around = {"model": BudgetClient(model, Ledger()), "model_name": "m"} if model is not None else {}
    made = MetaDesk(world, runner=BackgroundRunner(**how), **around)
    return made.open(MetaSettings(model=model is not None))


def test_the_agent_acts_while_a_reflection_takes_its_time_and_is_told_of_it_after() -> None:
    """30 s of reflection, actions meanwhile; the first prompt after has the words, once."""

    async def main() -> None:
        world, model = World(), Writer(*[told()] * 9, takes_s=30.0)
        world.takes_s = 2.0
        world.plans.append([write(f"f{n}", n) for n in range(1, 21)])
        flown = desk(world, model)
        flown.fly()
        await flown.until(lambda s: s.meta.doing(MetaTask.REFLECT))
        before = flown.state.actions
        await flown.until(lambda s: s.meta.feedback)
        assert flown.state.actions >= before + 10
        (waits,) = flown.state.meta.feedback
        assert (waits.text, waits.computed) == (ADVICE, False)
        flown.do(cmd.Guide, text="Be quick about it.")
        await flown.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        assert [one.findings for one in world.asked] == [()]
        flown.do(cmd.AdoptGoal, text="the next thing")
        await flown.until(lambda s: len(world.asked) == 2)
        assert [one for one in world.asked[1].findings if ADVICE in one] == [f"reflection: {ADVICE}"]
        assert world.asked[1].guidance == ("Be quick about it.",)
        assert flown.state.meta.feedback == ()
        assert len({one.asked for one in flown.state.meta.told}) == 1
        flown.do(cmd.AdoptGoal, text="and another", priority=9)
        await flown.until(lambda s: len(world.asked) == 3)
        assert world.asked[2].guidance == ()
        assert not any(ADVICE in one for one in world.asked[2].findings)
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_a_reflection_that_asks_for_it_has_the_rest_planned_anew_and_keeps_what_is_done() -> None:
    async def main() -> None:
        world, model = World(), Writer(told(plan_anew=True), *[told()] * 9, takes_s=1.0)
        world.takes_s = 0.6
        world.plans = [[write(f"f{n}", n) for n in range(1, 13)], [write("last")]]
        flown = desk(world, model)
        flown.fly()
        await flown.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        assert len(world.asked) == 2
        assert world.asked[1].done
        assert world.asked[1].findings == (f"reflection: {ADVICE}",)
        written = [step.args["path"] for step in flown.state.plans["g1"].steps]
        assert written[-1] == "last"
        assert written[:7] == [f"f{n}" for n in range(1, 8)]
        assert len(written) < 13
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_a_reflection_that_comes_after_the_goal_changes_no_other_goals_plan() -> None:
    async def main() -> None:
        world, model = World(), Writer(*[told(plan_anew=True)] * 9, takes_s=20.0)
        flown = desk(world, model)
        flown.fly(*[write(f"f{n}", n) for n in range(1, 8)])
        await flown.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        await flown.until(lambda s: s.meta.cycle == 1)
        flown.do(cmd.AdoptGoal, text="the next thing")
        await flown.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED)
        assert flown.payloads(ev.ReplanAsked) == []
        assert len(world.asked) == 2
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_what_a_model_said_in_the_background_is_on_record_and_paid_for() -> None:
    async def main() -> None:
        world, model = World(), Writer(told())
        flown = desk(world, model)
        flown.fly(*[write(f"f{n}", n) for n in range(1, 8)])
        await flown.until(lambda s: s.meta.ended)
        (call,) = flown.payloads(ev.ModelCalled)
        assert (call.purpose, call.goal) == ("background reflect", "g1")
        assert flown.state.tokens == call.tokens == 15
        assert (flown.state.model, flown.state.context) == ("", ())
        (material,) = [block for block in model.requests[0].messages[0].content if "material" in block.text]
        assert "write f1: ok" in material.text
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_a_job_that_hangs_is_over_after_a_minute_and_the_agent_never_waited() -> None:
    """Cut off, on record, tried again later; the flight went on all the time."""

    async def main() -> None:
        world, model = World(), Writer(*[told()] * 3, takes_s=1e9)
        world.takes_s = 3.0
        flown = desk(world, model)
        flown.fly(*[write(f"f{n}", n) for n in range(1, 41)])
        await flown.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        assert asyncio.get_running_loop().time() < 125
        ends = [one for one in flown.payloads(ev.BackgroundEnded) if one.outcome is JobOutcome.TIMED_OUT]
        assert ends
        assert ends[0].message == "it was not over after 60 s"
        assert flown.state.successes_since_reflection == 40
        assert (flown.state.consecutive_errors, flown.state.failures) == (0, [])
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_stop_and_close_cut_off_what_runs_and_record_it() -> None:
    async def main() -> None:
        world, model = World(), Writer(*[told()] * 3, takes_s=1e9)
        world.takes_s = 1.0
        flown = desk(world, model)
        flown.fly(*[write(f"f{n}", n) for n in range(1, 41)])
        await flown.until(lambda s: s.meta.doing(MetaTask.REFLECT))
        flown.do(cmd.Stop)
        await flown.until(lambda s: not s.meta.running)
        assert flown.state.meta.ended[-1].message == "the agent was stopped"
        flown.do(cmd.Run)
        for _ in range(3):
            await flown.until(lambda s, n=flown.state.actions: s.actions > n)
        await flown.until(lambda s: s.meta.doing(MetaTask.REFLECT))
        job = flown.state.meta.running[-1]
        flown.do(cmd.CancelBackground, job=job.id)
        await flown.until(lambda s: s.meta.doing(MetaTask.REFLECT) is None)
        assert flown.state.meta.ended[-1].message == "the operator cut it off"
        await flown.until(lambda s: s.meta.doing(MetaTask.REFLECT))
        await flown.close()
        assert flown.state.meta.running == ()
        assert flown.state.meta.ended[-1].outcome is JobOutcome.CANCELLED
        assert flown.runner is not None
        assert (flown.runner.free, flown.runner._jobs) == (10, {})
        assert len(asyncio.all_tasks()) == 1
        await flown.replays()

    in_virtual_time(main())


def test_stop_during_the_wait_for_a_retry_ends_it_at_once() -> None:
    """No further attempt, and nothing is waited for any more."""

    async def main() -> None:
        world = World()
        world.answers = lambda _n, _c, _a: bad("network is down")
        flown = desk(world)
        flown.fly(write("f1"))
        await flown.until(lambda s: s.retry is not None or s.intervention is not None)
        if flown.state.retry is None:
            flown.do(cmd.HandBack)
        tried, then = world.calls, asyncio.get_running_loop().time()
        flown.do(cmd.Stop)
        await flown.until(lambda s: s.action is None)
        assert asyncio.get_running_loop().time() - then < 0.1
        await asyncio.sleep(100)
        assert world.calls == tried
        assert flown.state.run is RunState.STOPPED
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_a_cut_off_call_is_over_in_the_record() -> None:
    """A tool call that is cancelled is in no progress any more."""

    async def main() -> None:
        world = World()
        world.takes_s = 50.0
        flown = desk(world)
        flown.fly(write("f1"))
        await flown.until(lambda s: s.acting)
        flown.do(cmd.Stop)
        await flown.until(lambda s: not s.acting)
        assert [one.action for one in flown.payloads(ev.ActionCancelled)] == ["a1"]
        assert flown.state.action is None
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_forced_work_begins_while_the_agent_is_paused_before_a_sub_goal_or_has_nothing_to_do() -> None:
    async def main() -> None:
        world = World()
        world.takes_s = 1.0
        world.plans = [[write("f1"), achieve("the rest", 2)], [write("f2")]]
        flown = desk(world)
        flown.fly()
        await flown.until(lambda s: s.acting)
        flown.do(cmd.Pause)
        await flown.until(lambda s: not s.acting)
        flown.do(cmd.ForceMeta, task="reflect")
        await flown.until(lambda s: s.meta.cycle == 1)
        flown.do(cmd.Run)
        await flown.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        flown.do(cmd.ForceMeta, task="adapt")
        await flown.until(lambda s: s.meta.ended[-1].job.task is MetaTask.ADAPT and s.meta.counts is None)
        assert flown.payloads(ev.ThresholdsAdapted)
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


def test_forced_work_begins_while_the_thinker_is_to_be_asked_again_later() -> None:
    async def main() -> None:
        world = World()
        world.troubles = [ThinkingError(FailureKind.RATE_LIMIT_ERROR, "too fast", 50.0)]
        flown = desk(world)
        flown.fly(write("f1"))
        await flown.until(lambda s: s.retry is not None)
        flown.do(cmd.ForceMeta, task="reflect")
        await flown.until(lambda s: s.meta.cycle == 1)
        assert len(world.asked) == 1
        await flown.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        await flown.close()
        await flown.replays()

    in_virtual_time(main())


@pytest.mark.parametrize("seed", range(6))
def test_flights_with_failures_and_commands_at_any_moment_replay(seed: int) -> None:
    dice = random.Random(seed)

    def plan() -> list[PlanStep]:
        steps = [write(f"f{dice.randrange(9)}", n) for n in range(1, dice.randrange(3, 12))]
        return [*steps, achieve(f"more {dice.random()}", 99)] if dice.random() < 0.3 else steps

    async def main() -> None:
        world = World()
        world.takes_s = dice.choice((0.0, 0.1, 0.7))
        world.answers = lambda n, _c, _a: bad("network is down") if dice.random() < 0.15 else good()
        world.next_plan = plan
        world.trouble = lambda: (
            ThinkingError(FailureKind.RATE_LIMIT_ERROR, "too fast", 3.0) if dice.random() < 0.15 else None
        )
        model = Writer(takes_s=dice.choice((0.0, 0.4, 3.0, 1e9)))
        model.next_answer = lambda: told(plan_anew=dice.random() < 0.5)
        flown = desk(world, model, deadline_s=dice.choice((2.0, 60.0)))
        flown.world.plans = [[write("f1")]]
        flown.fly()
        tasks = ("reflect", "adapt")
        turns: list[tuple[type[cmd.Command], Callable[[], dict[str, Any]]]] = [
            (cmd.ForceMeta, lambda: {"task": dice.choice(tasks)}),
            (cmd.Guide, lambda: {"text": f"mind {dice.random()}"}),
            (cmd.VetoMeta, lambda: {"task": dice.choice(tasks), "lifted": dice.random() < 0.5}),
            (cmd.SetThresholds, lambda: {"reflection": dice.randrange(1, 9)}),
            (cmd.CancelBackground, lambda: {"job": f"bg{dice.randrange(1, 30)}"}),
            (cmd.Pause, dict), (cmd.Step, dict), *((cmd.Run, dict) for _ in range(6)),
            (cmd.Stop, dict), (cmd.HandBack, dict), (cmd.HandBack, dict), (cmd.Thaw, dict),
            (cmd.Stop, lambda: {"grade": dice.choice(("after", "hold", "cut", "cancel", "freeze"))}),
            (cmd.AdoptGoal, lambda: {"text": f"goal {dice.random()}", "priority": dice.randrange(3)}),
        ]  # fmt: skip
        for _ in range(120):
            kind, fields = dice.choice(turns)
            flown.agent.handle(kind(**fields()), "operator:test")
            for _ in range(dice.randrange(5)):
                await asyncio.sleep(0)
            await asyncio.sleep(dice.choice((0.0, 0.05, 0.3, 2.0)))
            assert not flown.agent.fault, flown.agent.fault
        await flown.close()
        await flown.replays()
        assert flown.state.meta.loop > 20

    in_virtual_time(main())


def test_what_a_stop_ends_stays_ended_although_the_agent_runs_again_at_once() -> None:
    async def main() -> None:
        world = World()
        flown = desk(world)
        flown.fly(write("f1"))
        await flown.until(lambda s: world.asked)
        flown.do(cmd.Stop)
        await asyncio.sleep(0.01)
        flown.do(cmd.Run)
        await flown.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
        assert len(world.asked) == 2
        await flown.close()
        await flown.replays()

    in_virtual_time(main())
