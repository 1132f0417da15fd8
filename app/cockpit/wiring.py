"""The controllers of one cockpit, and which of them answers an action, a message or a line of the bar.

What the first screen does without is imported and made when it is first needed: the dialogs, and the parts of
the engine that they show, take longer to import than all the panes together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import App
from textual.case import camel_to_snake
from textual.message import Message

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.agents import Agents
from app.cockpit.controllers.announcements import Announcements
from app.cockpit.controllers.command_line import CommandLine
from app.cockpit.controllers.layout import Layout
from app.cockpit.controllers.links import CrewLink, ImproveLink
from app.cockpit.controllers.panes import Panes
from app.cockpit.controllers.run import RunControl
from app.cockpit.controllers.turn import Turn
from app.cockpit.input_history import InputHistory, UnsentInputStore
from app.cockpit.keymap import LINES
from engine.core.reasons import Reason, read_words
from widgets.base.line_pane import Requested

if TYPE_CHECKING:
    from app.cockpit.controllers.approvals import Approvals
    from app.cockpit.controllers.campaigns import Campaigns
    from app.cockpit.controllers.crew import FleetBoard
    from app.cockpit.controllers.crew_sessions import Builds, CrewSessions
    from app.cockpit.controllers.inbox import Inbox
    from app.cockpit.controllers.limits import Limits
    from app.cockpit.controllers.mind import Mind
    from app.cockpit.controllers.repair import Repair
    from app.cockpit.controllers.review import Review
    from app.cockpit.controllers.time_travel import TimeTravel
    from app.cockpit.controllers.tour import Tour

Controller = TypeVar("Controller")
LATE = {name: late.split("|") for name, late in read_words(Path(__file__).with_name("late.txt")).items()}
"""Controllers that are made when they are first needed: the class, what it is handed, and its actions.

What is handed with a colon, `CONTROLLER:METHOD`, makes its controller when it is called.
"""
_OWNERS = {action: name for name, (_, _, actions) in LATE.items() for action in actions.split()}
VIEWS = read_words(Path(__file__).with_name("views.txt"))
"""What a key or a line of the bar may show, ask or select, by name: the controller and its method."""


def _answer(handler: Callable[..., object], args: tuple[Any, ...]) -> object:
    return handler(*args)


class Controllers:
    """Makes the controllers, and finds who answers an action or a widget's message.

    A controller answers the action `name` by its method `action_name`, the message `Pane.Chosen` by its
    method `on_pane_chosen`, and what a `Pane` requests as `more` by `on_pane_more`.
    """

    if TYPE_CHECKING:
        approvals: Approvals
        builds: Builds
        campaigns: Campaigns
        fleet: FleetBoard
        inbox: Inbox
        limits: Limits
        mind: Mind
        repair: Repair
        review: Review
        sessions: CrewSessions
        time: TimeTravel
        tour: Tour

    def __init__(
        self,
        app: App[None],
        context: CockpitContext,
        history: InputHistory,
        unsent: UnsentInputStore,
        write_terminal: Callable[[str], None],
    ) -> None:
        self.context = context
        self._actions: dict[str, Callable[..., object]] = {}
        self._handlers: defaultdict[str, list[Callable[..., object]]] = defaultdict(list)
        self.layout = self._register(Layout(context))
        self.agents = self._register(Agents(context, self.layout))
        self.turn = self._register(
            Turn(
                *(context, self.layout, self.agents),
                open_plans=lambda: context.reasoner is not None and self.approvals.open_plans(),
                open_breakpoints=lambda: self.limits.action_breakpoints(),
                approve=lambda: self.approvals.action_approve(),
            )
        )
        self.run = self._register(
            RunControl(context, self.turn.action_intervene, lambda code: app.exit(return_code=code))
        )
        self.mastermind = self._register(
            ImproveLink(
                *(context, lambda job: self.campaigns.job_over(job)),
                status_of=lambda state: self.campaigns.status(state),
            )
        )
        self.crew = self._register(CrewLink(context, lambda handoff: self.sessions.open_guided(handoff)))
        self.panes = self._register(
            Panes(
                *(context, self.layout, self.mastermind, self.crew),
                open_memory=lambda memory: self.mind.open_memories(memory=memory),
            )
        )
        self.announcements = self._register(
            Announcements(
                *(context, self.run, self.turn, write_terminal), offer=lambda kind: self.approvals.offer(kind)
            )
        )
        self.views = {name: partial(self._show, *path.split(".")) for name, path in VIEWS.items()}
        self.command_line = self._register(
            CommandLine(
                *(context, self.views),
                mastermind=self.mastermind,
                crew=self.crew,
                history=history,
                unsent=unsent,
                themes=lambda: tuple(app.available_themes),
            )
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name not in LATE:
                raise AttributeError(name)
            path, given, _ = LATE[name]
            module, _, kind = path.strip().partition(":")
            make = getattr(import_module(f"app.cockpit.controllers.{module}"), kind)
            controller = make(*map(self._part, given.split()))
            setattr(self, name, self._register(controller))
            return controller

    def _part(self, path: str) -> Any:
        return partial(self._show, *path.split(":")) if ":" in path else attrgetter(path)(self)

    def _register(self, controller: Controller) -> Controller:
        """Note the actions and messages that a controller answers."""
        for name in dir(controller):
            if name.startswith("action_"):
                self._actions[name.removeprefix("action_")] = getattr(controller, name)
            elif name.startswith("on_"):
                self._handlers[name].append(getattr(controller, name))
        return controller

    def action(self, name: str) -> Callable[..., object] | None:
        """What a key's action does; None for those that are Textual's own."""
        if name in _OWNERS:
            getattr(self, _OWNERS[name])
        if name in LINES:
            return partial(self._enter, LINES[name])
        return self._actions.get(name) or self.views.get(name)

    def _enter(self, line: str) -> None:
        """Enter what a key stands for, of the selected step where it is about one."""
        step = self.turn.chosen_step() if "{step}" in line else None
        state = self.context.live.state
        if line == LINES["guide"] and state is not None and not (state.reasons or state.config.replans):
            self.context.say(Reason("refused.no-thinker-for-guidance"), "error")
        elif line.endswith(" "):
            self.context.open_bar(line)
        elif step is not None or "{step}" not in line:
            self.command_line.enter(line.format(step=step.id if step is not None else ""))

    def handlers(self, name: str, message: Message) -> list[Callable[..., object]]:
        """What answers a widget's message, by the name of its handler or by what is requested."""
        if isinstance(message, Requested):
            asked = self._handlers[f"on_{camel_to_snake(message.widget)}_{message.what}"]
            return [partial(_answer, handler, message.args) for handler in asked]
        return [*self._handlers[name]]

    def _show(self, controller: str, method: str, *args: object, **options: object) -> Any:
        return getattr(getattr(self, controller), method)(*args, **options)
