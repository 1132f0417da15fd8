"""Every external action passes the one gate and the one pipeline; the intention learns what came of it."""

from __future__ import annotations

import asyncio

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.goals import GoalStatus
from tests.engine.agent.engine_flight import python
from tests.engine.agent.reasoner.conftest import Fly
from tests.engine.agent.reasoner.reasoner_flight import RUN_WAITER, ReasonerFlight
from tests.patience import PATIENCE_S


async def ran(flight: ReasonerFlight) -> list[str]:
    await flight.do(cmd.Run)
    await flight.idle()
    return await flight.said()


async def test_an_action_is_requested_saved_started_and_finished_in_this_order(fly: Fly) -> None:
    flight = await fly('!go. +!go <- write("a", text); mkdir(b); read("a", X); .print(X).')
    assert await ran(flight) == ["text"]
    kinds = [event.kind for event in await flight.events() if event.kind.startswith(("action.", "snapshot."))]
    changing = ["action.requested", "snapshot.taken", "action.started", "action.finished"]
    assert kinds == [*changing, *changing, "action.requested", "action.started", "action.finished"]
    requested = await flight.payloads(ev.ActionRequested)
    assert [said.goal for said in requested] == ["g1"] * 3
    assert [said.step for said in requested] == ["r2", "r3", "r4"]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ('run("nosuchprogram")', "nosuchprogram"),
        ("run(7)", "7"),
        ('read("/etc/passwd")', "outside"),
        ('read("../../x")', "outside"),
        ('read("nowhere")', "nowhere"),
        ("rm(x)", "autonomous"),
        ("shell", "there is no action shell"),
        ("jump(high)", "there is no action jump"),
        ("mkdir", "mkdir takes 1 or 2 arguments, not 0"),
        ("read(a, b, c)", "read takes 1 or 2 arguments, not 3"),
        ("read(a, b)", "read takes 1 arguments, not 2"),
        ("write(X, Y)", "write gives one answer, and 2 arguments have no value"),
        ("read(X)", "path"),
    ],
)
async def test_a_refused_action_fails_its_step_with_the_tools_words(
    fly: Fly, action: str, words: str
) -> None:
    flight = await fly(
        f"!go. +!go <- {action}; .print(no). -!go[error(E), error_msg(M)] <- .print(E); .print(M)."
    )
    said = await ran(flight)
    assert said[0] == "action_failed"
    assert words in said[1]
    assert not await flight.payloads(ev.FailureRecorded)


async def test_a_wish_for_autonomous_mode_is_put_to_the_operator(fly: Fly) -> None:
    """Behaviour 58, for a program in AgentSpeak(L)."""
    flight = await fly("!go. +!go <- toggle_autonomous_mode; .print(no).")
    await flight.do(cmd.Run)
    await flight.until(lambda state: state.approvals.question is not None)
    assert await flight.said() == []


async def test_a_refused_action_that_nothing_catches_ends_the_goal_with_the_reason(fly: Fly) -> None:
    flight = await fly('!go. +!go <- read("nowhere").')
    await ran(flight)
    (failed,) = await flight.payloads(ev.FailureRecorded)
    assert failed.message.startswith("action_failed: ")
    goal = (await flight.state()).goals["g1"]
    assert (goal.status, "nowhere" in goal.reason) == (GoalStatus.FAILED, True)


async def test_answers_are_bound_as_terms(fly: Fly) -> None:
    flight = await fly(
        '!go. +!go <- mkdir(d); write("d/a", 1); write("d/b", "x y"); ls(d, L); .print(L); read("d/b", X);'
        '.print(X); run(["python", "-c", "print(6 * 7)"], Out); .print(Out); .length(L, N); .print(N);'
        "mkdir(e, M); .string(M); ls(X2); .list(X2)."
    )
    said = await ran(flight)
    assert said[1:4] == ["x y", "42", "2"]
    assert "a" in said[0]
    assert not await flight.payloads(ev.FailureRecorded)


async def test_an_answer_that_does_not_fit_what_is_bound_fails_the_step(fly: Fly) -> None:
    flight = await fly(
        '!go. +!go <- write("a", b); !other(X); .print(X). +!other(Y) <- read("a", Y); read("a", Y).'
        "-!other(no)[error_msg(M)] <- .print(M)."
    )
    said = await ran(flight)
    assert said[-1] == "no"


async def test_numbers_lists_and_terms_reach_the_tool_as_it_takes_them(fly: Fly) -> None:
    flight = await fly(
        '!go. +!go <- write(n, 1.5); write(m, 2); write(t, f(a, "b")); write(l, "[1]");'
        'read(n, N); read(m, M); read(t, T); .print(N, " ", M, " ", T).'
    )
    assert await ran(flight) == ['1.5 2 f(a,"b")']


@pytest.mark.parametrize("number", ["1e308 * 10", "1e308 * 10 - 1e308 * 10", "-1e308 * 10"])
async def test_numbers_that_json_cannot_say_do_no_harm(fly: Fly, number: str) -> None:
    flight = await fly(
        f"!go. +!go <- X = {number}; +b(X); wait_job(j1, t, X); .print(no). -!go <- .print(caught)."
        "+b(X) <- .print(b)."
    )
    assert (await ran(flight))[-1] == "caught"


async def test_text_with_halves_of_characters_does_no_harm(fly: Fly) -> None:
    flight = await fly("+half(X) <- .print(X); write(X, y). -half(X) <- .print(gone).")
    await flight.do(cmd.Run)
    await flight.idle()
    await flight.do(cmd.Believe, key="half", value="a\ud800")
    await flight.idle()
    await flight.do(cmd.Forget, key="half")
    await flight.idle()
    assert len(await flight.said()) == 2


async def test_the_world_is_acted_on_and_perceived(fly: Fly) -> None:
    flight = await fly(
        "!go. +!go <- move(north); move(nowhere). -!go[error_msg(M)] <- .print(M). +moved <- true.",
        world="explorer",
    )
    said = await ran(flight)
    assert "there is no direction nowhere" in said[0]
    state = await flight.state()
    assert state.world["moves"] == 1
    percepts = {text for text, held in state.held_beliefs.items() if "percept" in held.sources}
    assert {text.replace(" ", "") for text in state.world["percepts"]} <= percepts


async def test_the_operators_move_in_the_world_is_perceived_by_an_idle_agent(fly: Fly) -> None:
    flight = await fly("+!nothing.", world="explorer")
    await flight.do(cmd.Run)
    before = await flight.idle()
    await flight.do(cmd.CallTool, tool="explorer", command="move", args={"direction": "north"})
    state = await flight.until(lambda s: s.operator_actions == 1 and not s.action and not s.has_work)
    assert state.world["percepts"] != before.world["percepts"]
    percepts = {text for text, held in state.held_beliefs.items() if "percept" in held.sources}
    assert {text.replace(" ", "") for text in state.world["percepts"]} <= percepts


async def test_the_operators_call_comes_first(fly: Fly) -> None:
    flight = await fly("!go. +!go <- mkdir(mine).")
    await flight.poised()
    await flight.do(cmd.CallTool, command="write", args={"path": "theirs", "content": "1"})
    await flight.do(cmd.Run)
    await flight.idle()
    assert await flight.started() == ["", "r2"]


async def test_a_pause_holds_an_action_at_the_gate_and_a_call_of_the_operators_passes_it(fly: Fly) -> None:
    flight = await fly("!a. !b. +!a <- mkdir(a). +!b <- mkdir(b); mkdir(c).")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.actions >= 1)
    await flight.do(cmd.Pause)
    await flight.until(lambda s: not s.acting)
    await flight.do(cmd.CallTool, command="ls")
    await flight.until(lambda s: s.operator_actions == 1 and not s.busy)
    await flight.do(cmd.Run)
    await flight.idle()
    assert sorted(await flight.started()) == ["", "r2", "r4", "r6"] or len(await flight.started()) == 4
    assert (flight.sandbox / "c").is_dir()


async def test_nothing_starts_after_an_acknowledged_pause_until_run(fly: Fly) -> None:
    flight = await fly("!make(0). +!make(40). +!make(N) <- .concat(f, N, P); write(P, x); !make(N + 1).")
    for _ in range(4):
        await flight.do(cmd.Run)
        before = (await flight.state()).actions
        await flight.until(lambda s, n=before: s.actions >= n + 3)
        await flight.do(cmd.Pause)
        await flight.until(lambda s: not s.acting)
    await flight.do(cmd.Run)
    await flight.idle()
    paused = False
    for event in await flight.events():
        if event.kind in ("agent.paused", "agent.resumed"):
            paused = event.kind == "agent.paused"
        assert not (paused and event.kind == "action.started"), event.ref
    assert len(list(flight.sandbox.glob("f*"))) == 40


async def test_an_action_whose_intention_goes_while_it_stands_at_the_gate_is_withdrawn(fly: Fly) -> None:
    flight = await fly(f"!a. +!a <- {RUN_WAITER}; mkdir(a). +!b <- mkdir(b).")
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.AdoptGoal, text="b")
    state = await flight.until(lambda s: len(s.wanted) == 2)
    await flight.do(cmd.Pause)
    flight.go()
    state = await flight.until(lambda s: s.action and not s.acting and s.action.command == "mkdir")
    intention = state.wanted[0].intention
    await flight.do(cmd.SteerIntention, intention=intention, how="drop", reason="not wanted")
    await flight.until(
        lambda s: not s.action or s.action.command != "mkdir" or s.action.args != {"path": "b"}
    )
    await flight.do(cmd.Run)
    await flight.idle()
    assert not (flight.sandbox / "b").exists()
    withdrawn = await flight.payloads(ev.ActionWithdrawn)
    assert len(withdrawn) == 1
    assert (await flight.state()).goals["g2"].reason == "not wanted"


async def test_an_action_that_runs_for_an_intention_that_went_ends_without_effect_on_others(fly: Fly) -> None:
    flight = await fly(f"!a. +!a <- {RUN_WAITER}; .print(no). -!a <- .print(failed); .wait(5); .print(end).")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.acting)
    await flight.do(cmd.SteerIntention, intention=state.wanted[0].intention, how="fail")
    await flight.until(lambda s: not s.intentions)
    flight.go()
    await flight.idle()
    assert await flight.said() == ["failed", "end"]


async def test_the_shell_holds_the_agent(fly: Fly) -> None:
    flight = await fly(
        "!a(0). +!a(N) : N < 5 <- .concat(d, N, P); mkdir(P); !a(N + 1). +!a(N) <- .print(end)."
    )
    await flight.do(cmd.Run)
    await flight.do(cmd.TakeShell)
    state = await flight.until(lambda s: s.mode is Mode.SHELL)
    steps, actions = state.loops, state.actions
    assert "you have the shell" in await flight.refused(cmd.Run)
    assert "you have the shell" in await flight.refused(cmd.Step)
    await flight.do(cmd.TellBelief, literal="told")
    async with asyncio.timeout(PATIENCE_S):
        while flight.engine.terminal("pilot") is None:
            await asyncio.sleep(0.002)
    await flight.do(cmd.ReturnShell)
    state = await flight.until(lambda s: not s.shell_taken and s.returned is None)
    assert (state.loops, state.actions) == (steps, actions)
    if state.handover is not None:
        await flight.do(cmd.SettleChanges)
    await flight.do(cmd.Run)
    await flight.idle()
    assert await flight.said() == ["end"]


async def test_an_action_whose_workspace_cannot_be_saved_fails_with_the_reason(fly: Fly) -> None:
    flight = await fly(
        "!go. +!go <- mkdir(a); .print(no). -!go[error(E), error_msg(M)] <- .print(E); .print(M)."
    )
    store = flight.workspace / ".pilothouse" / "snapshots"
    store.write_text("in the way")
    said = await ran(flight)
    store.unlink()
    assert said[0] == "action_failed"
    assert "the workspace could not be saved before it" in said[1]
    assert not (flight.sandbox / "a").exists()
    assert (await flight.state()).run is RunState.RUNNING


async def test_what_a_long_answer_says_is_cut_where_the_journal_cuts_it(fly: Fly) -> None:
    flight = await fly(
        '!go. +!go <- run(["python", "-c", "print(chr(120) * 100000)"], X); .length(X, N); .print(N).'
    )
    assert int((await ran(flight))[0]) < 3_000


async def test_the_operator_can_call_tools_while_nothing_runs(fly: Fly) -> None:
    flight = await fly("+!nothing.")
    await flight.do(
        cmd.CallTool, command=python("")["params"]["command"], args={"command": ["python", "-c", ""]}
    )
    await flight.until(lambda s: s.operator_actions == 1 and not s.action)
