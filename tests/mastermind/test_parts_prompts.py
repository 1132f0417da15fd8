"""Words that guide a model: a workspace's own, and campaigns on them with a scripted model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.campaigns import ApplyCandidate, StartJob
from engine.core.improvement import CampaignStatus, JobRecord, JobStatus, Ruling
from engine.models.choice import ModelChoice
from engine.models.prompt_parts import LONGEST, path_of, read_parts
from tests.engine.engine_flight import journal_holds_together
from tests.messages_server import MessagesServer, Reply, object_call
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S

HINT = "Replace words by the command replace."
"""What the scripted model has to be told to do it right."""
BETTER = f"{{builtin}}\n{HINT}\n"
NULL = "{builtin}\nBe calm.\n"


def act(command: str, number: int = 1, **args: Any) -> dict[str, Any]:
    call = {"tool_id": "simple_coder", "command": command, "args": args}
    return {"type": "EXECUTE_TOOL", "id": str(number), "description": command, "params": call}


def planned(goal: str, told: str) -> dict[str, Any]:
    """A scripted mind: it copies, moves and makes, counts wrong, and replaces when it is told how."""
    if found := re.match(r"copy the file (\S+) to (\S+) and", goal):
        return {"plan": [act("copy", source=found[1], target=found[2])]}
    if found := re.match(r"rename the file (\S+)/(\S+) to (\S+) in", goal):
        return {"plan": [act("move", source=f"{found[1]}/{found[2]}", target=f"{found[1]}/{found[3]}")]}
    if found := re.match(r"create the directory (\S+) and in it the file (\S+) with the text '(.*)'", goal):
        path = f"{found[1]}/{found[2]}"
        return {"plan": [act("mkdir", path=found[1]), act("write", 2, path=path, content=found[3])]}
    if found := re.match(r"in the file (\S+) put the word (\S+) in the place of the word (\S+)", goal):
        if HINT in told:
            return {"plan": [act("replace", path=found[1], old=found[3], new=found[2])]}
        return {"plan": [act("write", path=found[1], content=found[2])]}
    found = re.match(r"write how many lines the file (\S+) has to (\S+), as", goal)
    assert found, goal
    return {"plan": [act("read", path=found[1]), act("write", 2, path=found[2], content="many")]}


def mind(proposals: list[dict[str, Any]]) -> Callable[[Seen], Reply]:
    """Answers whatever is asked: proposals once, plans by `planned`, every decision by giving up."""

    def reply(seen: Seen) -> Reply:
        tools = {tool["name"] for tool in seen.body.get("tools", ())}
        told = "".join(block["text"] for block in seen.body["system"])
        if "propose_changes" in tools:
            assert "You are the planner" in seen.said()
            changes, proposals[:] = list(proposals), []
            return object_call("propose_changes", changes=changes)
        if "propose_plan" in tools:
            last = seen.body["messages"][0]["content"][-1]["text"]
            return object_call("propose_plan", **planned(last.partition("The goal to plan for:\n")[2], told))
        return object_call("give_up", reason="it is not made for this")

    return reply


def change(text: str, title: str) -> dict[str, Any]:
    return {"title": title, "why": "tried", "files": [{"path": "prompts/planning.md", "text": text}]}


Opened = Callable[..., Awaitable[Engine]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    engines: list[Engine] = []

    async def open_(server: MessagesServer | None = None) -> Engine:
        model = None
        if server is not None:
            environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
            model = ModelChoice.from_environment(environ, name="claude-sonnet-5-5")
        engines.append(await Engine.open(tmp_path, config=EngineConfig(model=model)))
        return engines[-1]

    yield open_
    for engine in engines:
        await engine.close()


async def improve(engine: Engine, **said: object) -> JobRecord:
    mastermind = await engine.mastermind()
    asked = {"verb": "coord_improve", "argument": "prompts", "seed": 7, **said}
    receipt = await engine.submit(StartJob.model_validate(asked))
    assert receipt.ok, receipt.message
    return await mastermind.wait(receipt.data["job"])


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
    async with MessagesServer([mind([])], repeat=True) as server:
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


async def test_without_a_model_nothing_is_shown_of_a_prompt_and_that_is_said(opened: Opened) -> None:
    """Behaviour 70: nothing found, and no success."""
    engine = await opened()
    job = await improve(engine)
    assert job.status is JobStatus.DONE
    assert "no improvement shown: a prompt can only be judged with a model" in job.message
    (campaign,) = (await engine.mastermind()).state.campaigns.values()
    assert campaign.status is CampaignStatus.NO_IMPROVEMENT


@pytest.mark.slow
async def test_words_that_help_are_promoted_and_words_that_do_nothing_are_not(
    opened: Opened, tmp_path: Path
) -> None:
    proposals = [change(NULL, "calm"), change(BETTER, "say how")]
    async with MessagesServer([mind(proposals)], repeat=True) as server:
        engine = await opened(server)
        broke = await improve(engine)
        assert "this campaign may spend nothing" in broke.message
        assert not server.requests
        poor = await improve(engine, usd=0.0001)
        job = await improve(engine, usd=5.0)
        mastermind = await engine.mastermind()
        _, _, campaign = mastermind.state.campaigns.values()
        rulings = [(one.title, one.verdict and one.verdict.ruling) for one in campaign.candidates]
        assert rulings == [("calm", Ruling.NO_BETTER), ("say how", Ruling.BETTER)]
        assert "no improvement" in poor.message
        assert job.status is JobStatus.NEEDS_OPERATOR, job.message
        better = campaign.candidates[-1]
        assert better.verdict is not None
        assert better.verdict.mended
        assert all("replace in" in name for name in better.verdict.mended)
        assert 0 < campaign.usd < 5
        asked = len(server.requests)
        receipt = await engine.submit(ApplyCandidate(campaign=campaign.id))
        applied = await mastermind.wait(receipt.data["job"])
        assert applied.status is JobStatus.DONE, applied.message
        assert len(server.requests) == asked
    assert (tmp_path / "prompts/planning.md").read_text() == BETTER
    print(json.dumps({"usd": round(campaign.usd, 4), "calls": asked, "seconds": campaign.seconds}))
