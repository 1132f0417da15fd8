"""Pictures of the cockpit, each from a real run: `python -m tests.screenshots [NAME …]`.

Every picture is a real engine on a fresh workspace, flown by keys until the screen shows what the
picture is about. Times of day and durations differ from run to run, nothing else does.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from textual.widgets import TextArea

from app.cli.examples import copy_example
from app.commands.settings import Settings
from engine.agent.steering.rules import PRESETS
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.agents import Mode
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint
from tests.app.cockpit.crew_flight import (
    MOTION,
    SURVEY,
    debate_spec,
    debaters,
    handed,
    lay_skill,
    register,
    staffed,
    viewed,
)
from tests.app.cockpit.crew_flight import crew as crew_state
from tests.app.cockpit.flight import Flight, cockpit
from tests.engine.crew import pictured
from tests.engine.crew.builder.folders import build
from tests.messages_server import MessagesServer, Reply, call, object_call
from widgets.base.dialog import TextDialog, WriteDialog
from widgets.dialogs.approvals import ApprovalDialog
from widgets.dialogs.campaign import CampaignDialog
from widgets.dialogs.fleet import FleetDialog
from widgets.dialogs.handoffs import HandoffsDialog
from widgets.dialogs.lists import BacklogDialog, BreakpointsDialog, InboxDialog, MetaDialog
from widgets.dialogs.memory_browser import MemoryBrowser
from widgets.dialogs.preview import RewindDialog
from widgets.dialogs.review import WhyDialog
from widgets.dialogs.session import BuilderDialog, SessionDialog
from widgets.dialogs.step_editor import StepEditor
from widgets.dialogs.turn import HandoverDialog, InterventionDialog

OUT = Path(__file__).parents[1] / "screenshots"
Scene = Callable[[Path], Awaitable[None]]


async def _keep(flight: Flight, name: str) -> None:
    """Save the screen once it stands still."""
    await flight.pilot.pause()
    picture = flight.app.export_screenshot(title="pilothouse")
    # The reader's own monospaced font will do; a picture in a README should fetch nothing.
    picture = re.sub(r"@font-face \{.*?\}\n?", "", picture, flags=re.DOTALL)
    (OUT / f"{name}.svg").write_text(picture, encoding="utf-8")


async def _stepped(flight: Flight, actions: int) -> None:
    for _ in range(actions):
        done = flight.state.actions
        await flight.press("s")
        await flight.until(lambda done=done: flight.state.actions > done, "the action")  # type: ignore[misc]
    await flight.at_rest()


async def first_flight(workspace: Path) -> None:
    """The wide layout in the middle of first-flight: the tests have run, a breakpoint is ahead."""
    async with cockpit(workspace, mission="first-flight", size=(160, 45)) as flight:
        await _stepped(flight, 6)
        await flight.select("s8")
        await flight.press("b")
        await flight.until(lambda: "break" in flight.row("s8"))
        await flight.select("s7")
        await flight.press("s")
        await flight.until(lambda: "Reykjavik" in flight.session_text, "the flight plan")
        await _keep(flight, "first-flight")


async def narrow(workspace: Path) -> None:
    """The narrow layout: the plan, and beside it the pane that the tabs choose."""
    async with cockpit(workspace, mission="first-flight", size=(80, 24)) as flight:
        await _stepped(flight, 5)
        await _keep(flight, "narrow")


async def medium(workspace: Path) -> None:
    """The wide layout at the smallest width that has room for it."""
    async with cockpit(workspace, mission="first-flight", size=(100, 30)) as flight:
        await _stepped(flight, 5)
        await _keep(flight, "medium")


async def intervention(workspace: Path) -> None:
    """The operator's turn: what failed, what was tried, and what can be done."""
    async with cockpit(workspace, mission="broken-build", size=(120, 35)) as flight:
        await flight.press("space")
        await flight.dialog(InterventionDialog)
        await _keep(flight, "intervention")


def _prompts(flight: Flight, count: int) -> bool:
    return flight.text.count("./shop $") == count


async def take_over(workspace: Path) -> None:
    """At the shell the operator mends what the agent could not, and hands it back."""
    async with cockpit(workspace, mission="broken-build", size=(120, 35)) as flight:
        await flight.press("space")
        await flight.dialog(InterventionDialog)
        await flight.press("escape", "t")
        await flight.shows("YOU HOLD THE SHELL", "./shop $")
        test = "python -m unittest 2>&1 | tail -1"
        mend = ("grep -n '100' cart.py", "sed -i 's| // 100 [*] 100 | |' cart.py")
        for prompts, line in enumerate((test, *mend, test), 2):
            await flight.press(*line, "enter")
            await flight.until(partial(_prompts, flight, prompts), line)
        await _keep(flight, "take-over")
        await flight.press("ctrl+right_square_bracket", *"rounds once, at the end", "enter")
        await flight.dialog(HandoverDialog)
        await _keep(flight, "hand-over")


async def step_editor(workspace: Path) -> None:
    """Editing a step: arguments are checked while they are typed."""
    async with cockpit(workspace, mission="first-flight", size=(120, 35)) as flight:
        await flight.select("s5")
        await flight.press("e")
        await flight.dialog(StepEditor)
        await _keep(flight, "step-editor")


async def command_bar(workspace: Path) -> None:
    """The command bar offers goals that agents understand without a model."""
    async with cockpit(workspace, mission="first-flight", size=(120, 35)) as flight:
        await _stepped(flight, 2)
        await flight.press("colon", *"goal write")
        await flight.shows("goal write")
        await _keep(flight, "command-bar")


async def high_contrast(workspace: Path) -> None:
    """The high-contrast theme, with a failure and its recovery."""
    settings = Settings(theme="pilothouse-contrast", home=workspace.parent / "home")
    async with cockpit(workspace, mission="broken-build", size=(120, 35), settings=settings) as flight:
        await flight.press("space")
        await flight.dialog(InterventionDialog)
        await flight.press("escape")
        await flight.no_dialog()
        await _keep(flight, "high-contrast")


async def long_run(workspace: Path) -> None:
    """Forty actions with reflections and consolidations beside them; then the gauges, then the memories."""
    async with cockpit(workspace, size=(160, 45)) as flight:
        clauses = [f"write 'reading {n % 7} of gauge {n}' to gauge{n}.txt" for n in range(1, 41)]
        await flight.engine.submit(cmd.AdoptGoal(agent="pilot-1", text=", ".join(clauses)))
        await flight.until(lambda: flight.state.step is not None, "the plan")
        await flight.press("space")
        await flight.until(lambda: flight.state.actions == 40 and not flight.state.open_goals, "the flight")
        await flight.until(lambda: not flight.state.meta.running, "background work")
        await flight.press("3")
        await _keep(flight, "long-run")
        await flight.press("m")
        await flight.dialog(MetaDialog)
        await _keep(flight, "metacognition")
        await flight.press("escape")
        await flight.no_dialog()
        await flight.press("M")
        await flight.dialog(MemoryBrowser)
        await flight.press("slash", *"reading of gauge 12", "enter")
        await flight.shows("found by")
        await _keep(flight, "memory-browser")


async def deciding(workspace: Path) -> None:
    """A scripted model decides step by step; its next call waits for the operator. Then what it was told."""
    look = object_call("simple_coder__ls", path=".")
    missing = object_call("simple_coder__read", path="notes.txt")
    thought = object_call("record_thought", content="There are no notes yet, so I begin them.")
    begin = {"path": "notes.txt", "content": "1. the jar is empty"}
    write = call("simple_coder__write", begin, text="I write the first note.")
    async with MessagesServer([look, missing, thought, write]) as server:
        choice = ModelChoice(Endpoint(server.url), "claude-sonnet-5-5")
        settings = Settings(home=workspace.parent / "home", model=choice)
        async with cockpit(workspace, size=(140, 40), settings=settings) as flight:
            style = {"style": "decide"}
            await flight.engine.submit(cmd.CreateAgent(agent="scout", config=style))
            await flight.press("colon", *"agent scout", "enter")
            await flight.engine.submit(
                cmd.AdoptGoal(agent="scout", text="keep notes on the jars in notes.txt")
            )
            for calls in range(1, 5):
                await flight.press("escape", "s")
                await flight.until(partial(_asked, flight, calls), "a decision")
                if calls < 3:
                    await flight.press("s")
                    await flight.until(partial(_acted, flight, calls), "the action")
            await flight.until(lambda: flight.state.step is not None and flight.state.step.command == "write")
            await _keep(flight, "deciding")
            await flight.press("c")
            await flight.dialog(TextDialog)
            await asyncio.sleep(0.5)
            await _keep(flight, "context-meter")


async def local_model(workspace: Path) -> None:
    """A real model of OPENAI_BASE_URL plans, then all has run; nothing is pictured without one."""
    choice = ModelChoice.from_environment(os.environ)
    if choice is None:
        sys.stderr.write("local_model needs OPENAI_BASE_URL\n")
        return
    settings = Settings(home=workspace.parent / "home", model=choice)
    async with cockpit(workspace, size=(140, 40), settings=settings) as flight:
        goal = "write a program primes.py that writes the primes below 30 to primes.txt, and run it"
        await flight.press("colon", *goal, "enter")
        await flight.press("escape", "space")
        for shows, name in (('"command"', "local-model-plans"), ("✓ g1", "local-model")):
            while shows not in flight.text:
                await asyncio.sleep(0.2)
            await _keep(flight, name)


async def why(workspace: Path) -> None:
    """A failure, back to the goal that the operator gave."""
    async with cockpit(workspace, mission="broken-build", size=(160, 45)) as flight:
        await flight.press("space")
        await flight.dialog(InterventionDialog)
        await flight.press("escape")
        await flight.no_dialog()
        await flight.type("why error")
        await flight.dialog(WhyDialog)
        await _keep(flight, "why")


async def rewind(workspace: Path) -> None:
    """What a rewind would do, before it is done: what cannot be undone, files, goals, plan and beliefs."""
    async with cockpit(workspace, mission="first-flight", size=(140, 40)) as flight:
        await _stepped(flight, 6)
        (flight.engine.root / "notes.txt").write_text("made by hand")
        await _stepped(flight, 1)
        await flight.type("rewind s5")
        await flight.dialog(RewindDialog)
        await _keep(flight, "rewind")


async def timeline(workspace: Path) -> None:
    """Looking back: every pane as it was, and the timeline with its marks."""
    async with cockpit(workspace, mission="first-flight", size=(140, 40)) as flight:
        await flight.type("break result FAILED*")
        await flight.press("escape")
        await _stepped(flight, 3)
        await flight.type("rewind s3")
        await flight.dialog(RewindDialog)
        await flight.press("y")
        await flight.says("is back at event")
        await flight.press("escape")
        await _stepped(flight, 6)
        await flight.press(*["left_square_bracket"] * 5)
        await flight.shows("PAST")
        await _keep(flight, "timeline")


async def inbox(workspace: Path) -> None:
    """Three agents ask about what they would change: answered together, each checked against the rule."""
    asking = Settings(home=workspace.parent / "home", approvals=PRESETS["ask-changes"])
    goals = {
        "pilot-1": "create a file named 'harbour.txt'",
        "builder-2": "create a file named 'beacon.txt'",
        "tester-3": "run 'python -m unittest'",
    }
    async with cockpit(workspace, size=(140, 40), settings=asking) as flight:
        engine = flight.engine
        for agent, goal in goals.items():
            if agent not in engine.agents:
                await engine.submit(cmd.CreateAgent(agent=agent))
            await engine.submit(cmd.AdoptGoal(agent=agent, text=goal))
            await engine.submit(cmd.Run(agent=agent))
        for agent in goals:
            await flight.until(lambda agent=agent: _question_of(flight, agent), "the question")  # type: ignore[misc]
        await flight.dialog(ApprovalDialog)
        await flight.press("escape", "A")
        await flight.dialog(InboxDialog)
        await _keep(flight, "inbox")


def _question_of(flight: Flight, agent: str) -> bool:
    return any(one.agent_id == agent and one.approvals.question for one in flight.app.context.live.states)


async def stopping(workspace: Path) -> None:
    """Stopped at once: the receipt names what was stopped and what still runs."""
    async with cockpit(workspace, size=(140, 40)) as flight:
        flight.script("sail.py", "import time\nprint('sailing', flush=True)\ntime.sleep(100)\n")
        await flight.goal("run 'python sail.py'")
        await flight.press("space")
        await flight.shows("sailing")
        await flight.press("full_stop")
        await flight.shows("stopped")
        await flight.press("X")
        await flight.until(lambda: len(flight.app.screen_stack) > 1, "the stop panel")
        await _keep(flight, "stopping")


async def breakpoints(workspace: Path) -> None:
    """Breakpoints on the mind, with how often each came and how often it held."""
    async with cockpit(workspace, mission="first-flight", size=(140, 40)) as flight:
        for line in ("tool write path=*.md", "belief run.last.return_code 0->*", "every 10", "error *"):
            await flight.type(f"break {line}")
        await flight.press("escape")
        await _stepped(flight, 4)
        await flight.press("B")
        await flight.dialog(BreakpointsDialog)
        await _keep(flight, "breakpoints")


async def campaign(workspace: Path) -> None:
    """A campaign on a project with three defects: what was tried, how it was judged, the difference."""
    copy_example("sample", workspace)
    shutil.copytree(Path(__file__).parent / "engine/improve/held_out", workspace / ".pilothouse" / "held_out")
    async with cockpit(workspace, size=(160, 45)) as flight:
        await flight.type("coord_improve --seed 3 sample")
        mastermind = await flight.engine.mastermind()
        await flight.until(lambda: mastermind.state.jobs, "the job")
        await mastermind.wait("j1")
        await flight.press("escape")  # leaves the bar, so that what came of the job may open by itself
        await flight.no_dialog()
        await flight.press("escape", "C")
        await flight.dialog(CampaignDialog)
        await _keep(flight, "campaign")
        await flight.press("escape")
        await flight.no_dialog()
        await flight.press("L")
        await flight.dialog(BacklogDialog)
        await _keep(flight, "backlog")


CANVAS = {
    "segments": "Small online shops with fewer than ten people\nTheir customers who write at night",
    "value": "An answer within a minute, at any hour, in the shop's own words",
    "channels": "The shop systems' own markets for extensions",
}


async def guided(workspace: Path) -> None:
    """A guided session: what was answered, what is asked, and a draft that is stored nowhere."""
    library = Path(__file__).parents[1] / "engine/planning/library/agents/bmc-wizard"
    workspace.mkdir(parents=True)
    built = await build(workspace, library, dry_run=True)
    assert built.spec is not None
    draft = "Small online shops pay 30 a month, those with more than 100 questions a day 90."
    script = [Reply(text=draft)]
    async with staffed(workspace, script, size=(160, 45)) as flight:
        await register(flight, **built.spec.model_dump(mode="json"))
        await handed(flight, "bmc-wizard", "A helper that answers customers at night.")
        await flight.dialog(SessionDialog)
        # The line to write in opens above it by itself.
        dialog = next(screen for screen in flight.app.screen_stack if isinstance(screen, SessionDialog))
        for step, words in CANVAS.items():
            await flight.until(lambda step=step: _asks(dialog, step), step)  # type: ignore[misc]
            await flight.dialog(WriteDialog)
            flight.app.screen.query_one(TextArea).text = words
            await flight.press("ctrl+s")
        await flight.until(lambda: _asks(dialog, "relationships"), "the fourth step")
        await _moves(flight, dialog, "skip")
        await flight.press("enter")
        await flight.until(lambda: _asks(dialog, "revenue"), "the fifth step")
        await _moves(flight, dialog, "draft")
        await flight.until(lambda: draft in dialog.model.value, "the draft")
        await flight.press("escape")
        await _keep(flight, "guided")


def _asks(dialog: SessionDialog, step: str) -> bool:
    row = next((row for row in dialog.model.rows if row.key == step), None)
    return row is not None and row.mark.text == "●" and dialog.model.asked is not None


async def _moves(flight: Flight, dialog: SessionDialog, label: str) -> None:
    asked = dialog.model.asked
    assert asked is not None
    await flight.press("escape")
    at = next(at for at, option in enumerate(asked.options, 1) if label in option.label)
    await flight.press(str(at))


async def debate(workspace: Path) -> None:
    """A debate that is over: claims and answers by side, the judge's two passes, the verdict, the dissent."""
    async with staffed(workspace, debaters(), size=(160, 45)) as flight:
        await register(flight, **debate_spec())
        sources = {"sources": {"survey": SURVEY}}
        name = await handed(flight, "decision-debate", MOTION, metadata=sources)
        await viewed(flight, SessionDialog, name)
        await flight.press("home")
        await flight.shows("verdict: ", "Pass 2")
        await _keep(flight, "debate")


async def builder(workspace: Path) -> None:
    """A build: the phases, what was found in the skill, and the file of the agent."""
    source = lay_skill(workspace.parent / "pricing")
    async with staffed(workspace, size=(160, 45)) as flight:
        await flight.type(f"build {source}")
        await flight.dialog(BuilderDialog)
        await flight.shows("✓ built")
        await _keep(flight, "builder")


async def crew(workspace: Path) -> None:
    """Seven agents of a crew beside two others: who needs you first; then who handed what to whom."""
    async with MessagesServer([pictured.answer], repeat=True) as server:
        choice = ModelChoice(Endpoint(server.url, "sk-test"), "claude-opus-4-6")
        settings = Settings(home=workspace.parent / "home", model=choice)
        async with cockpit(workspace, size=(160, 45), settings=settings) as flight:
            await flight.engine.submit(cmd.CreateAgent(agent="builder-2", config={"thinker": "procedural"}))
            await pictured.register(flight.engine)
            state = (await flight.engine.crew()).state
            work = {"clarity": pictured.PROBLEM}
            for command in (
                cc.Transfer(to="larry", clarity=pictured.PROBLEM),
                cc.Delegate(to="minto-pyramid", task="structure the expense problem", **work),
                cc.Delegate(to="bmc-wizard", task="a canvas for the expense tool", **work),
                cc.Parallel(to=("pws-validation", "jtbd", "devil"), task="validate the expense tool", **work),
            ):
                assert (await flight.engine.submit(command)).ok
            await flight.until(
                lambda: sum(one.state.terminal for one in state.handoffs.values()) >= 4, "the results"
            )
            await flight.until(lambda: len(state.open_requests()) >= 3, "the questions")
            # The guided session opens by itself, and so may others: what is asked is in the fleet.
            await flight.dialog(SessionDialog)
            while len(flight.app.screen_stack) > 1:
                await flight.press("escape")
                await asyncio.sleep(0.2)
            await flight.press("F")
            await flight.dialog(FleetDialog)
            await flight.shows("waiting on you", "◆")
            await _keep(flight, "fleet")
            await flight.press("escape", "H")
            await flight.dialog(HandoffsDialog)
            await flight.shows("pws-validation")
            await flight.press("down", "down")
            await flight.shows("What happened")
            await _keep(flight, "handoffs")


@asynccontextmanager
async def _crew_of_examples(workspace: Path, name: str) -> AsyncIterator[Flight]:
    """A crew of the examples at work; a recording answers."""
    copy_example(name, workspace)
    settings = Settings(home=workspace.parent / "home", recorded_pace=0)
    async with cockpit(workspace, size=(160, 45), settings=settings) as flight:
        await flight.type(f"mission demo-{name}")
        await flight.until(lambda: flight.app.controllers.crew.state is not None, "the crew")
        yield flight


async def _run_of(flight: Flight, agent: str) -> str:
    """The handoff of an agent, once it has a run."""

    def made() -> list[str]:
        handoffs = crew_state(flight).handoffs
        return [name for name, each in handoffs.items() if each.agent == agent and each.run]

    await flight.until(made, agent)
    return made()[0]


async def _alone(flight: Flight) -> None:
    """Close what has opened by itself."""
    while len(flight.app.screen_stack) > 1:
        await flight.press("escape")
        await asyncio.sleep(0.2)


async def incident(workspace: Path) -> None:
    """A crew of two: the analyst has ended, the lead goes through the runbook with the operator."""
    async with _crew_of_examples(workspace, "incident") as flight:
        await _run_of(flight, "runbook-lead")
        await flight.dialog(HandoffsDialog)
        await flight.press("end", "enter")
        await flight.dialog(WriteDialog)
        dialog = next(screen for screen in flight.app.screen_stack if isinstance(screen, SessionDialog))
        flight.app.screen.query_one(TextArea).text = "Severity 2: one card provider in three fails."
        await flight.press("ctrl+s")
        await flight.until(lambda: _asks(dialog, "stop"), "the second step")
        await flight.dialog(WriteDialog)
        await _moves(flight, dialog, "draft")
        await flight.until(lambda: dialog.model.value, "the draft")
        await flight.press("escape")
        await _keep(flight, "incident")


async def pipeline(workspace: Path) -> None:
    """Three phases with what their checkpoints measured; then the fact checker, who came after them."""
    async with _crew_of_examples(workspace, "research") as flight:
        name = await _run_of(flight, "source-researcher")
        await _run_of(flight, "fact-checker")
        await flight.until(lambda: all(each.state.terminal for each in crew_state(flight).handoffs.values()))
        await viewed(flight, SessionDialog, name)
        await _keep(flight, "pipeline")
        await _alone(flight)
        await flight.press("H")
        await flight.dialog(HandoffsDialog)
        await _keep(flight, "sequence")


async def conversation(workspace: Path) -> None:
    """Larry has the floor and asks; then it is given to the canvas, which asks its first step."""
    async with staffed(workspace, pictured.answer, size=(160, 45)) as flight:
        await pictured.register(flight.engine)
        await flight.type("transfer larry")
        await flight.shows("larry")
        await flight.type("say Small teams lose two days a month on expense reports")
        await flight.shows("What do the finance leads do")
        await flight.type(f"agent {crew_state(flight).handoffs[await _run_of(flight, 'larry')].run}")
        await flight.press("escape", "6")
        await _keep(flight, "role")
        await flight.type("transfer bmc-wizard")
        await flight.dialog(SessionDialog)
        await _alone(flight)
        await flight.press("F")
        await flight.dialog(FleetDialog)
        await flight.shows("◆", "bmc-wizard")
        await _keep(flight, "transfer")


async def urgent(workspace: Path) -> None:
    """Three at work: one is made urgent, another's result is written by hand."""
    async with staffed(workspace, pictured.answer, size=(160, 45)) as flight:
        await pictured.register(flight.engine)
        tasks = (
            "Why would nobody buy it?",
            "What if a bank gives it away?",
            "What if phones do it by themselves?",
        )
        names = [await handed(flight, "devil", task) for task in tasks]
        await flight.press("escape", "H")
        await flight.dialog(HandoffsDialog)
        await flight.press("home", "down", "plus", "plus")
        await flight.until(lambda: any(crew_state(flight).handoffs[name].priority == 3 for name in names))
        await _keep(flight, "priority")
        await flight.press("down", "m")
        await flight.dialog(WriteDialog)
        flight.app.screen.query_one(TextArea).text = "Its bank gives a company the same away."
        await flight.press("ctrl+s")
        await flight.until(lambda: any(each.state.terminal for each in crew_state(flight).handoffs.values()))
        await _keep(flight, "by-hand")


async def other_program(workspace: Path, size: tuple[int, int] = (160, 45), name: str = "program") -> None:
    """A recorded session of OpenCode: its first change is held before it is made."""
    settings = Settings(home=workspace.parent / "home", recorded_pace=0)
    async with cockpit(workspace, size=size, settings=settings) as flight:
        await flight.type("mission demo-opencode")
        await flight.until(lambda: flight.state.agent_id == "opencode", "its agent")
        await flight.press("escape")
        while flight.state.step is None or flight.state.step.command != "write":
            await flight.press("s")
            await flight.until(lambda: flight.state.mode is Mode.PAUSED, "the step")
        await _keep(flight, name)


async def other_program_medium(workspace: Path) -> None:
    """The same where there is less room."""
    await other_program(workspace, (100, 30), "program-medium")


async def other_program_narrow(workspace: Path) -> None:
    """The same in the narrow layout."""
    await other_program(workspace, (80, 24), "program-narrow")


def _asked(flight: Flight, calls: int) -> bool:
    return flight.state.model_calls == calls and not flight.state.grants


def _acted(flight: Flight, actions: int) -> bool:
    return flight.state.actions == actions and flight.state.action is None


SCENES: tuple[Scene, ...] = (
    first_flight,
    narrow,
    medium,
    intervention,
    take_over,
    step_editor,
    command_bar,
    high_contrast,
    long_run,
    deciding,
    local_model,
    why,
    rewind,
    timeline,
    inbox,
    stopping,
    breakpoints,
    campaign,
    guided,
    debate,
    builder,
    crew,
    incident,
    pipeline,
    conversation,
    urgent,
    other_program,
    other_program_medium,
    other_program_narrow,
)


def main(names: list[str]) -> int:
    """Make the pictures with these names, or all."""
    known = {scene.__name__: scene for scene in SCENES}  # type: ignore[attr-defined]
    if unknown := [name for name in names if name not in known]:
        sys.stderr.write(f"there is no picture '{unknown[0]}'; pictures: {', '.join(known)}\n")
        return 2
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    OUT.mkdir(exist_ok=True)
    for name in names or known:
        # Always the same place, because tracebacks in the pictures name it.
        place = Path(tempfile.gettempdir()) / "pilothouse"
        try:
            place.mkdir()
        except FileExistsError:
            sys.stderr.write(f"{place} exists already: remove it, for the pictures are made there\n")
            return 1
        try:
            asyncio.run(known[name](place / "workspace"))
        finally:
            shutil.rmtree(place)
        sys.stderr.write(f"{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
