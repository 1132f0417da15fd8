"""The life of an AgentSpeak(L) agent: made, run, paused, stepped, stopped, taken up again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.agent.reasoner.actions import read_config
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.goals import GoalStatus
from tests.engine.agent.reasoner.conftest import Fly
from tests.engine.agent.reasoner.reasoner_flight import RUN_WAITER, ReasonerFlight, settled
from tests.patience import PATIENCE_S

COUNT = "!count(0). +!count(3) <- .print(done). +!count(N) <- .print(N); !count(N + 1)."
NESTED = """
!top.
+!top <- .print(t1); !middle; .print(t2); !middle; .print(t3).
+!middle <- .print(m1); !bottom; .print(m2).
+!bottom <- .print(b1); .print(b2).
"""


# ------------------------------------------------------------------ making


async def refused(flight: ReasonerFlight, config: dict[str, object]) -> str:
    receipt = await flight.submit(cmd.CreateAgent, agent_type="asl_agent", config=config)
    assert not receipt.ok
    return receipt.message


async def test_a_program_that_cannot_be_read_is_refused_with_every_place(fly: Fly) -> None:
    flight = await fly()
    message = await refused(flight, {"program": "+!g <- .\n\nb(1)\n+!h : <- a.", "source": "robot.asl"})
    assert "robot.asl:1:" in message
    assert "expected" in message
    assert "robot.asl:4:" in message


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "needs a program"),
        ({"program": 3}, "program"),
        ({"program": "!g.", "world": "moon"}, "there is no world 'moon'; worlds: explorer"),
        ({"program": "!g.", "semantics": "prolog"}, "semantics"),
        ({"program": "!g.", "generation": {"repair": 1}}, "generation.repair"),
        ({"program": "!g.", "seed": "x" * 9}, "seed"),
    ],
)
async def test_what_cannot_be_used_is_refused_by_name(
    fly: Fly, config: dict[str, object], words: str
) -> None:
    flight = await fly()
    assert words in await refused(flight, config)
    assert flight.engine.agents == ()


# ------------------------------------------------------------------ running


async def test_a_goal_of_the_program_is_adopted_run_and_achieved(fly: Fly) -> None:
    flight = await fly(COUNT)
    assert [goal.text for goal in (await flight.poised()).open_goals] == ["!count(0)"]
    await flight.do(cmd.Run)
    state = await flight.idle()
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert state.mode is Mode.IDLE
    assert await flight.said() == ["0", "1", "2", "done"]


@pytest.mark.parametrize(("config", "answers"), [({}, "[1,2,3]"), ({"edition": 1}, "[1,3,2]")])
async def test_rules_answer_where_they_stand_unless_an_older_journal_holds_the_agent(
    fly: Fly, config: dict[str, object], answers: str
) -> None:
    flight = await fly("p(1). p(2) :- true. p(3). !g. +!g <- .findall(X, p(X), L); .print(L).", **config)
    assert read_config({"program": "!g."}).edition == 1, "agents recorded before say nothing of it"
    await flight.do(cmd.Run)
    await flight.idle()
    assert await flight.said() == [answers]


async def test_a_goal_of_the_operators_that_has_no_plan_fails_with_the_reason(fly: Fly) -> None:
    flight = await fly("+!known.", generation={"on": False})
    await flight.do(cmd.AdoptGoal, text="unknown(3)")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.FAILED
    assert "no plan for +!unknown(3)" in state.goals["g1"].reason
    assert "such as: goal reach(home)" in await flight.refused(cmd.AdoptGoal, text="go there now")


async def test_a_run_of_so_many_loops_ends_after_exactly_so_many_steps(fly: Fly) -> None:
    flight = await fly("!count(0). +!count(N) <- .print(N); !count(N + 1).", tracing=True)
    await flight.poised()
    await flight.do(cmd.Run, max_loops=5)
    state = await flight.until(lambda s: s.run is RunState.PAUSED)
    assert state.run_reason.startswith("MAX_LOOPS")
    await flight.poised()
    assert len(await flight.steps()) == 5


async def test_a_run_until_a_goal_has_ended_pauses_then(fly: Fly) -> None:
    flight = await fly("+!short <- .wait(5). +!long(N) <- .wait(1); !long(N + 1).")
    await flight.do(cmd.AdoptGoal, text="long(0)")
    await flight.do(cmd.AdoptGoal, text="short")
    await flight.do(cmd.Run, until="g2")
    state = await flight.until(lambda s: s.run is RunState.PAUSED)
    assert state.goals["g2"].status is GoalStatus.ACHIEVED
    assert state.goals["g1"].status is GoalStatus.ACTIVE


async def test_a_run_until_a_goal_pauses_also_while_an_action_runs(fly: Fly) -> None:
    flight = await fly(f"+!act <- {RUN_WAITER}. +!short <- .wait(told). +!long(N) <- !long(N + 1).")
    await flight.do(cmd.AdoptGoal, text="act")
    await flight.do(cmd.AdoptGoal, text="long(0)")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.AdoptGoal, text="short")
    await flight.do(cmd.Run, until="g3")
    await flight.do(cmd.TellBelief, literal="told")
    state = await flight.until(lambda s: s.run is RunState.PAUSED)
    assert state.acting
    assert state.goals["g3"].status is GoalStatus.ACHIEVED
    flight.go()
    await flight.until(lambda s: not s.acting)


async def test_so_many_loops_are_counted_also_while_an_action_runs(fly: Fly) -> None:
    flight = await fly(f"!act. +!act <- {RUN_WAITER}. +!long(N) <- !long(N + 1).", tracing=True)
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.Run, max_loops=7)
    await flight.do(cmd.AdoptGoal, text="long(0)")
    state = await flight.until(lambda s: s.run is RunState.PAUSED)
    assert state.run_reason.startswith("MAX_LOOPS: 7")
    assert state.acting
    flight.go()
    await flight.until(lambda s: not s.acting)


async def test_a_paused_agent_runs_no_step_whatever_comes_in(fly: Fly) -> None:
    flight = await fly(COUNT + "+alarm(X) <- .print(alarm, X).", tracing=True)
    await flight.poised()
    await flight.do(cmd.TellBelief, literal="alarm(1)")
    await flight.do(cmd.Believe, key="alarm", value=2)
    await flight.do(cmd.AdoptGoal, text="count(2)")
    await flight.do(cmd.TellBelief, literal="quiet(1)")
    await flight.do(cmd.TellBelief, literal="quiet(1)", removed=True)
    state = await flight.until(lambda s: settled(s) and "alarm(1)" in s.held_beliefs)
    assert await flight.steps() == []
    assert state.mind
    assert state.mind.poised
    await flight.do(cmd.Run)
    await flight.idle()
    assert {"alarm1", "alarm2", "2", "done"} <= set(await flight.said())


async def test_an_idle_agent_that_is_told_something_wakes(fly: Fly) -> None:
    flight = await fly("+alarm(X) <- .print(on, X). -alarm(X) <- .print(off, X).")
    await flight.do(cmd.Run)
    await flight.idle()
    await flight.do(cmd.Believe, key="alarm", value=7)
    await flight.idle()
    await flight.do(cmd.Forget, key="alarm")
    await flight.idle()
    await flight.do(cmd.TellBelief, literal="alarm(8)")
    await flight.idle()
    await flight.do(cmd.TellBelief, literal="alarm(8)", removed=True)
    await flight.idle()
    assert await flight.said() == ["on7", "off7", "on8", "off8"]


async def test_what_the_operator_tells_comes_from_the_operator(fly: Fly) -> None:
    flight = await fly("!wait. +!wait <- .wait(600000).")
    await flight.do(cmd.TellBelief, literal="sky(blue)[colour]")
    state = await flight.until(lambda s: "sky(blue)" in s.held_beliefs)
    assert state.held_beliefs["sky(blue)"].sources == ("operator",)
    assert state.held_beliefs["sky(blue)"].annotations == ("colour",)
    for text in ("sky(", "not", "a & b", "sky(X)", "3"):
        await flight.refused(cmd.TellBelief, literal=text)
    await flight.do(cmd.TellBelief, literal="sky(blue)", removed=True)
    await flight.until(lambda s: "sky(blue)" not in s.held_beliefs)


async def test_what_an_agent_of_another_engine_sends_is_heard_by_a_program_and_a_goal_for_others(
    fly: Fly,
) -> None:
    flight = await fly("!wait. +!wait <- .wait(600000). +!job(N) <- +done(N).")
    await flight.do(cmd.Run)
    message = {"sender": "ann", "performative": "achieve"}
    await flight.do(cmd.HearMessage, content="job(3)", **message)
    await flight.until(lambda s: "done(3)" in s.held_beliefs)
    await flight.refused(cmd.HearMessage, content="job(3)", sender="ann", performative="shout")
    submit = flight.engine.submit
    assert (await submit(cmd.CreateAgent(agent="clerk", config={"thinker": "procedural"}))).ok
    assert (await submit(cmd.HearMessage(agent="clerk", content='"list files"', **message))).ok
    told = {"sender": "ann", "performative": "tell"}
    assert not (await submit(cmd.HearMessage(agent="clerk", content="sky(blue)", **told))).ok
    assert [goal.text for goal in (await flight.engine.view("clerk")).goals.values()] == ["list files"]
    assert (await submit(cmd.DeleteAgent(agent="clerk"))).ok


# ------------------------------------------------------------------ stepping


async def step(flight: ReasonerFlight, scope: str = "step") -> str:
    """Step, and give the step that is now before the agent."""
    await flight.do(cmd.Step, scope=scope)
    state = await flight.poised()
    assert state.run is RunState.PAUSED
    assert state.mind
    return state.mind.pending.step if state.mind.pending else ""


async def test_each_step_runs_exactly_one_body_step(fly: Fly) -> None:
    flight = await fly(NESTED, tracing=True)
    state = await flight.poised()
    assert state.mind
    assert state.mind.pending
    before, seen = state.mind.pending.step, []
    for _ in range(18):
        seen.append(before)
        before = await step(flight)
        assert await flight.steps() == seen
        if not before:
            break
    assert seen == [
        *(".print(t1)", "!middle", ".print(m1)", "!bottom", ".print(b1)", ".print(b2)", ".print(m2)"),
        *(".print(t2)", "!middle", ".print(m1)", "!bottom", ".print(b1)", ".print(b2)", ".print(m2)"),
        ".print(t3)",
    ]
    assert "nothing to step" in await flight.refused(cmd.Step)


async def test_steps_pressed_faster_than_they_run_are_as_many_steps(fly: Fly) -> None:
    flight = await fly(NESTED, tracing=True)
    await flight.poised()
    for _ in range(6):
        await flight.do(cmd.Step)
    await flight.poised()
    assert len(await flight.steps()) == 6


async def test_over_runs_the_whole_goal_and_out_the_whole_plan(fly: Fly) -> None:
    flight = await fly(NESTED)
    await flight.poised()
    assert await step(flight) == "!middle"
    assert await step(flight, "over") == ".print(t2)"
    assert await step(flight, "over") == "!middle"
    assert await step(flight) == ".print(m1)"
    assert await step(flight) == "!bottom"
    assert await step(flight) == ".print(b1)"
    assert await step(flight, "out") == ".print(m2)"
    assert await step(flight, "out") == ".print(t3)"
    assert await step(flight, "out") == ""
    assert (await flight.said())[-1] == "t3"


async def test_over_a_goal_that_calls_itself_runs_all_of_it(fly: Fly) -> None:
    flight = await fly(
        "!top. +!top <- !down(30); .print(end). +!down(0). +!down(N) <- !down(N - 1); .print(N)."
    )
    await flight.poised()
    assert await step(flight, "over") == ".print(end)"
    assert await flight.said() == [str(number) for number in range(1, 31)]


async def test_over_a_goal_with_several_actions_runs_them_all(fly: Fly) -> None:
    flight = await fly('!go. +!go <- !make; .print(end). +!make <- mkdir(a); write("a/b", c); mkdir(d).')
    await flight.poised()
    assert await step(flight, "over") == ".print(end)"
    assert (flight.sandbox / "a" / "b").read_text() == "c"
    assert (flight.sandbox / "d").is_dir()
    assert await flight.started() == ["r2", "r3", "r4"]


async def test_a_step_that_is_an_action_runs_the_action_and_nothing_more(fly: Fly) -> None:
    flight = await fly("!go. +!go <- mkdir(a); mkdir(b); mkdir(c).", tracing=True)
    await flight.poised()
    for count, name in enumerate("abc", 1):
        await step(flight)
        assert (flight.sandbox / name).is_dir()
        assert len(await flight.steps()) == count
        assert len(await flight.started()) == count


async def test_two_steps_pressed_at_once_before_actions_run_two_actions(fly: Fly) -> None:
    flight = await fly("!go. +!go <- mkdir(a); mkdir(b); mkdir(c); mkdir(d).", tracing=True)
    await flight.poised()
    for _ in range(3):
        await flight.do(cmd.Step)
    await flight.poised()
    assert len(await flight.started()) == 3
    assert len(await flight.steps()) == 3


async def test_a_step_that_is_a_refused_action_is_one_step(fly: Fly) -> None:
    flight = await fly(
        '!go. +!go <- read("nowhere"); .print(no). -!go <- .print(a); .print(b).', tracing=True
    )
    await flight.poised()
    assert await step(flight) == ".print(a)"
    assert await flight.steps() == ['read("nowhere")']


async def test_other_intentions_go_on_while_one_is_stepped_over(fly: Fly) -> None:
    flight = await fly(
        "!a. !b. +!a <- !deep(20); .print(end_a). +!deep(0). +!deep(N) <- !deep(N - 1); .print(a)."
        "+!b <- .print(b1); .print(b2); .print(b3).",
        tracing=True,
    )
    state = await flight.poised()
    assert state.mind
    assert state.mind.pending
    stepped = state.mind.pending.intention
    assert state.mind.pending.step == "!deep(20)"
    await flight.do(cmd.Step, scope="over")
    state = await flight.poised()
    assert len(state.intentions[stepped].frames) == 1
    assert "end_a" not in await flight.said()
    assert {"b1", "b2", "b3"} <= set(await flight.said())


async def test_a_step_out_of_a_plan_that_waits_goes_on_until_it_is_through(fly: Fly) -> None:
    flight = await fly("!a. +!a <- !b; .print(end). +!b <- .wait(3); .wait(3); .print(b).")
    await flight.poised()
    await step(flight)
    assert await step(flight, "out") == ".print(end)"
    assert await flight.said() == ["b"]


async def test_nothing_is_left_of_steps_when_there_is_nothing_more_to_step(fly: Fly) -> None:
    flight = await fly("!go. +!go <- .print(a). +more <- .print(b); .print(c).", tracing=True)
    await flight.poised()
    for _ in range(4):
        await flight.submit(cmd.Step)
    await flight.until(lambda s: not s.has_work and not s.grants)
    await flight.do(cmd.TellBelief, literal="more")
    state = await flight.poised()
    assert state.mode is Mode.PAUSED
    assert await flight.said() == ["a"]


# ------------------------------------------------------------------ stopping and taking up again


async def test_stop_cuts_the_action_off_and_run_goes_on_with_it(fly: Fly) -> None:
    flight = await fly(f"!go. +!go <- {RUN_WAITER}; .print(end).")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.Stop)
    state = await flight.until(lambda s: not s.acting)
    assert state.mode is Mode.STOPPED
    assert len(state.wanted) == 1
    flight.go()
    await flight.do(cmd.Run)
    await flight.idle()
    assert await flight.said() == ["end"]
    assert await flight.started() == ["r2", "r2"]


async def test_stop_while_another_intention_goes_on_replays(fly: Fly) -> None:
    flight = await fly(f"!go. !count(0). +!go <- {RUN_WAITER}; .print(end). +!count(N) <- !count(N + 1).")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.acting)
    await flight.until(lambda s: s.mind.cycles > state.mind.cycles + 50)
    await flight.do(cmd.Stop)
    await flight.until(lambda s: not s.acting)
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.reopen()
    assert (await flight.state()).run is RunState.PAUSED
    flight.go()
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g1"].status.terminal)


@pytest.mark.parametrize("cycles", [0, 1, 5, 40, 400])
async def test_a_reopened_agent_has_the_same_mind_and_is_paused(fly: Fly, cycles: int) -> None:
    flight = await fly(
        "b(1). b(2). !go(0). +!go(N) : N < 300 <- +seen(N); -+last(N); for (b(X)) { .print(X) }; .random(R);"
        "!!side(N); .wait(1); !go(N + 1). +!go(N) <- mkdir(end). +!side(N) <- .wait(2); -seen(N)."
    )
    if cycles:
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.mind and s.mind.cycles >= cycles)
    await flight.reopen()
    state = await flight.state()
    assert state.run is RunState.PAUSED


async def test_an_agent_paused_in_front_of_an_action_has_it_in_front_of_it_after_reopening(fly: Fly) -> None:
    flight = await fly("!go. +!go <- mkdir(a); mkdir(b).")
    await flight.poised()
    await flight.reopen()
    state = await flight.poised()
    assert state.mind
    assert state.mind.pending
    assert state.mind.pending.step == "mkdir(a)"
    await flight.do(cmd.Run)
    await flight.idle()
    assert (flight.sandbox / "b").is_dir()


async def test_a_deleted_agents_history_replays(fly: Fly, tmp_path: Path) -> None:
    flight = await fly(COUNT)
    await flight.do(cmd.Run)
    await flight.idle()
    await flight.do(cmd.DeleteAgent)
    assert flight.engine.agents == ()


async def test_closing_in_the_middle_of_an_action_says_so_and_run_does_it_again(fly: Fly) -> None:
    flight = await fly(f"!go. +!go <- {RUN_WAITER}; .print(end).")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.reopen()
    assert [said.reason for said in await flight.payloads(ev.ActionCancelled)] == ["the session closed"]
    flight.go()
    await flight.do(cmd.Run)
    await flight.idle()
    assert await flight.said() == ["end"]


async def test_what_the_operator_says_is_a_belief_with_its_source_and_an_event_each_time(fly: Fly) -> None:
    said = 'go "left" [now]\nößt \\ fast'
    flight = await fly("+operator_says(T)[source(operator)] <- .print(T); !heard. +!heard.", tracing=True)
    await flight.do(cmd.Run)
    for times in (1, 2):
        await flight.do(cmd.Guide, text=said, when="now")
        async with asyncio.timeout(PATIENCE_S):
            while len([step for step in await flight.steps() if "print" in str(step)]) < times:
                await asyncio.sleep(0.01)
    state = await flight.state()
    (belief,) = [held for key, held in state.held_beliefs.items() if key.startswith("operator_says")]
    assert "operator" in str(belief.sources)
    assert [message.text for message in state.meta.told] == [said] * 2
    assert all(message.led for message in state.meta.told)
