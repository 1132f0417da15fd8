"""The verbs of a crew: what lines mean, what unknown ids are answered with, and the same without a screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.doing import do_in
from app.grammar import complete, read_line
from app.headless import opened
from app.preview import preview_of
from app.verb import Context, GrammarError, Local
from engine.agents.kinds import ErrorCode
from engine.domain import commands as cmd
from engine.domain import crew_commands as cc
from engine.domain.crew import CrewSettings
from engine.loop.sharing import EngineConfig
from tests.crew.flight import Flight, Job, Worker, spec_of
from tests.crew.test_views import ask, wait

LINES = [
    ("delegate minto structure this", cc.Delegate(to="minto", task="structure this")),
    ("delegate !3 MINTO now", cc.Delegate(to="minto", task="now", priority=3)),
    ("transfer larry he knows", cc.Transfer(to="larry", reason="he knows")),
    ("take back", cc.TakeBack()),
    ("take_back", cc.TakeBack()),
    ("say hello there", cc.Say(text="hello there")),
    ("parallel minto,pws look at it", cc.Parallel(to=("minto", "pws"), task="look at it")),
    ("parallel minto, pws look", cc.Parallel(to=("minto", "pws"), task="look")),
    ("sequence pws,minto x", cc.Sequence(to=("pws", "minto"), task="x")),
    (
        'debate "we go on" for=pws against=minto rounds=3',
        cc.Debate(motion="we go on", pro="pws", con="minto", rounds=3),
    ),
    ("debate we go on", cc.Debate(motion="we go on")),
    ("guided start wizard a canvas", cc.Delegate(to="wizard", task="a canvas")),
    ("select validate it", Local("select", "validate it")),
    ("agents --versions", Local("agents", "--versions")),
    ("agent_remove pws", cc.RemoveAgent(who="pws")),
    ("agent_disable pws", cc.EnableAgent(who="pws", enabled=False)),
    ("pause g1", None),
    ("priority g1 7", cmd.ChangeGoal(agent="pilot-1", goal="g1", priority=7)),
    ("run 3", cmd.Run(agent="pilot-1", max_loops=3)),
    ("cancel handoffs", cc.CancelHandoff(reason="cancelled by the operator")),
]


async def crew_of(flight: Flight) -> Context:
    await flight.register("minto", "pws")
    await flight.register("larry", kind="role")
    await flight.register("wizard", kind="guided")
    return Context(agent="pilot-1", crew=flight.crew.state)


@pytest.mark.parametrize(("line", "meant"), LINES)
async def test_lines_mean_commands(flight: Flight, line: str, meant: object) -> None:
    context = await crew_of(flight)
    if meant is None:
        with pytest.raises(GrammarError):
            read_line(line, context)
    else:
        assert read_line(line, context) == meant


async def test_lines_about_handoffs_and_requests(flight: Flight) -> None:
    context = await crew_of(flight)
    flight.worker.scripts |= {"pws": ask, "minto": wait, "wizard": ask}
    one, other, guided = [await flight.hand(name) for name in ("pws", "minto", "wizard")]
    await flight.until(lambda: len(flight.crew.state.open_requests()) == 2)
    assert read_line(f"cancel {one[:9]}", context) == cc.CancelHandoff(
        handoff=one, reason="cancelled by the operator"
    )
    assert read_line(f"retry {other}", context) == cc.RetryHandoff(handoff=other)
    assert read_line(f"priority {other} 3", context) == cc.SetPriority(handoff=other, priority=3)
    assert read_line(f"pause {other}", context) == cc.PauseHandoff(handoff=other)
    assert read_line(f"resume {other}", context) == cc.ResumeHandoff(handoff=other)
    assert read_line(f"takeover {other} my text", context) == cc.TakeOver(handoff=other, text="my text")
    assert read_line("answer hr-1 1", context) == cc.AnswerRequest(request="hr-1", option="go")
    assert read_line("answer hr-1 2 mine", context) == cc.AnswerRequest(
        request="hr-1", option="hand", text="mine"
    )
    assert read_line("answer hr-1 why not", context) == cc.AnswerRequest(request="hr-1", text="why not")
    assert read_line("guided resume wizard", context) == Local("handoff", guided)
    words = [line for line, _ in complete("answer ", context)]
    assert words == ["answer hr-1", "answer hr-2"]
    assert f"takeover {other}" in [line for line, _ in complete("takeover ", context)]
    assert "transfer larry" in [line for line, _ in complete("transfer l", context)]
    assert not complete("transfer p", context)
    for line, said in (
        ("delegate mint x", "no agent 'mint' is registered; the nearest: minto, "),
        ("cancel h-zzzz", "the nearest: h-"),
        ("answer hr-77 x", "there is no request 'hr-77'; the nearest: hr-"),
        ("cancel h-", "begins several"),
        ("priority " + one + " 9", "1 normal, 2 high or 3 urgent"),
        ("delegate minto", "the task is missing"),
        ("debate x for=pws", "two sides"),
        ("debate x rounds=9", "rounds"),
        ("delegate !7 minto x", "priorities are"),
        ("guided resume larry", "nothing of larry is open"),
    ):
        with pytest.raises(GrammarError, match=said.replace("(", r"\(")):
            read_line(line, context)


def test_a_preview_tells_the_calls_of_a_debate_and_what_takes_a_line_back() -> None:
    from app.grammar import verb_of

    context = Context()
    for line, told in (
        ('debate "go on" rounds=2', {"cost": "8 model calls at most, without repairs"}),
        ("transfer larry", {"undo": "yes: take back"}),
        ("delegate minto x", {"undo": "cancel HANDOFF ends it with all that it handed over"}),
    ):
        found = dict(preview_of(line, verb_of(line)[0], read_line(line, context)).facts)
        assert told.items() <= found.items()


async def test_without_a_screen_work_is_followed_until_it_ends_or_waits(tmp_path: Path) -> None:
    async with opened(tmp_path, EngineConfig(crew=CrewSettings(built_ins=False))) as engine:
        worker = Worker()
        crew = await engine.crew()
        worker.crew = crew
        crew.plug(worker=worker)

        async def fails(job: Job) -> object:
            return job.done("half", code=ErrorCode.BUDGET)

        worker.scripts |= {"asks": ask, "fails": fails}
        for name in ("good", "fails", "asks"):
            spec = spec_of(name, triggers={"keywords": [f"be {name}"]})
            assert (await engine.submit(cc.RegisterAgent(spec=spec))).ok
        code, answer, text = await do_in(engine, "delegate good see about it")
        assert (code, answer["ok"], answer["state"]) == (0, True, "completed")
        assert "✓ h-" in text
        code, answer, text = await do_in(engine, "delegate fails see about it")
        assert (code, answer["result"]["error_code"]) == (1, "BUDGET")
        code, answer, text = await do_in(engine, "parallel good,asks see about it")
        assert code == 3
        request = answer["requests"][-1]["id"]
        assert f"? {request} asks: 17 < 20 1 go on  2 write it by hand" in text
        code, _, text = await do_in(engine, f"answer {request} 1")
        assert (code, text) == (0, f"{request} is answered")
        code, answer, text = await do_in(engine, "agents")
        assert [one["id"] for one in answer["agents"]] == ["good", "fails", "asks"]
        assert "1.0.0" in (await do_in(engine, "agents --versions"))[2]
        assert "4 ended runs: agents --all" in text
        code, answer, text = await do_in(engine, "agents --all")
        assert [(one["id"], one["state"]) for one in answer["runs"]][:2] == [
            ("good-1", "completed"),
            ("fails-2", "failed"),
        ]
        assert "fails-2" in text
        code, answer, text = await do_in(engine, "select somebody to be fails")
        assert (code, answer["route"], answer["rows"][0]["T"]) == (0, "fails", 0.6)
        code, answer, _ = await do_in(engine, "handoffs")
        assert len(answer["handoffs"]) >= 4
        code, answer, text = await do_in(engine, f"handoffs {answer['handoffs'][0]['id']}")
        assert "## Task\nsee about it" in answer["prompt"]
        assert (await do_in(engine, "delegate nobody x"))[0] == 2
        code, answer, _ = await do_in(engine, "delegate good x ?")
        assert (code, answer["ok"]) == (0, True)
        await asyncio.gather(*worker.tasks.values(), return_exceptions=True)


async def test_cutting_a_line_off_cancels_what_it_began(tmp_path: Path) -> None:
    async with opened(tmp_path, EngineConfig(crew=CrewSettings(built_ins=False))) as engine:
        worker = Worker()
        crew = worker.crew = await engine.crew()
        crew.plug(worker=worker)
        worker.scripts["slow"] = wait
        assert (await engine.submit(cc.RegisterAgent(spec=spec_of("slow")))).ok
        line = asyncio.create_task(do_in(engine, "delegate slow see about it"))
        async with asyncio.timeout(10):
            while not worker.tasks:
                await asyncio.sleep(0.001)
        line.cancel()
        await asyncio.gather(line, return_exceptions=True)
        assert [one.state for one in crew.state.handoffs.values()] == ["cancelled"]
        assert worker.ended == ["slow"]
