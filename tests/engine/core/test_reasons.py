"""What is recorded are codes and values: the table of words, and every place where a reason is made."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from engine.core import events as ev
from engine.core.fold import dump_state, load_state
from engine.core.reasons import NONE, WORDS, Reason, free_text, read_reason
from engine.core.state import AgentState

PACKAGES = ("engine", "app", "widgets")
ANY_OF = {
    "run.": {"run.hold", "run.cut", "run.cancel", "run.freeze"},
    "end.": {"end.gate", "end.cut", "end.refused", "end.void", "end.failed"},
}
"""Codes that are put together where they are made, by how they begin."""


@functools.cache
def _calls() -> tuple[tuple[str, ast.Call], ...]:
    return tuple(_calls_in_packages())


def _calls_in_packages() -> Iterator[tuple[str, ast.Call]]:
    root = Path(__file__).parents[3]
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    yield f"{path.relative_to(root)}:{node.lineno}", node


def _codes(code: ast.expr) -> set[str]:
    """The codes that an argument may be."""
    match code:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=first, orelse=second):
            return _codes(first) | _codes(second)
        case ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]):
            return ANY_OF[begin]
    raise AssertionError(f"{ast.unparse(code)} is no code")


def _names(code: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(WORDS[code]) if name is not None}


def test_every_reason_has_words_and_is_given_their_values() -> None:
    wrong, used = [], {""}
    for place, call in _calls():
        if not (isinstance(call.func, ast.Name) and call.func.id == "Reason") or place.startswith(
            "engine/core/reasons.py"
        ):
            continue
        given = {keyword.arg for keyword in call.keywords}
        for code in _codes(call.args[0]):
            used.add(code)
            if code not in WORDS:
                wrong.append(f"{place}: {code} has no words")
            elif not (given == _names(code) or (None in given and given - {None} <= _names(code))):
                wrong.append(f"{place}: {code} needs {sorted(_names(code))}")
    assert not wrong
    assert not WORDS.keys() - used, "words that nothing says"


def _reason_fields() -> dict[str, set[str]]:
    """The fields of events that hold a reason, by the event's name."""
    return {
        model.__name__: {name for name, field in model.model_fields.items() if field.annotation is Reason}
        for model in ev.kinds().values()
    }


def test_no_event_is_given_a_sentence_for_a_reason() -> None:
    fields = _reason_fields()
    sentences = []
    for place, call in _calls():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        for keyword in call.keywords:
            worded = isinstance(keyword.value, ast.JoinedStr | ast.Constant | ast.BinOp)
            coded = "Reason(" in ast.unparse(keyword.value)
            known = keyword.arg in fields.get(name, ())
            if (worded and known) or (coded and name in fields and not known):
                sentences.append(f"{place}: {name}.{keyword.arg}")
    assert fields["AgentPaused"] == {"reason"}
    assert not sentences


def test_a_reason_is_recorded_as_its_code_and_values() -> None:
    why = Reason("gate.denied", by="ann", why="too early")
    held = ev.ActionHeld(action="a1", reason=Reason("gate.verdict", answer="deny", why=why))
    assert held.reason == "deny: ann denied it: too early"
    assert held.body() == (
        '{"action":"a1","reason":{"answer":"deny","code":"gate.verdict",'
        '"why":{"by":"ann","code":"gate.denied","why":"too early"}}}'
    )
    assert ev.ActionHeld.model_validate_json(held.body()).reason.values["why"].code == "gate.denied"


def test_better_words_change_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    body = ev.AgentPaused(reason=Reason("run.goal-over", goal="g1", status="achieved")).body()
    monkeypatch.setitem(WORDS, "run.goal-over", "{status}: {goal}")
    again = ev.AgentPaused.model_validate_json(body)
    assert (again.reason, again.body()) == ("achieved: g1", body)


def test_better_words_change_nothing_that_is_asked_of_an_older_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(WORDS, "run.budget", "the budget is used up: {why}")
    assert ev.AgentPaused.model_validate({"reason": "BUDGET: used up"}).reason.is_a("run.budget")


def test_a_sentence_of_an_older_journal_is_read_as_it_stands() -> None:
    paused = ev.AgentPaused.model_validate({"reason": "breakpoint b1: before s1"})
    assert paused.body() == '{"reason":"breakpoint b1: before s1"}'
    assert paused.reason.is_a("run.breakpoint")
    assert not paused.reason.is_a("run.budget")


def test_a_code_is_also_what_stands_above_it() -> None:
    assert Reason("run.breakpoint.step", step="s1").is_a("run.breakpoint")
    assert not Reason("run.breakpoint", breakpoint="b1", what="x").is_a("run.breakpoint.step")


def test_a_code_of_a_later_version_stands_for_itself() -> None:
    assert read_reason({"code": "later.one", "step": "s1"}) == "later.one step=s1"
    assert read_reason({"code": "run.goal-over", "goal": "g1"}) == "run.goal-over goal=g1"


@pytest.mark.parametrize(("count", "words"), [(1, "1 step"), (2, "2 steps"), (1_200, "1,200 steps")])
def test_counts_have_plurals(monkeypatch: pytest.MonkeyPatch, count: int, words: str) -> None:
    monkeypatch.setitem(WORDS, "some.steps", "{count:# step}")
    assert Reason("some.steps", count=count) == words


def test_reasons_stay_what_they_are_in_states_and_copies() -> None:
    why = Reason("plan.problems", problems=(Reason("plan.no-steps"), free_text("a\nb")))
    state = load_state(dump_state(AgentState(run_reason=why)))
    assert copy.deepcopy(why).recorded == why.recorded == state.run_reason.recorded
    assert why == "the plan has no steps; a\nb"
    assert why.cut(1).recorded["problems"][1] == "a"
    assert not NONE
