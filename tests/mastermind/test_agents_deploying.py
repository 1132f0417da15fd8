"""Deployments and introspection: what parses is shown, approved and done; the rest is named."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path

import pytest

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core.agents import RunState
from engine.core.improvement import JobStatus
from engine.improve import deployment as deploying
from engine.improve.agent_creation import agent_registry
from engine.improve.agents import AgentService, IntrospectionError, introspect, save_prompt
from engine.improve.deployment import DeployAction, DeployError, Deployment, parse_deployment
from engine.improve.mastermind import Mastermind
from engine.improve.ports import JobRefused, JobRequest, JobResult, Worker
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.mastermind.agents_flight import desk_flight
from tests.messages_server import MessagesServer, Reply, call
from tests.patience import PATIENCE_S

DIRECTIVE = "create 2 agents that make the directory src, run them, delete them"


def steps(said: Deployment) -> list[str]:
    return [f"{one} {group.count} {group.sentence}" for one, group in said.ids(())]


@pytest.mark.parametrize(
    ("directive", "agents", "run", "delete"),
    [
        (DIRECTIVE, 2, True, True),
        ("Create three agents that list the files and count the lines, then run them.", 3, True, False),
        (
            "create an agent named scout that lists the files, run it until it is done and delete it",
            1,
            True,
            True,
        ),
        ("make one bdi_agent agent to write 'run them, delete them' to notes.txt", 1, False, False),
        (
            "create a agent that runs the tests; create 2 agents that list the files; run them all",
            3,
            True,
            False,
        ),
    ],
)
def test_a_directive_that_parses(directive: str, agents: int, run: bool, delete: bool) -> None:
    said = parse_deployment(directive)
    assert (said.count, said.run, said.delete) == (agents, run, delete)
    assert Deployment.from_json(json.loads(json.dumps(said.as_json()))) == said


@pytest.mark.parametrize(
    ("directive", "told"),
    [
        ("", "missing"),
        ("solve world hunger", "“solve world hunger” is no step"),
        ("run them", "“run them” is no step"),
        ("create 0 agents that list the files", "0 agents"),
        ("create 17 agents that list the files", "17 agents"),
        ("create 999999999999 agents that list the files", "999999 agents"),
        ("create 2 agents that list the files, delete them, run them", "“run them” is no step"),
        ("create an agent named to that lists the files", "cannot be an agent's id"),
        ("\x1b[2Jcreate \u202e2 agents", "is no step"),
        ("create 2 agents that list the files" + ", run them" * 900, "at most"),
    ],
)
def test_a_directive_that_does_not_parse_is_named(directive: str, told: str) -> None:
    with pytest.raises(DeployError) as error:
        parse_deployment(directive)
    assert told in str(error.value)
    assert str(error.value).isprintable()


def test_reading_a_directive_takes_no_time_squared() -> None:
    began = time.process_time()
    for text in ("create 2 agents that " + ", and then " * 700, "and " * 1_900, "'" * 7_900):
        with suppress(DeployError):
            parse_deployment(text + " xyz; nonsense; run")
    assert time.process_time() - began < PATIENCE_S


async def deployed(desk: AgentService, directive: str, told: list[str]) -> deploying.DeploymentResult:
    ready = deploying.prepare(desk.host, parse_deployment(directive))

    def tell(_done: int, _of: int, text: str) -> None:
        told.append(text)

    return await deploying.deploy(desk.host, ready, tell)


async def test_a_deployment_creates_runs_and_deletes(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        told: list[str] = []
        came = await deployed(
            desk, "create 2 agents that make the directory 'a b', run them, delete them", told
        )
        steps_told = [words for words in told if words.split()[0] in list(DeployAction)]
        assert [words.split()[0] for words in steps_told] == ["create"] * 2 + ["run"] * 2 + ["delete"] * 2
        assert flight.engine.agents == ()
        assert (flight.sandbox / "a b").is_dir()
        # Both make it, and only for one it is not there yet: what an agent did is told as it was.
        assert {one.status for one in came.outcomes.values()} <= {"done", "failed", "needs you"}
        assert all(one.goals for one in came.outcomes.values())
        assert [row.status for row in await agent_registry(desk.host)] == ["DELETED", "DELETED"]


async def test_an_agent_that_needs_the_operator_is_not_deleted(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        directive = "create an agent that reads nowhere.txt, asking before everything, run it, delete it"
        came = await deployed(desk, directive, [])
        assert came.needs_operator
        assert came.outcomes["worker-1"].status == "needs you"
        assert "it waits for you" in came.message
        assert flight.engine.agents == ("worker-1",)
        await flight.do(cmd.Stop, agent="worker-1")


async def test_a_cancelled_deployment_stops_what_it_set_running(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        sleep = "run `python -c 'import time; time.sleep(600)'`"
        work = asyncio.create_task(deployed(desk, f"create an agent to {sleep}, run it, delete it", []))
        async with asyncio.timeout(PATIENCE_S):
            while "worker-1" not in flight.engine.agents:
                await asyncio.sleep(0.005)
        await flight.until(lambda s: s.acting, "worker-1", patience_s=20)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        state = await flight.state("worker-1")
        assert state.run is RunState.STOPPED
        assert state.stop_receipt is not None
        assert not state.stop_receipt.alive
        assert state.open_goals


class Told:
    """What a job tells."""

    cancelled = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, done: float, of: float, text: str) -> None:
        self.lines.append(text)


async def job(mastermind: Mastermind, verb: str, argument: str, **options: object) -> JobResult:
    worker: Worker = mastermind._workers[verb][0]
    return await worker(JobRequest("j1", argument, options, "operator:ann"), Told())


async def test_as_a_job_it_shows_its_steps_before_it_does_them(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        mastermind = await flight.engine.mastermind()
        directive = "create 2 agents that list the files, run them, delete them"
        shown = await job(mastermind, "deploy", directive)
        assert shown.status is JobStatus.NEEDS_OPERATOR
        assert len(shown.answer["steps"]) == 6
        assert "goal: list the files" in shown.message
        assert flight.engine.agents == ()
        wrong = await job(mastermind, "deploy", directive, approved="0" * 16)
        assert "others than those approved" in wrong.message
        done = await job(mastermind, "deploy", directive, approved=shown.answer["approve"])
        assert done.status is JobStatus.DONE, done.message
        assert json.dumps(dict(done.answer))
        assert [row.status for row in await agent_registry(desk.host)] == ["DELETED", "DELETED"]
        with pytest.raises(JobRefused, match="without a model only such clauses"):
            await job(mastermind, "deploy", "do something about the tests")
        made = await job(mastermind, "agent_create", "bdi_agent pilot list the files")
        assert made.status is JobStatus.DONE
        asks = await job(mastermind, "agent_create", "bdi_agent two write a readme for pilot")
        assert asks.status is JobStatus.NEEDS_OPERATOR
        assert (await job(mastermind, "agent_delete", " pilot ")).status is JobStatus.DONE
        with pytest.raises(JobRefused, match="was deleted before"):
            await job(mastermind, "agent_delete", "pilot")


def model(server: MessagesServer) -> EngineConfig:
    return EngineConfig(
        model=ModelChoice(Endpoint(server.url), "claude-opus-4-6", retries=Retries(attempts=1))
    )


async def test_a_model_reads_what_does_not_parse_and_gives_no_rights(tmp_path: Path) -> None:
    goal = "list the files with a budget of $9 with the network"
    sketch = {"groups": [{"count": 1, "goal": goal}], "run": True, "delete": True}
    answer = call("deployment", sketch)
    async with MessagesServer([answer]) as server, desk_flight(tmp_path, model(server)) as (flight, desk):
        said = await deploying.read_deployment(desk.host, "look around for me")
        ready = deploying.prepare(desk.host, said)
        assert said.origin == "claude-opus-4-6"
        (one,) = ready.agents
        assert (one.goals, one.config) == ((goal,), {})
        assert [step.act for step in ready.steps] == [
            DeployAction.CREATE,
            DeployAction.RUN,
            DeployAction.DELETE,
        ]
        state = (await flight.engine.mastermind()).state
        assert any("was asked" in line.text for line in state.log)


async def test_introspection_without_a_model_says_so_and_computes(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (_, desk):
        await desk.create(desk.understand("bdi_agent pilot asking before everything"))
        found = await introspect(desk.host, "reviewer")
        assert found.prompt == ""
        assert "there is no model" in found.text
        assert "simple_coder read" in found.tools
        mine = await introspect(desk.host, "pilot")
        assert mine.agent == "pilot"
        assert "agent: 0 rules, else ask" in mine.policies["asks"]
        assert mine.policies["network"] == "off"
        assert json.dumps(mine.as_json())
        with pytest.raises(IntrospectionError, match="no prompt to keep"):
            save_prompt(desk.host.workspace, found)
        with pytest.raises(IntrospectionError, match="a role is missing"):
            await introspect(desk.host, " \x1b[2J ")


async def test_introspection_with_a_model_is_shown_and_kept_on_request(tmp_path: Path) -> None:
    words = "I am the reviewer.\x1b[31m I read what others wrote."
    script = [Reply(words), Reply("I am another one.")]
    async with MessagesServer(script) as server, desk_flight(tmp_path, model(server)) as (_, desk):
        found = await introspect(desk.host, "Code Reviewer/../x")
        assert found.prompt == "I am the reviewer. I read what others wrote."
        path = save_prompt(desk.host.workspace, found)
        assert path == tmp_path / "prompts" / "code-reviewer-x.md"
        assert path.read_text() == found.prompt + "\n"
        assert save_prompt(desk.host.workspace, found) == path
        other = await introspect(desk.host, "Code Reviewer/../x")
        with pytest.raises(IntrospectionError, match="there with other words"):
            save_prompt(desk.host.workspace, other)
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        asked = json.dumps(server.requests[0].body, ensure_ascii=False)
        assert "simple_coder read" in asked
        assert "[material " in asked
