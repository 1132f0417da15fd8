"""The application itself: the screen, the engine behind it, and one frame after another."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events
from textual._callback import invoke
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Container
from textual.dom import DOMNode
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import Input, TextArea
from textual.worker import Worker, WorkerState

from app.cockpit import keymap
from app.cockpit.context import CockpitContext
from app.cockpit.controllers.panes import READ_EVERY_S
from app.cockpit.gc_tuning import enable_gc
from app.cockpit.input_history import InputHistory, UnsentInputStore
from app.cockpit.terminal_app import TerminalApp
from app.cockpit.wiring import Controllers
from app.commands.registry import all_commands
from app.commands.settings import Settings, untrusted_line
from app.commands.watchdog import EndGuard, LoopWatch
from app.gateways.attached_engine import AttachedEngine
from app.gateways.socket_server import Companion, EngineServer
from app.projection import pane_views as views
from app.projection.event_lines import line_of
from engine.api.engine import Engine
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core.journal import CREW, MASTERMIND, WORKSPACE, Event, JournalError, JournalUnsound, of_agent
from engine.core.soundness import ContentsArchived
from engine.core.text import clean, clean_line
from engine.planning.library.missions import Mission, mission_names
from engine.sandbox.policy import Tier
from widgets.base.dialog import BoxDialog
from widgets.base.line_pane import Notice
from widgets.base.pane_tabs import PaneTabs
from widgets.dialogs.stop import StopReceiptPane
from widgets.panes.beliefs import BeliefsPane, WorkingMemory
from widgets.panes.command_bar import CommandBar
from widgets.panes.errors import ErrorPanel
from widgets.panes.goals import GoalStack
from widgets.panes.key_line import KeyLine
from widgets.panes.mind_stream import MindStream
from widgets.panes.plan import PlanModel, PlanPane
from widgets.panes.session import SandboxPane
from widgets.panes.status_bar import StatusBar, StatusModel
from widgets.panes.timeline import Timeline
from widgets.panes.world import WorldPane
from widgets.terminal.pane import TerminalPane

if TYPE_CHECKING:
    from textual.command import Provider

FRAMES_PER_S = 25
OPENING_S = 2.0
"""How long agents wait at most for the first screen."""
TURN_S = 0.003
"""How long events are brought in between two turns of the loop."""
SWITCH_S = 0.0005
"""How long another thread, such as the one that writes memory, may hold the interpreter when the loop wants
it: Python's 5 ms would come on top of each of the half a dozen turns that a key takes to the screen."""


class Attach(StrEnum):
    """Whether the cockpit operates the engine that another process has."""

    IF_RUNNING = "if it runs"
    ONLY = "only"
    READ_ONLY = "read only"


def _palette() -> type[Provider]:
    from app.cockpit.palette import Commands  # late: most sessions never open it

    return Commands


class Cockpit(TerminalApp[None]):
    """Panes over a projection of the event stream; every key becomes a command to the engine.

    What keys and widgets ask for is done by the controllers; see `app.cockpit.wiring`.
    """

    CSS_PATH = "cockpit.tcss"
    TITLE = "pilothouse"
    AUTO_FOCUS = "StepList"
    COMMANDS: ClassVar[Any] = {_palette}
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.BINDINGS]

    def __init__(
        self,
        workspace: Path,
        *,
        mission: Mission | None = None,
        settings: Settings,
        accept: Tier | None = None,
        attach: Attach = Attach.IF_RUNNING,
        agent: str = "",
    ) -> None:
        super().__init__()
        self._mission, self._first = mission, agent
        self._accept = accept
        self._chosen_engine = attach
        self._drawn = asyncio.Event()
        """Set once the first screen is there."""
        self.context = CockpitContext(self, workspace, settings)
        keys = ",".join(self.context.keys.values())
        self.alt_characters = frozenset(re.findall(r"(?:^|,)alt\+(.)(?=,|$)", keys))
        mine = settings.trust is None or not settings.trust.foreign
        # What is typed into a page is another person's, as a token has a name of its own.
        keeps = attach is not Attach.READ_ONLY and not os.environ.get("TEXTUAL_DRIVER")
        self._watch = LoopWatch(workspace)
        self._guard: EndGuard | None = None
        self._guides = keeps
        """Whether it is the user of this machine who looks at it."""
        self._history = InputHistory(workspace, mine=mine, keeps=keeps)
        self._unsent = UnsentInputStore(workspace, mine=mine, keeps=keeps)
        self.controllers = Controllers(self, self.context, self._history, self._unsent, self._write_terminal)
        self.views = self.controllers.views
        """What a line of the command bar may show, ask or select, by name."""

    # -------------------------------------------------------------- screen

    def compose(self) -> ComposeResult:
        """The status line, the panes, the command bar and the keys."""
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
        line = self.controllers.command_line
        yield CommandBar(line.completions, hint=line.hint, history=self._history.lines, id="command")
        yield KeyLine(id="keys")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every key's action in the palette too, and every command; over a dialog, the keys of that."""
        if isinstance(screen, BoxDialog):
            for each in screen.KEYS:
                if each.words and each.action:
                    title = f"{each.words.rstrip(' …')} ({each.label})"
                    yield SystemCommand(title, "In this dialog", partial(screen.run_action, each.action))
            return
        for command in all_commands():
            for usage in command.usage.split(" | "):
                yield SystemCommand(usage, command.help, partial(self._choose_command, usage))
        for key in keymap.KEYS:
            title = f"{key.name} ({keymap.shown_keys(key.bound_to(self.context.keys).keys)})"
            yield SystemCommand(title, key.does, partial(self.run_action, key.action))
        yield SystemCommand("theme", "Change colours", partial(self.views["theme"], ""))
        yield SystemCommand("screenshot", "Save a picture of the screen", self._save_screenshot)

    def _choose_command(self, usage: str) -> None:
        """Do a command; one with arguments is put into the bar, to be finished there."""
        words = list(takewhile(lambda word: word[0].islower() or word[0] == "!", usage.split()))
        if len(words) < len(usage.split()):
            self.context.open_bar(" ".join(words) + " ")
        else:
            self.controllers.command_line.enter(usage)

    def action_suspend_process(self) -> None:
        """Leave the terminal to the shell until `fg`; the engine of this process stands still meanwhile."""
        if self._driver is not None and self._driver.can_suspend:
            super().action_suspend_process()
        else:
            self.context.say("this terminal has no shell to go back to", "error")

    def _save_screenshot(self) -> None:
        self.deliver_screenshot()

    async def on_event(self, event: events.Event) -> None:
        """What the operator does goes before what agents do."""
        if self.context.engine is not None and isinstance(event, events.InputEvent):
            self.context.engine.pace.yield_to_operator()
        await super().on_event(event)

    def on_mount(self) -> None:
        """Keys, signals, and the engine in the background so that the screen is there at once."""
        sys.setswitchinterval(SWITCH_S)
        self.set_keymap(self.context.keys)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, partial(self._signalled, number))
        self._guard = EndGuard()
        if self.context.detachable:
            self._guard.asks.discard(signal.SIGHUP)  # after which it may go on
        self._guard.terminal = getattr(self._driver, "attrs_before", None)
        self._watch.begin()
        self.query_one("#plan", PlanPane).show(PlanModel(notice=Notice("opening the workspace …", "loading")))
        self.query_one("#status", StatusBar).show(StatusModel(point="opening"))
        self.controllers.layout.lay_out()
        if line := self._unsent.kept.line:
            self.call_after_refresh(self.context.open_bar, line)  # behind the focus that a screen begins with
        else:
            self.query_one("#plan", PlanPane).focus()
        self.run_worker(self._open(), name="engine")

    def _signalled(self, number: int) -> None:
        """Leave, unless the terminal is lost and the engine goes on without."""
        if number == signal.SIGHUP and self.context.detachable:
            if self.controllers.run.goes_on():
                return
            if self._guard is not None:
                self._guard.ask(number)
        self.controllers.run.leave_on(number)

    def on_unmount(self) -> None:
        """Watch the loop no more; where a signal has asked for the end, that stands."""
        self._watch.end()
        if self._guard is not None:
            self._guard.close()

    # -------------------------------------------------------------- engine

    async def _open(self) -> None:
        """Open the engine, show what was there, then follow events until the end."""
        context, controllers = self.context, self.controllers
        try:
            engine = await self._operated()
        except (JournalError, OSError) as error:
            self.exit(return_code=2, message=Text(f"pilothouse: {clean_line(str(error))}"))
            return
        # What agents do first can wait for the first screen.
        engine.pace.yield_to_operator(OPENING_S)
        context.engine = engine
        since = await engine.head()
        for agent in engine.agents:
            context.live.add_without_story(agent, await engine.view(agent))
        if (first := self._first or self._unsent.kept.agent) in engine.agents:
            context.live.select(first)
        await controllers.panes.begin_story(engine)
        controllers.panes.draw()
        self.call_after_refresh(self._opened, engine)
        context.missions = await asyncio.to_thread(mission_names, engine.workspace)
        await asyncio.to_thread(engine.library.refresh)
        context.frame_hooks.append(lambda: self._unsent.update(agent=context.live.selected))
        context.app.set_interval(1 / FRAMES_PER_S, controllers.panes.frame, name="frame")
        context.app.set_interval(READ_EVERY_S, controllers.panes.look_at_memory, name="memory")
        new = not engine.agents
        if new and self._chosen_engine is not Attach.READ_ONLY:
            await self._first_agent()
        self._announce_state()
        await self._drawn.wait()
        if isinstance(engine, Engine):
            context.run(self._let_others_in(engine), "engine server")
        context.run(controllers.review.begin_recap(), "recap")
        if self._guides and not self.is_headless:
            context.run(controllers.tour.begin_of_itself(new=new), "tour")
        controllers.approvals.offer_no_jail()
        controllers.approvals.announce_servers()
        streams = await engine.store.streams()
        if MASTERMIND in streams:
            controllers.mastermind.open_soon()
        if CREW in streams:
            controllers.crew.open_soon()
        context.run(self._unsent.keep(), "unsent input")
        context.run(controllers.time.prepare(engine), "prepare past")
        await self._follow(engine, since)

    async def _operated(self) -> WorkspaceEngine:
        """The workspace's engine: the one that runs already, or else one of this process.

        Raises:
            JournalError: it cannot be opened or reached, or none runs that is to be attached to.
        """
        context = self.context
        needed = self._mission is not None and self._mission.network
        config = context.settings.engine_config(network=needed, accept=self._accept)
        operator, watch = context.settings.operator, self._chosen_engine is Attach.READ_ONLY
        running = await AttachedEngine.attach(context.workspace, config, operator=operator, watch=watch)
        if running is not None:
            return running
        if self._chosen_engine is not Attach.IF_RUNNING:
            raise JournalError(f"no engine has {context.workspace} open: pilothouse ps shows those that run")
        try:
            return await Engine.open(context.workspace, config=config)
        except JournalUnsound as error:
            if not await self.controllers.repair.offer(error):
                raise
            return await Engine.open(context.workspace, config=config)

    async def _let_others_in(self, engine: Engine) -> None:
        """Let other programs of this user use the engine."""
        companions, away = list[Companion](), self.context.settings.away
        if away.url or away.command:
            from app.gateways.notifying import Notifier  # late: few settings say so

            companions.append(Notifier(engine, away))
        server = self.context.server = EngineServer(
            engine, "cockpit", operator=self.context.settings.operator, companions=companions
        )
        await server.begin()
        if server.trouble:
            self.context.say(f"no other program can use this engine: {server.trouble}", "error")

    def _announce_state(self) -> None:
        """Say what is wrong, or that the agent waits for the operator."""
        problems, state = self.context.problems, self.context.state
        if problems:
            more = f" · and {len(problems) - 1} more: ? lists them" if len(problems) > 1 else ""
            self.context.say(f"{problems[0]}{more}", "error")
        elif state is not None and views.needs_operator(state):
            self.context.say("the agent waits for your decision: press i", "note")

    def _opened(self, engine: WorkspaceEngine) -> None:
        """Let agents and the collection of garbage continue once the first screen is there."""
        enable_gc()
        engine.pace.go_on()
        self._drawn.set()

    async def _first_agent(self) -> None:
        """Give a new workspace its first agent, and the mission that was asked for."""
        if self._mission is None or self._mission.agent is None:
            await self.context.submit(cmd.CreateAgent(agent="pilot-1"))
        if self._mission is not None:
            self.controllers.command_line.enter(f"mission {self._mission.name}")
        else:
            planner = (
                ""
                if self.context.settings.model is not None
                else " (no model is set, so recipes plan: see ?)"
            )
            self.context.say(f"press : and type: goal create a Python project named 'demo'{planner}", "note")

    async def _follow(self, engine: WorkspaceEngine, since: int) -> None:
        began = time.perf_counter()
        async for event in engine.events(since):
            self._take(event)
            if time.perf_counter() - began > TURN_S:
                await engine.pace.checkpoint()
                began = time.perf_counter()

    def _take(self, event: Event) -> None:
        """Give an event to the controllers that it concerns."""
        if event.stream == MASTERMIND:
            self.controllers.mastermind.take(event)
        elif event.stream == CREW:
            self.controllers.crew.take(event)
        elif not of_agent(event.stream):
            self.controllers.panes.memory_written()
            if event.stream == WORKSPACE:
                self.controllers.crew.announce_change()
            if event.kind == ContentsArchived.kind and (line := line_of(event)) is not None:
                self.context.say(line.text, "note")
        for watch in self.context.event_watchers:
            watch(event)
        payload = self.context.live.take(event)
        if payload is not None:
            self.controllers.announcements.take(event.stream, payload)
            for watcher in self.context.watchers:
                watcher(event.stream, payload)
            self.controllers.announcements.notify(event, payload)

    # -------------------------------------------------------------- Textual's own, given on

    def get_default_screen(self) -> Screen[Any]:
        """Textual's, in this terminal's layout from the start: a change of it styles every widget anew."""
        screen = super().get_default_screen()
        return screen.update_classes(self.controllers.layout.screen_classes(*self.size), update=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key of the command bar comes before all others, but not where a text is typed.

        While a shell has the focus every key is the shell's, those that the operator chose themselves too.
        """
        if isinstance(self.focused, TerminalPane):
            return False
        free = not isinstance(self.focused, Input | TextArea) and self.context.no_dialog
        if action == "command":
            return free
        if action == "suspend_process":
            return not isinstance(self.focused, TextArea)  # where the key takes back what was typed
        if action in ("first", "now"):
            # Elsewhere these keys are the focused pane's, for its first and last line.
            return self.context.in_past and free
        return super().check_action(action, parameters)

    async def _dispatch_action(self, namespace: DOMNode, action_name: str, params: Any) -> bool:
        """Have the controllers do what the cockpit's keys ask for."""
        action = self.controllers.action(action_name) if namespace is self else None
        if action is None:
            return await super()._dispatch_action(namespace, action_name, params)
        await invoke(action, *params)
        return True

    def _get_dispatch_methods(
        self, method_name: str, message: Message
    ) -> Iterable[tuple[type, Callable[[Message], Any]]]:
        """Give messages of widgets to the controllers that answer them."""
        yield from super()._get_dispatch_methods(method_name, message)
        for handler in self.controllers.handlers(method_name, message):
            yield Controllers, handler

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say what went wrong where nothing else would show it."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.context.fault(event.worker.error, f"{event.worker.name} failed: ")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Textual's notification; its text is never read as markup."""
        super().notify(
            clean(message), title=clean_line(title), severity=severity, timeout=timeout, markup=markup
        )

    def keys_dropped(self, count: int) -> None:
        """Add it to what was said of why nothing opened."""
        text, kind = self.context.bar.message
        self.context.say(f"{text} · {'1 key' if count == 1 else f'{count} keys'} after it dropped", kind)

    def _write_terminal(self, text: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(text)


def run_cockpit(
    workspace: Path,
    *,
    mission: Mission | None = None,
    theme: str | None = None,
    accept: Tier | None = None,
    trust: str = "",
    settings: Settings | None = None,
    attach: Attach = Attach.IF_RUNNING,
    agent: str = "",
    go_on: Callable[[Engine, EngineServer], Awaitable[int]] | None = None,
) -> int:
    """Open the cockpit and stay until the operator leaves; answers the exit code.

    Args:
        workspace: its directory.
        mission: begins in a new workspace.
        theme: colours that go before those of the settings.
        accept: the weakest jail that is accepted.
        trust: the digest of what is in the directory, to be trusted from now on.
        settings: these and no others, whatever is in the directory; None for the user's and the directory's.
        attach: whether an engine of another process is operated.
        agent: which one is shown first; empty for the one of last time.
        go_on: serves the engine once the screen is gone; None where it ends with the screen.

    Raises:
        TrustError: what is in the folder has not this digest, or cannot be trusted.
    """
    if settings is None:
        settings = Settings.load(workspace, theme=theme, trust=trust)
        if untrusted_line(settings.trust) and attach is not Attach.READ_ONLY:  # who watches trusts nothing
            from app.cockpit.trusting import trusted_settings

            if (trusted := trusted_settings(workspace, settings, theme)) is None:
                return 0
            settings = trusted
    app = Cockpit(workspace, mission=mission, settings=settings, accept=accept, attach=attach, agent=agent)
    app.context.detachable = go_on is not None
    return asyncio.run(_run(app, go_on))


async def _run(app: Cockpit, go_on: Callable[[Engine, EngineServer], Awaitable[int]] | None) -> int:
    await app.run_async()
    sys.stdout.flush()
    kept, server = app.context.kept, app.context.server
    if kept is None or server is None or go_on is None:
        return app.return_code or 0
    return await go_on(kept, server)
