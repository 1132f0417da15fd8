"""Agents that work for others."""

from __future__ import annotations

from engine_flight import Flight

from engine.core import commands as cmd


async def test_a_family_is_an_agent_and_all_that_work_for_it_also_after_reopening(flight: Flight) -> None:
    for child, parent in (("zulu", "pilot"), ("alpha", "zulu"), ("lonely", "")):
        await flight.do(cmd.CreateAgent, agent=child, config={"parent": parent} if parent else {})
    for _ in range(2):
        assert flight.engine.family("pilot") == ("pilot", "zulu", "alpha")
        assert flight.engine.family("zulu") == ("zulu", "alpha")
        assert flight.engine.family("lonely") == ("lonely",)
        await flight.reopen()


async def test_a_parent_must_be_there(flight: Flight) -> None:
    receipt = await flight.engine.submit(cmd.CreateAgent(agent="orphan", config={"parent": "nobody"}))
    assert not receipt.ok
    assert "its parent: there is no agent 'nobody'" in receipt.message
