"""Thinkers asked for the explorer's plans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from answer_server import HANG, HttpAnswerer, answering

from app.cli.candidates import CandidateError
from app.cli.explorer import ExplorerOptions, explore
from app.cli.main import main
from engine.planning.pgp.prompts import PromptVariant
from engine.planning.pgp.requests import (
    AskError,
    AskFailure,
    Conversation,
    GenerationConfig,
    Prompt,
    request_answer,
)
from engine.tools.worlds.explorer import recorded_answer

CONFIG = GenerationConfig()
LISTING = recorded_answer("listing-5.9")
SEARCHING = """\
EVENT: achieve reach(home)
OPERATIONS:
- achieve look_for(home)
"""
"""An answer whose own goal needs plans in turn."""


def is_judge(request: dict[str, Any]) -> bool:
    return "You judge plans" in request["system"]


async def test_a_thinker_is_asked_once_for_all_seeds_and_both_cycles() -> None:
    async with answering(lambda request: LISTING) as server:
        options = ExplorerOptions(thinker="local", seeds="7-12", prompt=PromptVariant.HINTS, temperature=0.1)
        found, text = await explore(options, server.thinkers)
    assert (found["GAT"]["cycles"] is not None, found["runs"]) == (True, 6)
    (request,) = server.requests
    assert request["temperature"] == 0.1
    assert "achieve reach(home)" in request["user"]
    assert "Remarks" not in request["user"]
    assert "print" not in request["user"]
    assert found["asked"] == {
        "prompts": 1,
        "failures": [],
        "models": ["scripted-1"],
        "input_tokens": 11,
        "output_tokens": 7,
        "latency_ms": 2.5,
    }
    assert text.startswith("local: plans generated when the goal found no plan")


async def test_a_goal_that_an_answer_invents_is_asked_for_with_what_was_invented() -> None:
    later = "EVENT: achieve look_for(O)\nOPERATIONS:\n- execute move(east)\n- execute move(south_east)\n"
    later += "- execute move(south)\n"
    invented = SEARCHING + "---\n- goal: look_for(Object)\n  purpose: search the grid for Object\n"
    async with answering(lambda one: later if "look_for(home)" in one["user"] else invented) as server:
        found, _ = await explore(ExplorerOptions(thinker="local"), server.thinkers)
    assert (found["TSR"], found["GAT"]["moves"], found["generations"]) == (100, 3, 2)
    assert len(server.requests) == 2
    assert "- achieve look_for(Object): search the grid for Object" in server.requests[1]["user"]


async def test_a_later_question_without_answer_fails_its_goal_and_is_told() -> None:
    async with answering(lambda one: 503 if "look_for(home)." in one["user"] else SEARCHING) as server:
        found, text = await explore(ExplorerOptions(thinker="local"), server.thinkers)
    assert (found["TSR"], found["asked"]["failures"]) == (0, ["http: status 503"])
    assert "http: status 503" in text


@pytest.mark.parametrize(
    ("said", "failure"), [(500, "http: status 500"), ("  \n", "empty: the answer is empty")]
)
async def test_a_thinker_that_gives_nothing_is_named_as_the_failure(said: str | int, failure: str) -> None:
    async with answering(lambda request: said) as server:
        with pytest.raises(AskError, match=failure):
            await explore(ExplorerOptions(thinker="local"), server.thinkers)


async def test_an_answer_that_does_not_come_in_time_is_cut_off() -> None:
    short = replace(CONFIG, request_timeout_s=0.05)
    async with answering(lambda request: HANG) as server:
        with pytest.raises(AskError) as caught:
            await request_answer(HttpAnswerer(server.port), Prompt("s", "u"), short)
    assert str(caught.value) == "timeout: no whole answer within 0.05 seconds"


async def test_a_side_that_is_not_there_is_a_network_failure() -> None:
    async with answering(lambda request: "x") as server:
        port = server.port
    with pytest.raises(AskError) as caught:
        await request_answer(HttpAnswerer(port), Prompt("s", "u"), CONFIG)
    assert caught.value.kind is AskFailure.NETWORK


async def test_a_conversation_asks_each_prompt_once_and_no_more_than_its_limit() -> None:
    async with answering(lambda request: request["user"]) as server:
        talk = Conversation(HttpAnswerer(server.port), CONFIG, limit=2)
        said = [await talk.say(Prompt("s", user)) for user in ("a", "b", "a", "c")]
    assert [str(one) if isinstance(one, AskError) else one.text for one in said] == [
        "a",
        "b",
        "a",
        "limit: 2 different prompts were asked already",
    ]
    assert len(server.requests) == 2


async def test_a_judge_scores_the_plans_and_an_unreadable_score_is_told() -> None:
    scores = iter(["fine.\nScore: 0.65", "excellent"])
    async with answering(lambda one: next(scores) if is_judge(one) else LISTING) as server:
        options = ExplorerOptions(thinker="local", judge="local")
        found, text = await explore(options, server.thinkers)
        assert found["PRAS"] == {"value": 0.65, "kind": "judge"}
        assert "PRAS            0.65 by a judge" in text
        found, text = await explore(options, server.thinkers)
    assert found["PRAS"] == {"value": None, "kind": "judge", "problem": "the judge gave no line 'Score: …'"}
    (asked, _) = [one for one in server.requests if is_judge(one)]
    assert (asked["temperature"], LISTING.strip() in asked["user"]) == (0.0, True)


def test_a_thinker_that_is_not_there_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for options in (("--thinker", "local"), ("--judge", "local:x")):
        assert main(["explorer", *options]) == 2
        error = capsys.readouterr().err
        assert "there is no thinker 'local' here: choose recorded:FILE" in error
    assert main(["explorer", "--thinker", "recorded:"]) == 2
    assert main(["explorer", "--thinker", "recorded:5.8", "--temperature", "7"]) == 2


async def test_an_answer_is_kept_in_a_file_that_can_be_tried_again(tmp_path: Path) -> None:
    kept = tmp_path / "Ours" / "hints-0.5-1.txt"
    async with answering(lambda request: LISTING) as server:
        found, _ = await explore(ExplorerOptions(thinker="local", keep=kept), server.thinkers)
        assert kept.read_text() == LISTING
        again, _ = await explore(ExplorerOptions(answer=str(kept)))
        with pytest.raises(CandidateError, match="Is a directory; the answer could not be kept"):
            await explore(ExplorerOptions(thinker="local", keep=tmp_path), server.thinkers)
    assert [again[name] for name in ("TSR", "GAT", "PC")] == [found[name] for name in ("TSR", "GAT", "PC")]


def test_the_parameters_of_an_answer_hold_only_what_a_level_sets() -> None:
    """The command line over the answerer over the explorer's own."""
    found = GenerationConfig().over(model="m").over(temperature=0.0)
    assert (found.temperature, found.model, found.max_tokens) == (0.0, "m", 2048)
