"""Each kind of breakpoint comes where it should and nowhere else, over folded streams."""

from __future__ import annotations

from random import Random

import pytest
from break_stream import Watched, steps

from engine.core import events as ev
from engine.core.actions import ErrorCode, SandboxSession
from engine.core.breakpoints import BreakError, read_break, write_break
from engine.core.conditions import ConditionError, glob_found_in, glob_matches, is_met, read_condition
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.recovery import FailureKind
from engine.inquiry.dry_run import DryRun


def life(*lines: str) -> Watched:
    """A short life in which each kind comes a known number of times."""
    one = Watched(*lines)
    one.plan(*steps(6))
    one.act(1, path="a.py", beliefs={"tests_green": True})
    one.act(2, path="setup.toml", beliefs={"tests_green": True, "count": 1})
    one.add(ev.WorldPerceived(facts={"count": 2, "gone": 1}, session=SandboxSession()), "world")
    one.look()
    one.act(3, "run", beliefs={"tests_green": False, "gone": None}, code=ErrorCode.EXIT_STATUS)
    one.add(ev.FailureRecorded(failure=FailureKind.NETWORK_ERROR, message="no route", goal="g1", step="s3"))
    one.look()
    one.add(ev.ModelCalled(goal="g1", model="m", request={}, tokens=600, cost_usd=0.3), "thinker")
    one.look()
    one.add(ev.GoalAdopted(goal="g2", text="fix the tests", parent="g1"), "operator:ann")
    one.look()
    one.add(ev.ModelCalled(goal="g2", model="m", request={}, tokens=600, cost_usd=0.3), "thinker")
    one.look()
    one.add(ev.PlanRevised(plan="p1", goal="g1", change="planned anew", steps=steps(6)))
    one.look()
    one.add(ev.PlanRevised(plan="p1", goal="g1", change="edited", steps=steps(6)), "operator:ann")
    one.look()
    one.act(4, path="b.toml", beliefs={"tests_green": True})
    one.add(ev.GoalEnded(goal="g2", status=GoalStatus.FAILED))
    one.add(ev.GoalEnded(goal="g1", status=GoalStatus.ACHIEVED))
    one.look()
    return one


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("step s3", ["before s3 do thing 3"]),
        ("step 'thing 4'", ["before s4 do thing 4"]),
        ("step nothing", []),
        ("tool write path=*.toml", ["before a2 simple_coder.write: path setup.toml"] * 1 + ["before a4"]),
        ("tool simple_coder.run", ["before a3"]),
        ("tool run path=*", []),
        ("tool delete", []),
        ("goal g2", ["goal g2 adopted", "goal g2 failed"]),
        ("goal failed", ["goal g2 failed"]),
        ("goal achieved build", ["goal g1 achieved"]),
        ("goal dropped", []),
        ("plan", ["plan p1 of g1 adopted", "plan p1 of g1 revised: planned anew"]),
        ("plan revised g2", []),
        ("belief tests_green true->false", ["belief tests_green true -> false"]),
        ("belief tests_green added", ["belief tests_green none -> true"]),
        ("belief count changed", ["belief count 1 -> 2"]),
        ("belief gone", ["belief gone none -> 1", "belief gone 1 -> none"]),
        ("belief tests_green false->none", []),
        ("error NETWORK*", ["NETWORK_ERROR: no route"]),
        ("error TOOL*", []),
        ("result 'did a2'", ["a2 write shows did a2"]),
        ("result in run done exit 1", ["a3 run shows done"]),
        ("result exit 7", []),
        ("spend g1 $0.50", ["models have taken $0.6 for g1"]),
        ("spend g2 $0.50", []),
        ("spend 1,200 tokens", ["models have taken 1,200 tokens"]),
        ("every 2", ["2 actions"] * 2),
        ("every 5", []),
        ("tool write when belief.tests_green == true and actions >= 1", ["before a2"]),
        ("tool write after 3", ["before a4"]),
        ("tool write once", ["before a1"]),
        (
            "belief tests_green after 2",
            ["belief tests_green true -> false", "belief tests_green false -> true"],
        ),
        ("belief tests_green after 2 once", ["belief tests_green true -> false"]),
        ("belief tests_green when failures > 0", ["belief tests_green false -> true"]),
    ],
)
def test_a_breakpoint_comes_where_it_should_and_a_dry_run_says_the_same(line: str, held: list[str]) -> None:
    lived = life(line)
    assert [what[: len(wanted)] for (_, what), wanted in zip(lived.held, held, strict=True)] == held
    point = lived.state.points["b1"]
    assert point.stopped == len(held)
    assert fold(lived.events) == lived.state

    spec = read_break(line)
    assert read_break(write_break(spec)) == spec
    for events in (lived.events, life().events):  # with it, and as if it had not been there
        dry = DryRun([spec])
        dry.take(events)
        (told,) = dry.told()
        assert (told.matched, told.stopped) == (lived.state.came["b1"], point.stopped)
        assert [stop.what for stop in told.stops] == [what for _, what in lived.held]


def test_one_that_is_off_or_cleared_holds_nothing_and_counts_nothing() -> None:
    one = Watched("tool write", "belief *")
    one.add(ev.BreakpointChanged(breakpoint="b1", enabled=False))
    one.add(ev.BeliefAdded(key="x", value=1))
    one.add(ev.BreakpointChanged(breakpoint="b2", cleared=True))
    one.plan(*steps(2))
    assert one.act(1, path="a", beliefs={"y": 2})
    assert not one.held
    assert (one.state.came["b1"], one.state.watched) == (0, {})
    one.add(ev.BreakpointChanged(breakpoint="b1"))
    assert not one.act(2, path="b")


def test_of_fifty_seeded_faults_every_one_is_held_before_the_first_harmful_effect() -> None:
    halted = 0
    for seed in range(50):
        dice = Random(seed)
        bad = dice.randrange(3, 40)
        how = dice.choice(["belief", "result", "error", "tool"])
        lines = {
            "belief": "belief tests_green true->false",
            "result": f"result 'a{bad}'",
            "error": "error *",
            "tool": "tool delete path=src/*",
        }
        one = Watched(lines[how])
        one.plan(*steps(50))
        for number in range(1, bad):
            assert one.act(number, path=f"f{number}", beliefs={"tests_green": True})
        assert not one.held
        if how == "tool":
            halted += not one.act(bad, "delete", path="src/main.py")
            continue
        beliefs = {"tests_green": False} if how == "belief" else {}
        action = f"a{bad}"
        one.add(ev.ActionRequested(action=action, step=f"s{bad}", tool="t", command="run", args={}))
        one.add(ev.ActionStarted(action=action, undo="irreversible"))
        one.add(
            ev.ActionFinished(action=action, status="FAILURE", code="exit_status", result={"stdout": action})
        )
        for key, value in beliefs.items():
            one.believe(key, value)
        one.add(ev.FailureRecorded(failure=FailureKind.TOOL_EXECUTION_ERROR, message="wrong", step=f"s{bad}"))
        # The harm would be in the next action: the agent stands at its gate, or before it thinks of it.
        halted += one.look(dice.choice(["", f"s{bad + 1}"]))
    assert halted == 50


def test_a_thousand_clean_actions_are_held_nowhere() -> None:
    one = Watched(
        "belief tests_green true->false",
        "error *",
        "tool delete",
        "tool write path=*.toml",
        "result Traceback",
        "spend $0.50",
        "goal failed",
        "plan revised",
        "step s1 when failures > 2",
    )
    one.plan(*steps(5))
    for number in range(1, 1_001):
        assert one.act(number, path=f"f{number}.py", beliefs={"tests_green": True, "n": number}, step="s9")
    assert not one.held
    assert all(point.stopped == 0 for point in one.state.points.values())


# ------------------------------------------------------------------ hostile input


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "the kind is missing"),
        ("colour red", "'colour' is no kind of breakpoint; kinds: step, tool"),
        ("tool " + "x" * 1_000, "at most 1000 characters"),
        ("belief a\x1b[2Jb", "without control characters"),
        ("belief a\u202eb", "without control characters"),
        ("belief 'a", "a quote is not closed"),
        ("belief a when " + "(" * 200 + "1", "nested at most 20"),
        ("belief a when __import__('os')", "there is no '__import__'"),
        ("belief a when belief.x", ""),
        ("tool write path", "no NAME=PATTERN"),
        ("every 0", "a number from 1"),
        ("every 99999999999", "a number from 1"),
        ("spend g1 -5", "an amount is expected"),
        ("spend $0", "an amount is expected"),
        ("result in run", "it is not said what it shows"),
        ("result exit 1", ""),
        ("intention x", "no intention's number"),
        ("belief x after many", "a number from 1"),
    ],
)
def test_a_wrong_line_is_refused_with_what_is_wrong(line: str, why: str) -> None:
    if not why:
        read_break(line)
        return
    with pytest.raises(BreakError) as refused:
        read_break(line)
    assert why in str(refused.value)


def test_no_pattern_takes_longer_than_its_text_is_long() -> None:
    text = "a" * 60_000
    for pattern in ("*a" * 400 + "b", "a*" * 400 + "b", "*" * 900 + "b", "?*" * 400 + "b", "(a+)+$"):
        assert not glob_matches(pattern, text)
        assert not glob_found_in(pattern, text)
    assert glob_matches("a*a?a*", "aaaa")
    assert not glob_matches("a*b", "ab" + "a")
    assert glob_matches("*.toml", "x/y.toml")
    assert glob_matches("ab*ba", "abba")
    assert not glob_matches("aba*ba", "aba")


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("failures > 2 and belief.green == false", True),
        ("failures > 3 or not belief.green", True),
        ("not (failures > 2)", False),
        ("belief.name like '*.toml'", True),
        ("belief.missing == none", True),
        ("belief.missing > 3", False),
        ("belief.name > 3", False),
        ("belief.one == true", False),
        ("belief.one == 1.0", True),
        ("belief.one >= 1", True),
        ('belief.name == "a.toml"', True),
        ("goal != 'g2' and usd < 0.5", True),
    ],
)
def test_conditions(text: str, met: bool) -> None:
    values = {
        "failures": 3,
        "belief.green": False,
        "belief.name": "a.toml",
        "belief.one": 1,
        "usd": 0.1,
        "goal": "g1",
    }
    assert is_met(read_condition(text), values.get) is met


@pytest.mark.parametrize(
    "text",
    ["", "failures >", "failures 2", "(failures > 2", "a.b", "failures > 2)", "1 < 2 < 3", "'x", "belief. ;"],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ConditionError):
        read_condition(text)
