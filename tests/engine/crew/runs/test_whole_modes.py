"""Several agents together over a whole engine: lines 21 to 25 of the checklist (ontology spec §6)."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from crew_desk import returns, spec
from whole_crew import CLEAR, asker, by_name, told, whole

from engine.core import crew_commands as cc
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from engine.crew.ontology.spec import AgentSpec
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

D = HandoffState
GIVES_UP = object_call("give_up", reason="no idea")
DEMANDING = {"quality_criteria": [{"check": "min_items", "field": "key_findings", "n": 1}]}


def crowd(*ids: str) -> list[AgentSpec]:
    return [spec(one, "operator") for one in ids]


def together(*to: str, **more: Any) -> cc.Parallel:
    return cc.Parallel(to=to, task="weigh it", clarity=CLEAR, **more)


async def test_the_second_is_told_what_the_first_found_and_the_third_never_begins(tmp_path: Path) -> None:
    """Line 21, in the prompts."""
    says = {"A": returns("text of a", key_findings=["a found SLOWNESS"]), "B": GIVES_UP, "C": returns("c")}
    async with whole(tmp_path / "ws", crowd("a", "b", "c"), by_name(says)) as on:
        results = await on.results(await on.do(cc.Sequence(to=("a", "b", "c"), task="go", clarity=CLEAR)))
        assert "a found SLOWNESS" in told(on.asks("B")[0])
        assert [one.state for one in results] == [D.COMPLETED, D.FAILED, D.CANCELLED]
        assert (results[2].error, on.asks("C")) == ("not started", [])


async def test_order_is_kept_under_random_delays_and_half_are_enough(tmp_path: Path) -> None:
    """Line 22, with answers that come at random: two of three, then one, which is kept."""
    chance, fails = Random(9), {"B"}

    def answer(seen: Seen) -> Reply:
        name, late = asker(seen), chance.randrange(40)
        if name in fails:
            return GIVES_UP
        if name == "Synthesizer":
            return returns("[a] and [c] say so; b is missing.")
        said = returns(f"text of {name}")
        return Reply(tool=said.tool, tool_input=said.tool_input, first_byte_delay_ms=late)

    async with whole(tmp_path / "ws", crowd("a", "b", "c"), answer) as on:
        for order in (("a", "b", "c"), ("c", "a", "b")):
            results = await on.results(await on.do(together(*order)))
            assert [one.from_agent for one in results] == list(order)
            assert [one.output for one in results if one.success] == [
                f"text of {one.upper()}" for one in order if one != "b"
            ]
        fails |= {"A"}
        group = await on.do(together("a", "b", "c"))
        results = await on.results(group)
        record = on.crew.state.groups[group.data["group"]]
        assert (record.ok, record.code) == (False, ErrorCode.QUORUM)
        assert [one.output for one in results if one.success] == ["text of C"]
        await on.at_rest()


async def test_the_synthesis_names_all(tmp_path: Path) -> None:
    """Line 23, with the shipped synthesizer."""
    says = {
        "A": returns("go"),
        "B": returns("go too"),
        "C": GIVES_UP,
        "Synthesizer": lambda _: returns("[a] says go."),
    }
    async with whole(tmp_path / "ws", crowd("a", "b", "c"), by_name(says)) as on:
        group = await on.do(together("a", "b", "c"))
        await on.results(group)
        record = on.crew.state.groups[group.data["group"]]
        assert record.output == "[a] says go.\n\nNot named above: b, c (gave nothing)."
        (asked,) = on.asks("Synthesizer")
        assert "go too" in told(asked)


def chooses(name: str, **more: Any) -> AgentSpec:
    return spec(name, "operator", triggers={"keywords": ["pyramid"]}, **more)


async def test_the_graph_selects_and_only_who_cannot_begin_is_followed_by_the_next(tmp_path: Path) -> None:
    """Line 24, by the embedded graph: a tool that is away falls back, a poor result does not."""

    def chain(weight: float) -> dict[str, Any]:
        return {"chaining": {"follows": [{"id": "first", "weight": weight}]}}

    away = {"tools": {"mcp_servers": [{"server": "search", "required": True}]}}
    specs = [
        *crowd("first"), chooses("away", **chain(1.0), **away),
        chooses("strict", **chain(0.8), instructions=DEMANDING), chooses("near", **chain(0.2)),
    ]  # fmt: skip
    says = {name: returns(f"text of {name}") for name in ("First", "Near", "Strict")}

    async with whole(tmp_path / "ws", specs, by_name(says)) as on:
        await on.result(await on.hand("first"))
        group = await on.do(cc.Select(task="Build a pyramid", clarity=CLEAR))
        (result,) = await on.results(group)
        assert (result.from_agent, result.error_code) == ("strict", ErrorCode.QUALITY_GATE)
        lost = on.crew.state.groups[group.data["group"]].lost
        assert "could not begin" in lost["away"]
        assert [one.state for one in on.by("away")] == [D.REJECTED]
        assert on.asks("Near") == []
