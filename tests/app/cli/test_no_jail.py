"""A machine that gives no jail, and agents that end by a fault: how `run`, `do` and `coder` end then."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest

from app.commands.command_runner import run_command
from app.commands.headless import Run, RunOptions, run_goal
from app.commands.missions import AgentFaultError, wait_until
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.thinking import PlanProposal, PlanRequest
from engine.sandbox.policy import Tier
from tests import forking
from tests.engine.sandbox.jail_runs import need
from tests.engine.sandbox.test_jail_degrades import WITHOUT_LANDLOCK, WITHOUT_NAMESPACES

PROGRAM = "run 'python --version'"


def pilothouse(front: str, workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The program on a machine that lacks what the filter in front of it takes away."""
    done = forking.run(
        front + "\n" + forking.CLI, *words, "--workspace", str(workspace), cwd=workspace.parent
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def unjailed() -> str:
    need(Tier.KERNEL)
    return WITHOUT_LANDLOCK.format("ENOSYS")


@pytest.mark.parametrize(
    "words", [("run", PROGRAM), ("run", "list the files"), ("do", "run"), ("do", "step")]
)
def test_without_a_jail_no_agent_acts_and_the_exit_code_is_78(
    unjailed: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    ws = tmp_path / "ws"
    assert pilothouse(unjailed, ws, "do", "agent_create bdi_agent pilot-1").returncode == 0
    done = pilothouse(unjailed, ws, *words)
    assert (done.returncode, done.stdout) == (78, "")
    for said in ("requires the jail KERNEL", "gives PATHS", "landlock", "5.13", "--accept-tier paths"):
        assert said in done.stderr
    assert list((ws / "sandbox").iterdir()) == []


def test_unconfined_is_an_explicit_word_for_one_session_and_in_the_journal(
    unjailed: str, tmp_path: Path
) -> None:
    ws = tmp_path / "ws"
    done = pilothouse(unjailed, ws, "run", PROGRAM, "--accept-tier", "paths", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "GOAL_ACHIEVED")
    shown = pilothouse(unjailed, ws, "sessions", "show")
    assert "programs run in the jail PATHS, as accepted" in shown.stdout
    again = pilothouse(unjailed, ws, "run", PROGRAM, "--json")
    assert (again.returncode, json.loads(again.stdout)["status"]) == (78, "NO_JAIL")
    alone = pilothouse(unjailed, ws, "coder", "--accept-tier", "paths", "-c", "run ls")
    assert (alone.returncode, json.loads(alone.stdout)["tier"]) == (0, "PATHS")


def test_a_tier_can_be_required_and_a_weaker_one_is_then_no_jail(tmp_path: Path) -> None:
    need(Tier.FULL)
    ws = tmp_path / "ws"
    full = pilothouse(WITHOUT_NAMESPACES, ws, "run", PROGRAM, "--accept-tier", "full")
    assert (full.returncode, "requires the jail FULL" in full.stderr) == (78, True)
    assert "namespaces" in full.stderr
    kernel = pilothouse(WITHOUT_NAMESPACES, ws, "run", PROGRAM, "--accept-tier", "kernel")
    assert kernel.returncode == 0
    (ws / "pilothouse.toml").write_text("[sandbox]\naccept_paths = true\n")
    assert pilothouse(WITHOUT_NAMESPACES, ws, "run", PROGRAM, "--accept-tier", "full").returncode == 78


def test_the_doctor_and_the_policy_verb_say_the_same(unjailed: str, tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    policy = pilothouse(unjailed, ws, "do", "policy").stdout.rstrip("\n")
    assert "✗ landlock" in policy
    assert policy in pilothouse(unjailed, ws, "doctor").stdout


class Lightning:
    """A thinker from outside that breaks its contract."""

    name = "lightning"
    free = True

    async def plan(self, request: PlanRequest) -> PlanProposal:
        raise ZeroDivisionError("struck")


async def struck(workspace: Path) -> Engine:
    engine = await Engine.open(workspace)
    engine._shared.procedural = Lightning()
    return engine


async def test_an_agent_that_ends_by_a_fault_ends_the_run_at_once(tmp_path: Path) -> None:
    engine = await struck(tmp_path)
    try:
        options = RunOptions(tmp_path, goal="list the files", quiet=True)
        result = await Run(engine, options, io.StringIO(), io.StringIO()).run()
        assert (result["status"], result["message"]) == ("FAULT", "ZeroDivisionError: struck")
        assert engine.health.agents == ("pilot-1: ZeroDivisionError: struck",)
        with pytest.raises(AgentFaultError, match="struck"):
            await wait_until(engine, "pilot-1", lambda state: bool(state.plans))
    finally:
        await engine.close()


async def test_an_agent_that_cannot_be_taken_up_is_exit_code_70(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    await engine.submit(cmd.CreateAgent(agent="pilot-1"))
    assert engine.store._writer is not None
    await engine.store._writer.ledger.connection.execute(
        "update events set body = replace(body, 'procedural', 'delphi') where kind = 'agent.created'"
    )
    await engine._let_go()
    for line in ("run", "goal list the files"):
        code, answer, text = await run_command(tmp_path, line)
        assert (code, answer["status"]) == (70, "FAULT")
        assert "there is no thinker 'delphi'" in text
    assert "fault: there is no thinker" in (await run_command(tmp_path, "agent_list"))[2]
    options = RunOptions(tmp_path, goal="list the files", quiet=True)
    result = await run_goal(options, out=io.StringIO(), err=io.StringIO())
    assert (result["status"], result["actions"]) == ("FAULT", 0)
