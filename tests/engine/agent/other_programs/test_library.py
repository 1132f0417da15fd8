"""An agent that is written with the protocol's own library understands all that it is answered."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

from engine.core import commands as cmd
from engine.core.goals import GoalStatus
from engine.sandbox.programs import BASE_PYTHON
from tests.engine.agent.engine_flight import Flight

PROGRAM = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse, run_agent, text_block
from acp import tool_diff_content, update_agent_message
from acp.schema import Implementation, PermissionOption, ToolCallUpdate


class Example(Agent):
    def on_connect(self, client):
        self.client = client

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **more):
        assert client_capabilities.fs.write_text_file and client_capabilities.terminal
        info = Implementation(name="example", title="Example", version=client_info.name)
        return InitializeResponse(protocol_version=protocol_version, agent_info=info)

    async def new_session(self, cwd, mcp_servers, **more):
        self.cwd = cwd
        return NewSessionResponse(session_id="s1")

    async def prompt(self, prompt, session_id, **more):
        client, path = self.client, self.cwd + "/made.txt"
        text = (await client.read_text_file(path=self.cwd + "/notes.txt", session_id=session_id)).content
        call = ToolCallUpdate(tool_call_id="c1", title="edit made.txt", kind="edit",
                              content=[tool_diff_content(path, text)])
        option = PermissionOption(option_id="y", name="Yes", kind="allow_once")
        leave = await client.request_permission(options=[option], session_id=session_id, tool_call=call)
        await client.write_text_file(content=text, path=path, session_id=session_id)
        terminal = await client.create_terminal(command="cat", args=["made.txt"], session_id=session_id)
        ident = getattr(terminal, "terminal_id", None) or terminal.id
        ended = await client.wait_for_terminal_exit(session_id=session_id, terminal_id=ident)
        output = await client.terminal_output(session_id=session_id, terminal_id=ident)
        await client.release_terminal(session_id=session_id, terminal_id=ident)
        told = f"{leave.outcome.outcome} {ended.exit_code} {output.output.strip()} {prompt[0].text}"
        await client.session_update(session_id=session_id, update=update_agent_message(text_block(told)))
        return PromptResponse(stop_reason="end_turn")


asyncio.run(run_agent(Example()))
"""


async def test_an_agent_of_the_library_understands_every_answer(flight: Flight, tmp_path: Path) -> None:
    script, packages = tmp_path / "example.py", sysconfig.get_path("purelib")
    script.write_text(PROGRAM)
    flight.agent = "dev"
    config = {
        "command": f"{BASE_PYTHON} {json.dumps(str(script))} {json.dumps(packages)}",
        "read": [packages, str(script)],
    }
    await flight.do(cmd.CreateAgent, agent_type="acp_agent", config=config)
    await flight.do(cmd.AdoptGoal, text="copy the notes")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.goals["g1"].status.terminal or s.intervention)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED, state.intervention
    assert state.goals["g1"].reason == "selected 0 remember copy the notes"
    commands = [step.command for step in state.plans["g1"].steps if step.command]
    assert commands == ["prompt", "read", "write", "start"]
