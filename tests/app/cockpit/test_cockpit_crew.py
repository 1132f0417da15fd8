"""The fleet board and the timeline in the cockpit, over a real crew; its runs are scripts of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from flight import Flight
from textual.widgets import Input

from engine.core import commands as cmd
from engine.core import crew as ce
from engine.core import crew_commands as cc
from engine.crew.crew import Crew
from engine.crew.ontology.context import Option
from engine.crew.ontology.kinds import Effect, ErrorCode, RequestKind
from engine.crew.ports import OperatorQuestion
from tests.engine.crew.flight import CLEAR, Job, Worker, alone, spec_of
from widgets.base.dialog import ConfirmDialog, TextDialog, WriteDialog
from widgets.dialogs.fleet import FleetDialog
from widgets.dialogs.handoffs import HandoffsDialog, SelectionDialog
from widgets.dialogs.lists import InboxDialog

ASKS = OperatorQuestion(
    RequestKind.DECISION,
    "checkpoint",
    "Go on?",
    "driving_forces 17 < 20",
    options=(
        Option(id="go", label="go on", effect=Effect.RESUME),
        Option(id="stop", label="stop here", effect=Effect.ABORT, words="may"),
        Option(id="accept", label="accept it; say why", effect=Effect.ACCEPT, words="must"),
    ),
)


class Manned:
    """A cockpit with a crew whose worker the test has."""

    def __init__(self, flight: Flight, crew: Crew, worker: Worker) -> None:
        self.flight, self.crew, self.worker = flight, crew, worker

    async def register(self, *names: str, **more: Any) -> None:
        for name in names:
            receipt = await self.flight.engine.submit(cc.RegisterAgent(spec=spec_of(name, **more)))
            assert receipt.ok, receipt.message

    async def hand(self, to: str) -> str:
        command = cc.Delegate(to=to, task=f"a task for {to}", clarity=CLEAR)
        return str((await self.flight.engine.submit(command)).data["handoff"])

    def state(self, handoff: str) -> str:
        return self.crew.state.handoffs[handoff].state.value

    @property
    def board(self) -> FleetDialog:
        screen = self.flight.app.screen
        assert isinstance(screen, FleetDialog)
        return screen

    def label(self, name: str) -> str:
        return next(row.label for row in self.board.model.rows if row.name == name)


async def asks(job: Job) -> object:
    answer = await job.desk.ask(job.run, ASKS)
    return job.done(f"they said {answer.option_id}")


async def waits(job: Job) -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def manned(flight: Flight) -> AsyncIterator[Manned]:
    crew = await flight.engine.crew()
    worker = Worker()
    worker.crew = crew
    crew.handoffs.moves.worker = worker
    await alone(crew)
    yield Manned(flight, crew, worker)
    for task in worker.tasks.values():
        task.cancel()
    await asyncio.gather(*worker.tasks.values(), return_exceptions=True)


async def test_who_needs_you_comes_first_and_is_answered_in_place(manned: Manned) -> None:
    flight = manned.flight
    await manned.register("minto", "pws")
    manned.worker.scripts |= {"pws": asks, "minto": waits}
    await manned.hand("minto")
    pws = await manned.hand("pws")
    await flight.says("pws asks (hr-1)", "F answers it")
    await flight.press("escape", "f6")
    await flight.dialog(FleetDialog)
    await flight.shows("1 waiting on you · 1 running", "? pws", "driving_forces 17 < 20", "1 go on")
    assert [row.name for row in manned.board.model.rows] == ["pws", "minto", "pilot-1"]
    await flight.press("1")
    await flight.until(lambda: manned.state(pws) == "completed", "the end")
    await flight.shows("hr-1 is answered", "▶ minto")
    assert manned.crew.state.handoffs[pws].result.output == "they said go"  # type: ignore[union-attr]
    await flight.press(*manned.label("minto"), "I", *"look again", "enter")
    await flight.until(lambda: len(manned.crew.state.handoffs) == 3, "the new handoff")
    await flight.shows("goes to minto: look again")
    await flight.press(*manned.label("pws"), "x")
    await flight.shows("pws takes no work", "⊘ pws")
    await flight.press("enter")
    await flight.dialog(TextDialog)
    await flight.shows("Pws · operator 1.0.0 · 1 of 1 runs succeeded · takes no work", "Receives and returns")


async def test_an_answer_with_words_opens_a_line_which_may_stay_empty_where_the_option_says_so(
    manned: Manned,
) -> None:
    flight = manned.flight
    await manned.register("pws")
    manned.worker.scripts["pws"] = asks
    first, second = await manned.hand("pws"), await manned.hand("pws")
    await flight.until(lambda: len(manned.crew.state.open_requests()) == 2, "both questions")
    refused = await flight.engine.submit(cc.AnswerRequest(request="hr-1", option="accept"))
    assert refused.message.endswith("accept needs words: accept it; say why")
    await flight.press("escape", "F")
    await flight.dialog(FleetDialog)
    await flight.shows("2 stop here …", "3 accept it; say why …")
    await flight.press("3")
    await flight.shows("accept it; say why:")
    await flight.until(lambda: isinstance(flight.app.screen.focused, Input), "the keys in the line")
    await flight.press("enter")
    await flight.shows("write something, or leave with esc")
    await flight.press(*"sure", "enter")
    await flight.until(lambda: manned.state(first) == "completed", "the first")
    await flight.shows("hr-2")
    await flight.press("2")
    await flight.shows("stop here:")
    await flight.until(lambda: isinstance(flight.app.screen.focused, Input), "the keys in the line")
    await flight.press("enter")
    await flight.until(lambda: manned.state(second) == "completed", "the second")
    said = [one.answer for one in manned.crew.state.requests.values()]
    assert [(one.option_id, one.text) for one in said if one] == [("accept", "sure"), ("stop", "")]


async def test_an_agent_of_the_engine_is_two_letters_away_and_answered_too(manned: Manned) -> None:
    flight = manned.flight
    asking = {"approvals": {"preset": "ask-changes"}}
    await flight.engine.submit(cmd.CreateAgent(agent="builder-2", config=asking))
    await flight.engine.submit(cmd.AdoptGoal(agent="builder-2", text="create a file named 'a.txt'"))
    await flight.engine.submit(cmd.Run(agent="builder-2"))
    await flight.until(
        lambda: any(one.approvals.question for one in flight.app.context.live.states), "the question"
    )
    await flight.press("escape", "F")
    await flight.dialog(FleetDialog)
    await flight.shows("? builder-2", "1 allow once")
    await flight.press("1")
    await flight.until(lambda: (flight.engine.root / "a.txt").exists(), "the file")
    label = manned.label("builder-2")
    await flight.press("escape", "F")
    await flight.dialog(FleetDialog)
    await flight.press(*label, "enter")
    await flight.no_dialog()
    await flight.until(lambda: flight.app.context.agent == "builder-2", "its panes")


async def test_the_timeline_cancels_retries_hurries_and_takes_over(manned: Manned) -> None:
    flight = manned.flight
    await manned.register("parent", may=("child",))
    await manned.register("child", "broken")

    async def parent(job: Job) -> object:
        return (await job.delegate("child")).output

    async def broken(job: Job) -> object:
        return job.done("half a text", code=ErrorCode.BUDGET)

    manned.worker.scripts |= {"parent": parent, "child": waits, "broken": broken}
    failed = await manned.hand("broken")
    await flight.until(lambda: manned.state(failed) == "failed", "the failure")
    top = await manned.hand("parent")
    await flight.until(lambda: len(manned.crew.state.children(top)) == 1, "the child")
    child = manned.crew.state.children(top)[0].id
    await flight.press("escape", "f7")
    await flight.dialog(HandoffsDialog)
    await flight.shows("D", "parent", " └ D", "child", "a task for parent", "✗", "BUDGET")
    await flight.press("P")
    await flight.shows("▶ parent", "parent → child: 1 at work", "you → broken: 1 failed")
    await flight.press("escape")
    await flight.dialog(HandoffsDialog)
    await flight.press("plus")
    await flight.until(lambda: manned.crew.state.handoffs[top].priority == 2, "the priority")
    await flight.press("p")
    await flight.dialog(TextDialog)
    await flight.shows("## Task", "a task for parent", "Churn of pilots rises")
    await flight.press("escape")
    await flight.dialog(HandoffsDialog)
    await flight.press("down", "m")
    await flight.dialog(WriteDialog)
    await flight.press(*"by hand", "ctrl+s")
    await flight.until(lambda: manned.state(top) == "completed", "the parent's end")
    assert manned.crew.state.handoffs[top].result.output == "by hand"  # type: ignore[union-attr]
    assert manned.worker.ended == ["broken", "child", "parent"]
    assert manned.state(child) == "completed"
    await flight.press("end", "o")
    await flight.dialog(TextDialog)
    await flight.shows("BUDGET: budget", "half a text")
    await flight.press("escape")
    await flight.dialog(HandoffsDialog)
    await flight.press("r")
    await flight.until(lambda: len(manned.crew.state.handoffs) == 4, "the retry")
    again = list(manned.crew.state.handoffs.values())[-1]
    assert again.context.retry_of == failed
    manned.worker.scripts["parent"] = waits
    running = await manned.hand("parent")
    await flight.until(lambda: manned.state(running) == "running", "a run")
    await flight.shows("5 handoffs")
    await flight.press("home")
    await flight.shows("a task for parent")
    await flight.press("x")
    await flight.dialog(ConfirmDialog)
    await flight.press("y")
    await flight.until(lambda: manned.state(running) == "cancelled", "the cancelling")
    await flight.shows("⊘")

    def said() -> list[str]:
        notices = flight.app.context._notices
        return [kind for _, kind, text in notices if text.startswith(f"{running} parent cancelled: ")]

    await flight.until(said, "its end")
    assert said() == ["note"], "what the operator ends is no error"
    await flight.press("f")
    await flight.dialog(FleetDialog)


async def test_the_inbox_leads_to_the_board_and_lines_to_the_dialogs(manned: Manned) -> None:
    flight = manned.flight
    await manned.register("pws", triggers={"keywords": ["validate"]})
    manned.worker.scripts["pws"] = asks
    pws = await manned.hand("pws")
    await flight.until(lambda: manned.crew.state.open_requests(), "the request")
    await flight.press("escape", "f8")
    await flight.dialog(InboxDialog)
    await flight.shows("pws", "request", "driving_forces")
    await flight.press("enter")
    await flight.dialog(FleetDialog)
    await flight.shows("? pws", "1 go on")
    await flight.press("escape")
    await flight.no_dialog()
    await flight.type(f"handoffs {pws[:8]}")
    await flight.dialog(HandoffsDialog)
    await flight.press("escape")
    await flight.no_dialog()
    await flight.type("select validate the idea")
    await flight.dialog(SelectionDialog)
    await flight.shows("validate · it goes to pws", "T ▓▓▓▓▓")
    await flight.press("enter")
    await flight.until(
        lambda: flight.app.query_one("#command").input.value == "delegate pws validate the idea",  # type: ignore[attr-defined]
        "the line",
    )
    await flight.type("delegate pwz look")
    await flight.says("no agent 'pwz' is registered; the nearest: pws")
    await flight.type("answer hr-1 2")
    await flight.until(lambda: not manned.crew.state.open_requests(), "the answer")


@pytest.mark.slow
async def test_a_flood_of_events_leaves_keys_alone_and_the_board_true(manned: Manned) -> None:
    """Line 60: the board shows the true state in the end, and was drawn far less often than told."""
    flight = manned.flight
    names = [f"agent-{at}" for at in range(50)]
    await manned.register(*names)
    manned.worker.scripts |= dict.fromkeys(names, waits)
    for at in range(150):
        await flight.engine.submit(cmd.CreateAgent(agent=f"pilot-{at + 2}"))
    await flight.press("escape", "F")
    await flight.dialog(FleetDialog)
    board, drawn = manned.board, 0
    show = board.show

    def counted(model: Any) -> None:
        nonlocal drawn
        drawn += 1
        show(model)

    board.show = counted  # type: ignore[method-assign]
    handed = await asyncio.gather(*(manned.hand(name) for name in names[:32]))
    stream = manned.crew.stream
    for at in range(1_000):
        stream.append(
            ce.ProgressKept(handoff=handed[at % 32], what="role.turn", progress={}, note=f"turn {at}")
        )
        if at % 100 == 0:
            await flight.press("down")
            await flight.until(lambda: board.grid.row is not None)
    await stream.commit()
    await flight.until(lambda: any("turn 999" in row.work for row in board.model.rows), "the true state")
    assert len(board.model.rows) == 201
    assert sum(row.state.startswith("running") for row in board.model.rows) == 32
    assert drawn < 300
