"""What an operator has of every agent holds for one that is another program: rules, budgets, rewinds."""

from __future__ import annotations

import json
from pathlib import Path

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.goals import GoalStatus
from tests.engine.agent.engine_flight import Flight
from tests.engine.agent.other_programs.acp_flight import helped, living


def prompts(flight: Flight) -> list[str]:
    """What the program was asked in its turns."""
    lines = (flight.sandbox / ".home/prompts").read_text().splitlines()
    return [json.loads(line)[0]["text"] for line in lines]


async def test_what_a_rule_denies_is_told_and_not_done(flight: Flight, tmp_path: Path) -> None:
    rules = [{"answer": "deny", "command": "write", "reason": "nothing is written today"}]
    await helped(flight, tmp_path, "denied", approvals={"default": "allow", "rules": rules})
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    said = str(state.goals["g1"].reason)
    assert "edit: no; write: not allowed" in said
    assert "nothing is written today" in said
    assert sorted(path.name for path in flight.sandbox.iterdir() if path.is_file()) == ["notes.txt"]


async def test_a_budget_of_three_actions_lets_exactly_three_happen(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "three", budget={"actions": 3})
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.held_by is not None)
    written = sorted(path.name for path in flight.sandbox.glob("*.txt"))
    assert (state.actions, written) == (3, ["0.txt", "1.txt", "notes.txt"])  # the turn is an action, too


async def test_files_changed_outside_the_protocol_are_said_and_taken_back(
    flight: Flight, tmp_path: Path
) -> None:
    await helped(flight, tmp_path, "behind")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    assert "changed outside the protocol: 2 files: notes.txt, secret.txt" in str(state.goals["g1"].reason)
    thoughts = [thought.text for thought in await flight.payloads(ev.ThoughtRecorded)]
    assert thoughts == ["changed outside the protocol: 2 files: notes.txt, secret.txt"]
    await flight.do(cmd.Pause)
    receipt = await flight.engine.submit(cmd.Rewind(agent="dev", to=9))
    assert receipt.ok, receipt.message
    files = {path.name: path.read_text() for path in flight.sandbox.glob("*.txt")}
    assert files == {"notes.txt": "remember\n"}


async def test_after_a_stop_it_goes_on_and_is_told_what_was_done(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "halts")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.actions == 2 and not s.acting)
    await flight.do(cmd.Stop)
    await flight.engine.stopped()
    assert living(flight) == []
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED, state.intervention
    first, second = prompts(flight)
    assert first == "look after the notes"
    assert "Continue this work. Done already:" in second
    assert "write first.txt" in second


async def test_an_earlier_session_is_loaded_where_the_program_can(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "loads")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    await flight.reopen()
    await flight.do(cmd.AdoptGoal, text="again")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g2"].status.terminal or s.intervention)
    assert "session/load session-1" in str(state.goals["g2"].reason)


async def test_a_fork_forks_the_session_where_the_program_can(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "forked")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    await flight.do(cmd.ForkAgent, name="other", to=state.version)
    for agent, goal in (("other", "g2"), ("dev", "g2")):
        await flight.do(cmd.AdoptGoal, agent=agent, text="again")
        await flight.do(cmd.Run, agent=agent)
        await flight.until(lambda s, g=goal: g in s.goals and s.goals[g].status.terminal, agent)
    said = str((await flight.state("other")).goals["g2"].reason)
    assert said == "session/fork session-1"
    started = (await flight.payloads(ev.ActionFinished))[0].result
    assert started["lacks"] == ["a choice of models"]


async def test_modes_are_offered_and_chosen(flight: Flight, tmp_path: Path) -> None:
    await helped(flight, tmp_path, "three", mode="ask")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    await flight.do(cmd.CallTool, tool="acp", command="set_option", args={"option": "mode", "value": "code"})
    await flight.until(lambda s: s.operator_actions == 1 and not s.action)
    await flight.do(cmd.CallTool, tool="acp", command="set_option", args={"option": "mode", "value": "fly"})
    await flight.until(lambda s: s.operator_actions == 2 and not s.action)
    good, bad = list(await flight.payloads(ev.ActionFinished))[-2:]
    assert good.result["items"] == ["mode: code of code, ask"]
    assert bad.summary == "tester 7 has no mode 'fly'; it has: code, ask"


async def test_what_cannot_be_started_is_said_before_or_when_it_is(flight: Flight, tmp_path: Path) -> None:
    def refused(**config: object) -> cmd.CreateAgent:
        return cmd.CreateAgent(agent="dev", agent_type="acp_agent", config=config)

    for config, why in (
        ({}, "give either a command, such as 'opencode acp', or a preset: claude-code"),
        ({"preset": "vim"}, "there is no preset 'vim'; presets: claude-code"),
        ({"preset": "opencode"}, "opencode needs the network, which you grant it: network=on"),
        ({"command": "x", "env": {"API_KEY": "sk-1"}}, "API_KEY looks like a secret"),
        ({"command": "x", "read": ["relative"]}, "read_only needs absolute paths"),
        ({"command": "x", "network": "always"}, "network:"),
        ({"command": "x", "thinker": "claude"}, "leave its thinker out"),
    ):
        receipt = await flight.engine.submit(refused(**config))
        assert not receipt.ok
        assert why in receipt.message
    flight.agent = "dev"
    await flight.do(cmd.CreateAgent, agent_type="acp_agent", config={"command": "no-such-agent acp"})
    await flight.do(cmd.AdoptGoal, text="anything")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert "there is no program 'no-such-agent' on PATH; install it" in str(state.intervention.reason)
    assert state.run is RunState.RUNNING
