"""While one intention waits for a program or a model, the others, percepts and the operator are served."""

from __future__ import annotations

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.state import AgentState
from tests.engine.agent.reasoner.conftest import Fly
from tests.engine.agent.reasoner.reasoner_flight import RUN_WAITER, Oracle, ReasonerFlight

COUNT = "!count(0). +!count(N) : told(enough) <- .print(N). +!count(N) <- !count(N + 1)."


def cycles(state: AgentState) -> int:
    return state.mind.cycles if state.mind is not None else 0


async def goes_on_for_a_thousand_cycles(flight: ReasonerFlight) -> None:
    before = cycles(await flight.state())
    await flight.until(lambda s: cycles(s) >= before + 1_000)


async def test_another_intention_goes_on_while_a_program_runs(fly: Fly) -> None:
    flight = await fly(f"!act. +!act <- {RUN_WAITER}; .print(acted). {COUNT}")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await goes_on_for_a_thousand_cycles(flight)
    assert (await flight.state()).acting
    flight.go()
    await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
    await flight.do(cmd.TellBelief, literal="told(enough)")
    await flight.idle()


async def test_beliefs_and_percepts_are_handled_while_a_program_runs(fly: Fly) -> None:
    flight = await fly(
        f"!act. +!act <- {RUN_WAITER}; .print(acted)."
        "+alarm(X) <- .print(alarm, X). +seen(X) <- .print(seen, X); .wait(2); .print(waited); +waited."
    )
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.TellBelief, literal="alarm(1)")
    await flight.until(lambda s: "alarm(1)" in s.held_beliefs)
    await flight.do(cmd.Believe, key="seen", value=2)
    await flight.until(lambda s: "waited" in s.held_beliefs)
    assert (await flight.state()).acting
    flight.go()
    await flight.until(lambda s: not s.intentions)
    assert await flight.said() == ["alarm1", "seen2", "waited", "acted"]


async def test_a_pause_holds_the_others_too_and_a_step_lets_one_of_them_go_on(fly: Fly) -> None:
    flight = await fly(f"!act. !count(0). +!act <- {RUN_WAITER}. +!count(N) <- !count(N + 1).")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.Pause)
    state = await flight.until(lambda s: s.mind and s.mind.poised)
    await flight.do(cmd.TellBelief, literal="told(nothing)")
    state = await flight.until(lambda s: "told(nothing)" in s.held_beliefs and s.mind.poised)
    assert state.acting
    await flight.do(cmd.Step)
    after = await flight.until(lambda s: s.mind.poised and not s.grants)
    assert after.acting
    assert cycles(after) == cycles(state) + 1
    flight.go()
    await flight.until(lambda s: not s.acting)


async def test_another_intention_goes_on_while_a_model_is_asked(fly: Fly) -> None:
    """§7 36."""
    oracle = Oracle()
    flight = await fly(f"!act. +!act <- !unknown(1); .print(after). {COUNT}", oracle=oracle)
    await flight.do(cmd.Run)
    question = await oracle.question()
    await goes_on_for_a_thousand_cycles(flight)
    await flight.do(cmd.Believe, key="seen", value=2)
    await flight.until(lambda s: "seen(2)" in s.held_beliefs)
    await flight.do(cmd.TellBelief, literal="told(enough)")
    question.say(plan("unknown(X)", "mkdir(X)"))
    await flight.idle()
    assert "after" in await flight.said()
    assert (flight.sandbox / "1").is_dir()
    assert len(oracle.asked) == 1


async def test_a_program_and_a_model_and_an_intention_at_the_same_time(fly: Fly) -> None:
    oracle = Oracle()
    flight = await fly(
        f"!act. !ask. +!act <- {RUN_WAITER}; .print(acted). +!ask <- !unknown(1); .print(asked). {COUNT}",
        oracle=oracle,
    )
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    question = await oracle.question()
    await goes_on_for_a_thousand_cycles(flight)
    question.say("EVENT: achieve unknown(X)\nOPERATIONS:\n- add known(X)")
    await flight.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED)
    assert (await flight.state()).acting
    await flight.do(cmd.TellBelief, literal="told(enough)")
    flight.go()
    await flight.idle()


async def test_two_goals_generate_at_the_same_time(fly: Fly) -> None:
    """§7 37."""
    oracle = Oracle()
    flight = await fly("!a. !b. +!a <- !one; .print(a). +!b <- !two; .print(b).", oracle=oracle)
    await flight.do(cmd.Run)
    first, second = await oracle.question(1), await oracle.question(2)
    state = await flight.state()
    assert [one.goal for one in state.generations.values()] == ["+!one", "+!two"]
    second.say(plan("two", "mkdir(two)"))
    await flight.until(lambda s: s.goals["g2"].status is GoalStatus.ACHIEVED)
    first.say(plan("one", "mkdir(one)"))
    await flight.idle()
    assert await flight.said() == ["b", "a"]


async def test_requests_for_one_goal_share_one_question(fly: Fly) -> None:
    """§7 37, whatever its variables are called."""
    oracle = Oracle()
    flight = await fly(
        "!a. !b. !c. +!a <- !where(X); .print(a, X). +!b <- !where(Place); .print(b, Place)."
        "+!c <- .generate_plan(where(Other)); .print(c).",
        oracle=oracle,
    )
    await flight.do(cmd.Run)
    question = await oracle.question()
    await flight.until(lambda s: [one.state for one in s.intentions.values()] == ["generation"] * 3)
    question.say(plan("where(here)", "mkdir(where)"))
    await flight.idle()
    assert len(oracle.asked) == 1
    assert len(await flight.payloads(ev.GenerationBegun)) == 1
    assert sorted(await flight.said()) == ["ahere", "bhere", "c"]


async def test_reasoners_send_each_other_messages(fly: Fly) -> None:
    flight = await fly(
        "b(7). +!hello(N)[source(S)] : N < 5 <- .send(S, achieve, hello(N + 1)). +!hello(N) <- +got(N)."
    )
    await flight.create(
        "!begin. +!begin <- .send(pilot, achieve, hello(0)); .send(nobody, tell, x);"
        ".send(pilot, askOne, b(X), A); .print(A). +!hello(N)[source(S)] <- .send(S, achieve, hello(N + 1)).",
        "other",
    )
    for agent in ("pilot", "other"):
        await flight.do(cmd.Run, agent=agent)
    await flight.until(lambda s: "got(6)" in s.held_beliefs)
    await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED, "other")
    (line,) = [line for said in await flight.payloads(ev.ReasonerAdvanced, "other") for line in said.said]
    assert line.startswith("b(7)")


def plan(goal: str, *steps: str) -> str:
    """A model's answer with one plan."""
    return f"EVENT: achieve {goal}\nOPERATIONS:\n" + "\n".join(f"- execute {step}" for step in steps)
