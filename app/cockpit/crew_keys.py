"""The fleet board and the handoff timeline in the cockpit: what they show, and what their keys ask for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.cockpit.crew_base import CrewBase
from app.cockpit.mastermind_base import MastermindBase
from app.verb import Local
from engine.domain import commands as cmd
from engine.domain import crew_commands as cc
from engine.domain.ports import SystemClock
from widgets.dialogs import ConfirmDialog, ConfirmModel

if TYPE_CHECKING:
    from app.projection.fleet_views import Fleet
    from engine.crew.state import CrewState
    from engine.inquiry import Need
    from widgets.dialogs.approval import How
    from widgets.dialogs.fleet import FleetDialog
    from widgets.dialogs.handoffs import HandoffsDialog
    from widgets.dialogs.selection import SelectionDialog

HOWS: tuple[How | None, ...] = (None, "session", "always", "deny")
"""What the numbered answers to an approval begin."""


def _now() -> datetime:
    return datetime.fromisoformat(SystemClock().now()).astimezone(UTC)


class CrewKeys(CrewBase, MastermindBase):
    """The dialogs on agents and on what they hand to each other."""

    _fleet: Fleet | None = None
    """Remembers labels and rows between two openings of the board."""
    _board: FleetDialog | None = None
    _timeline: HandoffsDialog | None = None
    _crew_said = _handoff_shown = ""
    _drawn: tuple[object, ...] = ()
    """What the open board or timeline was drawn from last."""

    # -------------------------------------------------------------- the board

    def action_fleet(self) -> None:
        """Show all agents, who needs the operator first."""
        self._open_of_crew(self._show_fleet)

    def _open_of_crew(self, show: Callable[[CrewState], None]) -> None:
        if self._engine is None:
            self._say("the workspace is still opening", "error")
        elif len(self.screen_stack) == 1:
            self.run_worker(self._opened_of_crew(show), name="crew", exit_on_error=False)

    async def _opened_of_crew(self, show: Callable[[CrewState], None]) -> None:
        crew = await self._open_crew()
        if len(self.screen_stack) == 1:
            show(crew.state)

    def _show_fleet(self, state: CrewState, selected: str = "") -> None:
        from app.projection.fleet_views import TYPE, Fleet
        from widgets.dialogs.fleet import FleetDialog

        self._fleet, self._drawn, self._crew_said = self._fleet or Fleet(), (), ""
        model = self._fleet.model(state, self._live.states, _now(), faults=self._faults())
        self._board = FleetDialog(model, selected=TYPE + selected if selected else "")
        self.push_screen(self._board, self._crew_dialog_closed)

    def _faults(self) -> list[str]:
        engine = self._engine
        return list(engine.faulty) if engine is not None else []

    def _crew_dialog_closed(self, _none: None) -> None:
        self._board = self._timeline = None
        self._crew_said, self._drawn = "", ()

    def _look_at_crew(self) -> None:
        """Bring what is open up to date, where something has happened or a second has passed."""
        board, timeline, state = self._board, self._timeline, self._crew_state
        if state is None or (board is None and timeline is None):
            return
        now = _now()
        drawn: tuple[object, ...] = (
            state.version,
            self._crew_said,
            self._handoff_shown,
            int(now.timestamp()),
            timeline is None,
        )
        if board is not None:
            drawn = (*drawn, *(one.version for one in self._live.states))
        if drawn == self._drawn:
            return
        self._drawn = drawn
        if board is not None and self._fleet is not None:
            faults = self._faults()
            board.show(self._fleet.model(state, self._live.states, now, faults=faults, said=self._crew_said))
        if timeline is not None:
            from app.projection import handoff_views

            model = handoff_views.timeline(state, now, shown=self._handoff_shown, said=self._crew_said)
            timeline.show(model)

    def _said_of_crew(self, message: str) -> None:
        """Show in the open dialog what came of a key."""
        self._crew_said = message
        self._look_at_crew()

    def _leave_crew(self, then: Callable[..., object], *args: object) -> None:
        """Close what is open of the crew, and do something on the cockpit's own screen."""
        open_now = self._board or self._timeline
        if open_now is not None:
            open_now.dismiss(None)
        self.call_later(then, *args)

    # The handlers' names say which dialog's messages they take, so that it need not be imported before.

    def on_fleet_dialog_refresh_wanted(self) -> None:
        """At most ten times a second."""
        self._look_at_crew()

    def on_fleet_dialog_delegated(self, event: FleetDialog.Delegated) -> None:
        """Hand a task over; an agent of the engine is given a goal."""
        name = _name(event.key)
        if event.key.startswith(LIVE):
            self.run_worker(self._adopted(name, event.task), name="goal", exit_on_error=False)
        elif not self._refused_in_past():
            self._ask_crew(cc.Delegate(to=name, task=event.task), self._said_of_crew)

    async def _adopted(self, agent: str, goal: str) -> None:
        receipt = await self._submit(cmd.AdoptGoal(agent=agent, text=goal))
        self._said_of_crew(f"{agent}: {receipt.message}")

    def on_fleet_dialog_answered(self, event: FleetDialog.Answered) -> None:
        """Answer what an agent asks."""
        if self._refused_in_past():
            return
        if event.key.startswith(LIVE):
            self._answer_live(_name(event.key), event.request, event.option)
            return
        from app.crew_verbs import answer_to

        state = self._crew_state
        request = state.requests.get(event.request) if state is not None else None
        if request is None or request.state != "open":
            self._said_of_crew(f"{event.request} is open no longer")
        else:
            self._ask_crew(answer_to(request, event.option, event.text), self._said_of_crew)

    def _answer_live(self, agent: str, thing: str, option: int) -> None:
        """Answer an agent of the engine: an approval in place, all else where it is seen whole."""
        state = next((one for one in self._live.states if one.agent_id == agent), None)
        question = state.approvals.question if state is not None else None
        if state is None or question is None or question.action != thing:
            self._leave_crew(self._go_and_open, agent)
        elif option == 1:
            command = cmd.AnswerApproval(agent=agent, action=thing, allow=True)
            self.run_worker(self._allowed(command), name="answer", exit_on_error=False)
        else:
            self._open_questions([(state, question)], HOWS[option - 1])

    async def _allowed(self, command: cmd.AnswerApproval) -> None:
        receipt = await self._submit(command)
        self._said_of_crew(f"{command.agent}: {receipt.message}")

    def _go_and_open(self, agent: str) -> None:
        self._select(agent)
        self._open_present()

    def on_fleet_dialog_wanted(self, event: FleetDialog.Wanted) -> None:
        """Do what is wanted of an agent."""
        name, state = _name(event.key), self._crew_state
        registered = state.agents.get(name) if state is not None and not event.key.startswith(LIVE) else None
        if event.wish == "handoffs" and state is not None:
            of_agent = [one.id for one in state.handoffs.values() if one.agent == name or one.run == name]
            self._leave_crew(self._show_timeline, state, of_agent[-1] if of_agent else "")
        elif event.wish == "open" and registered is None:
            self._leave_crew(self._select, name) if name in self._engine_agents else self._said_of_crew(
                f"{name} is the crew's own; h shows its handoffs"
            )
        elif registered is None or state is None:
            self._said_of_crew(f"{name} is no registered agent: that can be asked of those only")
        elif event.wish == "open":
            self._open_card(state, name)
        elif self._refused_in_past():
            return
        elif event.wish == "transfer":
            self._ask_crew(cc.Transfer(to=name), self._said_of_crew)
        elif event.wish == "toggle":
            self._ask_crew(cc.EnableAgent(who=name, enabled=not registered.enabled), self._said_of_crew)
        elif event.wish == "rebuild":
            self._rebuild(name)

    @property
    def _engine_agents(self) -> tuple[str, ...]:
        return self._engine.agents if self._engine is not None else ()

    def _rebuild(self, name: str) -> None:
        """Build an agent anew of the folder that it came from."""

    def _open_card(self, state: CrewState, name: str) -> None:
        from app.projection.agent_card import card
        from widgets.dialogs.sections import SectionsDialog

        self.push_screen(SectionsDialog(f"Agent {name}", card(state, name, _now())))

    def _open_need(self, need: Need) -> None:
        """Leave the inbox for what a need is about; what the crew asks is answered on the board."""
        if need.kind != "request":
            super()._open_need(need)
            return
        if self._inbox is not None:
            self._inbox.dismiss(None)

        def show(state: CrewState) -> None:
            request = state.requests.get(need.thing)
            handed = state.handoffs.get(request.handoff_id or "") if request is not None else None
            self._show_fleet(state, handed.agent if handed is not None else need.agent)

        self.call_later(self._open_of_crew, show)

    # -------------------------------------------------------------- the timeline

    def on_goal_stack_runs_over_chosen(self) -> None:
        """Show what came of the runs that are over."""
        self.action_handoffs()

    def action_handoffs(self) -> None:
        """Show who handed what to whom."""
        self._open_of_crew(self._show_timeline)

    def _show_timeline(self, state: CrewState, shown: str = "") -> None:
        from app.projection import handoff_views
        from widgets.dialogs.handoffs import HandoffsDialog

        model = handoff_views.timeline(state, _now(), shown=shown)
        self._handoff_shown, self._drawn, self._crew_said = model.shown, (), ""
        self._timeline = HandoffsDialog(model)
        self.push_screen(self._timeline, self._crew_dialog_closed)

    def on_handoffs_dialog_refresh_wanted(self) -> None:
        """At most ten times a second."""
        self._look_at_crew()

    def on_handoffs_dialog_looked(self, event: HandoffsDialog.Looked) -> None:
        """Tell of another one."""
        self._handoff_shown, self._crew_said = event.key, ""
        self._look_at_crew()

    def on_handoffs_dialog_fleet_wanted(self) -> None:
        """See the agents instead."""
        if (state := self._crew_state) is not None:
            self._leave_crew(self._show_fleet, state)

    def on_handoffs_dialog_wanted(self, event: HandoffsDialog.Wanted) -> None:
        """Do what is wanted of a handoff; what ends work is confirmed first."""
        state = self._crew_state
        one = state.handoffs.get(event.key) if state is not None else None
        if state is None:
            return
        if event.wish == "error":
            from app.projection.handoff_views import error_text

            self._read_text(f"{event.key}: why it failed", error_text(state, event.key))
        elif one is None:
            return
        elif event.wish == "prompt":
            from engine.agents.prompting import to_prompt

            self._read_text(f"{one.id}: the prompt as {one.agent} is told it", to_prompt(one.context))
        elif event.wish == "open":
            self._leave_crew(self._open_handoff, one.id)
        elif self._refused_in_past():
            return
        elif event.wish == "cancel":
            below = sum(each.open for each in state.children(one.id))
            told = f"It ends with all below it{f': {below} open' if below else ''}; what had come is kept."
            self._sure(f"Cancel {one.id} {one.agent}?", told, cc.CancelHandoff(handoff=one.id))
        elif event.wish == "retry":
            self._ask_crew(cc.RetryHandoff(handoff=one.id), self._said_of_crew)
        elif event.wish in ("raise", "lower"):
            wanted = max(1, min(3, one.priority + (1 if event.wish == "raise" else -1)))
            self._ask_crew(cc.SetPriority(handoff=one.id, priority=wanted), self._said_of_crew)
        elif event.wish == "pause":
            paused = one.state == "paused"
            command = cc.ResumeHandoff(handoff=one.id) if paused else cc.PauseHandoff(handoff=one.id)
            self._ask_crew(command, self._said_of_crew)
        elif event.wish == "take_over":
            self._take_over(one.id)

    def _sure(self, question: str, consequence: str, command: cc.ForCrew) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._ask_crew(command, self._said_of_crew)

        self.push_screen(ConfirmDialog(ConfirmModel(question, consequence)), answered)

    def _take_over(self, name: str) -> None:
        """Let the operator write a handoff's result."""
        from widgets.dialogs.written import WriteDialog

        state = self._crew_state
        one = state.handoffs.get(name) if state is not None else None
        if one is None or not one.open:
            self._say(f"{name} is over, or there is none", "error")
            return

        def written(text: str | None) -> None:
            if text:
                self._ask_crew(cc.TakeOver(handoff=name, text=text), self._said_of_crew)

        told = f"What you write becomes the result of {one.agent}, marked as yours. Its run ends."
        self.push_screen(WriteDialog(f"Take {name} over", told), written)

    def _open_handoff(self, name: str) -> None:
        """Show where a handoff works: its dialog where its type has one, else the panes of its run."""
        state = self._crew_state
        one = state.handoffs.get(name) if state is not None else None
        if one is None:
            self._say(f"there is no handoff {name}", "error")
        elif not self._view_of_handoff(name):
            self.run_worker(self._select_run(one.run), name="run", exit_on_error=False)

    async def _select_run(self, run: str) -> None:
        """Show a run in all panes, also one that was over long ago."""
        if run and self._engine is not None and run not in (one.agent_id for one in self._live.states):
            self._live.add_untold(run, await self._engine.view(run))
        self._select(run)

    def _view_of_handoff(self, name: str) -> bool:
        """Open the view of a guided agent, a pipeline or a debate; False where there is none for it."""
        return False

    # -------------------------------------------------------------- what is typed

    def _crew_entered(self, intent: Local) -> bool:
        """Do what is answered without a command; False where it is not of the crew."""
        match intent.action:
            case "fleet":
                self._open_of_crew(lambda state: self._show_fleet(state, intent.argument))
            case "handoffs":
                self._open_of_crew(lambda state: self._show_timeline(state, intent.argument))
            case "handoff":
                self._open_of_crew(lambda _state: self._open_handoff(intent.argument))
            case "takeover":
                self._open_of_crew(lambda _state: self._take_over(intent.argument))
            case "select":
                self.run_worker(self._explain(intent.argument), name="select", exit_on_error=False)
            case "agents" | "ideas":
                self.run_worker(self._tell_crew(intent), name="agents", exit_on_error=False)
            case _:
                return False
        return True

    async def _tell_crew(self, intent: Local) -> None:
        from app.crew_doing import answered

        if self._engine is None:
            self._say("the workspace is still opening", "error")
            return
        await self._open_crew()
        _, _, text = await answered(self._engine, intent)
        self._say(text.replace("\n", " · "), "note")
        if "\n" in text and len(self.screen_stack) == 1:
            self._read_text("Registered agents" if intent.action == "agents" else "Parked ideas", text)

    async def _explain(self, text: str) -> None:
        """Show which agent fits a text, and why."""
        if self._engine is None:
            self._say("the workspace is still opening", "error")
            return
        crew = await self._open_crew()
        from app.crew_doing import explained
        from app.projection.agent_card import selection
        from engine.selection import GraphFault
        from widgets.dialogs.selection import SelectionDialog

        try:
            told = await explained(crew, text)
        except GraphFault as error:
            self._say(str(error), "error")
            return
        if len(self.screen_stack) == 1:
            self._selected_text = text
            self.push_screen(SelectionDialog(selection(told, text)))

    _selected_text = ""

    def on_selection_dialog_chosen(self, event: SelectionDialog.Chosen) -> None:
        """Offer the line that hands the text over."""
        self.call_later(self._open_bar, f"delegate {event.agent} {self._selected_text}")


LIVE = "live "
"""What the keys of rows of the engine's agents begin with (`fleet_views.LIVE`, which opens late)."""


def _name(key: str) -> str:
    """The agent that a row is about."""
    return key.partition(" ")[2]
