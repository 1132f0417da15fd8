"""The seed's workflow from beginning to end, planned by a model in JSON and in rules; wrong plans mended."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight
from model_flight import MODEL, model_flight, planned, told

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.state import AgentState
from tests.messages_server import MessagesServer, Reply, call, plan_call
from tests.patience import PATIENCE_S as PATIENCE_S

GOAL = (
    "Create a Python project named 'api_client', set up a virtual environment, install 'httpx', and create a "
    "script to ping the GitHub API"
)
INSTALL = "pip install --no-index --find-links ../wheels httpx"
SCRIPT = "import httpx; print(httpx.get('https://api.github.com').status_code)"
STAND_IN = """
from types import SimpleNamespace
def get(url): return SimpleNamespace(status_code=200 if url == "https://api.github.com" else 404)
"""
"""Stands in for the package of the goal, as no test asks the network."""
COMMANDS = ["mkdir", "cd", "create_venv", "activate_venv", "run", "write", "run"]

STEPS = (
    planned("mkdir", path="api_client"),
    planned("cd", path="api_client"),
    planned("create_venv", venv_name=".venv"),
    planned("activate_venv", venv_name=".venv"),
    planned("run", command=INSTALL),
    planned("write", path="main.py", content=SCRIPT),
    planned("run", command="python main.py"),
)
WORKFLOW = [{**step, "id": str(number)} for number, step in enumerate(STEPS, 1)]
RULES = f"""```yaml
EVENT: achieve build(Project)
CONDITIONS:
  - <none>
OPERATIONS:
  - execute mkdir(Project)
  - execute cd(Project)
  - execute create_venv(".venv")
  - execute activate_venv(".venv")
  - execute run("{INSTALL}")
  - achieve ping
---
EVENT: achieve ping
CONDITIONS:
  - <none>
OPERATIONS:
  - execute write("main.py", "{SCRIPT}")
  - execute run("python main.py")
```
```yaml
- goal: `ping`
  purpose: to have asked the GitHub API
```"""
PROGRAM = '!build("api_client").'


def wheel() -> bytes:
    """A wheel of `httpx` that answers without a network."""
    about = "httpx-1.0.dist-info"
    files = {
        "httpx.py": STAND_IN,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: httpx\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return buffer.getvalue()


@asynccontextmanager
async def workshop(workspace: Path, *script: Reply) -> AsyncIterator[tuple[Flight, MessagesServer]]:
    """A workspace with the wheel laid down and a model that answers by the script."""
    wheels = workspace / "sandbox" / "wheels"
    wheels.mkdir(parents=True)
    (wheels / "httpx-1.0-py3-none-any.whl").write_bytes(wheel())
    async with model_flight(workspace, *script) as (flight, server):
        yield flight, server


async def json_agent(flight: Flight) -> None:
    await flight.do(cmd.CreateAgent)
    await flight.do(cmd.AdoptGoal, text=GOAL)


async def rules_agent(flight: Flight) -> None:
    await flight.do(cmd.CreateAgent, agent_type="asl_agent", config={"program": PROGRAM})


async def flown(flight: Flight) -> AgentState:
    """The state after the first goal has ended or the operator is asked."""
    await flight.do(cmd.Run)
    return await flight.until(
        lambda s: s.goals["g1"].status.terminal or s.intervention, patience_s=PATIENCE_S
    )


async def begun(flight: Flight) -> list[str]:
    """The commands of the actions that started, in order."""
    started = await flight.payloads(ev.ActionStarted)
    commands = {said.action: said.command for said in await flight.payloads(ev.ActionRequested)}
    return [commands[said.action] for said in started]


async def pinged(flight: Flight) -> None:
    """The goal was reached by the seven actions, and the script told the status."""
    state = await flight.state()
    assert (state.goals["g1"].status, state.failures) == (GoalStatus.ACHIEVED, [])
    assert [said.command for said in await flight.payloads(ev.ActionRequested)] == COMMANDS
    results = [said.result for said in await flight.payloads(ev.ActionFinished)]
    assert "Successfully installed httpx-1.0" in results[4]["stdout"]
    assert (results[6]["return_code"], results[6]["stdout"]) == (0, "200")
    project = flight.sandbox / "api_client"
    assert (project / "main.py").read_text() == SCRIPT
    assert (state.sandbox.cwd, state.sandbox.venv) == ("api_client", "api_client/.venv")


async def test_the_seeds_workflow_planned_in_json_runs_end_to_end_and_replays(tmp_path: Path) -> None:
    async with workshop(tmp_path / "ws", plan_call(*WORKFLOW)) as (flight, server):
        await json_agent(flight)
        await flown(flight)
        await pinged(flight)
        assert len(server.requests) == 1
        state = await flight.state()
        assert {step.provenance.by for step in state.plans["g1"].steps} == {f"claude:{MODEL}"}


async def test_the_seeds_workflow_planned_in_rules_runs_end_to_end_and_replays(tmp_path: Path) -> None:
    async with workshop(tmp_path / "ws", Reply(text=RULES)) as (flight, server):
        await rules_agent(flight)
        await flown(flight)
        await pinged(flight)
        assert len(server.requests) == 1
        made = (await flight.state()).generated
        assert [(one.goal, one.model) for one in made] == [('+!build("api_client")', MODEL)] * 2


# ------------------------------------------------------------------ wrong plans in JSON


def with_step(number: int, **change: Any) -> Reply:
    """The workflow with one action changed."""
    return plan_call(*(step | change if at == number else step for at, step in enumerate(WORKFLOW, 1)))


DOUBLED = json.dumps({"plan": WORKFLOW}).replace(
    '"command": "mkdir",', '"command": "mkdir", "command": "rm",', 1
)


async def mended_in_json(tmp_path: Path, wrong: Reply, message: str) -> None:
    """The wrong plan comes to nothing, the next request says why, and what is run is the mended one."""
    async with workshop(tmp_path / "ws", wrong, plan_call(*WORKFLOW)) as (flight, server):
        await json_agent(flight)
        await flight.do(cmd.Run, max_loops=2)
        state = await flight.until(lambda s: s.actions == 2 or s.intervention, patience_s=PATIENCE_S)
        first, second = server.requests
        assert message not in first.said()
        assert message in told(second)
        steps = state.plans["g1"].steps
        assert [step.command for step in steps] == COMMANDS
        assert await begun(flight) == ["mkdir", "cd"]
        (generated,) = await flight.payloads(ev.PlanGenerated)
        assert generated.uncovered == ()
        assert state.model_calls == 2


async def test_a_hallucinated_tool_in_json_is_refused_and_mended(tmp_path: Path) -> None:
    wrong = with_step(5, params={"tool_id": "package_manager", "command": "install", "args": {}})
    await mended_in_json(tmp_path, wrong, "step 5: There is no tool 'package_manager'")


async def test_a_wrong_parameter_in_json_is_refused_and_mended(tmp_path: Path) -> None:
    wrong = with_step(
        3,
        params={"tool_id": "simple_coder", "command": "create_venv", "args": {"folder": ".venv", "size": 3}},
    )
    await mended_in_json(tmp_path, wrong, "step 3: create_venv has no argument 'folder'")


async def test_a_key_given_twice_in_json_is_refused_and_mended(tmp_path: Path) -> None:
    wrong = call("propose_plan", DOUBLED)
    await mended_in_json(tmp_path, wrong, "the key 'command' appears twice")


async def test_steps_that_wait_for_each_other_in_json_are_refused_and_mended(tmp_path: Path) -> None:
    wrong = with_step(4, depends_on=["4"])
    await mended_in_json(tmp_path, wrong, "the steps wait for each other in a circle: 4 → 4")


# ------------------------------------------------------------------ wrong plans in rules


async def mended_in_rules(tmp_path: Path, wrong: str, message: str) -> None:
    """As `mended_in_json`, for a reasoner: nothing wrong is installed, what runs is the mended plan."""
    async with workshop(tmp_path / "ws", Reply(text=wrong), Reply(text=RULES)) as (flight, server):
        await rules_agent(flight)
        await flight.do(cmd.Run)
        state = await flight.until(
            lambda s: s.actions == 2 or s.goals["g1"].status.terminal, patience_s=PATIENCE_S
        )
        first, second = server.requests
        assert message not in told(first)
        assert message in told(second)
        assert "Your plans cannot be used as they are" in told(second)
        assert (await begun(flight))[:2] == ["mkdir", "cd"]
        refused, accepted = await flight.payloads(ev.GenerationReviewed)
        assert not any(plan.accepted for plan in refused.plans if "build" in plan.text)
        assert all(plan.accepted for plan in accepted.plans)
        assert len(state.generated) == 2


async def test_a_hallucinated_action_in_rules_is_refused_and_mended(tmp_path: Path) -> None:
    wrong = RULES.replace('execute create_venv(".venv")', 'execute summon_environment(".venv")')
    await mended_in_rules(tmp_path, wrong, "there is no action summon_environment/1")


async def test_a_wrong_parameter_in_rules_is_refused_and_mended(tmp_path: Path) -> None:
    wrong = RULES.replace("execute mkdir(Project)", "execute mkdir(Project, now, 3)")
    await mended_in_rules(tmp_path, wrong, "mkdir takes 1 arguments, not 3")


async def test_a_section_given_twice_in_rules_is_refused_and_mended(tmp_path: Path) -> None:
    wrong = RULES.replace("  - achieve ping", "OPERATIONS:\n  - achieve ping")
    await mended_in_rules(tmp_path, wrong, "a second OPERATIONS in the same plan")


async def test_plans_that_pursue_each_other_in_rules_are_refused_and_mended(tmp_path: Path) -> None:
    wrong = RULES.replace('  - execute run("python main.py")', "  - achieve build(Any)")
    circle = "goals wait for each other in a circle: +!build(Project) → +!ping → +!build(Any)"
    await mended_in_rules(tmp_path, wrong, circle)


@pytest.mark.parametrize("agent", [json_agent, rules_agent])
async def test_a_model_that_is_never_right_runs_nothing(tmp_path: Path, agent: Any) -> None:
    """Behaviour 30."""
    wrong = Reply(text="I shall build it at once.")
    async with workshop(tmp_path / "ws", *[wrong] * 12) as (flight, server):
        await agent(flight)
        await flight.do(cmd.Run, ask=False)
        state = await flight.until(lambda s: s.goals["g1"].status.terminal, patience_s=PATIENCE_S)
        assert (state.goals["g1"].status, state.actions) == (GoalStatus.FAILED, 0)
        assert len(server.requests) % 3 == 0
        assert await begun(flight) == []
