"""How long a belief is held, and what stays against a guess; both are in the record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from engine_flight import Flight, QuickClock

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.beliefs import BeliefSource
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.models.model_talk import CLAUDE
from tests.messages_server import MessagesServer, Seen, plan_call


class SetClock(QuickClock):
    """The time of day goes on when the test says so, besides by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = timedelta()

    def now(self) -> str:
        later = datetime.fromisoformat(super().now()) + self.ahead
        return later.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def believed(seen: Seen) -> str:
    """What a request says of the agent's beliefs."""
    blocks = [block["text"] for block in seen.body["messages"][0]["content"]]
    (told,) = [text for text in blocks if "what the agent believes" in text]
    return str(told)


def mind(command: str, **args: Any) -> dict[str, Any]:
    """A belief operation as a step."""
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "mind", "command": command, "args": args}}


async def test_a_belief_with_a_time_is_gone_from_questions_and_prompts_after_it(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    """Behaviour 21: held for 1 s (here for a minute, by the engine's clock), and gone when 2 have passed."""
    clock, asks = SetClock(), mind("test", key="door")
    opens = mind("add", key="door", value="open", ttl_s=60)
    script = [plan_call(*steps) for steps in ([opens, asks], [opens], [mind("remove", key="end")])]
    async with MessagesServer(script) as server:
        choice = ModelChoice(Endpoint(server.url, "sk-test"), CLAUDE, retries=Retries(attempts=1))
        flight: Flight = await open_flight(tmp_path, clock, EngineConfig(model=choice))
        await flight.do(cmd.AdoptGoal, text="look at the door")
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.goals and not s.open_goals)
        assert state.beliefs["door"].value == "open"
        await flight.do(cmd.AdoptGoal, text="look at the door again")
        await flight.until(lambda s: s.goals and not s.open_goals)
        assert "door = " in believed(server.requests[-1])

        clock.ahead = timedelta(seconds=120)
        await flight.do(cmd.AdoptGoal, text="look at the door a last time")
        state = await flight.until(lambda s: s.goals and not s.open_goals)
        assert "door" not in state.beliefs
        assert "door = " not in believed(server.requests[-1])
    await flight.do(cmd.CallTool, tool="mind", command="test", args={"key": "door"})
    await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    asked = [said.status for said in await flight.payloads(ev.ActionFinished)]
    assert asked[1] is ResultStatus.SUCCESS
    assert asked[-1] is ResultStatus.FAILURE


async def test_a_guess_does_not_replace_what_was_seen_or_told_and_both_are_on_record(flight: Flight) -> None:
    """Behaviour 22: less sure and from a weaker source; where it is surer, or nothing is held, it counts."""
    await flight.do(cmd.Believe, key="sky", value="blue")
    await flight.plan(
        mind("update", key="sky", value="grey", confidence=0.4),
        mind("add", key="sea", value="calm", confidence=0.4),
        mind("update", key="sea", value="rough", confidence=0.3),
        mind("update", key="sky", value="black"),
    )
    for _ in range(3):
        await flight.do(cmd.Step)
    state = await flight.until(lambda s: s.actions == 3 and not s.acting)
    sky, sea = state.beliefs["sky"], state.beliefs["sea"]
    assert (sky.value, sky.confidence, sky.source) == ("blue", 1.0, BeliefSource.OPERATOR)
    assert (sea.value, sea.confidence, sea.source) == ("rough", 0.3, BeliefSource.INFERENCE)
    (weaker,) = await flight.payloads(ev.BeliefOutweighed)
    assert (weaker.key, weaker.value, weaker.confidence) == ("sky", "grey", 0.4)
    added = [(said.key, said.value) for said in await flight.payloads(ev.BeliefAdded)]
    assert added == [("sky", "blue"), ("sea", "calm"), ("sea", "rough")]
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.beliefs["sky"].value == "black"


async def test_a_time_or_confidence_that_is_none_is_refused(flight: Flight) -> None:
    for wrong in ({"ttl_s": 0}, {"ttl_s": 1e12}, {"confidence": 1.5}, {"confidence": -0.1}):
        args = {"key": "sky", "value": "blue", **wrong}
        await flight.do(cmd.CallTool, tool="mind", command="add", args=args)
        await flight.until(lambda s: not s.requests and not s.action)
    assert "sky" not in (await flight.state()).beliefs
    ended = await flight.payloads(ev.ActionFinished)
    assert all("is a number" in said.summary for said in ended)
