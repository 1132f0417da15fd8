"""The answers of models: the fifteen ways they write plans (spec BDI §2.9; §7 52)."""

from __future__ import annotations

import time

import pytest
from explorer_case import answer, listing
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.bdi.parser import parse_plan
from engine.bdi.printer import plan_text, text_of
from engine.planning.pgp.answer_layout import PLAN_LIMIT, ProblemKind
from engine.planning.pgp.answer_parser import Answer
from tests.patience import PATIENCE_S
from tests.rounds import rounds


def plans(text: str) -> list[str]:
    """The plans of an answer that was read without a problem, each on one line."""
    read = answer(text)
    assert not read.problems
    return one_line(read)


def one_line(read: Answer) -> list[str]:
    return [" ".join(plan_text(one.plan).split()) for one in read.plans]


def condition(text: str) -> str:
    read = answer(f"EVENT: achieve g(X)\nCONDITIONS:\n- {text}\nOPERATIONS:\n- <none>")
    assert not read.problems, read.problems
    return text_of(read.plans[0].plan.context)


def operation(text: str) -> str:
    read = answer(f"EVENT: achieve g(X)\nCONDITIONS:\n- <none>\nOPERATIONS:\n- {text}")
    assert not read.problems, read.problems
    return one_line(read)[0].removeprefix("+!g(X) <- ").removesuffix(".")


ONE = "EVENT: achieve a\nCONDITIONS:\n- p\nOPERATIONS:\n- execute stop()\n"
TWO = "EVENT: achieve b\nCONDITIONS:\n- q\nOPERATIONS:\n- execute stop()\n"
BOTH = ["+!a : p <- stop.", "+!b : q <- stop."]


@pytest.mark.parametrize(
    "text",
    [
        f"```yaml\n{ONE}```\n\n---\n\n```yaml\n{TWO}```",
        f"```yaml\n{ONE}---\n{TWO}```",
        f"```yaml\n{ONE}{TWO}```",
        f"```yaml\n\n{ONE}\n---\n\n\n{TWO}\n---\n```\n---",
        f"```yaml\n# the first\n{ONE}---\n# the second\n{TWO}```".replace("- p", "- p  # holds"),
        f"```yaml\n{ONE}```yaml\n{TWO}",
        f"# Plans\nThe first:\n```yaml\n{ONE}```\nAnd then:\n* as I said\n```\n{TWO}```\nThat is all.",
        f"{ONE}\n---\n{TWO}\nThese plans do it.",
        f"```yaml\nplans:\n- {ONE.replace('CON', '  CON').replace('OPE', '  OPE')}{TWO}```",
        f"~~~\n{ONE.replace('EVENT', '**Event**').replace('CONDITIONS', 'conditions')}~~~\n~~~\n{TWO}~~~",
    ],
)
def test_plans_are_found_however_fences_separators_comments_and_prose_stand(text: str) -> None:
    """Variants 1 to 4."""
    assert plans(text) == BOTH


@pytest.mark.parametrize("block", ["- <none>", "<none>", "# <none>", "", "goals: []", "- goal: <none>"])
def test_inventions_may_be_empty_in_any_way(block: str) -> None:
    """Variant 5."""
    read = answer(f"```yaml\n{ONE}```\n```yaml\n{block}\n```")
    assert not read.inventions
    assert not read.problems


def test_inventions_are_found_before_the_plans_and_in_a_block_that_is_never_closed() -> None:
    """Variants 3, 4 and 9."""
    block = (
        "```yaml\n- goal: `achieve explore()`\n  purpose: look: # everywhere\n"
        "- belief: seen(X)\n  purpose: 'it'\n"
    )
    for text in (f"{block}```\n```yaml\n{ONE}```", f"```yaml\n{ONE}---\n{block}---\n"):
        read = answer(text)
        assert not read.problems
        assert [(one.kind, text_of(one.template), one.purpose) for one in read.inventions] == [
            ("goal", "explore", "look: # everywhere"),
            ("belief", "seen(X)", "it"),
        ]


@pytest.mark.parametrize(
    "written", ["not p(X)", "not(p(X))", "NOT p(X)", "¬p(X)", "~p(X)", "!p(X)", "\\+ p(X)"]
)
def test_a_negation_is_never_lost(written: str) -> None:
    """Variant 6; the thesis' parser drops the fourth listing's `NOT`."""
    assert condition(written) == "not p(X)"


@pytest.mark.parametrize(
    "written", ["not (a & b(X, Y))", "not (a, b(X, Y))", "NOT (a and b(X, Y))", "not(a && b(X,Y))"]
)
def test_a_negated_conjunction_stays_one(written: str) -> None:
    """Variant 6."""
    assert condition(written) == "not (a & b(X,Y))"


def test_one_condition_may_hold_a_formula() -> None:
    """Variant 7."""
    assert condition("a(X, Y), b and not c or (d; e)") == "a(X,Y) & b & not c | d | e"
    assert condition("`a & (b | c)`") == "a & (b | c)"
    assert condition('"a(X, here)"') == "a(X,here)"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("X = Y", "="),
        ("X \\= Y", "\\="),
        ("X != Y", "\\="),
        ("X \\== Y", "\\=="),
        ("X == Y", "=="),
        ("X ≤ Y", "<="),
    ],
)
def test_relations_are_read_in_all_spellings(written: str, meant: str) -> None:
    """Variant 8."""
    assert condition(written) == f"X {meant} Y"


def test_a_goal_without_arguments_may_have_brackets() -> None:
    """Variant 9."""
    assert operation("achieve explore()") == operation("achieve explore") == "!explore"


def test_prefixes_may_stand_in_brackets_or_before_a_colon() -> None:
    """Variant 10."""
    assert (
        operation("[execute] stop()")
        == operation("execute: stop()")
        == operation("`execute stop()`")
        == "stop"
    )


def test_a_missing_prefix_before_a_known_action_is_accepted_with_a_warning() -> None:
    """Variant 10."""
    read = answer('EVENT: achieve g\nOPERATIONS:\n- print("at", X)')
    assert one_line(read) == ['+!g <- .print("at",X).']
    assert "read as an action" in read.plans[0].warnings[0]


def test_an_operation_that_is_neither_prefixed_nor_an_action_rejects_its_plan_and_names_what_is_near() -> (
    None
):
    """Variant 10."""
    read = answer(f"{ONE}---\nEVENT: achieve g\nOPERATIONS:\n- moove(X)")
    assert one_line(read) == BOTH[:1]
    (problem,) = read.problems
    assert (problem.kind, problem.line) == (ProblemKind.PLAN, 9)
    assert "did you mean execute move?" in problem.reason


def test_strings_may_hold_colons_and_arguments_may_be_lists_or_nothing() -> None:
    """Variant 11."""
    assert operation('execute print("Reached: # ", X)  # done') == '.print("Reached: # ",X)'
    assert operation("add path([Object, D])") == "+path([Object,D])"
    assert operation("add at(<none>)") == "+at(none)"


def test_tests_spawned_goals_and_generations_are_read() -> None:
    """Variant 12."""
    assert operation("test getX(D)") == "?getX(D)"
    assert operation("spawn g(X)") == "!!g(X)"
    assert operation("generate g(X)") == ".generate_plan(g(X))"
    assert operation("update at(X)") == "-+at(X)"
    assert operation("remove at(_)") == "-at(_)"
    assert plans("EVENT: test getX(D)\nOPERATIONS: <none>") == ["+?getX(D)."]


def test_events_may_have_constants_or_variables() -> None:
    """Variant 13."""
    assert plans("EVENT: achieve reach(home)") == ["+!reach(home)."]
    assert plans("EVENT: reach(Object)") == ["+!reach(Object)."]


@pytest.mark.parametrize(
    "empty", ["\n- <none>", "\n- none", " []", ' ""', "", " `<none>`", "\n- true", "\n  <none>"]
)
def test_nothing_can_be_said_in_many_ways(empty: str) -> None:
    """Variant 14."""
    assert plans(f"EVENT: achieve g\nCONDITIONS:{empty}\nOPERATIONS:{empty}") == ["+!g."]
    assert plans("EVENT: achieve g") == ["+!g."]


def test_lists_on_one_line_are_read() -> None:
    """Variant 14."""
    text = "EVENT: achieve g\nCONDITIONS: [p(X, Y), not q]\nOPERATIONS: [execute move(X), achieve g]"
    assert plans(text) == ["+!g : p(X,Y) & not q <- move(X); !g."]


def test_variables_called_anything_are_different_in_each_condition() -> None:
    (read,) = answer("EVENT: achieve g\nCONDITIONS:\n- p(_)\n- q(_, _)").plans
    assert read.plan.context == parse_plan("+!g : p(_) & q(_, _).").context


@pytest.mark.parametrize(
    "broken",
    [
        "- p(X",
        "- p(X) q(X)",
        "- X",
        "- 3",
        "- exists X such that p(X)",
        "- p\nfoo",
        "- p\nGUARD: q",
        "- p\nCONDITIONS:\n- q",
        f"- p({'x' * 3000})",
    ],
)
def test_a_plan_whose_conditions_cannot_all_be_read_is_reported_and_not_used(broken: str) -> None:
    """§7 52: a guard is never weakened in silence."""
    read = answer(
        f"```yaml\n{ONE}---\nEVENT: achieve g\nCONDITIONS:\n{broken}\nOPERATIONS:\n- execute stop()\n```"
    )
    assert one_line(read) == BOTH[:1]
    assert [one.kind for one in read.problems] == [ProblemKind.PLAN] * len(read.problems)
    assert all(one.line >= 7 and one.reason for one in read.problems)
    assert read.problems


def test_conditions_torn_from_their_plan_make_it_unusable() -> None:
    read = answer("EVENT: achieve g\n---\nCONDITIONS:\n- p\nOPERATIONS:\n- execute stop()")
    assert not read.plans
    assert "without an EVENT" in read.problems[0].reason


def test_conditions_torn_off_by_prose_make_their_plan_unusable() -> None:
    read = answer("EVENT: achieve g\nCONDITIONS:\n- p\n\nAnd of course\n- q\n")
    assert not read.plans
    assert "stands apart" in read.problems[0].reason


@pytest.mark.parametrize("text", ["", "   \n", "I cannot help with that.", "```yaml\n```"])
def test_an_answer_without_plans_says_so(text: str) -> None:
    read = answer(text)
    assert not read.plans
    assert read.problems[0].kind is ProblemKind.EMPTY
    assert read.text == text


def test_the_listings_give_their_plans_and_inventions() -> None:
    """Listings 5.8 to 5.11; the third never closes a fence, the fourth writes `NOT`."""
    shapes = [
        (len(listing(n).plans), len(listing(n).inventions), len(listing(n).problems)) for n in (8, 9, 10, 11)
    ]
    assert shapes == [(3, 0, 0), (4, 2, 0), (5, 2, 0), (6, 2, 0)]
    assert one_line(listing(11))[1] == (
        "+!reach(Object) : not there_is(Object,here) & not there_is(Object,Direction) "
        "<- !explore; !reach(Object)."
    )


PIECES = st.sampled_from(
    [
        *"()[]{}\"'`#:-~!,;_ \t",
        "EVENT:",
        "CONDITIONS:",
        "OPERATIONS:",
        "achieve ",
        "\n",
        "\n- ",
        "```yaml\n",
        "---\n",
        "g(X)",
        "not ",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=120).map("".join))
@settings(max_examples=rounds(100, full=300), deadline=None)
def test_no_answer_whatever_makes_the_reader_fail(text: str) -> None:
    read = answer(text)
    assert read.text == text
    for one in read.plans:
        assert parse_plan(plan_text(one.plan)) == one.plan


@pytest.mark.parametrize(
    "rubbish",
    [
        "EVENT: achieve g(X)\nCONDITIONS:\n- p\n",
        "EVENT: achieve g\n- ((((((((((",
        "- goal: `x`\n",
        '"#',
        "(" * 1000 + "\n",
        "```\n- x\n",
        "EVENT: achieve g\nCONDITIONS:\n- not not not not not not\n  not not\n",
        "\x00\x1b[2J",
        "- p(X)\n",
        "  p(X),\n",
        "- [[[[",
    ],
)
def test_a_megabyte_of_rubbish_is_read_in_bounded_time(rubbish: str) -> None:
    text = "EVENT: achieve g\nCONDITIONS:\n" + (rubbish * (1_000_000 // len(rubbish) + 1))[:1_000_000]
    began = time.process_time()
    read = answer(text)
    assert time.process_time() - began < PATIENCE_S
    assert len(read.plans) <= PLAN_LIMIT
    assert read.problems
