"""Metacognition in the whole engine: with its memory and keeper, its commands, its model and its ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.agent.agent import Agent
from engine.agent.model_calls import BudgetClient
from engine.agent.recorder import AgentRecorder
from engine.agent.shared import EngineConfig
from engine.agent.steering.ledger import Ledger
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.journal import GENESIS
from engine.core.metacognition import JobOutcome, MetaSettings, MetaTask
from engine.core.streams import StreamLog
from engine.memory.metacognition.runner import BackgroundRunner
from engine.memory.metacognition.schedule import MetaSettingsError, read_metacognition
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.agent.engine_flight import (
    Flight,
    QuickClock,
    act,
    journal_holds_together,
    live_state_is_the_fold,
)
from tests.engine.memory.metacognition.meta_desk import MetaDesk, World, Writer, write
from tests.engine.memory.metacognition.virtual_time import LoopClock, in_virtual_time
from tests.messages_server import MessagesServer, Reply, object_call, plan_call

MODEL = "claude-opus-4-6"


@pytest.fixture
async def flight(tmp_path: Path) -> AsyncIterator[Flight]:
    made = Flight(tmp_path, QuickClock())
    await made.open()
    await made.do(cmd.CreateAgent)
    yield made
    await live_state_is_the_fold(made, "pilot")
    await made.engine.close()
    await journal_holds_together(tmp_path)


async def test_an_agent_of_the_plan_library_remembers_reflects_and_consolidates_as_it_goes(
    flight: Flight,
) -> None:
    """After twelve successes one consolidation over at most ten sources, from what it did."""
    await flight.plan(*[act("write", path=f"f{n}.txt", content="x") for n in range(13)])
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    state = await flight.until(lambda s: s.meta.cycle >= 1 and not s.meta.running and s.meta.counts is None)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    begun = await flight.payloads(ev.BackgroundStarted)
    assert [one.task for one in begun].count(MetaTask.CONSOLIDATE) <= 2
    assert {one.goal for one in begun} == {"g1"}
    reflected = next(one for one in state.meta.ended if one.job.task is MetaTask.REFLECT)
    assert reflected.message.startswith("summary: 0 of the last ")
    found = await flight.engine.recall("query", {"memory_type": "reflection"})
    assert len(found) >= 1
    assert found[0].memory.source == "computed"
    assert state.meta.feedback == (), "a plan library reads no feedback"
    assert state.consecutive_errors == 0


async def test_commands_force_veto_and_say_what_is_not_possible(flight: Flight) -> None:
    assert "needs a goal" in await flight.refused(cmd.ForceMeta, task="consolidate")
    await flight.do(cmd.ForceMeta, task="reflect")
    await flight.until(lambda s: s.meta.cycle == 1)
    assert "no thinker that reads guidance" in await flight.refused(cmd.Guide, text="hurry")
    assert "running: none" in await flight.refused(cmd.CancelBackground, job="bg9")
    assert "which threshold" in await flight.refused(cmd.SetThresholds)
    await flight.do(cmd.VetoMeta, task="link")
    assert (await flight.state()).meta.vetoed == (MetaTask.LINK,)
    receipt = await flight.do(cmd.VetoMeta, task="link", lifted=True)
    assert receipt.message == "link may be begun by itself again"
    await flight.do(cmd.Stop)
    assert "stopped" in await flight.refused(cmd.ForceMeta, task="reflect")
    await flight.do(cmd.Run)


async def test_settings_stand_in_the_configuration_and_survive_a_session(tmp_path: Path) -> None:
    """Settings and counters come back as they were."""
    flown = Flight(tmp_path, QuickClock())
    await flown.open()
    wrong = {"metacognition": {"reflection_treshold": 3}}
    assert "reflection_treshold" in await flown.refused(cmd.CreateAgent, config=wrong)
    chosen = {"preset": "long", "reflection_threshold": 99, "adapt_every": 5}
    await flown.do(cmd.CreateAgent, config={"metacognition": chosen})
    await flown.plan(*[act("write", path=f"f{n}", content="x") for n in range(4)])
    await flown.do(cmd.Run)
    before = await flown.until(lambda s: not s.open_goals)
    assert before.meta.reflection_threshold == 30
    await flown.reopen()
    after = await flown.state()
    assert (after.meta.loop, after.meta.window) == (4, before.meta.window)
    assert after.meta.settings == read_metacognition({"metacognition": chosen})
    await flown.engine.close()
    await journal_holds_together(tmp_path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "it is a JSON object"),
        ({"enabled": "yes"}, "metacognition.enabled"),
        ({"preset": "huge"}, "metacognition.preset"),
        ({"link_every": 0}, "metacognition.link_every"),
        ({"sleep": 3}, "metacognition.sleep"),
    ],
)
def test_wrong_settings_are_named(given: object, said: str) -> None:
    with pytest.raises(MetaSettingsError, match=said):
        read_metacognition({"metacognition": given})


async def test_guidance_and_what_a_model_found_stand_in_one_prompt_over_real_sockets(tmp_path: Path) -> None:
    """The operator's words and the reflection's are in the next prompt, exactly once."""

    def plan(name: str) -> Reply:
        params = {"tool_id": "simple_coder", "command": "write", "args": {"path": name, "content": "x"}}
        return plan_call({"type": "EXECUTE_TOOL", "id": "one", "description": name, "params": params})

    found = {"findings": "The notes are thin.", "advice": "Write longer notes.", "plan_anew": False}
    script = [plan("a"), object_call("reflection", **found), plan("b"), plan("c")]
    async with MessagesServer(script) as server:
        choice = ModelChoice(Endpoint(server.url, "key"), MODEL, retries=Retries(attempts=1))
        flown = Flight(tmp_path, QuickClock(), EngineConfig(model=choice))
        await flown.open()
        await flown.do(cmd.CreateAgent, config={"metacognition": {"model": True}})
        await flown.do(cmd.Run)
        for number, text in enumerate(("first", "second", "third"), 1):
            await flown.do(cmd.AdoptGoal, text=text)
            state = await flown.until(lambda s, n=number: s.goals[f"g{n}"].status is GoalStatus.ACHIEVED)
            if number == 1:
                await flown.do(cmd.ForceMeta, task="reflect")
                await flown.until(lambda s: s.meta.findings)
                await flown.do(cmd.Guide, text="Mind the \x1b[31mgap.")
        prompts = [json.dumps(one.body["messages"]) for one in server.requests]
        assert "the agent's record" in prompts[1]
        assert [prompt.count("Write longer notes.") for prompt in prompts] == [0, 0, 1, 0]
        assert ["The operator says" in prompt for prompt in prompts] == [False, False, True, False]
        assert "\\u001b" not in prompts[2]
        assert {one.source for one in state.meta.told} == {"operator", "reflection"}
        assert state.model_calls == 4
        calls = await flown.payloads(ev.ModelCalled)
        assert [one.purpose for one in calls] == ["plan", "background reflect", "plan", "plan"]
        await flown.engine.close()
    await journal_holds_together(tmp_path)


def test_what_ran_when_a_session_was_cut_off_is_told_to_be_lost_and_is_done_again() -> None:
    async def main() -> None:
        world, model = World(), Writer(takes_s=1e9)
        world.takes_s = 1.0
        first = MetaDesk(
            world, runner=BackgroundRunner(), model=BudgetClient(model, Ledger()), model_name="m"
        )
        first.open(MetaSettings(model=True))
        first.fly(*[write(f"f{n}", n) for n in range(1, 30)])
        await first.until(lambda s: s.meta.doing(MetaTask.REFLECT) and s.acting)
        await first.agent.log.commit()
        durable = list(first.events)  # killed here: nothing more is recorded
        assert first.agent._task is not None
        first.agent._task.cancel()
        assert first.runner is not None
        await first.runner.close()

        state = fold(durable)
        clock = LoopClock()
        events = list(durable)

        async def keep(batch: list[object]) -> list[object]:
            events.extend(batch)  # type: ignore[arg-type]
            return batch

        log = StreamLog("pilot", state.version, state.hash, clock, keep)  # type: ignore[arg-type]
        assert state.hash != GENESIS
        agent = Agent(AgentRecorder(state, log), first.agent.around)
        agent.open("second", 2)
        agent.begin_metacognition(MetaSettings(model=True))
        assert state.meta.running == ()
        assert state.meta.ended[-1].outcome is JobOutcome.LOST
        assert state.successes_since_consolidation >= 7
        for command in (cmd.HandBack(), cmd.Run()):
            assert agent.handle(command, "operator:test").ok
        agent.start()
        while state.meta.doing(MetaTask.REFLECT) is None:
            await asyncio.sleep(0.1)
        await agent.close()
        await log.commit()
        replayed = MetaDesk()
        replayed.agent, replayed.events = agent, events
        await replayed.replays()

    in_virtual_time(main())
