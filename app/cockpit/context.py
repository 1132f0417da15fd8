"""What the controllers of the cockpit share: the engine, what the panes show, and how commands are sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker

from app.cockpit import keymap
from app.cockpit.key_queue import HOLD_S
from app.cockpit.terminal_app import TerminalApp
from app.commands.command_runner import log_fault
from app.commands.settings import Settings, untrusted_line
from app.gateways.socket_server import EngineServer
from app.projection.projector import Projector
from engine.api.engine import Engine
from engine.api.workspace_engine import EngineAwayError, WorkspaceEngine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.journal import Event
from engine.core.ports import time_of_day
from engine.core.state import AgentState
from engine.core.text import clean
from widgets.base.dialog import ConfirmDialog, TextDialog
from widgets.base.facts import Fact, fact_lines
from widgets.panes.command_bar import MESSAGE_MARKS, CommandBar
from widgets.panes.plan import PlanPane

if TYPE_CHECKING:
    from widgets.dialogs.picture import Picture

Answer = TypeVar("Answer")
DialogType = TypeVar("DialogType", bound=Screen[Any])
PaneType = TypeVar("PaneType", bound=Widget)
ControllerType = TypeVar("ControllerType", bound="Controller")
Parameters = ParamSpec("Parameters")
NO_AGENT = "there is no agent yet; type: agent_create bdi_agent pilot-1"
OPENING = "the workspace is still opening"

NOTICES_KEPT = 200
"""Messages of the last line that can be read again."""


Watcher = Callable[[str, ev.Payload], None]
"""Is given each new event of an agent."""


class CockpitContext:
    """The engine, the agent that is looked at, and the ways to act and to tell the operator.

    Args:
        app: shows screens and runs workers.
        workspace: its directory.
        settings: the operator's.
    """

    def __init__(self, app: TerminalApp[None], workspace: Path, settings: Settings) -> None:
        self.app = app
        """Shows screens, runs workers and calls later."""
        self.workspace = workspace
        self.settings = settings
        self.engine: WorkspaceEngine | None = None
        """None while the workspace is opening and once it is closed."""
        self.server: EngineServer | None = None
        """Lets other programs use the engine, once the first screen is there."""
        self.detachable = False
        """Whether the engine can go on without this screen."""
        self.kept: Engine | None = None
        """The engine that goes on once the screen is gone."""
        self.live = Projector(settings.operator)
        """What happens now."""
        self.projector = self.live
        """What the panes show; while the operator looks at the past a projection of that."""
        self.looked_at: Event | None = None
        """The event of the past that is looked at; None for now."""
        self.shells: set[str] = set()
        """Agents whose shell the operator took at this screen."""
        self.story_waiters: list[Callable[[], None]] = []
        """Called once the story of the shown agent has been read."""
        self.missions: tuple[str, ...] = ()
        self.intention = 0
        """The intention whose plan the operator wants to see; 0 for the one that is pursued."""
        self.keys, wrong = keymap.checked(settings.keys)
        restricted = untrusted_line(settings.trust)
        self.setting_problems = [*filter(None, [restricted]), *settings.problems, *wrong]
        self.made_from: tuple[list[str], tuple[str, ...]] = ([], ())
        """How the line in the bar begins that edits something, and the lines that it was made from."""
        self._notices: deque[tuple[str, str, str]] = deque(maxlen=NOTICES_KEPT)
        """What was said lately: when, of which kind, and what."""
        self.event_watchers: list[Callable[[Event], None]] = []
        """Given each new event."""
        self.watchers: list[Watcher] = []
        """Given each new event of an agent."""
        self._pop_ups: dict[str, Callable[[], object]] = {}
        """What opens by itself as soon as the operator is free, by what was said of it."""
        self._before_bar: Widget | None = None
        """What had the focus before the command bar."""
        self.frame_hooks: list[Callable[[], None]] = [self._open_next]
        """Called before each frame is drawn."""

    # -------------------------------------------------------------- what is looked at

    @property
    def agent(self) -> str:
        """The agent that all panes show."""
        return self.projector.selected

    @property
    def state(self) -> AgentState | None:
        """The state that all panes show."""
        return self.projector.state

    @property
    def reasoner(self) -> AgentState | None:
        """The state of the shown agent, where a reasoner runs it."""
        state = self.state
        return state if state is not None and state.reasons else None

    @property
    def past_at(self) -> int | None:
        """The version of the agent's stream that is looked at; None for now."""
        return self.looked_at.version if self.looked_at is not None else None

    @property
    def as_of(self) -> int | None:
        """The place in the journal of the event that is looked at; None for now."""
        return self.looked_at.seq if self.looked_at is not None else None

    @property
    def shown_time(self) -> float:
        """What time it is in the panes, in seconds since 1970."""
        at = self.looked_at
        return time_of_day() if at is None else datetime.fromisoformat(at.at).timestamp()

    @property
    def in_past(self) -> bool:
        """Whether the panes show what was."""
        return self.looked_at is not None

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with settings, themes, recipes and agents, in sentences."""
        if self.engine is None:
            return tuple(self.setting_problems)
        health = self.engine.health
        more = (*health.library, *health.prompts, *health.agents, *health.states)
        return (*self.setting_problems, *more, *filter(None, [health.snapshots]))

    def has_shell(self, agent: str) -> bool:
        """Whether an open shell is this screen's; where others use the engine, it may be one of theirs."""
        others = self.server is not None and self.server.count > 0
        shared = others or (self.engine is not None and bool(self.engine.link))
        return agent in self.shells or not shared

    # -------------------------------------------------------------- guards, which say why not

    def refused_in_past(self) -> bool:
        """Whether nothing can be done because the panes show what was; that is said."""
        if self.in_past:
            self.say(
                f"you look at the past (event {self.past_at}), where nothing acts; end comes back", "error"
            )
        return self.in_past

    def opened_engine(self) -> WorkspaceEngine | None:
        """The engine; None while it is opening, which is said."""
        if self.engine is None:
            self.say(OPENING, "error")
        return self.engine

    def engine_of(self, agent: str, *, present: bool = False) -> WorkspaceEngine | None:
        """The engine, where there is an agent, and not only its history; None where not, which is said."""
        if self.engine is not None and agent and (not present or agent in self.engine.agents):
            return self.engine
        self.say("there is no agent yet", "error")
        return None

    def shown_state(self) -> AgentState | None:
        """The state that all panes show; None before there is an agent, which is said."""
        if self.state is None:
            self.say(NO_AGENT, "error")
        return self.state

    # -------------------------------------------------------------- the screen

    @property
    def no_dialog(self) -> bool:
        """Whether no dialog is open."""
        return len(self.app.screen_stack) == 1

    @property
    def bar(self) -> CommandBar:
        """The command bar."""
        return self.app.query_one("#command", CommandBar)

    @property
    def occupied(self) -> bool:
        """Whether nothing opens by itself: amid a dialog, a line, keys or the past, and who only watches."""
        if self.engine is not None and self.engine.watching:
            return True
        busy = self.bar.input.has_focus or self.app.key_queue.waits
        return busy or self.in_past or not self.no_dialog

    def pop_up(self, show: Callable[[], object], notice: str, kind: Any = "error") -> None:
        """Open something by itself: now, or where the operator is amid something, after it, and say so."""
        if not self.occupied:
            show()
            return
        self.say(notice, kind)
        self._pop_ups[notice] = show

    def _open_next(self) -> None:
        if self._pop_ups and not self.occupied:
            self._pop_ups.pop(next(iter(self._pop_ups)))()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, seen at each frame; at most as long as keys wait for it."""
        seen = asyncio.Event()

        def look() -> None:
            if holds():
                seen.set()

        self.frame_hooks.append(look)
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                await seen.wait()
        self.frame_hooks.remove(look)

    def showing(self, kind: type[DialogType]) -> DialogType | None:
        """The open dialog of this type; None where there is none."""
        return next((screen for screen in self.app.screen_stack if isinstance(screen, kind)), None)

    def pane(self, kind: type[PaneType]) -> PaneType:
        """The pane of this type."""
        return self.app.query_one(kind)

    def say(self, text: str, kind: Any) -> None:
        """Show a message in the command bar; dropped while the screen is taken down."""
        if self.app.is_running:
            self.bar.show(text, kind)
            self._notices.append((datetime.now(UTC).isoformat()[11:19], kind, text))

    def show_notices(self) -> None:
        """Open all that was said lately, the newest first and in full."""
        said = [
            Fact(at, f"{MESSAGE_MARKS[kind]} {text}", "error" if kind == "error" else "text")
            for at, kind, text in reversed(self._notices)
        ]
        said = said or [Fact("", "Nothing was said yet.")]
        self.push(TextDialog("Notices", lambda width: tuple(fact_lines(said, width))))

    def fault(self, error: BaseException, what: str = "") -> None:
        """Log an unexpected error, and say under which id the log has it; the cockpit continues."""
        if isinstance(error, EngineAwayError):
            self.say(str(error), "error")
            return
        self.say(f"{what}{log_fault(self.workspace, error)}", "error")

    def copy(self, text: str, what: str) -> None:
        """Copy a text to the terminal's clipboard."""
        text = clean(text, limit=len(text))  # what is pasted into a shell must not act on it
        self.app.copy_to_clipboard(text)
        self.say(f"copied the {what} to the terminal's clipboard ({len(text)} characters)", "ok")

    def open_bar(self, text: str, was: tuple[str, ...] = ()) -> None:
        """Go to the command bar, which begins with this text.

        Args:
            text: the beginning.
            was: the lines that it was made from, where it edits something.
        """
        self.made_from = (text.split()[:2], was)
        screen, field = self.app.screen_stack[0], self.bar.input
        self._before_bar = self._before_bar if screen.focused is field else screen.focused
        self.bar.begin(text)
        screen.set_focus(field)

    def leave_bar(self) -> None:
        """Give the keys back to the pane that had them."""
        screen, pane = self.app.screen_stack[0], self._before_bar
        if pane is None or not pane.is_attached or not pane.focusable:
            pane = self.pane(PlanPane).steps
        screen.set_focus(pane, scroll_visible=False)

    def keep_line(self, line: str, receipt: cmd.Receipt) -> None:
        """Give a line back that was not carried out, unless the operator has gone on."""
        if not receipt.ok and not self.occupied:
            self.open_bar(line)

    def push(self, screen: Screen[Answer], then: Callable[[Answer | None], object] | None = None) -> None:
        """Open a dialog, and give its answer to a function."""
        self.app.push_screen(screen, then)  # type: ignore[arg-type]

    def confirm(
        self, question: str, consequence: str, then: Callable[[], object], *, yes: str = "yes", no: str = "no"
    ) -> None:
        """Ask the operator, and call a function where they agree."""
        self.push(ConfirmDialog(question, consequence, yes, no), lambda sure: then() if sure else None)

    def confirm_command(self, question: str, consequence: str, command: cmd.Command) -> None:
        """Send a command where the operator agrees."""
        self.confirm(question, consequence, lambda: self.send(command))

    def show_text(self, title: str, text: str) -> None:
        """Open a text to read."""
        self.push(TextDialog(title, text))

    def show_picture(self, look: Callable[[], Awaitable[Picture]]) -> None:
        """Open a picture, which is made anew each second."""
        self.run(self._pictured(look), "picture")

    async def _pictured(self, look: Callable[[], Awaitable[Picture]]) -> None:
        from widgets.dialogs.picture import PictureDialog  # late: few look at pictures

        self.push(PictureDialog(await look(), look))

    # -------------------------------------------------------------- work and commands

    def run(
        self, work: Awaitable[Answer], name: str, group: str = "default", *, last: bool = False
    ) -> Worker[Answer]:
        """Do something beside the screen; an error is said and ends nothing.

        Args:
            work: what is to be awaited.
            name: its name in messages.
            group: works that belong together.
            last: whether earlier ones of the group are ended.
        """
        return self.app.run_worker(work, name=name, group=group, exclusive=last, exit_on_error=False)

    async def submit(self, command: cmd.Command) -> cmd.Receipt:
        """Send a command and show its result; from the past none is sent."""
        if self.refused_in_past():
            return cmd.Receipt(ok=False, message="nothing acts in the past")
        if self.engine is None:
            receipt = cmd.Receipt(ok=False, message=OPENING)
        else:
            if isinstance(command, cmd.Stop) and self.no_dialog:  # the dialog of stops says so itself
                self.say("stopping …", "note")
            receipt = await self.engine.submit(command, operator=self.settings.operator)
            if receipt.ok and isinstance(command, cmd.TakeShell):
                self.shells.add(command.agent)
        self.say(receipt.message, "ok" if receipt.ok else "error")
        return receipt

    def settle(self, work: Awaitable[Answer], name: str) -> Worker[Answer]:
        """Do work beside the screen that later keys wait for, as they are about its result."""
        return self.run(self.app.key_queue.hold(work), name)

    def open_later(self, work: Awaitable[Answer], name: str, group: str = "default") -> Worker[Answer]:
        """Do work beside the screen that ends by opening something, which later keys wait for."""
        return self.run(self.app.key_queue.hold(work, opens=True), name, group)

    def send(self, command: cmd.Command, then: Callable[[cmd.Receipt], object] | None = None) -> None:
        """Send a command beside the screen, and give on its result, which later keys wait for."""
        if then is None:
            self.run(self.submit(command), f"submit {command.do}")
        else:
            self.settle(self._sent(command, then), f"submit {command.do}")

    async def _sent(self, command: cmd.Command, then: Callable[[cmd.Receipt], object]) -> None:
        then(await self.submit(command))

    def ask(self, then: Callable[[AgentState], Awaitable[None]]) -> None:
        """Let the shown agent's state at this moment decide, as where a key undoes the one before.

        The projection may be a frame behind a quick second press; the engine is not.
        """
        self.settle(self._asked(then, self.agent), "ask")

    async def _asked(self, then: Callable[[AgentState], Awaitable[None]], agent: str) -> None:
        if self.refused_in_past() or (engine := self.opened_engine()) is None:
            return
        if agent in engine.agents:
            await then(await engine.view(agent))
        elif agent:
            self.say(f"{agent} is over: nothing is done by it any more; its history stays", "error")


class Controller(Protocol):
    """What answers keys and messages of one concern."""

    _context: CockpitContext


def in_background(
    name: str, *refusals: type[Exception], group: str = "default", opens: bool = False
) -> Callable[
    [Callable[Concatenate[ControllerType, Parameters], Coroutine[Any, Any, None]]],
    Callable[Concatenate[ControllerType, Parameters], Worker[None]],
]:
    """Makes a method of a controller do its work beside the screen.

    Args:
        name: of the work, in messages.
        refusals: errors that are no faults: their message is said.
        group: works that belong together.
        opens: whether it ends by opening something, which later keys wait for.
    """

    def wrap(
        work: Callable[Concatenate[ControllerType, Parameters], Coroutine[Any, Any, None]],
    ) -> Callable[Concatenate[ControllerType, Parameters], Worker[None]]:
        async def attempt(
            controller: ControllerType, /, *args: Parameters.args, **options: Parameters.kwargs
        ) -> None:
            try:
                await work(controller, *args, **options)
            except refusals as error:
                controller._context.say(str(error), "error")

        @wraps(work)
        def begin(
            controller: ControllerType, /, *args: Parameters.args, **options: Parameters.kwargs
        ) -> Worker[None]:
            context = controller._context
            return (context.open_later if opens else context.run)(
                attempt(controller, *args, **options), name, group
            )

        return begin

    return wrap
