"""Agents of four kinds in one crew: recipes, a model, AgentSpeak(L), and another program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from crew_desk import spec
from whole_crew import Answer, Whole, asker, told, whole

from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.crew.ontology.kinds import ErrorCode, InvalidError
from engine.crew.ontology.spec import AgentSpec
from tests.engine.agent.other_programs.acp_flight import program
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

ROBOT = """
+!task(T) <- .concat("robot: ", T, Asked); delegate("clerk", "pass 'the parts' on", A);
    .concat("robot heard <", A, ">", Said); +result(Said).
"""
RECIPE = """
[[recipe]]
name = "pass-on"
says = ["pass {text:quoted} on"]
summary = "Hand it to the program."
example = "pass 'a' on"

[[recipe.steps]]
tool = "crew"
command = "delegate"
args = { to = "dev", task = "look at {text}" }
"""
LINE = (("lead", "robot", ""), ("robot", "clerk", "rob"), ("clerk", "dev", "pat"), ("dev", "critic", "deva"))


def members(**deeds: str) -> list[AgentSpec]:
    """The crew: each may hand work to the next."""
    every = [*LINE, ("critic", "", "")]
    return [
        spec(
            name,
            "operator",
            done_by=by,
            handoff={
                "routing": {"can_delegate_to": [to] if to else []},
                "receives": {"requires_what": False, "min_clarity": 0.0},
            },
        )
        for name, to, by in every
    ]


async def create(on: Whole, place: Path, deed: str = "hands critic", **config: Any) -> None:
    """The agents that do the work of members."""
    await on.do(cmd.CreateAgent(agent="rob", agent_type="asl_agent", config={"program": ROBOT}))
    await on.do(cmd.CreateAgent(agent="pat", agent_type="bdi_agent", config={"thinker": "procedural"}))
    command = f"{program(place)} {deed}"
    await on.do(cmd.CreateAgent(agent="deva", agent_type="acp_agent", config={"command": command, **config}))


def member(name: str, by: str) -> cc.RegisterAgent:
    return cc.RegisterAgent(spec=spec(name, "operator", done_by=by).model_dump(mode="json"))


def says(seen: Seen) -> Reply:
    """The lead hands on and returns what came; the critic has the last word."""
    if asker(seen) == "Critic":
        return object_call("return_result", output="critic: sound")
    if "robot heard" in told(seen):
        return object_call("return_result", output="lead: the robot answered")
    return object_call("delegate", to="robot", task="build it")


@asynccontextmanager
async def crew(
    tmp_path: Path,
    answer: Answer = says,
    deed: str = "hands critic",
    specs: list[AgentSpec] | None = None,
    **config: Any,
) -> AsyncIterator[Whole]:
    """The crew of four kinds, open; its journal replays in the end, without the program."""
    workspace = tmp_path / "ws"
    (workspace / "recipes").mkdir(parents=True)
    (workspace / "recipes/pass.toml").write_text(RECIPE)
    async with whole(workspace, specs or members(), answer) as on:
        await create(on, tmp_path, deed, **config)
        yield on


async def test_each_kind_hands_work_to_another_and_gets_its_result(tmp_path: Path) -> None:
    async with crew(tmp_path) as on:
        result = await on.result(await on.hand("lead", "build it"))
        assert (result.success, result.output) == (True, "lead: the robot answered")
        line = {name: on.by(name)[0] for name, *_ in LINE}
        assert on.by("critic")[0].context.lineage == ("lead", "robot", "clerk", "dev")
        heard = {name: one.result.output for name, one in line.items() if one.result is not None}
        assert heard["dev"] == "it said: critic: sound"
        assert heard["clerk"] == "it said: critic: sound"
        assert heard["robot"] == "robot heard <it said: critic: sound>"
        await on.at_rest()
        runs = [on.run(one.run) for one in line.values()]
        assert [run.agent_type for run in runs] == ["operator", "asl_agent", "bdi_agent", "acp_agent"]
        assert all(run.handed_back for run in runs)


async def test_a_program_is_told_whom_it_cannot_hand_work_to(tmp_path: Path) -> None:
    async with crew(tmp_path, deed="hands critic nobody") as on:
        result = await on.result(await on.hand("dev", "look"))
        assert result.output.startswith("it said: critic: sound | ")
        assert "nobody" in result.output.partition(" | ")[2]
        await on.at_rest()


async def test_a_budget_and_a_stop_reach_another_program(tmp_path: Path) -> None:
    async with crew(tmp_path, budget={"actions": 1}) as on:
        name = await on.hand("dev", "look")
        await on.holds(lambda: on.of(name).run and on.run(on.of(name).run).held_by is not None)
        assert not on.by("critic"), "the turn was its one action"
        await on.do(cc.CancelHandoff(handoff=name, reason="enough"))
        assert (await on.result(name)).error_code is ErrorCode.CANCELLED
        await on.at_rest()


async def test_what_is_missing_is_said(tmp_path: Path) -> None:
    async with crew(tmp_path) as on:
        await on.do(member("ghost", "nobody"))
        result = await on.result(await on.hand("ghost", "look"))
        assert result.error_code is ErrorCode.TOOL_UNAVAILABLE
        assert "the agent nobody, which is not here; create it first" in str(result.error)
        config = {"command": "no-such-agent acp"}
        await on.do(cmd.CreateAgent(agent="gone", agent_type="acp_agent", config=config))
        await on.do(member("lost", "gone"))
        result = await on.result(await on.hand("lost", "look"))
        assert "there is no program 'no-such-agent' on PATH; install it" in str(result.error)
    with pytest.raises(InvalidError, match="only an operator agent has one"):
        spec("x", "role", done_by="dev")


def argue(seen: Seen) -> Reply:
    """What the judge and the other side of the debate say."""
    if asker(seen) == "Judge":
        verdict = {"winner": "A", "confidence": 0.8, "decisive_claim_ids": ["A1"], "reasons": {"x": "y"}}
        return object_call("return_result", output="judged", data=verdict)
    if asker(seen) == "Side B":
        answers = [{"claim": "A1", "kind": "refute", "text": "by nobody"}]
        turn: dict[str, Any] = {"claims": [{"text": "it is dear", "evidence": []}]}
        if "Round 1" in told(seen):
            turn = {"restated": "A measured", "replies": answers, "claims": []}
        return object_call("return_result", output="my turn", data=turn)
    return object_call("return_result", output="A has it")


def council() -> AgentSpec:
    """A debate with `dev` on one side."""
    sides = [
        {"label": "A", "agent_id": "dev", "stance": "for it"},
        {"label": "B", "agent_id": "critic", "stance": "against it"},
    ]
    return spec("council", "collaborative", debate={"sides": sides, "rounds": 1, "evidence": "off"})


async def test_a_debate_with_another_program_on_one_side(tmp_path: Path) -> None:
    async with crew(tmp_path, argue, "argues", [*members(), council()]) as on:
        result = await on.result(await on.hand("council", "we buy it"))
        assert result.success, result.error
        turns = [on.run(one.run).agent_type for one in on.by("side-a")]
        assert turns == ["acp_agent", "acp_agent"]
        assert result.data["verdict"]["winner"] == "A"
        await on.at_rest()
