"""The verbs of a crew: what lines mean, what unknown ids are answered with, and the same without a screen."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.commands.command import Context, GrammarError
from app.commands.command_runner import preview_request, run_command_in
from app.commands.headless import open_engine
from app.commands.preview import Preview
from app.commands.registry import complete
from app.commands.registry import read_line as read_request
from app.projection.agent_card import card
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.crew import CrewSettings
from engine.crew.ontology.kinds import ErrorCode
from tests.app.recording_host import RecordingHost
from tests.engine.crew.flight import Flight, Job, Worker, spec_of
from tests.engine.crew.test_views import ask, now, wait
from tests.patience import PATIENCE_S


def read_line(line: str, context: Context) -> object:
    """What a line sends, or shows with which values."""
    request = read_request(line, context)
    if request.sends is not None:
        return request.sends
    host = RecordingHost(context)
    with suppress(AttributeError):  # what it shows without a view asks the engine
        answer = request.run(host, request.values)
        if asyncio.iscoroutine(answer):
            answer.close()
    if host.shown:
        name, arguments = host.shown[0]
        return (name, *arguments.values())
    return (request.command.name, *request.values.values())


LINES = [
    ("delegate minto structure this", cc.Delegate(to="minto", task="structure this")),
    ("delegate !3 MINTO now", cc.Delegate(to="minto", task="now", priority=3)),
    ("transfer larry he knows", cc.Transfer(to="larry", reason="he knows")),
    ("take back", cc.TakeBack()),
    ("transfer back", cc.TakeBack()),
    ("debate we go on step=on", cc.Debate(motion="we go on", metadata={"step_mode": True})),
    ('delegate minto "structure it"', cc.Delegate(to="minto", task="structure it")),
    ('delegate minto "a" and "b"', cc.Delegate(to="minto", task='"a" and "b"')),
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
    ("select validate it", ("select", "validate it")),
    ("agents --all", ("agents", "--all")),
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
    assert read_line(f"step {other}", context) == cc.StepMode(handoff=other, on=True)
    assert read_line(f"step {other} off", context) == cc.StepMode(handoff=other, on=False)
    with pytest.raises(GrammarError, match="on or off; 'now' is neither"):
        read_line(f"step {other} now", context)
    refused = await flight.do(cc.StepMode(handoff=other), ok=False)
    assert "no phases and no rounds" in refused["message"]
    await flight.register("phased", kind="pipeline")
    flight.worker.scripts["phased"] = wait
    phased = await flight.hand("phased")
    assert complete("step h", context) == [(f"step {phased} on", "phased running")]
    await flight.do(cc.StepMode(handoff=phased))
    assert complete("step h", context) == [(f"step {phased} off", "phased running")]
    assert dict((await foretold(f"step {phased} off", context)).facts)["undo"] == "yes: set it again"
    assert read_line(f"takeover {other} my text", context) == cc.TakeOver(handoff=other, text="my text")
    assert read_line("answer hr-1 1", context) == cc.AnswerRequest(request="hr-1", option="go")
    assert read_line("answer hr-1 2 mine", context) == cc.AnswerRequest(
        request="hr-1", option="hand", text="mine"
    )
    assert read_line("answer hr-1 why not", context) == cc.AnswerRequest(request="hr-1", text="why not")
    assert read_line("guided resume wizard", context) == ("handoff", guided)
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
        ("delegate minto x step=on", "step= goes with a pipeline or a debate; minto is of type operator"),
        ("debate x step=now", "step= is on or off"),
        ("guided start minto", "minto is of type operator and not guided; delegate minto TASK"),
        ("debate x for=minto", "two sides"),
        ("debate x judge=minto", "judge= goes with for= and against="),
        ("debate x for=minto against=pws agent=larry", "agent= has its own sides"),
        ("debate x rounds=5", "from 1 to 4"),
        ("guided resume larry", "nothing of larry is open"),
    ):
        with pytest.raises(GrammarError, match=said.replace("(", r"\(")):
            read_line(line, context)


async def test_lines_about_parked_ideas(flight: Flight) -> None:
    await crew_of(flight)

    async def parks(job: Job) -> object:
        await job.desk.park(job.run, "sell it as a toy")
        return job.done()

    flight.worker.scripts["larry"] = parks
    await flight.crew.wait(await flight.hand("larry"))
    (listed,) = card_of(flight, "larry", "Parked ideas")
    assert listed.startswith("i-1: sell it as a toy")


async def foretold(line: str, context: Context) -> Preview:
    host = RecordingHost(context)
    host.engine = SimpleNamespace(model_name="claude-opus-4-6")
    return await preview_request(host, read_request(line, context))


def card_of(flight: Flight, agent: str, title: str) -> list[str]:
    return [one.text for one in card(flight.crew.state, agent, now(flight)) if one.title == title]


async def test_a_preview_tells_what_takes_a_line_back(flight: Flight) -> None:
    context = await crew_of(flight)
    cost = "one call for each side and each round with the openings, and two for the judge"
    for line, told in (
        ('debate "go on" for=pws against=minto', {"cost": cost}),
        ("transfer larry", {"undo": "yes: take back"}),
        ("delegate minto x", {"undo": "cancel HANDOFF ends it with all that it handed over"}),
    ):  # fmt: skip
        found = dict((await foretold(line, context)).facts)
        assert told.items() <= found.items(), found


async def test_without_a_screen_work_is_followed_until_it_ends_or_waits(tmp_path: Path) -> None:
    async with open_engine(tmp_path, EngineConfig(crew=CrewSettings(built_ins=False))) as engine:
        worker = Worker()
        crew = await engine.crew()
        worker.crew = crew
        crew.handoffs.moves.worker = worker

        async def fails(job: Job) -> object:
            return job.done("half", code=ErrorCode.BUDGET)

        worker.scripts |= {"asks": ask, "fails": fails}
        for name in ("good", "fails", "asks"):
            spec = spec_of(name, triggers={"keywords": [f"be {name}"]})
            assert (await engine.submit(cc.RegisterAgent(spec=spec))).ok
        code, answer, text = await run_command_in(engine, "delegate good see about it")
        assert (code, answer["ok"], answer["state"]) == (0, True, "completed")
        assert "✓ h-" in text
        code, answer, text = await run_command_in(engine, "delegate fails see about it")
        assert (code, answer["result"]["error_code"]) == (1, "BUDGET")
        code, answer, text = await run_command_in(engine, "parallel good,asks see about it")
        assert code == 3
        request = answer["requests"][-1]["id"]
        assert f"? {request} asks: 17 < 20 1 go on  2 write it by hand" in text
        code, _, text = await run_command_in(engine, f"answer {request} 1")
        assert (code, text) == (0, f"{request} is answered")
        code, answer, text = await run_command_in(engine, "agents")
        assert [one["id"] for one in answer["agents"]] == ["good", "fails", "asks"]
        assert "1.0.0" in (await run_command_in(engine, "agents"))[2]
        assert "4 ended runs: agents --all" in text
        code, answer, text = await run_command_in(engine, "agents --all")
        assert [(one["id"], one["state"]) for one in answer["runs"]][:2] == [
            ("good-1", "completed"),
            ("fails-2", "failed"),
        ]
        assert "fails-2" in text
        code, answer, text = await run_command_in(engine, "select somebody to be fails")
        assert (code, answer["route"], answer["rows"][0]["T"]) == (0, "fails", 0.6)
        code, answer, _ = await run_command_in(engine, "handoffs")
        assert len(answer["handoffs"]) >= 4
        code, answer, text = await run_command_in(engine, f"handoffs {answer['handoffs'][0]['id']}")
        assert "## Task\nsee about it" in answer["prompt"]
        assert (await run_command_in(engine, "delegate nobody x"))[0] == 2
        code, answer, _ = await run_command_in(engine, "delegate good x ?")
        assert (code, answer["ok"]) == (0, True)
        await asyncio.gather(*worker.tasks.values(), return_exceptions=True)


async def test_cutting_a_line_off_cancels_what_it_began(tmp_path: Path) -> None:
    async with open_engine(tmp_path, EngineConfig(crew=CrewSettings(built_ins=False))) as engine:
        worker = Worker()
        crew = worker.crew = await engine.crew()
        crew.handoffs.moves.worker = worker
        worker.scripts["slow"] = wait
        assert (await engine.submit(cc.RegisterAgent(spec=spec_of("slow")))).ok
        line = asyncio.create_task(run_command_in(engine, "delegate slow see about it"))
        async with asyncio.timeout(PATIENCE_S):
            while not worker.tasks:
                await asyncio.sleep(0.001)
        line.cancel()
        await asyncio.gather(line, return_exceptions=True)
        assert [one.state for one in crew.state.handoffs.values()] == ["cancelled"]
        assert worker.ended == ["slow"]


@pytest.mark.parametrize(
    ("behind", "fields"),
    [
        ('given="22 of 40" sources=a.md,h-12', {"given": "22 of 40", "sources": ("a.md", "h-12")}),
        ("""SOURCES='my notes.md, b.md' given='{"scores": {"problem": 22}}'""",
         {"given": {"scores": {"problem": 22}}, "sources": ("my notes.md", "b.md")}),
        ("and say what for=x means", {"task": "look and say what for=x means"}),
    ],
)  # fmt: skip
async def test_work_is_given_data_and_sources(flight: Flight, behind: str, fields: dict[str, object]) -> None:
    context = await crew_of(flight)
    asked = cc.Delegate.model_validate({"to": "minto", "task": "look", **fields})
    assert read_line(f"delegate minto look {behind}", context) == asked
    if "sources" in fields:
        both = read_line(f"parallel minto,pws look {behind}", context)
        assert isinstance(both, cc.Parallel)
        assert (both.given, both.sources) == (asked.given, asked.sources)
        debate = read_line(f"debate look for=pws {behind} against=minto", context)
        assert isinstance(debate, cc.Debate)
        assert (debate.motion, debate.con, debate.sources) == ("look", "minto", asked.sources)


async def test_settings_are_completed_from_what_there_is(flight: Flight) -> None:
    context = replace(await crew_of(flight), paths=("notes/", "notes/a.md", "b.md"))
    earlier = await flight.hand("pws")
    await flight.crew.wait(earlier)
    assert [line for line, _ in complete("debate it is so for=m", context)] == ["debate it is so for=minto"]
    assert complete("debate it is so", context) == []
    lines = [line for line, _ in complete("delegate minto look sources=", context)]
    assert lines == [f"delegate minto look sources={one}" for one in ("notes/a.md", "b.md", earlier)]
    lines = [line for line, _ in complete("delegate minto look sources=b.md,h-", context)]
    assert lines == [f"delegate minto look sources=b.md,{earlier}"]


async def test_what_is_given_is_read_and_put_into_the_handoff_or_refused(flight: Flight) -> None:
    context = await crew_of(flight)
    for line, said in (
        ("delegate minto look given='{\"a\": }'", "looks like JSON and is none"),
        ('delegate minto look given={"a":1}', "put its value in quotes"),
        ("delegate minto sources=a.md", "the task is missing"),
        ("delegate minto look sources=,", "names files of the sandbox or handoffs"),
    ):
        with pytest.raises(GrammarError, match=said):
            read_line(line, context)
    root = flight.ground.root
    (root / "notes").mkdir(parents=True)
    (root / "notes/a.md").write_text("31 of 40 would pay.", encoding="utf-8")
    (root / "big.txt").write_text("x" * 50_000, encoding="utf-8")
    (root / "empty.txt").write_text(" \n", encoding="utf-8")
    earlier = await flight.hand("pws")
    await flight.crew.wait(earlier)

    async def do(line: str, *, ok: bool = True) -> dict[str, object]:
        command = read_line(line, context)
        assert isinstance(command, cc.ForCrew)
        return await flight.do(command, ok=ok)

    made = await do(f"delegate minto look given='[1]' sources=notes/a.md,{earlier[:8]}")
    context_of = flight.crew.state.handoffs[str(made["handoff"])].context
    assert context_of.metadata == {
        "given": [1], "sources": {"notes/a.md": "31 of 40 would pay.", earlier[:8]: "done"},
    }  # fmt: skip
    for name, said in (
        ("gone.md", "'gone.md' does not exist"),
        ("../outside", "outside"),
        ("big.txt", "50,000 bytes together; 48,000 are taken"),
        ("empty.txt", "it is empty"),
        ("h-none", "0 handoffs are meant"),
    ):
        refused = await do(f"delegate minto look sources={name}", ok=False)
        assert said in str(refused["message"]), refused
