"""An engine in flight with an agent that is another program."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.core import commands as cmd
from engine.sandbox.programs import BASE_PYTHON
from tests.engine.agent.engine_flight import Flight

PROGRAM = Path(__file__).with_name("program.py")


def program(place: Path) -> str:
    """The program as a file that can be run; the command line without its first argument."""
    script = place / "agent"
    script.write_text(f"#!{BASE_PYTHON}\n{PROGRAM.read_text()}")
    script.chmod(0o755)
    return str(script)


async def helped(flight: Flight, place: Path, deed: str, **config: Any) -> None:
    """Create the agent `dev`, which does one thing in each of its turns, and give it a goal."""
    flight.agent = "dev"
    command = f"{program(place)} {deed}"
    await flight.do(cmd.CreateAgent, agent_type="acp_agent", config={"command": command, **config})
    await flight.do(cmd.AdoptGoal, text="look after the notes")


def living(flight: Flight) -> list[str]:
    """The processes that work in the sandbox, by their command lines; supervisors are none of them."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if (process / "cwd").readlink().is_relative_to(flight.sandbox):
                    found.append(b" ".join(words).decode(errors="replace"))
    return found
