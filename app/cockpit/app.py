"""The application itself: the screen, the engine behind it, and one frame after another."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Container
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen

from app.cockpit import keymap
from app.cockpit.command_line import CommandLine
from app.cockpit.memory_keys import READ_EVERY_S
from app.cockpit.notice_keys import Notices
from app.cockpit.theme_watch import ThemeWatch
from app.garbage import begin_collecting
from app.projection import NOTHING_CHANGED, Pane, error_views, mind_views, views
from app.projection.waiting import Waiting
from app.settings import Settings
from engine.domain import commands as cmd
from engine.domain.goal import GoalStatus
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.journal.event import CREW, MASTERMIND, WORKSPACE, of_agent
from engine.library import Mission, load_missions
from engine.sandbox.policy import Tier
from widgets import (
    GUARD,
    BeliefsPane,
    CommandBar,
    ErrorPanel,
    GoalStack,
    MindStream,
    Notice,
    PlanModel,
    PlanPane,
    SandboxPane,
    StatusBar,
    StatusModel,
    WorkingMemory,
    WorldPane,
)
from widgets.key_line import KeyLine
from widgets.pane_tabs import PaneTabs
from widgets.stop_receipt import StopReceiptPane
from widgets.timeline import Timeline

FRAMES_PER_S = 25
PAST_EVENTS = 600
"""Events of an agent that panes show when it is looked at for the first time."""
OPENING_S = 2.0
"""How long agents wait at most for the first screen."""
TURN_S = 0.003
"""How long events are brought in between two turns of the loop."""
SWITCH_S = 0.0005
"""How long another thread, such as the one that writes memory, may hold the interpreter when the loop wants
it: Python's 5 ms would come on top of each of the half a dozen turns that a key takes to the screen."""


class Cockpit(CommandLine, Notices, ThemeWatch):
    """Panes over a projection of the event stream; every key becomes a command to the engine."""

    CSS_PATH = "cockpit.tcss"
    TITLE = "pilothouse"
    AUTO_FOCUS = "StepList"
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.BINDINGS]

    _compared = ""
    """The shown agent while it finds out what changed at the shell."""

    # -------------------------------------------------------------- screen

    def compose(self) -> ComposeResult:
        """The panes of COCKPIT.md."""
        yield StatusBar(id="status")
        yield PaneTabs(id="tabs")
        with Container(id="panes"):
            with Container(id="top"):
                yield GoalStack(id="goals")
                yield PlanPane(id="plan")
                with Container(id="right"):
                    yield WorkingMemory(id="memory", classes="memory")
                    yield BeliefsPane(id="beliefs", classes="memory -away")
                    yield ErrorPanel(id="errors")
            with Container(id="bottom"):
                yield SandboxPane(id="session", classes="session")
                yield WorldPane(id="world", classes="session -away")
                yield MindStream(id="mind")
        yield Timeline(id="timeline")
        yield StopReceiptPane(id="receipt")
        yield CommandBar(self._completions, hint=self._hint, history=self._history.lines, id="command")
        yield KeyLine(id="keys")

    def get_driver_class(self) -> type[Driver]:
        """Textual's choice; on a terminal, the one that survives its loss."""
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        from app.cockpit.terminal import TerminalDriver

        return TerminalDriver

    def get_line_filters(self) -> list[LineFilter]:
        """Textual's filters, and the one that lets no control character out."""
        return [*super().get_line_filters(), GUARD]

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every key's action in the palette too."""
        for key in keymap.KEYS:
            title = f"{key.name} ({keymap.shown_keys(key.bound_to(self._keys).keys)})"
            yield SystemCommand(title, key.does, partial(self.run_action, key.action))
        yield SystemCommand("theme", "Change colours", self.action_change_theme)
        yield SystemCommand("screenshot", "Save a picture of the screen", self._save_screenshot)

    def _save_screenshot(self) -> None:
        self.deliver_screenshot()

    async def on_event(self, event: events.Event) -> None:
        """What the operator does goes before what agents do."""
        if self._engine is not None and isinstance(event, events.InputEvent):
            self._engine.give_way()
        await super().on_event(event)

    def on_mount(self) -> None:
        """Keys, signals, and the engine in the background so that the screen is there at once."""
        sys.setswitchinterval(SWITCH_S)
        self.set_keymap(self._keys)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, partial(self._leave_on, number))
        self.query_one("#plan", PlanPane).show(PlanModel(notice=Notice("opening the workspace …", "loading")))
        self.query_one("#status", StatusBar).show(StatusModel(point="opening"))
        self._lay_out()
        self.query_one("#command", CommandBar).set_text(self._desk.desk.line)
        self.query_one("#plan", PlanPane).focus()
        self.run_worker(self._open(), name="engine")

    # -------------------------------------------------------------- engine

    async def _open(self) -> None:
        """Open the engine, show what was there, then follow events until the end."""
        needed = self._mission is not None and self._mission.network
        try:
            config = self._settings.engine_config(network=needed, accept=self._accept)
            engine = await Engine.open(self._workspace, config=config)
        except (JournalError, OSError) as error:
            self.exit(return_code=2, message=Text(f"pilothouse: {clean_line(str(error))}"))
            return
        # What agents do first can wait for the first screen.
        engine.give_way(OPENING_S)
        self._engine = engine
        since = await engine.head()
        for agent in engine.agents:
            self._live.add_untold(agent, await engine.view(agent))
        if self._desk.desk.agent in engine.agents:
            self._live.select(self._desk.desk.agent)
        await self._read_story(engine, self._live.begin_story())
        self._draw()
        self.call_after_refresh(self._opened, engine)
        self._missions = await asyncio.to_thread(load_missions)
        self.set_interval(1 / FRAMES_PER_S, self._frame, name="frame")
        self.set_interval(READ_EVERY_S, self._look_at_memory, name="memory")
        self.set_interval(READ_EVERY_S, self._look_at_gauges, name="gauges")
        if not engine.agents:
            await self._first_agent()
        problems = self.problems
        if problems:
            more = f" · and {len(problems) - 1} more: ? lists them" if len(problems) > 1 else ""
            self._say(f"{problems[0]}{more}", "error")
        elif self._projector.state is not None and views.asks(self._projector.state):
            self._say("the agent waits for your decision: press i", "note")
        self.run_worker(self._recap_on_opening(), name="recap", exit_on_error=False)
        self._offer_no_jail()
        self._tell_of_servers()
        if MASTERMIND in engine.store.names:
            self._mastermind_soon()
        if CREW in engine.store.names:
            self._crew_soon()
        self.run_worker(self._watch_themes(), name="themes")
        self.run_worker(self._desk.keep(), name="desk", exit_on_error=False)
        self.run_worker(self._prepare_past(engine), name="prepare past", exit_on_error=False)
        await self._follow(engine, since)

    def _opened(self, engine: Engine) -> None:
        """The first screen stands."""
        begin_collecting()
        engine.go_on()

    async def _read_story(self, engine: Engine, agent: str) -> None:
        """Read what has happened to an agent, and do what waits for that."""
        if not agent:
            return
        before, past = await engine.story(agent, PAST_EVENTS)
        for _ in self._live.tell(agent, before, past):
            await asyncio.sleep(0)
        waiting, self._when_told = self._when_told, []
        for then in waiting if agent == self._agent else ():
            then()

    async def _first_agent(self) -> None:
        """Give a new workspace its first agent, and the mission that was asked for."""
        if self._mission is None or self._mission.agent is None:
            await self._submit(cmd.CreateAgent(agent="pilot-1"))
        if self._mission is not None:
            await self._start_mission(self._mission, "pilot-1")
            self._say(f"{self._mission.title}: space runs it, s takes one step, ? shows all keys", "note")
        else:
            planner = "" if self._settings.model is not None else " (no model is set, so recipes plan: see ?)"
            self._say(f"press : and type: goal create a Python project named 'demo'{planner}", "note")

    async def _follow(self, engine: Engine, since: int) -> None:
        began = time.perf_counter()
        async for event in engine.events(since):
            if event.stream == MASTERMIND:
                self._mastermind_told(event)
            elif event.stream == CREW:
                self._crew_told(event)
            elif not of_agent(event.stream):
                self._memory_written()
                if event.stream == WORKSPACE:
                    self._refresh_inbox()
            payload = self._live.take(event)
            if payload is not None:
                self._tell(event.stream, payload)
                self._look_at_inbox(payload)
                self._notice(event, payload)
            if time.perf_counter() - began > TURN_S:
                await engine.at_leisure()
                began = time.perf_counter()

    def _tell(self, agent: str, payload: ev.Payload) -> None:
        """Say what the operator waits for or has to know, wherever they look."""
        state = self._live.state
        match payload:
            case ev.InterventionOpened() if agent == self._agent:
                self.call_later(self._offer_turn, unasked=bool(payload.failure))
            case ev.ActionFinished() | ev.ActionCancelled() if (
                agent == self._agent and state and state.returned
            ):
                self._compared = agent
            case ev.WorldPerceived() if agent == self._compared:
                self._compared = ""
                self._say(NOTHING_CHANGED, "note")
                self.call_later(self._open_turn, unasked=True)
            case ev.ChangesOffered() if agent == self._agent:
                self._compared = ""
                self.call_later(self._offer_changes)
            case ev.InterventionOpened() | ev.ChangesOffered():
                self._say(f"{agent} needs you: press n", "error")
            case ev.ChangesSettled() if agent == self._agent:
                self.call_later(self._open_turn, unasked=True)
            case ev.GoalEnded() if agent == self._agent and state and not state.goals[payload.goal].parent:
                good = payload.status is GoalStatus.ACHIEVED
                why = f": {payload.reason}" if payload.reason and not good else ""
                why = views.shown_by(state, payload.goal) if good else why
                self._say(f"goal {payload.goal} {payload.status}{why}", "ok" if good else "error")
            case ev.StopObserved():
                self._take_receipt(payload.receipt)
            case ev.AgentResumed() | ev.AgentThawed() | ev.StepGranted():
                self._goes_on(agent)
            case ev.ApprovalAsked() if agent == self._agent:
                self.call_later(self._offer_question)
            case ev.ReplanHeld() if agent == self._agent:
                self.call_later(self._offer_replan)
            case ev.ApprovalAsked() | ev.ReplanHeld():
                self._say(f"{agent} asks for your approval: press n (A shows all that waits)", "error")
            case ev.ModelCalled():
                self._refresh_meter(agent)
            case ev.BudgetReached():
                self._say(f"{agent}: {payload.reason} · $ shows the budgets and gives more", "error")
            case ev.PlansHeld() if agent == self._agent:
                self.call_later(self._offer_plans)
            case ev.PlansHeld():
                self._say(f"{agent} has plans for you to approve: press n", "error")
            case ev.MindBreakpointHit() if agent == self._agent:
                self._say(f"breakpoint {payload.breakpoint}: {payload.what}; s steps, space goes on", "note")
            case (
                ev.MindBreakpointChanged()
                | ev.BreakpointAdded()
                | ev.BreakpointChanged()
                | ev.BreakpointSet()
            ):
                self.call_later(self._show_breakpoints)
            case ev.BreakpointHit(breakpoint="") if agent == self._agent:
                self._say(f"held before {payload.step} by its breakpoint; s runs it, space goes on", "note")
            case ev.BreakpointHit():
                self.call_later(self._tell_held, agent, f"breakpoint {payload.breakpoint}: {payload.what}")

    # -------------------------------------------------------------- drawing

    def _frame(self) -> None:
        if self.is_running:
            self._look_for_awaited()
            self._desk.lay(agent=self._live.selected)
            self._look_at_shells()
            self._look_at_mind()
            self._look_at_mastermind()
            # Health and the sandbox change without an event of an agent.
            self._projector.dirty.add(Pane.STATUS)
            self._draw()

    def _draw(self) -> None:
        """Give every visible pane that is out of date its model; the others wait until they are seen."""
        if self._engine is not None and (agent := self._live.begin_story()):
            self.run_worker(self._read_story(self._engine, agent), name="story", exit_on_error=False)
        dirty, self._projector.dirty = self._projector.dirty, set()
        for pane in dirty:
            if pane is Pane.STATUS or self._pane(pane.value).is_on_screen:
                self._draw_pane(pane, self._projector.state)
            else:
                self._projector.dirty.add(pane)

    def _draw_pane(self, pane: Pane, state: AgentState | None) -> None:
        shown, engine = state or AgentState(), self._engine
        match pane:
            case Pane.GOALS:
                faulty = engine.faulty if engine else ()
                goals = views.goal_stack(self._projector.states, self._agent, faulty, self._runs_over())
                self.query_one("#goals", GoalStack).show(goals)
            case Pane.PLAN:
                self.query_one("#plan", PlanPane).show(views.plan(shown, self._intention))
            case Pane.MEMORY if shown.reasons and self._beliefs_first:
                self.query_one("#beliefs", BeliefsPane).show(mind_views.beliefs(shown))
            case Pane.MEMORY:
                in_mind = self._shown_mind
                model = views.working_memory(shown)
                self.query_one("#memory", WorkingMemory).show(
                    replace(model, memories=in_mind.memories, capacity=in_mind.capacity, hint=in_mind.hint)
                )
            case Pane.ERRORS:
                self.query_one("#errors", ErrorPanel).show(error_views.errors(shown))
            case Pane.MIND:
                self.query_one("#mind", MindStream).show(self._projector.mind())
            case Pane.SESSION if self._shows_world:
                self.query_one("#world", WorldPane).show(mind_views.world(shown))
            case Pane.SESSION:
                chunks, standing = self._projector.session()
                session = self.query_one("#session", SandboxPane)
                if self._session_of != self._agent:
                    self._session_of = self._agent
                    session.clear()
                session.append(chunks)
                session.show(standing)
            case Pane.STATUS:
                self._draw_status(state)

    def _draw_status(self, state: AgentState | None) -> None:
        if self._engine is None:
            return
        model = views.status(state, self._engine.health, self._engine.sandbox(self._agent))
        if state is not None and self._in_past:
            from app.projection import past_views

            now = next(
                (one.version for one in self._live.states if one.agent_id == self._agent), state.version
            )
            model = past_views.status(model, state, now)
        job, job_short = self._standing_of_mastermind()
        model = replace(model, job=job, job_short=job_short, waiting=self._count_waiting())
        self.query_one("#status", StatusBar).show(model)
        self._draw_tabs(model)

    @cached_property
    def _waiting(self) -> Waiting:
        return Waiting()

    def _count_waiting(self) -> int:
        """How many things wait for the operator now."""
        crew = self._crew
        asked = (crew.state.version, lambda: len(crew.needs)) if crew is not None else None
        return self._waiting.count(self._live.states, self._mastermind_state, asked)

    def on_status_bar_inbox_wanted(self) -> None:
        """The count of what waits was clicked."""
        self.action_inbox()


def fly(workspace: Path, *, mission: Mission | None, theme: str | None, accept: Tier | None) -> int:
    """Open the cockpit and stay until the operator leaves; answers the exit code."""
    settings = Settings.load(workspace, theme=theme)
    app = Cockpit(workspace, mission=mission, settings=settings, accept=accept)
    app.run()
    sys.stdout.flush()
    return app.return_code or 0
