"""Deployments: what parses is shown, approved and done; the rest is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import commands as cmd
from engine.core.campaigns import StartJob
from engine.core.improvement import JobRecord, JobStatus
from engine.improve.deployment import DeployError, parse_deployment
from tests.engine.agent.engine_flight import Flight
from tests.engine.improve.agents_flight import desk_flight

DIRECTIVE = "create 2 agents that list the files, run them, delete them"


@pytest.mark.parametrize(
    ("directive", "agents", "run", "delete"),
    [
        (DIRECTIVE, 2, True, True),
        ("Create three agents that list the files and count the lines, then run them.", 3, True, False),
        ("make one bdi_agent agent to write 'run them, delete them' to notes.txt", 1, False, False),
        ("create a agent that runs the tests; create 2 agents that list the files; run them", 3, True, False),
    ],
)
def test_a_directive_that_parses(directive: str, agents: int, run: bool, delete: bool) -> None:
    read = parse_deployment(directive)
    assert (len(read.agents), read.run, read.delete) == (agents, run, delete)


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        ("", "1 to 16 agents"),
        ("solve world hunger", "“solve world hunger” is no step"),
        ("run them", "“run them” is no step"),
        ("create 999999999999 agents that list the files", "1 to 16 agents"),
        ("create 2 agents that list the files, delete them, run them", "“run them” is no step"),
        ("create an agent named to that lists the files", "cannot be an agent's id"),
        ("create 2 agents that list the files" + ", run them" * 900, "at most"),
    ],
)
def test_a_directive_that_does_not_parse_is_named(directive: str, message: str) -> None:
    with pytest.raises(DeployError, match=message):
        parse_deployment(directive)


async def job(flight: Flight, directive: str, **options: object) -> JobRecord:
    mastermind = await flight.engine.mastermind()
    asked = StartJob(verb="deploy", argument=directive, options=options)
    receipt = await flight.engine.submit(asked)
    assert receipt.ok, receipt.message
    return await mastermind.wait(receipt.data["job"])


async def test_it_shows_its_steps_before_it_does_them(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, _):
        shown = await job(flight, DIRECTIVE)
        assert shown.status is JobStatus.NEEDS_OPERATOR
        assert len(shown.answer["steps"]) == 6
        assert "goal: list the files" in shown.message
        assert flight.engine.agents == ()
        wrong = await job(flight, DIRECTIVE, approved="0" * 16)
        assert "others than those approved" in wrong.message
        done = await job(flight, DIRECTIVE, approved=shown.answer["approve"])
        assert done.status is JobStatus.DONE, done.message
        assert done.answer["agents"] == {"worker-1": "done", "worker-2": "done"}
        assert flight.engine.agents == ()


async def test_an_agent_that_needs_the_operator_is_not_deleted(tmp_path: Path) -> None:
    directive = "create an agent that reads nowhere.txt, run it, delete it"
    async with desk_flight(tmp_path) as (flight, _):
        shown = await job(flight, directive)
        held = await job(flight, directive, approved=shown.answer["approve"])
        assert held.status is JobStatus.NEEDS_OPERATOR
        assert "worker-1: needs you; it is not deleted" in held.message
        assert flight.engine.agents == ("worker-1",)
        await flight.do(cmd.Stop, agent="worker-1")
