"""Terms that would hold themselves, and terms that share their parts over and over: all ends."""

from __future__ import annotations

import pytest

from engine.bdi.agent import BdiAgent
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.parser import parse_program
from engine.bdi.printer import CUT, text_of
from engine.bdi.rewriting import is_ground, occurs_in
from engine.bdi.saved_state import SavedStateError
from engine.bdi.terms import Cell, Cons, Struct, Term, atom, list_of, weight_of
from engine.bdi.unification import NOTES_DEEP, undo, unify

CATCH = "-!s[error(E)] <- .print(E). "


def said(program: str, phases: int = 1_000) -> list[str]:
    """What a program prints, and its complaints."""
    lines: list[str] = []
    agent = BdiAgent("a", parse_program(program), say=lines.append, warn=lines.append)
    for number in range(phases):
        agent.advance(float(number))
    assert agent.idle
    return lines


def doubled(first: Term, times: int) -> Term:
    term = first
    for _ in range(times):
        term = Struct("f", (term, term))
    return term


@pytest.mark.parametrize(
    "body",
    [
        "X = f(Y); Y = f(X)",
        "X = f(Y); X = Y",
        "X = [1|Y]; Y = [2|X]",
        "X = f(Y,Z); Y = g(Z); Z = h(X)",
        "X = p(Y)[a(Z)]; Z = b(X)",
    ],
)
def test_a_variable_is_not_bound_to_a_term_that_it_is_in_as_in_jason(body: str) -> None:
    assert said(f"{CATCH} !s. +!s <- {body}; .print(X).") == ["constraint_failed"]


def test_a_plan_whose_trigger_would_make_a_circle_is_not_relevant() -> None:
    assert said(f"{CATCH} !s. +!s <- !t(Z,Z). +!t(X,f(X)) <- .print(made).") == ["no_relevant"]


def test_a_rule_whose_head_would_make_a_circle_has_no_answer() -> None:
    program = "same(X,X). !s. +!s : same(X,f(X)) <- .print(made). +!s <- .print(none)."
    assert said(program) == ["none"]


def test_a_variable_may_stand_for_itself_and_twice_in_a_term() -> None:
    assert said("!s. +!s <- X = Y; Y = X; Z = f(X,X); X = 1; .print(Z).") == ["f(1,1)"]


def test_what_is_undone_can_be_bound_again() -> None:
    cell, other = Cell(), Cell()
    trail: list[Cell] = []
    assert not unify(Struct("p", (cell, cell)), Struct("p", (Struct("f", (other,)), other)), trail)
    undo(trail, 0)
    assert unify(cell, atom("a"), trail)
    assert occurs_in(other, list_of([cell, other]))


def test_a_circle_is_looked_for_once_in_parts_that_are_shared() -> None:
    assert unify(Cell(), doubled(Cell(), 200), [])
    assert is_ground(doubled(atom("a"), 200))
    assert weight_of([doubled(atom("a"), 200)]) == 200 * 100


@pytest.mark.parametrize(
    "last",
    [
        ".print(X60)",
        ".term2string(X60,S)",
        "Y60 == X60",
        "Y60 = X60",
        "Y60 < X60",
        "!t(X60,Free)",
        ".concat(X60,a,S)",
    ],
)
def test_a_term_that_doubles_with_each_step_fails_the_step_that_walks_through_it(
    last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.bdi.terms.WALK", 5_000)
    monkeypatch.setattr("engine.bdi.unification.WALK", 5_000)
    steps = "; ".join(f"X{n + 1} = f(X{n},X{n}); Y{n + 1} = f(Y{n},Y{n})" for n in range(60))
    program = f"{CATCH} !s. +!s <- X0 = Z; Y0 = Z; {steps}; {last}; .print(done)."
    assert said(program)[-1] == "limit_exceeded"


def test_a_text_of_a_term_ends_at_its_limit() -> None:
    text = text_of(doubled(atom("a"), 200), limit=1_000)
    assert text.endswith(CUT)
    assert len(text) < 1_100


def test_annotations_that_lie_in_each_other_are_followed_so_far_and_no_further() -> None:
    def noted(deep: int) -> Struct:
        term = Struct("a", (Cell(),))
        for _ in range(deep):
            term = Struct("a", (), (term,))
        return term

    assert unify(noted(NOTES_DEEP - 1), noted(NOTES_DEEP - 1), [])
    with pytest.raises(EvaluationError) as raised:
        unify(noted(500), noted(500), [])
    assert raised.value.error_id is ErrorId.LIMIT_EXCEEDED


def test_beliefs_hold_so_much_text_together() -> None:
    from engine.bdi.semantics import Limits

    lines: list[str] = []
    program = parse_program(
        '!s("xxxxxxxxxx",0). +!s(T,N) <- .concat(T,T,U); +kept(N,U); !s(U,N+1). '
        "-!s(T,N)[error(E)] <- .print(E)."
    )
    agent = BdiAgent("a", program, limits=Limits(belief_size=100_000), say=lines.append)
    for number in range(300):
        agent.advance(float(number))
    assert lines == ["limit_exceeded"]
    assert agent.beliefs.weight <= 100_000


def test_elements_in_both_lists_are_found_without_comparing_each_with_each() -> None:
    program = """
    !s. +!s <- .findall(X,.range(X,1,30000),L); .findall(f(X),.range(X,1,30000),M);
      .intersection(L,L,I); .length(I,A); .print(A); .difference(M,M,D); .print(D);
      V = 3; .intersection([V,f(V),W],[f(3),3,W],J); .print(J).
    """
    assert said(program) == ["30000", "[]", "[3,f(3),_]"]


def test_a_saved_state_in_which_a_variable_leads_to_itself_is_refused() -> None:
    program = parse_program("!s. +!s <- X = f(Y); .wait(1000); .print(X,Y).")
    agent = BdiAgent("a", program)
    for number in range(12):
        agent.advance(float(number))
    data = agent.save()
    assert data["cells"]
    data["cells"][0] = [["cell", 0], ["struct", "f", 1, 0, False]]
    with pytest.raises(SavedStateError, match="stands for a term that it is in"):
        BdiAgent("a", program).restore(data)


def test_a_list_may_be_long() -> None:
    items = list_of(range(300_000), Cell())
    assert isinstance(items, Cons)
    assert unify(items, list_of(range(300_000)), [])
