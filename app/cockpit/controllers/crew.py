"""The fleet board and the timeline of handoffs: what they show, and what their keys ask for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from app.cockpit.context import CockpitContext, in_background
from app.cockpit.controllers.agents import Agents
from app.cockpit.controllers.approvals import Approvals
from app.cockpit.controllers.crew_sessions import CrewSessions
from app.cockpit.controllers.links import CrewLink
from app.commands.crew import answer_to
from app.commands.crew_runner import explain_selection
from app.projection import handoff_views, pictures
from app.projection.agent_card import card, selection
from app.projection.fleet_views import TYPE, Fleet
from app.projection.handoff_views import error_text
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.ports import SystemClock
from engine.crew.state import CrewState, Handoff
from engine.crew.thinker.prompt import context_prompt
from engine.inquiry.inbox import Need
from widgets.base.dialog import TextDialog, WriteDialog
from widgets.dialogs.approvals import How
from widgets.dialogs.fleet import FleetDialog, FleetRequest
from widgets.dialogs.handoffs import HandoffRequest, HandoffsDialog, SelectionDialog
from widgets.dialogs.picture import Picture

HOWS: tuple[How | None, ...] = (None, "session", "always", "deny")
"""What the numbered answers to an approval begin."""


def _now() -> datetime:
    return datetime.fromisoformat(SystemClock().now()).astimezone(UTC)


LIVE = "live "
"""What the keys of rows of the engine's agents begin with (`fleet_views.LIVE`, which opens late)."""


def _name(key: str) -> str:
    """The agent that a row is about."""
    return key.partition(" ")[2]


def _handoff_command(handoff: Handoff, request: str) -> cc.ForCrew:
    """The command that does what is wished of a handoff without being confirmed."""
    match request:
        case "retry":
            return cc.RetryHandoff(handoff=handoff.id)
        case "pause" if handoff.state == "paused":
            return cc.ResumeHandoff(handoff=handoff.id)
        case "pause":
            return cc.PauseHandoff(handoff=handoff.id)
        case _:
            by = 1 if request == "raise" else -1
            return cc.SetPriority(handoff=handoff.id, priority=max(1, min(3, handoff.priority + by)))


class FleetBoard:
    """The dialogs on agents and on what they hand to each other."""

    def __init__(
        self,
        context: CockpitContext,
        agents: Agents,
        approvals: Approvals,
        crew: CrewLink,
        sessions: CrewSessions,
        open_present: Callable[[], None],
    ) -> None:
        self._context = context
        self._agents = agents
        self._approvals = approvals
        self._crew = crew
        self._sessions = sessions
        self._open_present = open_present
        self._fleet: Fleet | None = None
        """Remembers labels and rows between two openings of the board."""
        self._message = ""
        """The result of the last key in the open dialog."""
        self._shown = ""
        """The handoff that the open timeline tells of."""
        self._drawn: tuple[object, ...] = ()
        """What the open board or timeline was drawn from last."""
        self._selected_text = ""

    def action_fleet(self, agent: str = "") -> None:
        """Show all agents, who needs the operator first, and one of them selected."""
        self._crew.show(lambda state: self._show_fleet(state, agent))

    def _show_fleet(self, state: CrewState, selected: str = "") -> None:
        self._fleet, self._drawn, self._message = self._fleet or Fleet(), (), ""
        model = self._fleet.model(state, self._context.live.states, _now(), faults=self._faults())
        self._context.push(FleetDialog(model, selected=TYPE + selected if selected else ""))

    def _faults(self) -> list[str]:
        engine = self._context.engine
        return list(engine.faulty) if engine is not None else []

    def _look(self) -> None:
        """Bring what is open up to date, where something has happened or a second has passed."""
        board, timeline = self._context.showing(FleetDialog), self._context.showing(HandoffsDialog)
        state = self._crew.state
        if state is None or (board is None and timeline is None):
            return
        now = _now()
        drawn: tuple[object, ...] = (
            state.version,
            self._message,
            self._shown,
            int(now.timestamp()),
            timeline is None,
        )
        if board is not None:
            drawn = (*drawn, *(shown.version for shown in self._context.live.states))
        if drawn == self._drawn:
            return
        self._drawn = drawn
        if board is not None and self._fleet is not None:
            states, faults = self._context.live.states, self._faults()
            board.show(self._fleet.model(state, states, now, faults=faults, message=self._message))
        if timeline is not None:
            model = handoff_views.timeline(state, now, shown=self._shown, message=self._message)
            timeline.show(model)

    def _say(self, message: str) -> None:
        """Show in the open dialog the result of a key."""
        self._message = message
        self._look()

    def _leave(self, then: Callable[..., object], *args: object) -> None:
        """Close what is open of the crew, and do something on the cockpit's own screen."""
        dialog = self._context.showing(FleetDialog) or self._context.showing(HandoffsDialog)
        if dialog is not None:
            dialog.dismiss(None)
        self._context.app.call_later(then, *args)

    def on_fleet_dialog_refresh(self) -> None:
        """At most ten times a second."""
        self._look()

    def on_fleet_dialog_delegated(self, key: str, task: str) -> None:
        """Hand a task over; an agent of the engine is given a goal."""
        name = _name(key)
        if key.startswith(LIVE):
            self._send(name, cmd.AdoptGoal(agent=name, text=task))
        elif not self._context.refused_in_past():
            self._crew.ask(cc.Delegate(to=name, task=task), self._say)

    def _send(self, agent: str, command: cmd.Command) -> None:
        """Send a command, and show its result in the open dialog."""
        self._context.send(command, lambda receipt: self._say(f"{agent}: {receipt.message}"))

    def on_fleet_dialog_answered(self, key: str, asked: str, option: int, text: str = "") -> None:
        """Answer what an agent asks."""
        if self._context.refused_in_past():
            return
        if key.startswith(LIVE):
            self._answer_live(_name(key), asked, option)
            return
        state = self._crew.state
        request = state.requests.get(asked) if state is not None else None
        if request is None or request.state != "open":
            self._say(f"{asked} is open no longer")
        else:
            self._crew.ask(answer_to(request, option, text), self._say)

    def _answer_live(self, agent: str, thing: str, option: int) -> None:
        """Answer an agent of the engine: an approval in place, all else where it is seen whole."""
        state = next((shown for shown in self._context.live.states if shown.agent_id == agent), None)
        question = state.approvals.question if state is not None else None
        if state is None or question is None or question.action != thing:
            self._leave(self._go_and_open, agent)
        elif option == 1:
            self._send(agent, cmd.AnswerApproval(agent=agent, action=thing, allow=True))
        else:
            self._approvals.open_questions([(state, question)], HOWS[option - 1])

    def _go_and_open(self, agent: str) -> None:
        self._agents.select(agent)
        self._open_present()

    def on_fleet_dialog_wanted(self, key: str, request: FleetRequest) -> None:
        """Do what is wanted of an agent."""
        name, state = _name(key), self._crew.state
        registered = state.agents.get(name) if state is not None and not key.startswith(LIVE) else None
        if request == "handoffs" and state is not None:
            of_agent = [
                handoff.id for handoff in state.handoffs.values() if name in (handoff.agent, handoff.run)
            ]
            self._leave(self._show_timeline, state, of_agent[-1] if of_agent else "")
        elif request == "open" and registered is None:
            engine = self._context.engine
            if engine is not None and name in engine.agents:
                self._leave(self._agents.select, name)
            else:
                self._say(f"{name} is the crew's own; h shows its handoffs")
        elif registered is None or state is None:
            self._say(f"{name} is no registered agent: that can be asked of those only")
        elif request == "open":
            self._open_card(state, name)
        elif self._context.refused_in_past():
            return
        elif request == "transfer":
            self._crew.ask(cc.Transfer(to=name), self._say)
        elif request == "toggle":
            self._crew.ask(cc.EnableAgent(who=name, enabled=not registered.enabled), self._say)

    def _open_card(self, state: CrewState, name: str) -> None:
        self._context.push(TextDialog(f"Agent {name}", card(state, name, _now())))

    def open_request(self, need: Need) -> None:
        """Show on the board the agent of the crew that asks the operator."""

        def show(state: CrewState) -> None:
            request = state.requests.get(need.thing)
            handoff = state.handoffs.get(request.handoff_id or "") if request is not None else None
            self._show_fleet(state, handoff.agent if handoff is not None else need.agent)

        self._crew.show(show)

    def action_handoffs(self, handoff: str = "") -> None:
        """Show who handed what to whom."""
        self._crew.show(lambda state: self._show_timeline(state, handoff))

    def _show_timeline(self, state: CrewState, shown: str = "") -> None:
        model = handoff_views.timeline(state, _now(), shown=shown)
        self._shown, self._drawn, self._message = model.shown, (), ""
        self._context.push(HandoffsDialog(model))

    def on_handoffs_dialog_picture(self) -> None:
        """Draw who hands work to whom."""
        self._context.show_picture(self._graph)

    async def _graph(self) -> Picture:
        return pictures.crew(self._crew.state) if self._crew.state is not None else Picture("The crew")

    def on_handoffs_dialog_refresh(self) -> None:
        """At most ten times a second."""
        self._look()

    def on_handoffs_dialog_looked(self, key: str) -> None:
        """Show another handoff."""
        self._shown, self._message = key, ""
        self._look()

    def on_handoffs_dialog_fleet(self) -> None:
        """See the agents instead."""
        if (state := self._crew.state) is not None:
            self._leave(self._show_fleet, state)

    def on_handoffs_dialog_wanted(self, key: str, request: HandoffRequest) -> None:
        """Do what is wanted of a handoff; what ends work is confirmed first."""
        state, handoff = self._crew.state, self._crew.handoff(key)
        if state is None:
            return
        if request == "error":
            self._context.show_text(f"{key}: why it failed", error_text(state, key))
        elif handoff is None:
            return
        elif request == "prompt":
            title = f"{handoff.id}: the prompt as {handoff.agent} is told it"
            self._context.show_text(title, context_prompt(handoff.context))
        elif request == "open":
            self._leave(self._open_handoff, handoff.id)
        elif self._context.refused_in_past():
            return
        elif request == "cancel":
            below = sum(child.open for child in state.children(handoff.id))
            open_below = f": {below} open" if below else ""
            self._context.confirm(
                f"Cancel {handoff.id} {handoff.agent}?",
                f"It ends with all below it{open_below}; what had come is kept.",
                lambda: self._crew.ask(cc.CancelHandoff(handoff=key), self._say),
            )
        elif request == "take_over":
            self._take_over(handoff.id)
        else:
            self._crew.ask(_handoff_command(handoff, request), self._say)

    def _take_over(self, name: str) -> None:
        """Let the operator write a handoff's result."""
        handoff = self._crew.handoff(name)
        if handoff is None or not handoff.open:
            self._context.say(f"{name} is over, or there is none", "error")
            return

        def written(text: str | None) -> None:
            if text:
                self._crew.ask(cc.TakeOver(handoff=name, text=text), self._say)

        about = f"What you write becomes the result of {handoff.agent}, marked as yours. Its run ends."
        self._context.push(WriteDialog(f"Take {name} over", about), written)

    def _open_handoff(self, name: str) -> None:
        """Show where a handoff works: its dialog where its type has one, else the panes of its run."""
        handoff = self._crew.handoff(name)
        if handoff is None:
            self._context.say(f"there is no handoff {name}", "error")
        elif not self._sessions.open(name):
            self._select_run(handoff.run)

    @in_background("run")
    async def _select_run(self, run: str) -> None:
        """Show a run in all panes, also one that was over long ago."""
        engine, live = self._context.engine, self._context.live
        if run and engine is not None and run not in (state.agent_id for state in live.states):
            live.add_without_story(run, await engine.view(run))
        self._agents.select(run)

    def show_handoff(self, handoff: str) -> None:
        """Show where a handoff works."""
        self._crew.show(lambda _state: self._open_handoff(handoff))

    def take_over(self, handoff: str) -> None:
        """Let the operator write a handoff's result."""
        self._crew.show(lambda _state: self._take_over(handoff))

    @in_background("select", opens=True)
    async def select(self, text: str) -> None:
        """Show which agent fits a text, and why."""
        if self._context.opened_engine() is None:
            return
        explanation = explain_selection(await self._crew.open(), text)
        if self._context.no_dialog:
            self._selected_text = text
            model = selection(text, explanation.selection, explanation.standing)
            self._context.push(SelectionDialog(model))

    def on_selection_dialog_chosen(self, agent: str) -> None:
        """Offer the line that hands the text over."""
        self._context.app.screen.dismiss(None)
        self._context.app.call_later(self._context.open_bar, f"delegate {agent} {self._selected_text}")
