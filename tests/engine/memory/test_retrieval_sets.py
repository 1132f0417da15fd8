"""The benchmark of recall reads public sets as they come, and its figures are what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import main
from tests.benchmarks.retrieval import Measured, bm25, threshold_for
from tests.benchmarks.retrieval_sets import Question, read_sets

TALK = {
    "speaker_a": "Ann",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I sold the boat."},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a photo of a kite"},
    ],
    "qa": [
        {"question": "What did Ann sell?", "evidence": ["D1:1"], "category": 4},
        {"question": "What did Bo sell?", "evidence": ["D1:1"], "category": 5},
        {"question": "What is shown?", "evidence": ["D1:2; D9:9"], "category": 1},
        {"question": "Nothing?", "category": 3},
    ],
}


def test_conversations_are_read_with_captions_and_questions_that_their_turns_answer(tmp_path: Path) -> None:
    folder = tmp_path / "locomo" / "data"
    folder.mkdir(parents=True)
    for name in ("26", "30"):
        (folder / f"{name}.json").write_text(json.dumps(TALK))
    sets, missing = read_sets(tmp_path)
    stack = next(one for one in sets if one.name == "LoCoMo").haystacks[0]
    assert stack.texts == {"D1:1": "Ann: I sold the boat.", "D1:2": "Bo: Look! [photo: a photo of a kite]"}
    asked = [(question.text, sorted(question.answers)) for question in stack.questions]
    answered = [("What did Ann sell?", ["D1:1"]), ("What is shown?", ["D1:2"])]
    assert asked == [*answered, ("What did Ann sell?", []), ("What is shown?", [])]
    assert [sentence.split(":")[0] for sentence in missing] == ["cranfield", "cisi"]


def test_judged_collections_are_read_by_their_two_conventions(tmp_path: Path) -> None:
    """Cranfield's judgements count questions by their place; codes below 1 say that a text is no answer."""
    for folder, names in (("cranfield", ("cran.all.1400", "cran.qry", "cranqrel")), ("cisi", ())):
        (tmp_path / folder).mkdir()
        texts, asked = ".I 1\n.T\nwings\n.W\nlift of\nwings\n.I 2\n.W\nheat\n", ".I 007\n.W\nwhat lifts\n"
        judged = "1 1 2\n1 2 -1\n"
        if not names:
            names, judged = ("CISI.ALL", "CISI.QRY", "CISI.REL"), "7 1\t0\t0.0\n"
            asked = asked.replace("007", "7")
        for name, text in zip(names, (texts, asked, judged), strict=True):
            (tmp_path / folder / name).write_text(text)
    sets, _ = read_sets(tmp_path)
    by_name = {one.name: one.haystacks[0] for one in sets}
    assert by_name["Cranfield"].texts == {"1": "lift of wings", "2": "heat"}
    assert by_name["CISI"].texts == {"1": "wings lift of wings", "2": "heat"}
    for name in ("Cranfield", "CISI"):
        asked = [question for question in by_name[name].questions if question.answers]
        assert [(one.text, set(one.answers)) for one in asked] == [("what lifts", {"1"})]


def test_the_repositorys_own_pairs_have_a_half_that_nothing_is_chosen_on(tmp_path: Path) -> None:
    (own,), missing = read_sets(tmp_path)
    (stack,) = own.haystacks
    halves = [[one for one in stack.questions if one.training is half] for half in (True, False)]
    assert [sum(bool(one.answers) for one in half) for half in halves] == [60, 60]
    assert len(stack.texts) == 300
    assert len(missing) == 3
    texts = [question.text for question in stack.questions]
    assert len(set(texts)) == len(texts)
    found = bm25(stack)
    hits = [
        found[at][0][0] in one.answers for at, one in enumerate(stack.questions) if one.answers and found[at]
    ]
    assert sum(hits) > 50


def test_figures_are_of_the_test_half_and_thresholds_of_the_other() -> None:
    yes = frozenset(["a"])
    asked: list[tuple[Question, list[tuple[str, float]]]] = [
        (Question("1", yes, True), [("x", 0.9)]),
        (Question("2", frozenset(), True), [("x", 0.2)]),
        (Question("3", yes, False), [("x", 0.95), ("a", 0.7)]),
        (Question("4", frozenset(), False), [("x", 0.1)]),
    ]
    (row,) = Measured("m", {"s": asked}).rows()
    figures: dict[str, Any] = {"recall@5": 1.0, "recall@10": 1.0, "MRR": 0.5, "abstention F1": 1.0, "n": 1}
    assert {name: row[name] for name in figures} == figures
    assert threshold_for([[(True, 0.9), (False, 0.2)]]) == 0.9


@pytest.mark.parametrize(
    "arguments", [["bench", "journal", "--sets", "."], ["bench", "memory", "--sets", "nowhere"]]
)
def test_what_does_not_fit_is_said(arguments: list[str], capsys: Any) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert "--sets" in told or "there is no folder nowhere" in told
