"""The cockpit: the full-screen application in which an operator steers agents."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Container
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from app import keymap
from app.doing import context_of, help_text
from app.grammar import Context, GrammarError, Local, complete, read_line
from app.history import History
from app.missions import lay_down
from app.projection import Pane, Projector, views
from app.settings import Settings
from engine.domain import commands as cmd
from engine.domain.plan import PlanStep
from engine.domain.state import AgentState, Mode, RunState
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.library import Mission, load_missions
from themes import DEFAULT_THEME, load_themes
from widgets import (
    CommandBar,
    CommandBarModel,
    Completion,
    ControlCharacterFilter,
    CopyRequested,
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
)
from widgets.dialogs import (
    ConfirmDialog,
    ConfirmModel,
    HelpDialog,
    HelpGroup,
    HelpKey,
    HelpModel,
    InterventionChoice,
    InterventionDialog,
    Offer,
    StepDraft,
    StepEdit,
    StepEditor,
)
from widgets.pane_tabs import PaneTabs, TabLine, TabsModel

FRAMES_PER_S = 25
PAST_EVENTS = 600
"""Events of each agent that panes show of earlier sessions."""
BATCH = 32
"""Events brought in between two turns of the loop."""
SECOND_PRESS_S = 3.0
NARROW, TINY = 100, 60
SHORT = 16

PANES: dict[str, tuple[str, str]] = {
    "goals": ("1", "Goals"),
    "plan": ("2", "Plan"),
    "memory": ("3", "Memory"),
    "errors": ("4", "Errors"),
    "session": ("5", "Session"),
    "mind": ("6", "Mind"),
}


class Cockpit(App[None]):
    """Panes over a projection of the event stream; every key becomes a command to the engine."""

    CSS_PATH = "cockpit.tcss"
    TITLE = "pilothouse"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.BINDINGS]

    def __init__(self, workspace: Path, *, mission: Mission | None = None, settings: Settings) -> None:
        super().__init__()
        self._workspace = workspace
        self._mission = mission
        self._settings = settings
        self._engine: Engine | None = None
        self._projector = Projector()
        self._history = History(workspace)
        self._current = "session"
        """The pane that the narrow layout shows beside the plan."""
        self._zoomed = False
        self._last_interrupt = 0.0
        self._missions: Mapping[str, Mission] = {}
        self._theme_errors: list[str] = []

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
                    yield WorkingMemory(id="memory")
                    yield ErrorPanel(id="errors")
            with Container(id="bottom"):
                yield SandboxPane(id="session")
                yield MindStream(id="mind")
        yield CommandBar(self._completions, history=self._history.lines, id="command")
        yield Footer(compact=True, show_command_palette=False)

    def get_line_filters(self) -> list[LineFilter]:
        """Textual's filters, and the one that lets no control character out."""
        return [*super().get_line_filters(), ControlCharacterFilter()]

    def on_mount(self) -> None:
        """Colours, signals, and the engine in the background so that the screen is there at once."""
        self._register_themes()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, partial(self._leave_on, number))
        self.query_one("#plan", PlanPane).show(PlanModel(notice=Notice("opening the workspace …", "loading")))
        self.query_one("#status", StatusBar).show(StatusModel(point="opening"))
        self._lay_out()
        self.query_one("#plan", PlanPane).focus()
        self.run_worker(self._open(), name="engine", exit_on_error=False)

    def _register_themes(self) -> None:
        themes, self._theme_errors = load_themes(self._settings.themes_directory)
        for theme in themes.values():
            self.register_theme(theme)
        wanted = self._settings.theme or DEFAULT_THEME
        if wanted in self.available_themes:
            self.theme = wanted
        else:
            self._theme_errors.append(f"there is no theme '{wanted}'")
            self.theme = DEFAULT_THEME

    def _leave_on(self, number: int) -> None:
        self.run_worker(self._close_and_exit(128 + number), name="leave")

    # -------------------------------------------------------------- engine

    async def _open(self) -> None:
        """Open the engine, show what was there, then follow events until the end."""
        try:
            engine = await Engine.open(self._workspace, config=self._settings.engine_config())
        except (JournalError, OSError) as error:
            self.exit(return_code=2, message=f"pilothouse: {error}")
            return
        self._engine = engine
        self._missions = await asyncio.to_thread(load_missions)
        since = await engine.head()
        for agent in engine.agents:
            before, past = await engine.story(agent, PAST_EVENTS)
            self._projector.add(agent, before, past)
        self._draw()
        self.set_interval(1 / FRAMES_PER_S, self._frame, name="frame")
        if not engine.agents:
            await self._first_agent()
        for problem in (*self._theme_errors, *self._settings.problems, *engine.health.library):
            self._say(problem, "error")
        if self._projector.state is not None and self._projector.state.intervention is not None:
            self._say("the agent waits for your decision: press i", "note")
        await self._follow(since)

    async def _follow(self, since: int) -> None:
        assert self._engine is not None
        count = 0
        async for event in self._engine.events(since):
            payload = self._projector.take(event)
            if isinstance(payload, ev.InterventionOpened) and event.stream == self._projector.selected:
                self.call_later(self._offer_turn, payload)
            count += 1
            if count % BATCH == 0:
                await asyncio.sleep(0)

    async def _first_agent(self) -> None:
        """Give a new workspace its first agent, and the mission that was asked for."""
        await self._submit(cmd.CreateAgent(agent="pilot-1"))
        if self._mission is not None:
            await self._start_mission(self._mission, "pilot-1")
            self._say(f"{self._mission.title}: space runs it, s takes one step, ? shows all keys", "note")
        else:
            self._say("press : and type a goal, such as: goal create a Python project named 'demo'", "note")

    async def _start_mission(self, mission: Mission, agent: str) -> None:
        assert self._engine is not None
        await lay_down(self._engine, agent, mission)
        await self._submit(cmd.AdoptGoal(agent=agent, text=mission.goal))

    async def _submit(self, command: cmd.Command) -> cmd.Receipt:
        """Send a command and show what came of it."""
        if self._engine is None:
            receipt = cmd.Receipt(ok=False, message="the workspace is still opening")
        else:
            receipt = await self._engine.submit(command, operator=self._settings.operator)
        self._say(receipt.message, "ok" if receipt.ok else "error")
        return receipt

    def _send(self, command: cmd.Command) -> None:
        """Send a command without making the key that asked for it wait."""
        self.run_worker(self._submit(command), name=f"submit {command.do}", exit_on_error=False)

    def _say(self, text: str, kind: Any) -> None:
        self.query_one("#command", CommandBar).show(CommandBarModel(clean_line(text), kind))

    # -------------------------------------------------------------- drawing

    def _frame(self) -> None:
        if self._projector.dirty:
            self._draw()
        elif self._engine is not None:
            self._draw_status(self._projector.state)

    def _draw(self) -> None:
        """Give every visible pane that is out of date its model."""
        dirty, self._projector.dirty = self._projector.dirty, set()
        state = self._projector.state
        for pane in dirty:
            widget = None if pane is Pane.STATUS else self._pane(pane.value)
            if widget is not None and not widget.is_on_screen:
                # It is drawn when it becomes visible.
                self._projector.dirty.add(pane)
                continue
            self._draw_pane(pane, state)

    def _draw_pane(self, pane: Pane, state: AgentState | None) -> None:
        shown = state or AgentState()
        match pane:
            case Pane.GOALS:
                goals = views.goal_stack(self._projector.states, self._projector.selected)
                self.query_one("#goals", GoalStack).show(goals)
            case Pane.PLAN:
                self.query_one("#plan", PlanPane).show(views.plan(shown))
            case Pane.MEMORY:
                self.query_one("#memory", WorkingMemory).show(views.working_memory(shown))
            case Pane.ERRORS:
                self.query_one("#errors", ErrorPanel).show(views.errors(shown))
            case Pane.MIND:
                self.query_one("#mind", MindStream).show(self._projector.mind())
            case Pane.SESSION:
                chunks, standing = self._projector.session()
                session = self.query_one("#session", SandboxPane)
                session.append(chunks)
                session.show(standing)
            case Pane.STATUS:
                self._draw_status(state)

    def _draw_status(self, state: AgentState | None) -> None:
        if self._engine is None:
            return
        model = views.status(state, self._engine.health, self._engine.tier)
        self.query_one("#status", StatusBar).show(model)
        waits = state is not None and state.mode is Mode.INTERVENTION
        tabs = tuple(
            TabLine(name, f"{key} {title}", _badge(name, model.errors, waits))
            for name, (key, title) in PANES.items()
            if self.screen.has_class("-solo") or name != "plan"
        )
        self.query_one("#tabs", PaneTabs).show(TabsModel(tabs, self._current))

    def _pane(self, name: str) -> Widget:
        return self.screen_stack[0].query_one(f"#{name}")

    # -------------------------------------------------------------- layout

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new size."""
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int = 0, height: int = 0) -> None:
        width, height = width or self.size.width, height or self.size.height
        tiny = width < TINY or height < SHORT
        solo = tiny or self._zoomed
        screen = self.screen_stack[0]
        screen.set_class(solo, "-solo")
        screen.set_class(not solo and width < NARROW, "-narrow")
        screen.set_class(tiny, "-tiny")
        for name in PANES:
            screen.set_class(name == self._current, f"-tab-{name}")
        self._projector.dirty |= set(Pane)
        self.call_after_refresh(self._draw)

    def action_pane(self, name: str) -> None:
        """Show and focus a pane."""
        if name != "plan" or self.screen_stack[0].has_class("-solo"):
            self._current = name
        self._lay_out()
        self.call_after_refresh(self._pane(name).focus)

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or give the others their room back."""
        focused = self.focused
        while focused is not None and focused.id not in PANES:
            focused = focused.parent if isinstance(focused.parent, Widget) else None
        if focused is not None and focused.id is not None:
            self._current = focused.id
        self._zoomed = not self._zoomed
        self._lay_out()

    @on(PaneTabs.TabChosen)
    def _tab_chosen(self, event: PaneTabs.TabChosen) -> None:
        self.action_pane(event.tab_id)

    # -------------------------------------------------------------- run control

    @property
    def _agent(self) -> str:
        return self._projector.selected

    def action_toggle_run(self) -> None:
        """Run, or pause."""
        state = self._projector.state
        if state is None:
            self._say("there is no agent yet; type: agent_create bdi_agent pilot-1", "error")
        elif state.run is RunState.RUNNING:
            self._send(cmd.Pause(agent=self._agent))
        elif state.intervention is not None:
            self.action_intervene()
        else:
            self._send(cmd.Run(agent=self._agent))

    def action_step(self) -> None:
        """One action."""
        self._send(cmd.Step(agent=self._agent))

    def action_until(self) -> None:
        """Run until the present goal has ended."""
        state = self._projector.state
        goals = state.open_goals if state else []
        if state is None or not goals:
            self._say("there is no open goal to run until", "error")
            return
        self._send(cmd.Run(agent=self._agent, until=state.current_goal or goals[0].id))

    def action_stop(self) -> None:
        """Cut off what runs."""
        self._send(cmd.Stop(agent=self._agent))

    # -------------------------------------------------------------- the plan

    def _chosen_step(self) -> PlanStep | None:
        """The selected step, else the pending one."""
        state = self._projector.state
        if state is None or state.plan is None:
            self._say("there is no plan yet", "error")
            return None
        selected = state.plan.step(self.query_one("#plan", PlanPane).selected)
        chosen = selected if selected is not None else state.step
        if chosen is None:
            self._say("no step is selected", "error")
        return chosen

    def action_breakpoint(self) -> None:
        """Set or clear a breakpoint on the selected step."""
        step, state = self._chosen_step(), self._projector.state
        if step is not None and state is not None:
            on_now = step.id in state.breakpoints
            self._send(cmd.SetBreakpoint(agent=self._agent, step=step.id, on=not on_now))

    def action_skip(self) -> None:
        """Go on without the selected step."""
        step = self._chosen_step()
        if step is not None:
            self._send(cmd.SkipStep(agent=self._agent, step=step.id))

    def action_delete(self) -> None:
        """Take the selected step out."""
        step = self._chosen_step()
        if step is not None:
            self._send(cmd.DeleteStep(agent=self._agent, step=step.id))

    def action_move(self, by: int) -> None:
        """Move the selected step."""
        step = self._chosen_step()
        if step is not None:
            self._send(cmd.MoveStep(agent=self._agent, step=step.id, by=-1 if by < 0 else 1))

    def action_insert(self) -> None:
        """Let the operator type a new step before the selected one."""
        step = self._chosen_step()
        if step is not None:
            before = "" if step.status.terminal else f"before {step.id} "
            self._open_bar(f"insert {before}")

    def action_edit(self) -> None:
        """Edit the selected or pending step."""
        step = self._chosen_step()
        if step is not None:
            self._edit(step, retry=False)

    def _edit(self, step: PlanStep, *, retry: bool) -> None:
        if step.status.terminal:
            self._say(f"step {step.id} is {step.status}; what is done cannot be changed", "error")
            return
        title = f"Edit {step.id} and retry" if retry else f"Edit {step.id}"
        draft = StepDraft(f"{title}: {views.step_text(step)}", step.tool, step.command, step.args)
        self.push_screen(StepEditor(draft, self._check), partial(self._edited, step.id))

    def _check(self, tool: str, command: str, args_text: str) -> list[str]:
        from widgets.dialogs.step_editor import parse_args

        assert self._engine is not None
        return self._engine.check_call(tool, command, parse_args(args_text))

    def _edited(self, step: str, edit: StepEdit | None) -> None:
        if edit is None:
            self._say("nothing was changed", "note")
            return
        self._send(
            cmd.EditStep(agent=self._agent, step=step, tool=edit.tool, command=edit.command, args=edit.args)
        )

    @on(PlanPane.EditRequested)
    def _edit_requested(self, event: PlanPane.EditRequested) -> None:
        self.action_edit()

    # -------------------------------------------------------------- intervention

    def _offer_turn(self, said: ev.InterventionOpened) -> None:
        """Open the dialog by itself, unless the operator is in the middle of something."""
        self.bell()
        bar = self.query_one("#command", CommandBar)
        if len(self.screen_stack) > 1 or bar.input.value:
            self._say("the agent needs you: press i (or n)", "error")
        else:
            self._open_turn()

    def action_intervene(self) -> None:
        """Take the turn, or decide what is asked."""
        state = self._projector.state
        if state is None:
            return
        if state.intervention is None:
            self._send(cmd.Intervene(agent=self._agent))
        else:
            self._open_turn()

    def _open_turn(self) -> None:
        state = self._projector.state
        model = views.intervention(state) if state else None
        if model is not None and len(self.screen_stack) == 1:
            self.push_screen(InterventionDialog(model), self._decided)

    def _decided(self, choice: InterventionChoice | None) -> None:
        state = self._projector.state
        turn = state.intervention if state else None
        if choice is None or state is None or turn is None:
            self._say("the agent goes on waiting; i opens this again, handback gives the turn back", "note")
            return
        agent = self._agent
        match choice.offer:
            case Offer.EDIT_AND_RETRY:
                found = state.find_step(turn.step)
                if found is not None:
                    self._edit(found[1], retry=True)
            case Offer.RETRY:
                self._send(cmd.HandBack(agent=agent))
            case Offer.GIVE_RESULT:
                self._send(cmd.GiveResult(agent=agent, step=turn.step, result=choice.text))
            case Offer.SKIP:
                self._send(cmd.SkipStep(agent=agent, step=turn.step))
            case Offer.REPLACE_REST:
                self._send(cmd.ReplacePlan(agent=agent, goal=turn.goal, plan=choice.text))
            case Offer.ABORT:
                self._send(cmd.AbortGoal(agent=agent, goal=turn.goal))

    def action_next_need(self) -> None:
        """Show the next agent that needs the operator."""
        waiting = [state.agent_id for state in self._projector.states if state.intervention is not None]
        if not waiting:
            self._say("nobody needs you", "ok")
            return
        place = waiting.index(self._agent) + 1 if self._agent in waiting else 0
        self._select(waiting[place % len(waiting)])
        self._open_turn()

    # -------------------------------------------------------------- agents, errors, copying

    def _select(self, agent: str) -> None:
        if agent == self._agent:
            return
        if not self._projector.select(agent):
            known = ", ".join(state.agent_id for state in self._projector.states)
            self._say(f"there is no agent '{agent}'; agents: {known}", "error")
            return
        self.query_one("#session", SandboxPane).clear()
        self._draw()

    @on(GoalStack.AgentSelected)
    def _agent_selected(self, event: GoalStack.AgentSelected) -> None:
        self._select(event.agent_id)

    @on(ErrorPanel.ErrorChosen)
    def _error_chosen(self, event: ErrorPanel.ErrorChosen) -> None:
        state = self._projector.state
        failure = next((f for f in state.failures if f.event == event.error_id), None) if state else None
        if failure is not None and failure.step:
            self.query_one("#plan", PlanPane).select(failure.step)
            self.action_pane("plan")

    @on(CopyRequested)
    def _copy(self, event: CopyRequested) -> None:
        self.copy_to_clipboard(event.text)
        self._say(f"copied the {event.what} to the terminal's clipboard ({len(event.text)} characters)", "ok")

    # -------------------------------------------------------------- the command bar

    def action_command(self) -> None:
        """Go to the command bar."""
        self._open_bar("")

    def _open_bar(self, text: str) -> None:
        bar = self.query_one("#command", CommandBar)
        if text:
            bar.set_text(text)
            bar.input.value = text
            bar.input.cursor_position = len(text)
        bar.focus()

    @on(CommandBar.LeaveRequested)
    def _bar_left(self) -> None:
        self.query_one("#plan", PlanPane).focus()

    def _bar_context(self) -> Context:
        if self._engine is None:
            return Context()
        context = context_of(self._engine, self._agent, self._projector.state)
        return Context(
            agent=context.agent,
            state=context.state,
            agents=context.agents,
            missions=tuple(self._missions),
            themes=tuple(self.available_themes),
            examples=context.examples,
            spec_of=context.spec_of,
        )

    def _completions(self, text: str) -> list[Completion]:
        if not text.strip():
            return []
        return [Completion(line, about) for line, about in complete(text, self._bar_context())]

    @on(CommandBar.CommandEntered)
    def _command_entered(self, event: CommandBar.CommandEntered) -> None:
        self._history.add(event.text)
        try:
            intent = read_line(event.text, self._bar_context())
        except GrammarError as error:
            self._say(str(error), "error")
            return
        if isinstance(intent, Local):
            self._do_locally(intent)
        else:
            self._send(intent)

    def _do_locally(self, intent: Local) -> None:
        match intent.action:
            case "quit":
                self.action_leave()
            case "help":
                self._help(intent.argument)
            case "theme":
                self._change_theme(intent.argument)
            case "select_agent":
                self._select(intent.argument)
            case "edit_step":
                self.query_one("#plan", PlanPane).select(intent.argument)
                self.action_edit()
            case "mission":
                self._mission_entered(intent.argument)
            case "agent_list":
                agents = [f"{s.agent_id} {s.mode.value.lower()}" for s in self._projector.states]
                self._say(" · ".join(agents) or "no agents yet", "note")
            case "status":
                state = self._projector.state
                self._say(
                    f"{state.agent_id} {state.mode} · {state.pause_point}" if state else "no agent", "note"
                )

    def _change_theme(self, name: str) -> None:
        if not name:
            self.action_change_theme()
        elif name in self.available_themes:
            self.theme = name
        else:
            self._say(
                f"there is no theme '{name}'; themes: {', '.join(sorted(self.available_themes))}", "error"
            )

    def _mission_entered(self, name: str) -> None:
        mission = self._missions.get(name)
        if mission is None or not self._agent:
            known = ", ".join(self._missions)
            self._say(
                f"there is no mission '{name}'; missions: {known}" if self._agent else "no agent yet", "error"
            )
            return
        self.run_worker(self._start_mission(mission, self._agent), name="mission", exit_on_error=False)

    def action_help(self) -> None:
        """All keys, and what the focused pane says of itself."""
        self._help("")

    def _help(self, verb: str) -> None:
        code, answer, text = help_text(verb)
        if verb:
            self._say(text, "error" if code else "note")
            return
        words = tuple(HelpKey(row["usage"], row["help"]) for row in answer["verbs"])
        focused = self.focused
        about = ""
        while focused is not None and not about:
            about = getattr(type(focused), "HELP", None) or ""
            focused = focused.parent if isinstance(focused.parent, Widget) else None
        model = HelpModel((*keymap.help_groups(), HelpGroup("Command bar", words)), about=about)
        self.push_screen(HelpDialog(model))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every key's action in the palette too."""
        for key in keymap.KEYS:
            title = f"{key.name} ({keymap.shown_keys(key.keys)})"
            yield SystemCommand(title, key.does, partial(self.run_action, key.action))
        yield SystemCommand("theme", "Change colours", self.action_change_theme)
        yield SystemCommand("screenshot", "Save a picture of the screen", self._save_screenshot)

    def _save_screenshot(self) -> None:
        self.deliver_screenshot()

    # -------------------------------------------------------------- leaving

    def action_interrupt(self) -> None:
        """Pause; pressed twice, leave."""
        now = asyncio.get_running_loop().time()
        if now - self._last_interrupt < SECOND_PRESS_S:
            self.action_leave()
            return
        self._last_interrupt = now
        state = self._projector.state
        if state is not None and state.run is RunState.RUNNING:
            self._send(cmd.Pause(agent=self._agent))
        self._say("press ctrl+c again to leave", "note")

    def action_leave(self) -> None:
        """Leave; ask first when that would cut an action off."""
        running = [state for state in self._projector.states if state.acting]
        if not running:
            self.run_worker(self._close_and_exit(0), name="leave")
            return
        names = ", ".join(state.agent_id for state in running)
        model = ConfirmModel(
            f"Leave while {names} runs an action?",
            "The action is cut off and recorded; it runs again when you let the agent go on.",
            yes="leave",
            no="stay",
        )
        self.push_screen(ConfirmDialog(model), self._leave_confirmed)

    def _leave_confirmed(self, yes: bool | None) -> None:
        if yes:
            self.run_worker(self._close_and_exit(0), name="leave")

    async def action_quit(self) -> None:
        """Textual's own way out ends here too."""
        self.action_leave()

    async def _close_and_exit(self, code: int) -> None:
        self._say("closing …", "note")
        await self._close()
        self.exit(return_code=code)

    async def _close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    async def on_unmount(self) -> None:
        """However the screen ended, the engine is closed in good order."""
        await self._close()


def _badge(pane: str, errors: int, waits: bool) -> str:
    if pane == "errors" and errors:
        return f"{errors} open"
    return "?" if pane == "goals" and waits else ""


def fly(workspace: Path, *, mission: Mission | None, theme: str | None) -> int:
    """Open the cockpit and stay until the operator leaves; answers the exit code."""
    settings = Settings.load(workspace, theme=theme)
    app = Cockpit(workspace, mission=mission, settings=settings)
    app.run()
    sys.stdout.flush()
    return app.return_code or 0
