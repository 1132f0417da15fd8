"""Proposals of a model: whole files, for a component's files alone, within a budget."""

from __future__ import annotations

import math
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from engine.core.improvement import Component, ComponentKind, Concern, Finding, Proposal
from engine.improve.ports import NothingProposed, ProposalRequest
from engine.improve.search.model_proposals import ModelProposer
from engine.models.choice import ModelChoice
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
