"""Notifications: only *needs you* and *done*, once each, in sequences that are well formed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.cockpit.controllers.announcements import TerminalNotifier, escape_sequence, notice_text, notice_title
from app.commands.settings import Settings
from engine.core import events as ev
from engine.core.goals import Goal, GoalStatus
from engine.core.journal import Event
from engine.core.recovery import FailureKind
from engine.core.state import AgentState
from engine.inquiry.notices import Notice, NoticeFilter, Rule, notice_of
from tests.trusting import write_trusted

HOSTILE = "a;b\x07\x1b]0;title\x1b\\\x9c\u202e<b>&\nc"


def _event(payload: ev.Payload, version: int = 1, actor: str = "agent") -> Event:
    at = "2026-01-01T00:00:00.000000Z"
    return Event("pilot", version, at, 0, actor, (), payload.kind, payload.body(), "", version)


STATE = AgentState(agent_id="pilot", goals={"g1": Goal("g1", "root"), "g2": Goal("g2", "sub", parent="g1")})


def _notice(payload: ev.Payload, version: int = 1, actor: str = "agent") -> Notice | None:
    return notice_of(_event(payload, version, actor), payload, STATE)


def test_needs_you_and_done_are_told_apart() -> None:
    turn = _notice(ev.InterventionOpened(reason="no recipe"))
    done = _notice(ev.GoalEnded(goal="g1", status=GoalStatus.ACHIEVED))
    failed = _notice(ev.GoalEnded(goal="g1", status=GoalStatus.FAILED, reason="no disk"))
    budget = _notice(ev.BudgetReached(reason="$1 is spent"))
    assert turn is not None
    assert done is not None
    assert failed is not None
    assert budget is not None
    assert (turn.rule, done.rule, failed.rule) == (Rule.NEEDS_YOU, Rule.DONE, Rule.DONE)
    assert budget.rule is Rule.NEEDS_YOU
    assert "no disk" in failed.text


@pytest.mark.parametrize(
    ("payload", "actor"),
    [
        (ev.InterventionOpened(reason="taken"), "operator:ann"),
        (ev.GoalEnded(goal="g1", status=GoalStatus.DROPPED), "operator:ann"),
        (ev.GoalEnded(goal="g2", status=GoalStatus.ACHIEVED), "agent"),
        (ev.FailureRecorded(failure=next(iter(FailureKind)), message="late"), "agent"),
        (ev.AgentPaused(reason="leash"), "agent"),
        (ev.ThoughtRecorded(text="hm"), "agent"),
    ],
)
def test_nothing_else_is_told_nor_what_the_operator_did(payload: ev.Payload, actor: str) -> None:
    assert _notice(payload, actor=actor) is None


def test_each_thing_is_told_once_and_only_what_the_rule_wants() -> None:
    turn, done = Notice(Rule.NEEDS_YOU, "a", "x", "one"), Notice(Rule.DONE, "a", "x", "two")
    every = NoticeFilter(Rule.DONE)
    assert [every.passes(one) for one in (turn, done, turn, done)] == [True, True, False, False]
    some = NoticeFilter(Rule.NEEDS_YOU)
    assert [some.passes(one) for one in (turn, done)] == [True, False]
    none = NoticeFilter(Rule.OFF)
    assert not any(none.passes(one) for one in (turn, done))


def test_a_budget_that_holds_again_is_told_once() -> None:
    told = NoticeFilter(Rule.DONE)
    reached = [_notice(ev.BudgetReached(reason="$1 is spent"), version) for version in (1, 2)]
    assert [told.passes(one) for one in reached if one is not None] == [True, False]


@pytest.mark.parametrize(
    ("environ", "form"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, 9),
        ({"TERM": "xterm-kitty"}, 9),
        ({"TERM": "foot"}, 777),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, 777),
        ({"TERM": "xterm-256color"}, 0),
        ({"TERM": "linux"}, 0),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/x,1,0"}, 0),
    ],
)
def test_only_known_terminals_get_a_sequence_and_it_is_well_formed(
    environ: dict[str, str], form: int
) -> None:
    written: list[str] = []
    notice = Notice(Rule.NEEDS_YOU, HOSTILE, HOSTILE, "x")
    TerminalNotifier(written.append, environ).tell(notice)
    assert escape_sequence(environ) == form
    assert written[0] == "\a"
    assert len(written) == (2 if form else 1)
    if form:
        begin, end = f"\x1b]{form};", "\x1b\\"
        assert written[1].startswith(begin)
        assert written[1].endswith(end)
        inner = written[1].removeprefix(begin).removesuffix(end)
        assert inner.isprintable()
        assert form == 9 or inner.split(";")[0] == "notify"
        assert form == 9 or inner.split(";")[1].endswith("needs you")
    assert notice_title(notice).isprintable()
    assert notice_text(notice).isprintable()


def test_the_setting_is_read_and_a_wrong_one_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    assert Settings.load(tmp_path).notify is Rule.DONE
    write_trusted(tmp_path / "pilothouse.toml", '[cockpit]\nnotify = "needs-you"\n')
    assert Settings.load(tmp_path).notify is Rule.NEEDS_YOU
    write_trusted(tmp_path / "pilothouse.toml", '[cockpit]\nnotify = "always"\n')
    assert "cockpit.notify" in Settings.load(tmp_path).problems[0]
    assert os.environ["PILOTHOUSE_HOME"]
