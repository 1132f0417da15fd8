"""Each agent under a policy of its own, and agents that this version cannot take up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, QuickClock, act, journal_holds_together

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode
from engine.core.agents import AgentConfig
from engine.core.journal import GENESIS
from engine.core.streams import StreamLog
from engine.sandbox.policy import Network, SandboxPolicy, Tier

NARROW = {"programs": ["echo"], "memory_bytes": 1 << 30, "protected": [".pilothouse", "mine"]}


async def answer(flight: Flight, agent: str, command: str, /, **args: Any) -> ev.ActionFinished:
    """What a tool command of the operator's came to in the agent's session."""
    before = len(await flight.payloads(ev.ActionFinished, agent))
    await flight.do(cmd.CallTool, agent=agent, command=command, args=args)
    await flight.until(lambda s: not s.requests and not s.action, agent)
    said: list[ev.ActionFinished] = await flight.payloads(ev.ActionFinished, agent)
    assert len(said) == before + 1
    return said[-1]


async def test_an_agent_is_held_to_its_own_policy_now_and_after_reopening(flight: Flight) -> None:
    await flight.do(cmd.CreateAgent, agent="narrow", config={"sandbox": NARROW})
    for _ in range(2):
        assert (await answer(flight, "narrow", "run", command="ls")).code is ErrorCode.NOT_ALLOWED
        assert (await answer(flight, "narrow", "run", command="echo a")).result["stdout"] == "a"
        assert (await answer(flight, "narrow", "mkdir", path="mine")).code is ErrorCode.NOT_ALLOWED
        assert (await answer(flight, "pilot", "run", command="ls")).code is None
        told = (await answer(flight, "narrow", "policy")).result
        assert (told["policy"]["memory_bytes"], told["policy"]["programs"]) == (1 << 30, ["echo"])
        assert flight.engine.sandbox("narrow").policy.memory_bytes == 1 << 30
        assert flight.engine.sandbox("pilot").policy == flight.engine.sandbox().policy == SandboxPolicy()
        await flight.reopen()


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        ({"netwrok": "off"}, "no field 'netwrok'; did you mean 'network'?"),
        ({"zzz": 1}, "fields: wall_clock_s"),
        ({"memory_bytes": "1 GiB"}, "memory_bytes is int, not '1 GiB'"),
        ({"memory_bytes": 0}, "more than 0"),
        ({"network": "on"}, "network 'on' is more than the workspace allows"),
        ({"wall_clock_s": 1e9}, "wall_clock_s 1000000000.0 is more"),
        ({"wall_clock_s": float("nan")}, "cannot be recorded"),
        ({"accept_paths": True}, "accept_paths True is more"),
        ({"programs": ["python", "bash"]}, "programs ['python', 'bash'] is more"),
        ({"require": "PATHS"}, "require 'PATHS' is more"),
        ("off", "it is a JSON object"),
    ],
    ids=str,
)
async def test_a_policy_that_is_wrong_or_looser_is_refused_in_words(
    flight: Flight, sandbox: Any, words: str
) -> None:
    assert words in await flight.refused(cmd.CreateAgent, agent="x", config={"sandbox": sandbox})
    assert flight.engine.agents == ("pilot",)


def test_a_workspace_that_grants_less_than_before_narrows_its_agents_too() -> None:
    asked = {"network": "ports", "wall_clock_s": 30}
    SandboxPolicy(network=Network.ON).check_narrowing(asked)
    later = SandboxPolicy(network=Network.OFF, wall_clock_s=10).narrowed(asked)
    assert (later.network, later.wall_clock_s) == (Network.OFF, 10)
    unheld = SandboxPolicy(accept_paths=True)
    assert unheld.narrowed({"require": "FULL"}).lowest is Tier.FULL
    assert unheld.narrowed({"nice": 19}).lowest is Tier.PATHS


async def test_where_a_jail_holds_programs_there_is_nothing_to_accept(flight: Flight) -> None:
    assert "programs run already" in await flight.refused(cmd.AcceptTier, agent="", tier="PATHS")


async def created_elsewhere(engine: Engine, name: str, config: AgentConfig) -> None:
    """An agent as another version of Pilothouse may have made it in this workspace."""
    log = StreamLog(name, 0, GENESIS, QuickClock(), engine.store.commit)
    made = ev.AgentCreated(agent_id=name, agent_type="bdi_agent", config=config)
    log.append(made, actor="operator:ann", causes=(), tick=0)
    await log.commit()


async def test_an_agent_that_cannot_be_taken_up_is_listed_with_the_reason_and_others_go_on(
    tmp_path: Path,
) -> None:
    flight = Flight(tmp_path, QuickClock())
    await flight.open()
    await flight.do(cmd.CreateAgent)
    await created_elsewhere(flight.engine, "oracle", AgentConfig(thinker="delphi"))
    await created_elsewhere(flight.engine, "odd", AgentConfig(meta={"sandbox": {"teleport": True}}))
    await flight.reopen()

    engine = flight.engine
    assert engine.agents == ("pilot", "odd", "oracle")
    assert engine.health.agents == (
        "odd: " + engine.fault("odd"),
        "oracle: there is no thinker 'delphi'; thinkers: procedural, claude",
    )
    assert "no field 'teleport'" in engine.fault("odd")
    assert (await engine.view("oracle")).config.thinker == "delphi"
    assert "oracle cannot be taken up: there is no thinker" in await flight.refused(cmd.Run, agent="oracle")
    assert "exists already" in await flight.refused(cmd.CreateAgent, agent="oracle")
    steps = await flight.plan(act("mkdir", path="made"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps
    await engine.close()
    await journal_holds_together(tmp_path)
