"""Plans that the agent lacks: asked for, checked, mended, approved, installed, and taken away again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.reasoner import Generation, GenerationStage
from engine.planning.pgp.requests import AskError, AskFailure
from tests.engine.agent.engine_flight import PATIENCE_S
from tests.engine.agent.reasoner.conftest import Fly
from tests.engine.agent.reasoner.reasoner_flight import Oracle, ReasonerFlight

GO = "!go. +!go <- !reach(home); .print(there). -!go[error(E), error_msg(M)] <- .print(E); .print(M)."


def plan(goal: str, *steps: str, when: str = "") -> str:
    """A model's answer with one plan."""
    conditions = f"CONDITIONS:\n- {when}\n" if when else ""
    return f"EVENT: achieve {goal}\n{conditions}OPERATIONS:\n" + "\n".join(f"- {step}" for step in steps)


REACH = plan("reach(X)", "execute mkdir(X)")


async def running(fly: Fly, program: str = GO, **generation: Any) -> tuple[ReasonerFlight, Oracle]:
    oracle = Oracle()
    flight = await fly(program, oracle=oracle, generation=generation)
    await flight.do(cmd.Run)
    return flight, oracle


async def held(flight: ReasonerFlight, ident: str = "q1") -> Generation:
    state = await flight.until(
        lambda s: ident in s.generations and s.generations[ident].stage is GenerationStage.HELD
    )
    return state.generations[ident]


# ------------------------------------------------------------------ asking and installing


async def test_a_goal_without_a_plan_gets_one_and_goes_on_as_if_it_had_been_there(fly: Fly) -> None:
    """§7 34, 42."""
    flight, oracle = await running(fly)
    question = await oracle.question()
    assert "reach" in question.prompt.user
    assert "missing_plan_for" not in question.prompt.user
    question.say(REACH)
    state = await flight.idle()
    assert await flight.said() == ["there"]
    assert (flight.sandbox / "home").is_dir()
    assert len(oracle.asked) == 1
    (made,) = state.generated
    assert (made.goal, made.model, made.generation) == ("+!reach(home)", "oracle", "q1")
    assert (made.steps, made.succeeded, made.verified) == (1, 1, True)
    assert "+!reach(X)" in made.text
    assert not [text for text in state.held_beliefs if "missing_plan_for" in text]
    one = state.generations["q1"]
    assert one.tokens == 7
    assert (one.stage, one.trigger) == (GenerationStage.INSTALLED, "reactive")
    assert one.prompt == question.prompt.user
    assert one.answer == REACH


async def test_generate_plan_as_a_step_adds_plans_and_does_not_run_them(fly: Fly) -> None:
    """§7 33."""
    flight, oracle = await running(fly, "!go. +!go <- .generate_plan(reach(X)); .print(made).")
    (await oracle.question()).say(REACH)
    state = await flight.idle()
    assert await flight.said() == ["made"]
    assert [one.succeeded for one in state.generated] == [0]
    assert state.generations["q1"].trigger == "on demand"
    assert not await flight.started()


async def test_a_goal_whose_plans_do_not_apply_asks_nobody_and_says_what_held(fly: Fly) -> None:
    """§7 35."""
    oracle = Oracle()
    flight = await fly("!go. bold. +!go : bold & mad <- .print(no).", oracle=oracle, tracing=True)
    await flight.do(cmd.Run)
    state = await flight.idle()
    assert (state.goals["g1"].status, oracle.asked) == (GoalStatus.FAILED, [])
    (considered,) = await flight.traced("OptionConsidered")
    assert [(one["condition"], one["holds"]) for one in considered["guards"]] == [
        ("bold", True),
        ("mad", False),
    ]


async def test_without_a_model_the_goal_fails_and_says_what_to_do(fly: Fly) -> None:
    flight = await fly(GO)
    await flight.do(cmd.Run)
    await flight.idle()
    said = await flight.said()
    assert said[0] == "pgp_failed"
    assert said[1].startswith("there is no model to make plans: set ANTHROPIC_API_KEY")


async def test_recorded_answers_are_given_in_their_order(fly: Fly) -> None:
    flight = await fly(GO, generation={"answers": ["nothing of use", REACH]})
    await flight.do(cmd.Run)
    state = await flight.idle()
    assert await flight.said() == ["there"]
    assert state.generations["q1"].attempt == 2


# ------------------------------------------------------------------ answers of no use


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("I would rather not.", "no usable plan for +!reach(home)"),
        ("EVENT: achieve reach(X)\nOPERATIONS:\n- execute mkd", "mkd"),
        ("def reach(x):\n    os.mkdir(x)\n", "no usable plan"),
        (plan("reach(X)", "execute teleport(X)"), "there is no action teleport/1"),
        (plan("other(X)", "execute mkdir(X)"), "1 read, 1 accepted"),
        (plan("reach(X)", "execute mkdir(X, now, 3)"), "mkdir takes 1 arguments, not 3"),
        ("EVENT: achieve reach(X\nOPERATIONS:\n- execute mkdir(X)", "reach(X"),
        ("\ud800" + "x" * 30, "no usable plan"),
        ("EVENT: achieve reach(" + "f(" * 5_000, "no usable plan"),
    ],
)
async def test_an_answer_of_no_use_is_sent_back_twice_with_the_reason_and_then_fails(
    fly: Fly, answer: str, words: str
) -> None:
    """§7 38, 40."""
    flight, oracle = await running(fly)
    (await oracle.question(1)).say(answer)
    second = await oracle.question(2)
    assert "Your plans cannot be used as they are" in second.prompt.user
    assert words in second.prompt.user
    second.say(answer)
    (await oracle.question(3)).say(answer)
    state = await flight.idle()
    said = await flight.said()
    assert said[0] == "pgp_failed"
    assert "no usable plan for +!reach(home)" in said[1]
    assert len(oracle.asked) == 3
    assert state.generated == ()
    assert state.generations["q1"].stage is GenerationStage.FAILED
    assert [said.attempt for said in await flight.payloads(ev.GenerationAsked)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AskError(AskFailure.HTTP, "529 overloaded"), "http: 529 overloaded"),
        (AskError(AskFailure.NETWORK, "gone"), "network: gone"),
        (ValueError("a fault of the client"), "asking for plans broke: ValueError: a fault of the client"),
    ],
)
async def test_no_answer_fails_the_goal_with_the_reason(fly: Fly, error: Exception, words: str) -> None:
    """§7 38."""
    flight, oracle = await running(fly)
    (await oracle.question()).fail(error)
    await flight.idle()
    assert await flight.said() == ["pgp_failed", words]


async def test_an_empty_answer_and_none_in_time_fail_the_goal(fly: Fly) -> None:
    """§7 38."""
    flight, oracle = await running(fly)
    (await oracle.question()).say("  \n")
    await flight.idle()
    assert (await flight.said())[1] == "empty: the answer is empty"
    slow = await fly(GO, oracle=Oracle(), generation={"request_timeout_s": 0.01})
    await slow.do(cmd.Run)
    await slow.idle()
    assert (await slow.said())[1].startswith("timeout: no whole answer within")


async def test_of_a_mixed_answer_the_good_plans_are_installed_and_the_bad_ones_reported(fly: Fly) -> None:
    """§7 40."""
    flight, oracle = await running(fly)
    answer = [
        plan("reach(X)", "execute fly(X)", when="wings"),
        plan("reach(X)", "execute mkdir(X)"),
        plan("reach(Y)", "execute mkdir(Y)"),
    ]
    (await oracle.question()).say("\n---\n".join(answer))
    state = await flight.idle()
    assert await flight.said() == ["there"]
    first, second, third = state.generations["q1"].plans
    assert (first.accepted, second.accepted, third.accepted) == (False, True, False)
    assert "there is no action fly/1" in first.reasons[0]
    assert "has the event and the conditions of the plan in line" in third.reasons[0]
    assert len(state.generated) == 1


# ------------------------------------------------------------------ the operator approves


async def test_plans_are_held_until_the_operator_approves_them(fly: Fly) -> None:
    """§7 47."""
    flight, oracle = await running(fly, approve=True)
    (await oracle.question()).say(REACH)
    one = await held(flight)
    assert [plan.accepted for plan in one.plans] == [True]
    state = await flight.state()
    assert [intention.state for intention in state.intentions.values()] == ["generation"]
    assert state.generated == ()
    await flight.do(cmd.DecidePlans, generation="q1", decision="approve")
    await flight.idle()
    assert await flight.said() == ["there"]
    assert "no plans of 'q1' wait" in await flight.refused(
        cmd.DecidePlans, generation="q1", decision="approve"
    )


async def test_an_edited_text_is_installed_instead_and_must_be_right(fly: Fly) -> None:
    """§7 47."""
    flight, oracle = await running(fly, approve=True)
    (await oracle.question()).say(plan("reach(X)", "execute fly(X)"))
    (await oracle.question(2)).say(plan("reach(X)", "execute fly(X)"))
    (await oracle.question(3)).say(plan("reach(X)", "execute fly(X)"))
    one = await held(flight)
    assert not any(plan.accepted for plan in one.plans)
    refuse = {"generation": "q1", "decision": "approve"}
    assert "none of these plans can be installed" in await flight.refused(cmd.DecidePlans, **refuse)
    for text, words in [
        ("+!reach(X) <- mkdir(X", "the plans:1:"),
        ("+!other <- mkdir(a).", "none of these plans is for +!reach(home)"),
        ("belief(1). +!reach(X) <- mkdir(X).", "only plans may stand here"),
    ]:
        assert words in await flight.refused(cmd.DecidePlans, **refuse, text=text)
    assert (await held(flight)).stage is GenerationStage.HELD
    await flight.do(cmd.DecidePlans, **refuse, text='+!reach(X) <- mkdir(X); .print("edited").')
    await flight.idle()
    assert await flight.said() == ["edited", "there"]


async def test_plans_rejected_fail_the_goal_with_the_operators_reason(fly: Fly) -> None:
    """§7 47."""
    flight, oracle = await running(fly, approve=True)
    (await oracle.question()).say(REACH)
    await held(flight)
    await flight.do(cmd.DecidePlans, generation="q1", decision="reject", text="too bold")
    state = await flight.idle()
    assert await flight.said() == ["pgp_failed", "the operator rejected the plans: too bold"]
    assert state.generations["q1"].stage is GenerationStage.FAILED


async def test_the_operator_can_have_it_asked_again_with_a_word(fly: Fly) -> None:
    flight, oracle = await running(fly, approve=True)
    (await oracle.question()).say(REACH)
    await held(flight)
    await flight.do(cmd.DecidePlans, generation="q1", decision="again", text="use two steps")
    second = await oracle.question(2)
    assert "use two steps" in second.prompt.user
    second.say(plan("reach(X)", "execute mkdir(X)", "execute mkdir(b)"))
    await held(flight)
    await flight.do(cmd.DecidePlans, generation="q1", decision="approve")
    await flight.idle()
    assert (flight.sandbox / "b").is_dir()


async def test_a_plan_written_by_hand_is_replaced_only_when_approved(fly: Fly) -> None:
    """§7 45."""
    program = (
        "!go. @mine +!reach(X) <- .print(by_hand). +!go <- .generate_plan(reach(X)); !reach(home)."
        "-!go[error(E), error_msg(M)] <- .print(E); .print(M)."
    )
    flight, oracle = await running(fly, program)
    (await oracle.question()).say(REACH)
    state = await flight.idle()
    assert await flight.said() == ["pgp_failed", "a plan written by hand has its event and conditions: @mine"]
    assert state.generations["q1"].stage is GenerationStage.FAILED
    assert state.generated == ()

    flight, oracle = await running(fly, program, approve=True)
    (await oracle.question()).say(REACH)
    await held(flight)
    await flight.do(cmd.DecidePlans, generation="q1", decision="approve")
    await flight.idle()
    assert await flight.said() == []
    assert (flight.sandbox / "home").is_dir()


# ------------------------------------------------------------------ what becomes of generated plans


async def test_a_failing_step_removes_its_generated_plan_and_no_other(fly: Fly) -> None:
    """§7 43."""
    flight, oracle = await running(fly, GO + "+!reach(never) <- .fail.")
    answer = [plan("reach(X)", "execute read(nowhere)"), plan("reach(X)", "execute mkdir(X)", when="later")]
    (await oracle.question()).say("\n---\n".join(answer))
    state = await flight.idle()
    assert (await flight.said())[0] == "action_failed"
    assert [one.text for one in state.generated if "later" in one.text]
    assert len(state.generated) == 1
    before = len(list(flight.mind().agent.plans))
    await flight.do(cmd.AdoptGoal, text="reach(never)")
    await flight.idle()
    assert len(list(flight.mind().agent.plans)) == before


async def test_attempts_for_one_goal_are_capped_and_counted_anew_after_success(fly: Fly) -> None:
    """§7 39."""
    flight, oracle = await running(fly, "+!nothing.", attempts=2)
    bad, good = plan("reach(X)", "execute read(X)"), plan("reach(X)", "execute mkdir(X)")
    for number in (1, 2):
        await flight.do(cmd.AdoptGoal, text="reach(home)")
        (await oracle.question(number)).say(bad)
        await flight.idle()
    await flight.do(cmd.AdoptGoal, text="reach(home)")
    state = await flight.idle()
    assert len(oracle.asked) == 2
    assert [goal.status for goal in state.goals.values()] == [GoalStatus.FAILED] * 3
    await flight.do(cmd.AdoptGoal, text="reach(work)")
    (await oracle.question(3)).say(good)
    await flight.idle()
    assert len((await flight.state()).generated) == 1


async def test_goals_of_generated_plans_are_generated_in_turn_up_to_a_depth(fly: Fly) -> None:
    """§7 41."""
    flight, oracle = await running(fly, "!g0. -!g0[error(E)] <- .print(E).")
    for number in range(1, 7):
        (await oracle.question(number)).say(plan(f"g{number - 1}", f"achieve g{number}"))
    await flight.idle()
    assert len(oracle.asked) == 6
    assert await flight.said() == ["no_relevant"]


async def test_inventions_are_remembered_for_the_next_prompt(fly: Fly) -> None:
    """§7 54."""
    flight, oracle = await running(fly, "!go. +!go <- !one; !two.")
    (await oracle.question()).say(
        plan("one", "add seen(here)")
        + "\n---\n```yaml\n- belief: seen(Place)\n  purpose: a place that was visited\n```\n"
    )
    second = await oracle.question(2)
    assert "a place that was visited" in second.prompt.user
    second.say(plan("two", "add seen(there)"))
    await flight.idle()


async def test_plans_are_made_ahead_where_that_is_wanted(fly: Fly) -> None:
    """§7 46."""
    program = "!wait. +!wait <- .wait(told); !later(1). +!other <- !known. +!known."
    flight, oracle = await running(fly, program, proactive=True)
    question = await oracle.question()
    state = await flight.state()
    (one,) = state.generations.values()
    assert (one.goal, one.trigger) == ("+!later(1)", "proactive")
    question.say(plan("later(X)", "execute mkdir(d)"))
    await flight.until(lambda s: s.generated)
    await flight.do(cmd.TellBelief, literal="told")
    await flight.idle()
    assert len(oracle.asked) == 1
    assert (flight.sandbox / "d").is_dir()


async def test_no_plans_are_made_ahead_by_default(fly: Fly) -> None:
    """§7 46."""
    flight, oracle = await running(fly, "!wait. +!wait <- .wait(told); !later(1).")
    await flight.until(lambda s: s.mind and s.mind.idle)
    assert not oracle.asked
    await flight.do(cmd.Stop)


# ------------------------------------------------------------------ pause, stop, drop, reopen


async def test_a_paused_agent_asks_no_model(fly: Fly) -> None:
    oracle = Oracle()
    flight = await fly(GO, oracle=oracle)
    await flight.poised()
    await flight.do(cmd.Step)
    await flight.poised()
    assert not oracle.asked
    for _ in range(20):
        if oracle.asked:
            break
        await flight.submit(cmd.Step)
        await flight.until(lambda s: s.mind.poised or s.mind.idle or oracle.asked)
    (await oracle.question()).say(REACH)
    await flight.until(lambda s: s.generated)
    await flight.do(cmd.Run)
    await flight.idle()


async def test_stop_cuts_the_question_off_and_run_asks_it_again(fly: Fly) -> None:
    flight, oracle = await running(fly)
    first = await oracle.question()
    await flight.do(cmd.Stop)
    async with asyncio.timeout(PATIENCE_S):
        while not first.future.cancelled():
            await asyncio.sleep(0.002)
    await flight.do(cmd.Run)
    (await oracle.question(2)).say(REACH)
    state = await flight.idle()
    assert await flight.said() == ["there"]
    assert state.generations["q1"].attempt == 1


async def test_suspending_and_resuming_who_waits_for_plans_changes_nothing(fly: Fly) -> None:
    flight, oracle = await running(fly)
    question = await oracle.question()
    await flight.until(lambda s: any(one.state == "generation" for one in s.intentions.values()))
    for how in ("suspend", "resume"):
        await flight.do(cmd.SteerIntention, intention=1, how=how)
    await flight.until(lambda s: s.intentions[1].state == "generation")
    question.say(REACH)
    await flight.idle()
    assert await flight.said() == ["there"]
    assert len(oracle.asked) == 1


@pytest.mark.parametrize("how", ["drop", "fail"])
async def test_an_answer_for_nobody_is_still_an_answer(fly: Fly, how: str) -> None:
    flight, oracle = await running(fly)
    question = await oracle.question()
    await flight.until(lambda s: any(one.state == "generation" for one in s.intentions.values()))
    await flight.do(cmd.SteerIntention, intention=1, how=how)
    question.say(REACH)
    state = await flight.until(lambda s: s.generated)
    await flight.idle()
    assert not [text for text in (await flight.state()).held_beliefs if "missing_plan_for" in text]
    assert state.goals["g1"].status is not GoalStatus.ACTIVE or how == "fail"


async def test_an_open_question_is_asked_again_after_reopening(fly: Fly) -> None:
    flight, oracle = await running(fly)
    await oracle.question()
    await flight.reopen()
    assert len(oracle.asked) == 1
    await flight.do(cmd.Run)
    (await oracle.question(2)).say(REACH)
    state = await flight.idle()
    assert await flight.said() == ["there"]
    assert state.generations["q1"].attempt == 1


async def test_held_plans_are_still_held_after_reopening(fly: Fly) -> None:
    flight, oracle = await running(fly, approve=True)
    (await oracle.question()).say(REACH)
    before = await held(flight)
    await flight.reopen()
    assert (await held(flight)).plans == before.plans
    await flight.do(cmd.DecidePlans, generation="q1", decision="approve")
    await flight.do(cmd.Run)
    await flight.idle()
    assert await flight.said() == ["there"]


async def test_a_second_failure_of_the_same_goal_is_asked_for_anew(fly: Fly) -> None:
    flight, oracle = await running(fly, "+!nothing.")
    for number in (1, 2):
        await flight.do(cmd.AdoptGoal, text="reach(home)")
        (await oracle.question(number)).say(plan("reach(X)", "execute read(X)"))
        await flight.idle()
    state = await flight.state()
    assert list(state.generations) == ["q1", "q2"]
    assert state.generated == ()
