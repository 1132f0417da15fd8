"""Proposals of a model: whole files, for a component's files alone, within a budget."""

from __future__ import annotations

import math
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.campaigns import StartJob
from engine.core.improvement import (
    Candidate,
    Component,
    ComponentKind,
    Concern,
    Finding,
    Gain,
    JobStatus,
    Proposal,
    Ruling,
    Verdict,
)
from engine.improve.ports import NothingProposed, ProposalRequest, Variant
from engine.improve.search.archive import archive
from engine.improve.search.model_proposals import ModelProposer
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.messages_server import MessagesServer, Reply, object_call

MODEL = "claude-sonnet-5-5"
COMPONENT = Component(
    "sample", ComponentKind.PROJECT, "the project sample", ("sandbox/p/s.py", "sandbox/p/t.py")
)
TEXTS = {"sandbox/p/s.py": "def f():\n    return 1\n", "sandbox/p/t.py": ""}
FINDING = Finding("sample", Concern.TEST, "test_f fails", ("test_s.py:3",), path="sandbox/p/s.py")


def change(path: str, text: str) -> dict[str, Any]:
    return {"title": "return two", "why": "the test wants 2", "files": [{"path": path, "text": text}]}


def client_of(server: MessagesServer) -> Any:
    choice = ModelChoice.from_environment({"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"})
    assert choice is not None
    return choice.client()


async def ask(server: MessagesServer, budget: float = math.inf) -> tuple[Proposal, ...]:
    with TemporaryDirectory() as place:
        for path, text in {**TEXTS, "sandbox/p/test_s.py": "[end of"}.items():
            Path(place, path).parent.mkdir(parents=True, exist_ok=True)
            Path(place, path).write_text(text)
        proposer = ModelProposer(client_of(server), MODEL)
        asked = ProposalRequest(COMPONENT, Path(place), [FINDING], random.Random(0), budget)
        return tuple(await proposer.propose(asked))


async def test_a_model_proposes_whole_files_and_what_it_may_not_change_goes_back_to_it() -> None:
    wrong = object_call("propose_changes", changes=[change("pilothouse.toml", "x")])
    right = object_call("propose_changes", changes=[change("sandbox/p/s.py", "def f():\n    return 2\n")])
    async with MessagesServer([wrong, right]) as server:
        (proposal,) = await ask(server)
        asked = server.requests[0].said()
    assert proposal.files == {"sandbox/p/s.py": "def f():\n    return 2\n"}
    assert (proposal.origin, proposal.answers) == (f"model:{MODEL}", (FINDING,))
    assert proposal.cost_usd > 0
    assert "an answer before was refused: change 1: 'pilothouse.toml' is none of" in proposal.why
    assert "test_f fails" in asked
    assert "not to be changed: sandbox/p/test_s.py" in asked


async def test_no_call_is_made_that_could_break_the_budget() -> None:
    async with MessagesServer([Reply("never")]) as server:
        with pytest.raises(NothingProposed, match=r"a call may cost \$0\.\d+, and \$0\.0010 is left"):
            await ask(server, 0.001)
        assert not server.requests


async def test_an_empty_list_is_an_answer_and_a_failing_server_says_so() -> None:
    async with MessagesServer([object_call("propose_changes", changes=[])]) as server:
        with pytest.raises(NothingProposed, match="nothing to make better") as nothing:
            await ask(server)
    assert nothing.value.cost_usd > 0
    async with MessagesServer([Reply(status=401)]) as server:
        with pytest.raises(NothingProposed, match=MODEL):
            await ask(server)


TITLE = '''"""Titles."""


def title(text):
    """The words of a text, each with a large first letter."""
    raise NotImplementedError


def words(text):
    """The words of a text."""
    return text.split()
'''
TESTS = """from titles import title, words


def test_title():
    assert title("one two") == "One Two"
    assert title("a") == "A"
    assert title("") == ""


def test_words():
    assert words("one two") == ["one", "two"]
"""
RIGHT = TITLE.replace("raise NotImplementedError", "return text.title()")


async def test_what_the_judge_said_goes_back_to_the_model(tmp_path: Path) -> None:
    project = tmp_path / "sandbox" / "titles"
    project.mkdir(parents=True)
    (project / "titles.py").write_text(TITLE)
    (project / "test_titles.py").write_text(TESTS)
    (project / "pyproject.toml").write_text("")
    path = "sandbox/titles/titles.py"
    answers = [
        object_call("propose_changes", changes=[change(path, RIGHT.replace("text.split()\n", "[text]\n"))]),
        object_call("propose_changes", changes=[change(path, RIGHT)]),
    ]
    async with MessagesServer(answers) as server:
        choice = ModelChoice(Endpoint(server.url), MODEL, retries=Retries(attempts=1))
        engine = await Engine.open(tmp_path, config=EngineConfig(model=choice))
        try:
            command = StartJob(verb="coord_improve", argument="titles", usd=5.0, seconds=60)
            receipt = await engine.submit(command)
            mastermind = await engine.mastermind()
            job = await mastermind.wait(receipt.data["job"])
            (campaign,) = mastermind.state.campaigns.values()
        finally:
            await engine.close()
        asked = [request.said() for request in server.requests]
    assert job.status is JobStatus.NEEDS_OPERATOR, job.message
    first, second = campaign.candidates[-2:]
    assert first.verdict is not None
    assert first.verdict.ruling is Ruling.BROKEN
    assert campaign.chosen == second.id
    assert "tried before: k1" not in asked[0]
    assert f"tried before: {first.id}" in asked[1]
    assert "ruling: broken: what held does not hold with it" in asked[1]
    assert "+    return [text]" in asked[1]


def judged(name: str, text: str, ruling: Ruling, size: int, mean: float = 0.0) -> Variant:
    gain = Gain(mean, mean, mean, 6, "saved", 1.0, 1.0)
    verdict = Verdict(ruling, (), gain)
    return Variant(Candidate(name, "sample", name, "model", added=size, verdict=verdict), {"s.py": text})


def test_an_archive_keeps_what_differs_and_what_nothing_beats() -> None:
    base = {"s.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n"}
    other = base["s.py"].replace("return 2", "return 3")
    kept = archive(
        [
            judged("long", base["s.py"].replace("return 1", "return 1 + 0"), Ruling.BROKEN, 9, 1.0),
            judged("quick", base["s.py"].replace("return 1", "return 4"), Ruling.NO_BETTER, 5, 3.0),
            judged("short", base["s.py"].replace("return 1", "return 5"), Ruling.NO_BETTER, 2, 1.0),
            judged("elsewhere", other, Ruling.REJECTED, 50, -5.0),
        ],
        base,
    )
    assert [variant.candidate.id for variant in kept] == ["short", "quick", "elsewhere"]
