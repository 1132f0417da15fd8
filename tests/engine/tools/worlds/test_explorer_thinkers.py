"""Thinkers asked for the explorer's plans, alone and in experiments."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from answer_server import HANG, HttpAnswerer, answering
from explorer_answers import FLYING

from app.cli.candidates import CandidateError
from app.cli.experiment import experiment_answer
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
GRID = """\
at_once = 2
[[thinkers]]
model = "Ours"
thinker = "local"
prompts = ["no-hints", "hints"]
temperatures = [0.1, 0.5]
repeats = 2
"""


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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(GRID)
    for options in (("--thinker", "local"), ("--judge", "local:x"), ("--experiment", str(path))):
        assert main(["explorer", *options]) == 2
        error = capsys.readouterr().err
        assert "there is no thinker 'local' here: choose recorded:FILE" in error
    assert main(["explorer", "--thinker", "recorded:"]) == 2
    assert main(["explorer", "--thinker", "recorded:5.8", "--temperature", "7"]) == 2


# ------------------------------------------------------------------ experiments


async def test_an_experiment_asks_each_cell_a_few_at_a_time_and_keeps_every_answer(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(GRID)
    async with answering(lambda request: LISTING) as server:
        server.together = 2
        first, text = await experiment_answer(path, server.thinkers)
        assert (len(server.requests), server.most_inside) == (8, 2)
        again, _ = await experiment_answer(path, server.thinkers)
        assert len(server.requests) == 8
    assert again == first
    assert Counter(one["temperature"] for one in server.requests) == {0.1: 4, 0.5: 4}
    folders = sorted(one.name for one in (tmp_path / "e-answers").iterdir())
    assert (len(folders), folders[0]) == (8, "Ours-hints-0.1-1")
    (kept,) = (tmp_path / "e-answers" / folders[0]).iterdir()
    facts = json.loads(kept.read_text())
    assert (facts["reply"]["text"], facts["reply"]["model"]) == (LISTING, "scripted-1")
    assert (facts["config"]["temperature"], facts["failure"]) == (0.1, None)
    assert [row["GAT"] for row in first["tables"]["5.5"]["ours"]] == ["37.00"]
    assert "Ours: 0.21 by surrogate, 8 answers" in text


async def test_failures_are_kept_with_their_cell_and_asked_again_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(GRID)
    trouble: list[str | int] = [429, ""]
    async with answering(lambda request: trouble.pop() if trouble else LISTING) as server:
        first, text = await experiment_answer(path, server.thinkers)
        assert sorted(one["problem"] for one in first["failures"]) == [
            "empty: the answer is empty",
            "http: status 429",
        ]
        assert (len(first["trials"]), len(first["missing"])) == (6, 2)
        assert "http: status 429" in text
        kept = [json.loads(one.read_text()) for one in (tmp_path / "e-answers").rglob("*.json")]
        assert Counter(one["failure"]["kind"] for one in kept if one["failure"]) == {"http": 1, "empty": 1}
        second, _ = await experiment_answer(path, server.thinkers)
        assert (len(server.requests), len(second["trials"]), second["failures"]) == (10, 8, [])


async def test_an_answer_of_a_cell_that_comes_too_late_is_recorded_and_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    one_cell = GRID.replace("[0.1, 0.5]", "[0.1]").replace('"no-hints", ', "").replace("repeats = 2", "")
    path.write_text(f"timeout_s = 0.05\n{one_cell}")
    async with answering(lambda request: HANG) as server:
        found, _ = await experiment_answer(path, server.thinkers)
        (failure,) = found["failures"]
        assert failure["problem"] == "timeout: no whole answer within 0.05 seconds"
        path.write_text(one_cell)
        server.script = lambda request: LISTING
        found, _ = await experiment_answer(path, server.thinkers)
    assert (found["failures"], len(found["trials"])) == ([], 1)


async def test_a_judge_scores_a_few_answers_of_each_model_that_succeeded(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f'judge = "local"\njudged = 2\n{GRID}')
    turns = iter("abcdefgh")

    def script(request: dict[str, Any]) -> str:
        if is_judge(request):
            return "Score: 0.5"
        return FLYING if next(turns) in "ab" else f"{LISTING}\n{len(server.requests)}\n"

    async with answering(script) as server:
        found, text = await experiment_answer(path, server.thinkers)
        await experiment_answer(path, server.thinkers)
    assert found["PRAS"]["Ours"] == {"value": 0.5, "kind": "judge", "answers": 2, "unreadable": []}
    assert Counter(one["PRAS"]["kind"] for one in found["trials"]) == {"surrogate": 6, "judge": 2}
    assert "Ours: 0.50 by judge, 2 answers" in text


async def test_a_kept_answer_that_was_damaged_is_named_instead_of_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(GRID)
    async with answering(lambda request: LISTING) as server:
        await experiment_answer(path, server.thinkers)
        damaged = next((tmp_path / "e-answers").rglob("*.json"))
        damaged.write_text("{")
        with pytest.raises(CandidateError, match="delete it to ask again"):
            await experiment_answer(path, server.thinkers)


async def test_a_folder_that_cannot_be_written_ends_the_experiment_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f'folder = "e.toml"\n{GRID}')
    async with answering(lambda request: LISTING) as server:
        with pytest.raises(CandidateError, match=r"Not a directory|File exists"):
            await experiment_answer(path, server.thinkers)


async def test_an_experiment_that_was_cut_off_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(GRID)
    reached = asyncio.Event()

    def script(request: dict[str, Any]) -> str:
        if len(server.requests) < 5:
            return LISTING
        reached.set()
        return HANG

    async with answering(script) as server:
        run = asyncio.create_task(experiment_answer(path, server.thinkers))
        await reached.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        kept = len(list((tmp_path / "e-answers").rglob("*.json")))
        server.script = lambda request: LISTING
        asked = len(server.requests)
        found, _ = await experiment_answer(path, server.thinkers)
    assert kept > 0
    assert len(server.requests) - asked == 8 - kept
    assert len(found["trials"]) == 8


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("at_once = 2", "at_once = 0"), "at_once"),
        (("at_once = 2", "timeout_s = inf"), "timeout_s"),
        (("[0.1, 0.5]", "[0.1, 5]"), "temperatures.1: it should be less than or equal to 2"),
        (("[0.1, 0.5]", "[0.1, 0.1]"), "stands there twice"),
        (('thinker = "local"', ""), "thinkers.0.thinker"),
    ],
)
async def test_a_grid_that_makes_no_sense_is_named_with_its_fault(
    tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(GRID.replace(*change))
    async with answering(lambda request: LISTING) as server:
        with pytest.raises(ValueError, match=complaint):
            await experiment_answer(path, server.thinkers)
    assert not server.requests


def test_a_recording_stands_beside_its_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "answer.txt").write_text(LISTING)
    (tmp_path / "judge.txt").write_text("Score: 0.4")
    path = tmp_path / "e.toml"
    text = GRID.replace('"local"', '"recorded:answer.txt"')
    path.write_text(f'judge = "recorded:judge.txt"\n{text}')
    assert main(["explorer", "--experiment", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["PRAS"]["Ours"]["value"] == 0.4


def test_the_parameters_of_an_answer_hold_only_what_a_level_sets() -> None:
    """The command line over the answerer over the experiment."""
    found = GenerationConfig().over(model="m").over(temperature=0.0)
    assert (found.temperature, found.model, found.max_tokens) == (0.0, "m", 2048)
