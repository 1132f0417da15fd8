"""What a live proof of a new agent shows."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import crew_commands as cc
from engine.core.crew import CrewSettings
from engine.core.ports import Ports
from engine.crew.builder.builds import Builds
from engine.crew.builder.findings import BuildResult, PendingBuild, Status
from engine.crew.crew import Crew
from engine.crew.ontology.spec_parser import parse_spec
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.building.corpus import laid
from tests.engine.engine_flight import QuickClock, journal_holds_together
from tests.messages_server import MessagesServer, Reply, failure, object_call

MODEL = "claude-opus-4-6"


class Line:
    """An engine with its crew, and a model on the line where there is a server."""

    def __init__(self, engine: Engine, crew: Crew, builds: Builds) -> None:
        self.engine, self.crew, self.builds = engine, crew, builds


@asynccontextmanager
async def line(workspace: Path, url: str = "", *, built_ins: bool = False) -> AsyncIterator[Line]:
    config = EngineConfig(crew=CrewSettings(built_ins=built_ins))
    if url:
        choice = ModelChoice(Endpoint(url, "sk-test"), MODEL, retries=Retries(attempts=1))
        config = dataclasses.replace(config, model=choice)
    engine = await Engine.open(workspace, ports=Ports(clock=QuickClock()), config=config)
    try:
        crew = await engine.crew()
        assert crew.builds is not None
        await crew.builds.settled()
        yield Line(engine, crew, crew.builds)
    finally:
        await engine.close()
    await journal_holds_together(workspace)


# ------------------------------------------------------------------ with a model on the line


def answer() -> Reply:
    return object_call("return_result", output="An answer of a model.")


async def built(on: Line, folder: Path) -> BuildResult:
    return await on.builds.build(PendingBuild(folder, live=True))


async def test_a_live_session_of_a_role_is_its_first_question(tmp_path: Path) -> None:
    coach = parse_spec({"id": "x", "name": "X", "description": "a coach", "type": "role"})
    asks = [object_call("reply", text=f"Who has it, {n}?") for n in range(2)]
    async with (
        MessagesServer([*asks, Reply(silent=True)]) as server,
        line(tmp_path / "ws", server.url) as on,
    ):
        await on.engine.submit(cc.RegisterAgent(spec=coach.model_dump(mode="json")))
        proof = await on.builds.prover.prove(coach)
        assert (proof.passed, proof.message) == (True, "it asked: X")
        assert len(server.requests) == 1


async def test_a_live_proof_counts_the_calls_of_all_who_work_for_the_agent(tmp_path: Path) -> None:
    views = [{"id": "one", "role": "One"}, {"id": "two", "role": "Two"}]
    made = parse_spec(
        {"id": "x", "name": "X", "description": "an x", "type": "collaborative", "sub_agents": views}
    )
    async with MessagesServer([answer()] * 5) as server, line(tmp_path / "ws", server.url) as on:
        await on.engine.submit(cc.RegisterAgent(spec=made.model_dump(mode="json")))
        proof = await on.builds.prover.prove(made)
        assert (proof.passed, len(server.requests)) == (False, 2)
        assert "wants another call of its model, and a live proof has 2" in proof.message


NO_TOOL = object_call("no_such_tool", x=1)
FAULTS: dict[str, tuple[list[Reply], str]] = {
    "down": ([], "the connection to"),
    "no key": ([failure(401, "authentication_error", "bad key")], "the key is not accepted"),
    "declined": ([Reply(text="", stop_reason="refusal")], "declined"),
    "overloaded": ([failure(529, "overloaded_error")] * 3, "overloaded"),
    "rubbish": ([Reply(text="x", after=2, then="garbage")] * 3, "cannot be read"),
    "broken off": ([Reply(text="x", after=2, then="drop")] * 3, "failed"),
    "not the api": ([Reply(body="<html>hello</html>")] * 3, "not with a stream"),
    "a third call": ([NO_TOOL, NO_TOOL, answer()], "a live proof has 2"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_live_proof_that_comes_to_nothing_says_why_in_a_line(tmp_path: Path, name: str) -> None:
    script, said = FAULTS[name]
    made = parse_spec({"id": "x", "name": "X", "description": "an x", "type": "operator"})
    async with MessagesServer(script) as server, line(tmp_path / "ws", server.url) as on:
        await on.engine.submit(cc.RegisterAgent(spec=made.model_dump(mode="json")))
        if name == "down":
            await server.stop()
        proof = await on.builds.prover.prove(made)
        assert not proof.passed
        assert said in proof.message, proof.message
        assert ("Traceback" in proof.message, proof.message.count("\n")) == (False, 0)
        assert len(server.requests) <= 2, "two calls are the most of a live proof"
        assert not list(on.crew.state.open())
        (handoff,) = on.crew.state.handoffs.values()
        assert handoff.proof
        await server.emptied()


@pytest.mark.slow
async def test_a_live_proof_that_fails_ends_the_phase_and_brings_the_former_version_back(
    tmp_path: Path,
) -> None:
    folder = laid(tmp_path / "skills", "comma-tools")
    script = [answer(), NO_TOOL, NO_TOOL, answer()]
    async with MessagesServer(script) as server, line(tmp_path / "ws", server.url) as on:
        result = await built(on, folder)
        assert result.status is Status.BUILT
        check = result.phases[-1].checks[-1]
        assert (check.name, check.passed) == ("e2e_passes", True)
        assert "1 call of its model" in check.measured
        (folder / "notes.md").write_text("changed", encoding="utf-8")
        result = await built(on, folder)
        assert (result.status, len(result.phases), result.phases[-1].passed) == (Status.FAILED, 7, False)
        (error,) = result.errors
        assert (error.code, "a live proof has 2" in error.message) == ("NOT_REGISTERED", True)
        assert len(server.requests) == 1 + 2
        now = on.crew.state.agents["comma-tools"]
        assert (now.spec.version, now.versions) == ("1.0.0", ("1.0.0", "1.0.1"))
        assert not list((tmp_path / "ws" / ".builds").glob("*.registering.json"))
