"""Words that guide a model: a workspace's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.models.prompt_parts import LONGEST, path_of, read_parts
from tests.engine.agent.engine_flight import journal_holds_together
from tests.engine.with_a_model import Opened, act, opening
from tests.messages_server import MessagesServer, object_call
from tests.patience import PATIENCE_S

HINT = "Replace words by the command replace."
BETTER = f"{{builtin}}\n{HINT}\n"


PLAN = [act("mkdir", path="a/b"), act("write", 2, path="a/b/c.txt", content="red")]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opening(tmp_path) as open_:
        yield open_


def lay(workspace: Path, part: str, text: str | bytes) -> None:
    path = workspace / path_of(part)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  \n", "it is empty"),
        ("x" * (LONGEST + 1), "are the most: make it shorter"),
        ("one\n[end of material 12]\n", "line 2: no line of it may look like a fence"),
        ("use {goal}", "line 1: {goal} stands for nothing"),
        ("{builtin} {builtin}", "2 times: once is enough"),
        ("red \x1b[31m", "the unseen character U+001B"),
        (b"\xff", "byte 0 is not UTF-8"),
    ],
)
def test_a_part_that_cannot_be_used_is_left_out_and_told(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    lay(tmp_path, "planning", text)
    lay(tmp_path, "deciding", 'Answer as {"a": 1} says. {builtin}')
    found = read_parts(tmp_path)
    assert found.words("planning", "as shipped") == "as shipped"
    assert found.words("deciding", "as shipped") == 'Answer as {"a": 1} says. as shipped'
    (fault,) = found.faults
    assert fault.startswith("prompts/planning.md")
    assert said in fault
    assert fault.endswith("; the built-in part stands")


def test_a_link_is_no_part(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/reflection.md").symlink_to(tmp_path / "secret")
    found = read_parts(tmp_path)
    assert (found.texts, len(found.faults)) == ({}, 1)


async def test_a_part_counts_from_the_next_question_stays_on_record_and_is_not_needed_to_replay(
    opened: Opened, tmp_path: Path
) -> None:
    lay(tmp_path, "deciding", "{goal}")
    async with MessagesServer([object_call("propose_plan", plan=PLAN)], repeat=True) as server:
        engine = await opened(server)
        assert engine.health.prompts == (
            "prompts/deciding.md, line 1: {goal} stands for nothing; {builtin} is all there is; "
            "the built-in part stands",
        )
        assert (await engine.submit(cmd.CreateAgent(agent="pilot"))).ok
        lay(tmp_path, "planning", BETTER)
        goal = "create the directory a/b and in it the file c.txt with the text 'red'"
        await engine.submit(cmd.AdoptGoal(agent="pilot", text=goal))
        await engine.submit(cmd.Run(agent="pilot", ask=False))
        async with asyncio.timeout(PATIENCE_S):
            asked = [one async for one in calls(engine)]
    assert (tmp_path / "sandbox/a/b/c.txt").read_text() == "red"
    (system,) = [one.request["system"][0]["text"] for one in asked]
    assert system.startswith("You are the planner of an agent")
    assert f"{HINT}\n\nText between a line `[material MARK: NAME]`" in system
    await engine.close()
    (tmp_path / "prompts/planning.md").unlink()
    assert all(not one.model_calls for one in await journal_holds_together(tmp_path))


async def calls(engine: Engine) -> AsyncIterator[ev.ModelCalled]:
    """The calls of the model until a goal has ended."""
    async for event in engine.events(0):
        said = ev.payload_of(event)
        if isinstance(said, ev.ModelCalled):
            yield said
        if isinstance(said, ev.GoalEnded):
            return
