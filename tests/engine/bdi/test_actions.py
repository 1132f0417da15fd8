"""The internal actions (spec §1.8)."""

from __future__ import annotations

import pytest

from engine.bdi.agent import BdiAgent
from engine.bdi.internal_actions import Call, InternalActions
from engine.bdi.library.terms import STANDARD
from engine.bdi.parser import parse_program
from engine.bdi.terms import Struct
from tests.engine.bdi.corpus import PLANS
from tests.engine.bdi.running import Run, said


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (".length([a, b], X)", "2"),
        ('.length("abc", X)', "3"),
        (".nth(1, [a, b], X)", "b"),
        (".findall(I, .nth(I, [a, b, a], a), X)", "[0,2]"),
        (".findall(Y, .member(f(Y), [f(1), g, f(2)]), X)", "[1,2]"),
        (".sort([c, a, b, a], X)", "[a,a,b,c]"),
        (".min([3, 1, 2], X)", "1"),
        (".max([3, a, 2], X)", "a"),
        (".reverse([1, 2], X)", "[2,1]"),
        ('.reverse("abc", X)', "cba"),
        (".concat([1], [2, 3], [], X)", "[1,2,3]"),
        ('.concat("a", 1, f(x), X)', "a1f(x)"),
        (".findall(S, .sublist(S, [1, 2]), X)", "[[1,2],[1],[2],[]]"),
        (".delete(a, [a, b, a], X)", "[b]"),
        (".delete(0, [a, b], X)", "[b]"),
        ('.delete(1, 3, "banana", X)', "bana"),
        (".union([b, a], [c, a], X)", "[a,b,c]"),
        (".intersection([b, a], [c, a], X)", "[a]"),
        (".difference([b, a], [c, a], X)", "[b]"),
        (".findall(Y, .range(Y, 1, 7, 3), X)", "[1,4,7]"),
        ('.findall(Y, .substring("a", "banana", Y), X)', "[1,3,5]"),
        ('.replace("banana", "an", "o", X)', "booa"),
        ('.term2string(X, "f(1, [a])")', "f(1,[a])"),
        (".term2string(f(Y), X)", "f(_)"),
        (".copy_term(f(Y, Y), X)", "f(_,_)"),
        (".my_name(X)", "ag"),
        (".count(b(_), X)", "2"),
        (".date(Y, M, D) & X = d(Y, M, D)", "d(1970,1,1)"),
        (".setof(Y, b(Y), X)", "[1,2]"),
        (".eval(X, b(1) & b(2))", "true"),
        (".eval(X, 3 < 2)", "false"),
        (".eval(X, b(Y) & Y + 1 == 3) & Y = 7", "true"),
        (".eval(T, b(Y)) & X = f(T, Y)", "f(true,_)"),
        (".eval(T, not b(9) | b(8)) & b(X)", "2"),
        ("F = (b(Y) & Y > 5) & .eval(X, F)", "false"),
        ("b(X) & .eval(true, X > 1)", "2"),
        (".eval(false, .eval(true, b(9))) & X = nested", "nested"),
    ],
)
def test_an_internal_action_gives(call: str, result: str) -> None:
    assert said(f"b(2). b(1). !s. +!s : {call} <- .print(X).") == [result]


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        (".ground(f(a))", True),
        (".ground(f(X))", False),
        (".atom(a)", True),
        (".atom(f(a))", False),
        (".atom(X)", False),
        (".number(1.5)", True),
        ('.string("a")', True),
        (".string(a)", False),
        (".list([])", True),
        (".list([a | _])", True),
        (".literal(~p(x))", True),
        (".literal(3)", False),
        (".structure([a])", True),
        (".substring(an, banana)", True),
        (".member(z, [a])", False),
        (".sublist([2, 3], [1, 2, 3])", True),
    ],
)
def test_an_internal_action_holds(test: str, holds: bool) -> None:
    assert said(f"!s. +!s : {test} <- .print(true). +!s <- .print(false).") == [str(holds).lower()]


def test_plans_are_added_found_and_removed_while_the_agent_runs() -> None:
    assert said(PLANS) == ["later(2)", "[new[source(self)]]", "no_relevant3"]


def test_plans_may_go_before_the_others() -> None:
    program = '!s. +!s <- .add_plan("+!g <- .print(new).", self, begin); !g. +!g <- .print(old).'
    assert said(program) == ["new"]


def test_printing_puts_nothing_between_and_shows_strings_bare() -> None:
    assert said('!s. +!s <- .print("a", b, " ", "c", [1, "d"], 2.0, X).') == ['ab c[1,"d"]2_']


def test_functions_of_the_host_become_internal_actions() -> None:
    own = InternalActions(below=STANDARD)

    @own.register(".double", 2)
    def double(call: Call) -> bool:
        return call.unify(1, call.number(0) * 2)

    heard: list[str] = []
    program = parse_program(
        "!s. +!s : .double(4, X) <- .double(X, Y); .print(Y); .double(Y). -!s[error_msg(M)] <- .print(M)."
    )
    agent = BdiAgent("ag", program, internal=own, say=heard.append)
    while not agent.idle:
        agent.cycle()
    assert heard == ["16", ".double takes 2 arguments, not 1"]


def test_a_step_that_waits_cannot_stand_in_a_formula() -> None:
    program = "!s. +!s : .wait(5) <- .print(no). +!s <- .print(yes)."
    assert said(program) == ["yes"]


def test_agents_make_list_and_end_each_other() -> None:
    program = (
        '!s. +!s <- .create_agent(kid, "kid.asl"); .wait(50); .all_names(L); .print(L); .kill_agent(bob); '
    )
    run = Run(f"{program} .all_names(M); .print(M); .stopMAS.", bob="")
    run.system.read = lambda path: f'!s. +!s <- .print("from {path}").'
    assert run.end().said == ["from kid.asl", "[ag,bob,kid]", "[ag,kid]"]
    assert run.system.stopped


def test_a_formula_is_evaluated_as_a_step_too() -> None:
    assert said("b(1). !s. +!s <- .eval(X, b(Y)); .print(X, Y); .eval(false, b(_)); .print(no).") == ["true_"]


def test_plans_are_listed_all_or_for_an_event() -> None:
    plans = "@one +!g(1). @two +!g(X) : X > 1 <- a."
    assert said(f"!s. @s +!s <- .list_plans({{ +!g(1) }}). {plans}") == [
        "@one[source(self)] +!g(1).",
        "@two[source(self)] +!g(X) : (X > 1) <- a.",
    ]
    assert len(said(f"!s. @s +!s <- .list_plans. {plans}")) == 3


def test_an_intention_can_ask_what_it_is_about() -> None:
    program = "!s. @outer +!s <- !g(4). @inner +!g(X) <- .current_intention(I); .print(I)."
    assert said(program) == [
        "intention(1,["
        'im(inner[code_line(1),code_src("ag.asl"),source(self)],{ +!g(4)[source(self)] },'
        "{ .current_intention(_); .print(_) },[map(_,4)]),"
        'im(outer[code_line(1),code_src("ag.asl"),source(self)],{ +!s[source(self)] },{ !g(4) },[])])'
    ]
    assert said("!s. +!s : .current_intention(_) <- .print(no). +!s <- .print(only_as_a_step).") == [
        "only_as_a_step"
    ]


def test_goals_that_are_held_back_or_wait_are_found_with_the_reason() -> None:
    program = """!a. !b. !c. +!a <- .suspend. +!b <- .wait(never). +!c <- act; .print(end).
        +!s <- .findall(G-R, .suspended(G, R), L); .print(L).
    """.replace("G-R", "f(G, R)")
    run = Run(program)
    run.system.run(5)
    run.agent.achieve(Struct("s"))
    assert run.end().said[-1] == '[f(a,"suspended by itself"),f(b,"condition")]'


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [
        ("X = math.random", 0, 1),
        ("X = 5 + math.random(10)", 5, 15),
        ("X = math.floor(math.random * 6) + 1", 1, 6),
        ("math.random < 2; X = 0", 0, 0),
        ("!g(2 + math.random, X)", 2, 3),
        (".max([math.random, 1 + math.random, 0], X)", 1, 2),
        ("+b(math.random); ?b(X)", 0, 1),
        ("Y = math.random; Z = math.random; Y \\== Z; !g(math.random + Y, X)", 0, 2),
        ("B = { X = math.random }; B", 0, 1),
        ("if (math.random >= 0) { X = 3 }", 3, 3),
    ],
)
def test_chance_in_terms_is_the_agents_own(body: str, least: float, most: float) -> None:
    program = f"!s. +!s <- {body}; .print(X). +!g(Y, Y)."
    told = said(program, seed=4)
    assert least <= float(told[0]) <= most
    assert said(program, seed=4) == told


def test_each_answer_of_a_condition_draws_anew() -> None:
    program = "!s. +!s <- .findall(R, .range(_, 1, 5) & R = math.random, L); .print(L)."
    assert len(set(said(program)[0].strip("[]").split(","))) == 5
    context = "p(1). p(2). p(3). !s. +!s : p(X) & math.random(3) < X & X > 2 <- .print(X)."
    assert said(context) == ["3"]


@pytest.mark.parametrize(
    ("term", "value"),
    [
        ("math.abs(-3)", "3"),
        ("math.min(2, 1)", "1"),
        ("math.max([1, 4, 2])", "4"),
        ("math.round(2.5)", "3"),
        ("math.floor(-1.5)", "-2"),
        ("math.ceil(1.2)", "2"),
        ("math.sqrt(16)", "4"),
        ('.length([a, b]) + .length("abc")', "5"),
    ],
)
def test_functions_stand_in_terms(term: str, value: str) -> None:
    assert said(f"!s. +!s <- .print({term}).") == [value]
