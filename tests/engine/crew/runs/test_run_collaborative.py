"""Several views at once and their synthesis, as runs of the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crew_desk import SmallDesk, returns, scene, spec

from engine.core.agents import VIEWS
from engine.crew.ontology.kinds import ErrorCode
from tests.messages_server import Reply, failure, object_call
from tests.messages_server.server import Seen

HATS = ("white", "red", "black", "yellow", "green", "blue")
ALL = "white, red, black, yellow, green and blue all say: go."


def hats() -> Any:
    subs = [
        {
            "id": hat,
            "role": f"the {hat} hat",
            "instructions": f"You wear the {hat} hat.",
            "required": hat in ("white", "black"),
        }
        for hat in HATS
    ]
    return spec("six-hats", "collaborative", sub_agents=subs, quorum=4, model={"thinking": "off"})


def wearer(seen: Seen) -> str:
    """The hat that asks; empty for the synthesis."""
    told = json.dumps(seen.body["system"])
    return next((hat for hat in HATS if f"You wear the {hat} hat" in told), "")


async def test_six_hats_see_nothing_of_each_other_and_the_synthesis_sees_all(tmp_path: Path) -> None:
    def answer(seen: Seen) -> Reply:
        hat = wearer(seen)
        return returns(f"SECRET-{hat}") if hat else returns(ALL, confidence=0.9)

    async with scene(tmp_path, SmallDesk(hats(), permits=2), answer) as on:
        result = await on.hand(hats())
        assert (result.success, result.output, result.confidence) == (True, ALL, 0.9)
        assert result.missing == ()
        views = [seen for seen in on.server.requests if wearer(seen)]
        assert len(views) == 6
        assert not any("SECRET-" in seen.said() for seen in views)
        last = on.told(6)
        assert all(f"SECRET-{hat}" in last for hat in HATS)
        assert on.desk.most_at_once == 2
        assert (await on.state("white-1")).config.parent == "six-hats-1"


async def test_one_optional_hat_fails_and_it_is_named_and_counted(tmp_path: Path) -> None:
    """Line 37: success, 5/6 confidence factor, missing named."""
    told: list[str] = []

    def answer(seen: Seen) -> Reply:
        hat = wearer(seen)
        if hat == "green":
            return object_call("give_up", reason="no idea")
        if hat:
            return returns(f"{hat} says go")
        told.append(seen.said())
        named = "white, red, black, yellow, blue" + (", and green is missing" if len(told) > 1 else "")
        return returns(named, confidence=0.9)

    async with scene(tmp_path, SmallDesk(hats()), answer) as on:
        result = await on.hand(hats())
        assert result.success
        assert result.missing == ("green",)
        assert round(result.confidence, 9) == round(0.9 * 5 / 6, 9)
        assert "name green as missing" in told[1]
        assert "name the view white" not in told[1]


async def test_without_a_required_hat_there_is_no_quorum_and_no_synthesis(tmp_path: Path) -> None:
    """Line 37: without white: QUORUM."""

    def answer(seen: Seen) -> Reply:
        hat = wearer(seen)
        return object_call("give_up", reason="no facts") if hat == "white" else returns(f"{hat} says go")

    async with scene(tmp_path, SmallDesk(hats()), answer) as on:
        result = await on.hand(hats())
        assert (result.success, result.error_code) == (False, ErrorCode.QUORUM)
        assert result.missing == ("white",)
        assert "black says go" in result.output
        assert "white is required" in str(result.error)
        assert len(on.server.requests) == 6


async def test_a_synthesis_that_fails_leaves_the_views_joined(tmp_path: Path) -> None:
    def answer(seen: Seen) -> Reply:
        hat = wearer(seen)
        return returns(f"{hat} says go") if hat else object_call("give_up", reason="too hard")

    async with scene(tmp_path, SmallDesk(hats()), answer) as on:
        result = await on.hand(hats())
        assert (result.success, result.partial) == (True, True)
        assert all(f"{hat} says go" in result.output for hat in HATS)
        assert result.confidence == 0.0
        assert any("too hard" in line for line in result.warnings)


async def test_without_a_model_nothing_is_made_up(tmp_path: Path) -> None:
    async with scene(tmp_path, SmallDesk(hats())) as on:
        result = await on.hand(hats())
        assert (result.success, result.error_code, result.output) == (False, ErrorCode.NO_MODEL, "")


async def test_a_delegation_waits_for_its_child_and_holds_no_leave_meanwhile(tmp_path: Path) -> None:
    """Line 9, with the leave of one call: three levels finish."""
    deep = spec("deep", "operator")
    middle = spec("middle", "operator", handoff={"routing": {"can_delegate_to": ["deep"]}})
    top = spec("top", "operator", handoff={"routing": {"can_delegate_to": ["middle"]}})

    def answer(seen: Seen) -> Reply:
        offered = {tool["name"]: tool for tool in seen.body["tools"]}
        if "delegate" in offered and "of the deep" not in seen.said():
            (to,) = offered["delegate"]["input_schema"]["properties"]["to"]["enum"]
            return object_call("delegate", to=to, task="find it out")
        return returns("it is of the deep")

    async with scene(tmp_path, SmallDesk(deep, middle, top, permits=1), answer) as on:
        assert (await on.hand(top)).output == "it is of the deep"
        assert on.desk.most_at_once == 1
        assert len(on.server.requests) == 5


async def test_a_child_that_fails_is_told_and_the_caller_goes_on(tmp_path: Path) -> None:
    child = spec("child", "operator")
    top = spec("top", "operator", handoff={"routing": {"can_delegate_to": ["child"]}})

    def answer(seen: Seen) -> Reply:
        if "You are Child" in seen.said():
            return failure(400, "invalid_request_error", "broken")
        if "child: " in seen.said():
            return returns("without the child")
        return object_call("delegate", to="child", task="do it")

    async with scene(tmp_path, SmallDesk(child, top), answer) as on:
        result = await on.hand(top)
        assert (result.success, result.output) == (True, "without the child")
        assert VIEWS not in (await on.state("top-1")).beliefs
