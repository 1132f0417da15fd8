"""The fleet board in a real terminal: fifty agents, one of them two letters away, a request answered."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tmux_terminal import NEEDS_TMUX, Terminal

from app.commands.headless import open_engine
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.crew.ontology.kinds import ErrorCode
from tests.engine.crew.flight import CLEAR, Job, Worker, alone, spec_of
from tests.trusting import trust_folder

pytestmark = NEEDS_TMUX


async def _crew(workspace: Path) -> None:
    """Fifty agents; one of them failed its checks, which is put to the operator."""
    async with open_engine(workspace, EngineConfig()) as engine:
        crew = await engine.crew()
        worker = Worker()
        worker.crew = crew
        crew.handoffs.moves.worker = worker
        await alone(crew)

        async def fails(job: Job) -> object:
            return job.done("no emotional job", code=ErrorCode.QUALITY_GATE)

        worker.scripts["agent-7"] = fails
        for at in range(49):
            assert (await engine.submit(cc.RegisterAgent(spec=spec_of(f"agent-{at}")))).ok
        assert (await engine.submit(cmd.CreateAgent(agent="pilot-1"))).ok
        receipt = await engine.submit(cc.Delegate(to="agent-7", task="find the jobs", clarity=CLEAR))
        await crew.wait(receipt.data["handoff"])
        assert crew.state.open_requests()


def test_fifty_agents_in_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    asyncio.run(_crew(tmp_path / "ws"))
    trust_folder(tmp_path / "ws", terminal.home)
    terminal.fly(f"--workspace {tmp_path / 'ws'}")
    terminal.tmux("resize-window", "-t", "t", "-x", "160", "-y", "45")
    terminal.shows("PAUSED", "1 request waits for you: F")
    terminal.keys("F6")
    agents = [f"agent-{at} " for at in range(49)]
    terminal.shows("50 agents · 1 waiting on you", "? agent-7", *agents, "pilot-1")
    label = re.search(r"(\w\w) +· agent-33 ", terminal.screen)
    assert label is not None
    terminal.type(label[1])
    terminal.shows(f"▌{label[1]}", "The agent agent-33")
    terminal.keys("Enter")
    terminal.shows("Agent agent-33", "Receives and returns")
    terminal.keys("Escape")
    terminal.tmux("resize-window", "-t", "t", "-x", "80", "-y", "24")
    terminal.keys("Home")
    terminal.shows("▌", "? agent-7", "1 Try again", "4 Leave it", "esc close")
    terminal.keys("h")
    terminal.shows("Handoffs", "D h-", "agent-7", "QUALITY_GATE", "find the jobs")
    terminal.keys("f")
    terminal.shows("50 agents")
    terminal.keys("Home", "4")
    terminal.shows("hr-1 is answered", "✗ agent-7")
    terminal.type("Ilook-at-it, sasd")  # in one burst
    terminal.shows("task for agent-7: ", "look-at-it, sasd")
    terminal.keys("Escape", "Escape")
    terminal.keys("C-q")
    assert terminal.ends() == 0
    assert terminal.in_order()
