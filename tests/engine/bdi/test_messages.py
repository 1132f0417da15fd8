"""Messages between agents (spec §1.9), as in Jason's TestKQML."""

from __future__ import annotations

from engine.bdi.agent import BdiAgent
from engine.bdi.intentions import Message, Performative
from engine.bdi.parser import parse_literal, parse_program, parse_term
from engine.bdi.semantics import Limits
from tests.engine.bdi.running import Run, beliefs

BOB = """
vl(10). vl(20)[source(carol)].
double(X, Y) :- vl(X) & Y = X * 2.
+!goal(X)[source(S)] <- .print("goal ", X, " ", S).
+!long <- .wait(never).
+fact(X)[source(S)] <- .print("fact ", X, " ", S).
-fact(X)[source(S)] <- .print("no fact ", X, " ", S).
+?worked_out(N, M) <- .wait(5); M = N + 1.
@greet +!hello(X) <- .print("hello ", X).
"""


def asked(question: str) -> list[str]:
    """What `ag` prints when it asks bob."""
    run = Run(f"!s. +!s <- .send(bob, {question}, R, 1000); .print(R).", bob=BOB).end()
    return [text for agent, text in run.by_agent if agent == "ag"]


def test_told_beliefs_name_their_source_and_are_untold() -> None:
    """Checklist 31."""
    program = "!s. +!s <- .send(bob, tell, [fact(1), fact(2)]); .wait(9); .send(bob, untell, fact(1))."
    run = Run(program, bob=BOB).end()
    assert run.said == ["fact 1 ag", "fact 2 ag", "no fact 1 ag"]
    assert "fact(2)[source(ag)]" in beliefs(run.system.agents["bob"])


def test_sources_nest_when_a_belief_is_passed_on() -> None:
    """Checklist 31."""
    run = Run(
        "news(rain). !s. +!s <- ?news(X)[source(S)]; .send(bob, tell, news(X)).",
        bob="+news(X)[source(ag)] <- ?news(X)[source(S)]; .send(carol, tell, news(X)[source(S)]).",
        carol="",
    ).end()
    assert beliefs(run.system.agents["carol"]) == ["news(rain)[source(bob)[source(ag)]]"]


def test_goals_are_achieved_and_unachieved_for_others() -> None:
    """Checklist 31."""
    program = "!s. +!s <- .send(bob, achieve, goal(3)); .send(bob, achieve, long); .wait(9); "
    run = Run(f"{program} .send(bob, unachieve, long).", bob=BOB).end()
    assert run.said == ["goal 3 ag"]
    assert not run.system.agents["bob"].intentions


def test_questions_are_answered_from_beliefs_rules_and_plans() -> None:
    """Checklist 31."""
    assert asked("askOne, vl(X)") == ["vl(10)[source(bob)]"]
    assert asked("askOne, double(20, X)") == ["double(20,40)[source(bob)]"]
    assert asked("askOne, worked_out(1, X)") == ["worked_out(1,2)[source(bob)]"]
    assert asked("askOne, nothing(X)") == ["false"]
    assert asked("askAll, vl(X)") == ["[vl(10)[source(bob)],vl(20)[source(bob)[source(carol)]]]"]
    assert asked("askHow, {+!hello(_)}") == ['[{ @greet[source(bob)] +!hello(V0) <- .print("hello ",V0) }]']


def test_an_asynchronous_answer_becomes_a_belief() -> None:
    """Checklist 31."""
    run = Run(
        "!s. +!s <- .send(bob, askOne, vl(X)); .print(sent). +vl(X)[source(S)] <- .print(X, S).", bob=BOB
    ).end()
    assert run.said == ["sent", "10bob"]


def test_plans_are_told_and_only_their_teller_takes_them_back() -> None:
    """Checklist 31."""
    program = "!s. +!s <- .send(bob, tellHow, { @new +!dance <- .print(dancing) }); "
    program += (
        ".send(bob, achieve, dance); .wait(20); .send(bob, untellHow, greet); .send(bob, untellHow, new)."
    )
    run = Run(program, bob=BOB).end()
    assert run.said == ["dancing"]
    assert [plan.name for plan in run.system.agents["bob"].plans][-1] == "greet"


def test_a_question_suspends_only_the_asking_intention_and_can_time_out() -> None:
    """Checklist 32."""
    asking = (
        "!s. +!s <- .send(bob, askOne, quiet(X), R, 100); .print(R). !t. +!t <- .wait(20); .print(meanwhile)."
    )
    assert Run(asking, bob="+?quiet(_) <- .wait(never).").end().said == ["meanwhile", "timeout"]


def test_an_answer_that_does_not_fit_fails_the_question() -> None:
    program = "!s. +!s <- .send(bob, askOne, vl(_), other(_), 50). -!s[error(E)] <- .print(E)."
    assert Run(program, bob=BOB).end().said == ["ask_failed"]


def test_a_broadcast_reaches_all_others() -> None:
    run = Run("!s. +!s <- .broadcast(tell, fact(1)).", bob=BOB, carol=BOB).end()
    assert sorted(run.by_agent) == [("bob", "fact 1 ag"), ("carol", "fact 1 ag")]


def test_unknown_receivers_and_performatives_are_named() -> None:
    program = "!s. !t. +!s <- .send(bop, tell, x). +!t <- .send(bob, asOne, x). "
    run = Run(f"{program} -!_[error_msg(M)] <- .print(M).", bob=BOB).end()
    assert run.said == [
        ".send: there is no agent bop; did you mean bob?",
        ".send: there is no performative asOne; did you mean askOne?",
    ]


def test_a_flood_of_messages_is_refused_when_the_mailbox_is_full() -> None:
    agent = BdiAgent("ag", parse_program(""), limits=Limits(messages=3))
    message = Message("bob", "ag", Performative.TELL, parse_literal("x"), 1)
    assert [agent.receive(message) for _ in range(5)] == [True, True, True, False, False]


def test_hostile_content_cannot_stop_the_receiver() -> None:
    heard: list[str] = []
    agent = BdiAgent("ag", parse_program("+ok <- .print(ok)."), limits=Limits(beliefs=2), say=heard.append)
    for number, content in enumerate(["[1, x(Y), [z]]", "ok", "late(1)", "{ +!g }", '"text"']):
        for kind in Performative:
            agent.receive(Message("eve", "ag", kind, parse_term(content), number))
    while not agent.idle:
        agent.cycle()
    assert "ok" in heard


def test_only_the_agent_that_was_asked_can_answer() -> None:
    heard: list[str] = []
    agent = BdiAgent(
        "ag", parse_program("!s. +!s <- .send(bob, askOne, p(X), R); .print(R)."), say=heard.append
    )
    (question,) = agent.cycle().messages
    for sender in ("eve", "bob"):
        agent.receive(Message(sender, "ag", Performative.TELL, parse_literal("p(1)"), 9, question.number))
    while not agent.idle:
        agent.cycle()
    assert heard == ["p(1)[source(bob)]"]


GUARDED = """
@own +!kqml_received(S, tell, C, _) : not trusted(S) <- .print("not from ", S, ": ", C).
+!kqml_received(S, askOne, age(_), M) <- .send(S, tell, age(secret), M).
trusted(carol).
+fact(X)[source(S)] <- .print("fact ", X, " ", S).
+!goal(X)[source(S)] <- .print("goal ", X, " ", S).
"""


def test_a_programs_own_plans_take_messages_before_the_usual_effects() -> None:
    """Checklist 31: what no own plan applies to has its usual effect."""
    tell = "!s. +!s <- .send(bob, tell, fact(1))."
    run = Run(f"{tell[:-1]}; .send(bob, achieve, goal(f(X))).", bob=GUARDED, carol=tell).end()
    assert sorted(run.said) == ["fact 1 carol", "goal f(_) ag", "not from ag: fact(1)"]


def test_an_own_plan_answers_a_question_by_its_number() -> None:
    program = "!s. +!s <- .send(bob, askOne, age(X), R, 500); .print(R). -!s[error(E)] <- .print(E)."
    assert Run(program, bob=GUARDED).end().said == ["age(secret)[source(bob)]"]
    silent = "+!kqml_received(_, _, _, _) <- .print(taken)."
    assert Run(program, bob=silent).end().said == ["taken", "timeout"]


def test_a_plan_for_any_goal_is_not_asked_about_messages() -> None:
    run = Run("!s. +!s <- .send(bob, tell, fact(1)).", bob="+!G <- .print(G). +fact(X) <- .print(X).").end()
    assert run.said == ["1"]


def test_a_goal_that_only_looks_like_a_message_fails_as_any_other() -> None:
    program = (
        "!s. +!s <- !kqml_received(bob, sing, song, 1). -!s[error(E)] <- .print(E). +!kqml_received(a,b,c,d)."
    )
    assert Run(program).end().said == ["no_relevant"]
    spawned = Run("!kqml_received(bob, sing, song, 1). -!kqml_received(_,_,_,_)[error(E)] <- .print(E).")
    assert spawned.end().said == ["no_relevant"]


def test_an_answer_names_the_question_by_a_whole_number() -> None:
    program = "!s. +!s <- .send(ag, tell, a, b). -!s[error_msg(M)] <- .print(M)."
    assert Run(program).end().said == ["b is not a number"]
    late = program.replace("tell, a, b", "tell, a, 1, 500")
    assert Run(late).end().said == [".send: only a question to one agent has an answer"]
