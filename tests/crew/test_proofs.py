"""Phase 7: what a proof of a new agent shows, by a script and with a model on the line (spec §2.8)."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import crew_commands as cc
from engine.core.crew import CrewSettings
from engine.core.ports import Ports
from engine.crew.builder.builds import Builds
from engine.crew.builder.findings import BuildResult, PendingBuild, Status
from engine.crew.crew import Crew
from engine.crew.ontology.kinds import HandoffState
from engine.crew.ontology.spec_parser import parse_spec
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.building.corpus import laid
from tests.engine.engine_flight import QuickClock, journal_holds_together
from tests.messages_server import MessagesServer, Reply, failure, object_call

MODEL = "claude-opus-4-6"
NEVER = {"check": "regex", "pattern": r"(?=a)b", "message": "begin with a b that is an a"}


class Line:
    """An engine with its crew, and a model on the line where there is a server."""

    def __init__(self, engine: Engine, crew: Crew, builds: Builds) -> None:
        self.engine, self.crew, self.builds = engine, crew, builds

    async def proved(self, **spec: Any) -> tuple[bool, str, HandoffState]:
        """Register an agent and prove it by the script."""
        made = parse_spec({"id": "x", "name": "X", "description": "an x", **spec})
        receipt = await self.engine.submit(cc.RegisterAgent(spec=made.model_dump(mode="json")))
        assert receipt.ok, receipt.message
        proof = await self.builds.prover.prove(made, live=False)
        last = [one for one in self.crew.state.handoffs.values() if one.agent == "x"][-1]
        return proof.passed, proof.message, last.state


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


# ------------------------------------------------------------------ by a script


async def test_every_built_in_agent_ends_well_by_its_own_path(tmp_path: Path) -> None:
    async with line(tmp_path, built_ins=True) as on:
        for ident, entry in list(on.crew.state.agents.items()):
            proof = await on.builds.prover.prove(entry.spec, live=False)
            assert proof.passed, proof
            last = [one for one in on.crew.state.handoffs.values() if one.agent == ident and one.proof][-1]
            kind = entry.spec.type.value
            if kind in ("role", "guided"):
                assert "2 turns of a session" in proof.message
            elif ident == "agent-builder":
                assert (last.state, "was not shown" in proof.message) == (HandoffState.FAILED, True)
            else:
                assert last.result is not None
                assert last.result.success or "not shown" in proof.message
        debate = next(one for one in on.crew.state.handoffs.values() if one.agent == "decision-debate")
        held = debate.progress["crew.debate"]
        assert [turn["replies"][0]["claim"] for turn in held["turns"] if turn["round"] == 1] == ["B1", "A1"]
        assert not list(on.crew.state.open())


async def test_what_no_script_meets_is_said_and_what_does_not_run_is_no_proof(tmp_path: Path) -> None:
    phases = [
        {"id": "p", "name": "P", "inputs": ["task"], "outputs": ["a"]},
        {"id": "q", "name": "Q", "inputs": ["a"], "outputs": ["b"], "checkpoint": {"criteria": [NEVER]}},
    ]
    views = [
        {"id": "one", "role": "One", "required": True, "criteria": [NEVER]},
        {"id": "two", "role": "Two"},
    ]
    hard = {"check": "llm_rubric", "rubric": "it is kind"}
    steps = [{"id": "s", "title": "S", "validators": [NEVER]}, {"id": "t", "title": "T"}]
    async with line(tmp_path) as on:
        passed, said, state = await on.proved(type="operator", instructions={"quality_criteria": [NEVER]})
        assert (passed, state) == (True, HandoffState.FAILED)
        assert "ended as quality_gate" in said.lower()
        assert "no script meets begin with a b" in said
        passed, said, state = await on.proved(type="pipeline", phases=phases)
        assert (passed, state) == (True, HandoffState.COMPLETED)
        assert "2 phases were committed; no script meets begin with a b" in said
        passed, said, _ = await on.proved(type="collaborative", sub_agents=views)
        assert (passed, "no script meets" in said) == (True, True)
        passed, said, _ = await on.proved(type="operator", instructions={"quality_criteria": [hard]})
        assert (passed, "1 rubric not judged" in said) == (True, True)
        passed, said, _ = await on.proved(type="guided", steps=steps)
        assert (passed, "was not shown" in said) == (True, True)
        down = {"mcp_servers": [{"server": "nowhere", "tools": ["*"], "required": True}]}
        passed, said, state = await on.proved(type="operator", tools=down)
        assert (passed, state) == (False, HandoffState.REJECTED)
        assert "nowhere" in said
        stranger = parse_spec({"id": "y", "name": "Y", "description": "a y", "type": "operator"})
        assert not (await on.builds.prover.prove(stranger, live=False)).passed


# ------------------------------------------------------------------ with a model on the line


def answer() -> Reply:
    return object_call("return_result", output="An answer of a model.")


async def built(on: Line, folder: Path) -> BuildResult:
    return await on.builds.build(PendingBuild(folder, live=True))


async def test_a_live_session_of_a_role_is_two_calls(tmp_path: Path) -> None:
    coach = parse_spec({"id": "x", "name": "X", "description": "a coach", "type": "role"})
    asks = [object_call("reply", text=f"Who has it, {n}?") for n in range(2)]
    async with (
        MessagesServer([*asks, Reply(silent=True)]) as server,
        line(tmp_path / "ws", server.url) as on,
    ):
        await on.engine.submit(cc.RegisterAgent(spec=coach.model_dump(mode="json")))
        proof = await on.builds.prover.prove(coach, live=True)
        assert (proof.passed, "2 turns of a session" in proof.message) == (True, True)
        assert len(server.requests) == 2
        await server.emptied()


async def test_a_live_proof_counts_the_calls_of_all_who_work_for_the_agent(tmp_path: Path) -> None:
    views = [{"id": "one", "role": "One"}, {"id": "two", "role": "Two"}]
    made = parse_spec(
        {"id": "x", "name": "X", "description": "an x", "type": "collaborative", "sub_agents": views}
    )
    async with MessagesServer([answer()] * 5) as server, line(tmp_path / "ws", server.url) as on:
        await on.engine.submit(cc.RegisterAgent(spec=made.model_dump(mode="json")))
        proof = await on.builds.prover.prove(made, live=True)
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
        proof = await on.builds.prover.prove(made, live=True)
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
