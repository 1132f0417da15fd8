"""The operator's turn: deciding what an agent asks, changing its plan, and working at its shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.agents import Agents
from app.cockpit.controllers.layout import Layout
from app.projection import pane_views as views
from app.projection.event_lines import step_text
from engine.api.workspace_engine import OperatorTerminal
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.plan import Op, PlanStep, step_line
from engine.core.state import AgentState
from widgets.dialogs.step_editor import StepDraft, StepEdit, StepEditor, parse_args
from widgets.dialogs.turn import (
    HandBack,
    HandBackDialog,
    HandoverDecision,
    HandoverDialog,
    InterventionChoice,
    InterventionDialog,
    Offer,
)
from widgets.panes.command_bar import ABOUT
from widgets.panes.plan import PlanPane
from widgets.terminal.pane import TerminalPane

SMALLEST = 80, 20
"""Columns and rows of a shell below which it takes the whole screen."""
SHELL_WAITS = "the shell is yours: 5 goes to it"
SHELL_HAS_KEYS = "your shell has the keys: ctrl+] hands it back"


class ShellPane(TerminalPane):
    """Shows what the terminal prints, whether it is in place or not, and gives it what the operator does."""

    def __init__(self, terminal: OperatorTerminal) -> None:
        # Out of sight until it is put into its place.
        super().__init__(terminal, classes="session -away")
        self.terminal = terminal
        self._leave: Callable[[], None] | None = None

    def on_mount(self) -> None:
        """Follow the terminal."""
        self._leave = self.terminal.follow(self.put)

    def on_unmount(self) -> None:
        """Follow it no longer."""
        if self._leave is not None:
            self._leave()


class Turn:
    """Taking the turn, editing steps, and the shells in the session's place."""

    def __init__(
        self,
        context: CockpitContext,
        layout: Layout,
        agents: Agents,
        *,
        open_plans: Callable[[], bool],
        open_breakpoints: Callable[[], None],
        approve: Callable[[], None],
    ) -> None:
        self._context = context
        self._layout = layout
        self._agents = agents
        self._open_plans = open_plans
        self._open_breakpoints = open_breakpoints
        self._approve = approve
        self._shells: dict[str, ShellPane] = {}
        """Open shells by agent; the selected agent's is in place, the others continue out of sight."""
        context.frame_hooks.append(self._look_at_shells)
        context.watchers.append(self._watch)
        self._taking = ""
        """The agent whose turn or shell the operator is about to take."""
        self._wanted = self._refused = False
        """Whether the shell that the operator is about to take is asked for, and whether it will not open."""
        self._arriving = False
        """Whether the shell in place has not been laid out there yet."""

    def offer(self) -> None:
        """Open the dialog: at once where the operator takes the turn, else unless they are amid something."""
        if self._taking == self._context.agent:
            self.open()
        else:
            notice = "the agent needs you: press i (or n)"
            if self._context.bar.message[1] == "ok":  # such as `running`, which is no longer so
                self._context.say(notice, "asks")
            self._context.pop_up(partial(self.open, unasked=True), notice)

    def action_intervene(self) -> None:
        """Decide on plans that wait or on what is asked, else take the turn."""
        if self._open_plans() or self._context.refused_in_past() or (state := self._context.state) is None:
            return
        if state.handover is not None:
            self.open_handover()
        elif state.intervention is None:
            self._context.open_later(self._take_turn(self._context.agent), "intervene")
        else:
            self.open()

    async def _take_turn(self, agent: str) -> None:
        self._taking = agent
        if (await self._context.submit(cmd.Intervene(agent=agent))).ok:
            await self._context.until(lambda: not self._context.no_dialog or agent != self._context.agent)
        self._taking = ""

    def open(self, *, unasked: bool = False) -> None:
        """Open the dialog on what the agent asks of the operator, where it does."""
        if not self._context.projector.story_read:
            # What its step printed last belongs into the dialog.
            self._context.story_waiters.append(partial(self.open, unasked=unasked))
            if not unasked:
                self._context.open_later(
                    self._context.until(lambda: self._context.projector.story_read), "story"
                )
            return
        state = self._context.state
        turn = state.intervention if state and not self._context.in_past else None
        plan = state.plans.get(turn.goal) if state and turn else None
        was = tuple(map(step_line, plan.steps)) if plan is not None else ()
        printed = self._context.projector.last_words(turn.step) if turn and turn.kind else ""
        model = views.intervention(state, printed) if state else None
        if model is not None and self._context.no_dialog:
            self._context.push(InterventionDialog(model, unasked=unasked), partial(self._decided, was))

    def _decided(self, was: tuple[str, ...], choice: InterventionChoice | None) -> None:
        state = self._context.state
        turn = state.intervention if state else None
        if choice is None and turn is not None and not turn.kind and not turn.unsaved:
            self._context.send(cmd.HandBack(agent=self._context.agent))  # the operator took it, and leaves it
            return
        if choice is None or state is None or turn is None:
            self._context.say(
                "the agent still waits; i opens this again, handback gives the turn back", "note"
            )
            return
        agent = self._context.agent
        match choice.offer:
            case Offer.EDIT_AND_RETRY:
                failed = state.find_step(turn.step)
                if failed is not None:
                    self.edit(failed[1], retry=True)
            case Offer.RETRY:
                self._context.send(cmd.HandBack(agent=agent))
            case Offer.RUN_UNSAVED:
                self._context.send(cmd.WaiveSnapshot(agent=agent, step=turn.step))
            case Offer.GIVE_RESULT:
                self._context.send(cmd.GiveResult(agent=agent, step=turn.step, result=choice.text))
            case Offer.SKIP:
                self._context.send(cmd.SkipStep(agent=agent, step=turn.step))
            case Offer.REPLACE_REST:
                replaced = cmd.ReplacePlan(agent=agent, goal=turn.goal, plan=choice.text, was=was)
                self._context.send(replaced, partial(self._context.keep_line, f"plan {choice.text}"))
            case Offer.TAKE_SHELL:
                self.action_take_shell()
            case Offer.ABORT:
                self._context.send(cmd.AbortGoal(agent=agent, goal=turn.goal))

    def action_next_need(self) -> None:
        """Show the next agent that needs the operator."""
        waiting = [state.agent_id for state in self._context.live.states if views.needs_operator(state)]
        if not waiting:
            self._context.say("no agent needs you", "ok")
            return
        place = waiting.index(self._context.agent) + 1 if self._context.agent in waiting else 0
        self._agents.select(waiting[place % len(waiting)])
        self.open_handover()
        self.open()
        self._open_plans()
        state = self._context.state
        if state is not None and (state.approvals.question is not None or state.approvals.held):
            self._approve()

    def open_present(self) -> None:
        """Open whatever the present agent waits with."""
        state = self._context.state
        if state is None:
            return
        if state.approvals.question is not None or state.approvals.held:
            self._approve()
        elif state.intervention is not None or state.handover is not None:
            self.action_intervene()
        elif not self._open_plans():
            self._context.say(f"{state.agent_id}: {state.run_reason or state.mode}", "note")

    def chosen_step(self) -> PlanStep | None:
        """The selected step, else the pending one; none in the past."""
        if self._context.refused_in_past():
            return None
        state = self._context.state
        if state is None or state.plan is None:
            self._context.say("there is no plan yet", "error")
            return None
        selected = state.plan.step(self._context.pane(PlanPane).selected)
        chosen = selected if selected is not None else state.step
        if chosen is None:
            self._context.say("no step is selected", "error")
        return chosen

    def action_breakpoint(self) -> None:
        """Set or clear a breakpoint on the selected step; of a reasoner, all its breakpoints."""
        if self._context.reasoner is not None:
            self._open_breakpoints()
            return
        step = self.chosen_step()
        if step is not None:
            self._context.ask(partial(self._toggle_breakpoint, step.id))

    async def _toggle_breakpoint(self, step: str, state: AgentState) -> None:
        on_now = step in state.breakpoints
        await self._context.submit(cmd.SetBreakpoint(agent=state.agent_id, step=step, on=not on_now))

    def action_insert(self) -> None:
        """Let the operator type a new step before the selected one."""
        step = self.chosen_step()
        if step is not None:
            before = "" if step.status.terminal else f"before {step.id} "
            self._context.open_bar(f"insert {before}")

    def edit_step(self, step: str) -> None:
        """Let the operator edit a step by its name."""
        self._context.pane(PlanPane).select(step)
        self.action_edit()

    def action_edit(self) -> None:
        """Edit the selected or pending step; of a reasoner, plans that wait."""
        if self._context.reasoner is None:
            step = self.chosen_step()
            if step is not None:
                self.edit(step, retry=False)
        elif not self._open_plans():
            self._context.say(
                "the plans are those of its program: steer its intentions, beliefs and goals", "error"
            )

    def edit(
        self,
        step: PlanStep,
        *,
        retry: bool,
        typed: StepEdit | None = None,
        refused: str = "",
        base: PlanStep | None = None,
    ) -> None:
        """Let the operator edit a step, and say where it cannot be changed.

        Args:
            step: the step.
            retry: whether it failed and runs again.
            typed: what was typed before and was refused.
            refused: why.
            base: the step as the operator saw it; None for as it is now.
        """
        if self._context.refused_in_past():
            return
        if step.status.terminal:
            self._context.say(f"step {step.id} is {step.status}; what is done cannot be changed", "error")
            return
        state = self._context.state
        if state is not None and state.acting and state.action and state.action.step == step.id:
            self._context.say(f"step {step.id} is running; wait for it, or cut it off with .", "error")
            return
        step = state.as_settled(step) if state is not None else step
        if step.op is not Op.ACT:
            # Such a step calls no tool; the bar takes its arguments.
            self._context.open_bar(f"edit {step.id} {json.dumps({'args': step.args}, ensure_ascii=False)}")
            return
        title = f"Edit {step.id} and retry" if retry else f"Edit {step.id}"
        draft = StepDraft(f"{title}: {step_text(step)}", step.tool, step.command, step.args)
        editor = StepEditor(draft, self.check_call, typed, refused)
        self._context.push(editor, partial(self._edited, self._context.agent, base or step))

    def check_call(self, tool: str, command: str, args_text: str) -> list[str]:
        """What is wrong with a call, in sentences."""
        assert self._context.engine is not None
        problems = self._context.engine.registry.validate(tool, command, parse_args(args_text))
        return [problem.message for problem in problems]

    def _edited(self, agent: str, step: PlanStep, edit: StepEdit | None) -> None:
        if edit is None:
            state = self._context.state
            waits = state is not None and state.intervention is not None
            self._context.say(
                "nothing was changed" + ("; i opens your choices again" if waits else ""), "note"
            )
            return
        change = cmd.EditStep(agent=agent, step=step.id, tool=edit.tool, command=edit.command, args=edit.args)
        change = change.model_copy(update={"was": (step_line(step),)})
        self._context.send(change, partial(self._saved, agent, step, edit))

    def _saved(self, agent: str, base: PlanStep, edit: StepEdit, receipt: cmd.Receipt) -> None:
        """Give back what was typed where it was not taken, and the step can still be edited."""
        state = self._context.state
        located = state.find_step(base.id) if state is not None and agent == self._context.agent else None
        if not receipt.ok and located is not None and self._context.no_dialog:
            # Who was told what others changed may overwrite it; nobody else does.
            seen = None if receipt.data.get("code") == "refused.overwrites" else base
            self.edit(located[1], retry=False, typed=edit, refused=receipt.message, base=seen)

    def on_plan_pane_edit(self) -> None:
        """Edit the step."""
        self.action_edit()

    def _look_at_shells(self) -> None:
        """Follow shells that opened, drop those that ended, and put the selected agent's in place."""
        ended = [agent for agent, pane in self._shells.items() if not pane.terminal.open]
        gone = [self._shells.pop(agent) for agent in ended]
        for state in self._context.live.states:
            if state.shell_taken and state.agent_id not in self._shells:
                self._take_up(state.agent_id)
            elif not state.shell_taken and state.agent_id in ended:
                self._context.shells.discard(state.agent_id)
        shell = None if self._context.in_past else self._shells.get(self._context.agent)
        has_keys = isinstance(self._context.app.screen_stack[0].focused, TerminalPane)
        self._context.bar.input.placeholder = SHELL_HAS_KEYS if has_keys else ABOUT
        if has_keys and self._context.bar.message[0] == SHELL_WAITS:
            self._context.say(SHELL_HAS_KEYS, "note")
        if shell is not self._layout.terminal:
            self._change_place(shell)
        elif shell is not None and self._arriving and shell.is_on_screen:
            self._make_room(shell)
        for pane in gone:
            pane.remove()

    def _take_up(self, agent: str) -> None:
        """Show an open shell: the operator's own, and where others operate the engine no other."""
        if not self._context.has_shell(agent):
            return
        terminal = self._context.engine.terminal(agent) if self._context.engine is not None else None
        if terminal is not None and terminal.open:
            self._shells[agent] = ShellPane(terminal)
            self._layout.add_shell(self._shells[agent])

    def _change_place(self, shell: ShellPane | None) -> None:
        """Put a shell into the session's place, or the session back into it."""
        had_focus = self._layout.terminal is not None and self._layout.terminal.has_focus
        self._layout.terminal, self._arriving = shell, shell is not None
        self._layout.set_places()
        if self._layout.shell_zoomed:
            self._layout.zoomed = self._layout.shell_zoomed = False
        if shell is not None:
            self._layout.choose("session")
            self._offer_shell(shell)
        elif isinstance(self._context.app.screen, HandBackDialog):
            self._context.app.screen.dismiss(None)
        self._layout.lay_out()
        if shell is None and had_focus:
            self._layout.focus_pane("session" if self._layout.shows_one_pane else "plan")

    def _make_room(self, shell: ShellPane) -> None:
        """Give a shell the whole screen where its place is small, and the keys unless they are in use."""
        self._arriving = False
        columns, rows = shell.content_size
        if not self._layout.zoomed and (columns < SMALLEST[0] or rows < SMALLEST[1]):
            self._layout.zoomed = self._layout.shell_zoomed = True
            self._layout.lay_out()
        self._offer_shell(shell)

    def _offer_shell(self, shell: ShellPane) -> None:
        """Give the keys to a shell: at once where the operator takes it, else unless they are in use."""
        if self._taking == self._context.agent:
            self._layout.focus_pane("session")
        else:
            self._context.pop_up(partial(self._go_to_shell, shell), SHELL_WAITS, "note")

    def _go_to_shell(self, shell: ShellPane) -> None:
        if shell is self._layout.terminal:
            self._layout.focus_pane("session")

    def action_take_shell(self) -> None:
        """Take the shell, go to the one that is taken, or settle what was changed at the last one."""
        if self._context.refused_in_past() or (state := self._context.shown_state()) is None:
            return
        if state.handover is not None:
            self.open_handover()
        elif self._layout.terminal is not None:
            self._layout.show_pane("session")
        else:
            self._layout.show_session()
            if state.shell_taken:
                self._context.shells.add(state.agent_id)
            else:
                self._context.open_later(self._take_shell(state.agent_id, later=state.acting), "take shell")

    async def _take_shell(self, agent: str, *, later: bool) -> None:
        """Take the shell, and wait until it has the keys, unless it opens later or not at all."""
        self._taking, self._wanted, self._refused = agent, False, False
        if (await self._context.submit(cmd.TakeShell(agent=agent))).ok and not later:
            await self._context.until(
                lambda: (
                    self._refused
                    or agent != self._context.agent
                    or isinstance(self._context.app.focused, TerminalPane)
                )
            )
        self._taking = ""

    def _watch(self, agent: str, payload: ev.Payload) -> None:
        state = self._context.live.state
        if state is not None and agent == self._taking == state.agent_id:
            self._refused = self._refused or (self._wanted and not state.shell_taken)
            self._wanted = state.shell_taken

    def action_return_shell(self) -> None:
        """Ask for a note, then hand the shell back."""
        if self._layout.terminal is None:
            self._context.send(cmd.ReturnShell(agent=self._context.agent))
        elif self._context.no_dialog:
            self._context.push(HandBackDialog(), partial(self._hand_back, self._context.agent))

    def _hand_back(self, agent: str, answer: HandBack | None) -> None:
        if answer is None:
            if self._layout.terminal is not None:
                self._layout.focus_pane("session")
        elif answer.looks_elsewhere:
            self._layout.show_pane("plan")
            self._context.say("the shell stays yours: 5 goes back to it, ctrl+] hands it back", "note")
        else:
            self._context.settle(
                self._return_shell(cmd.ReturnShell(agent=agent, note=answer.note)), "hand back"
            )

    async def _return_shell(self, command: cmd.ReturnShell) -> None:
        if (await self._context.submit(command)).ok:
            await self._context.until(lambda: not isinstance(self._context.app.focused, TerminalPane))

    def offer_changes(self) -> None:
        """Open the hand-over by itself, unless the operator is in the middle of something."""
        self._look_at_shells()
        notice = "say what the agent is to know of your changes: press t"
        self._context.pop_up(partial(self.open_handover, unasked=True), notice, "note")

    def open_handover(self, *, unasked: bool = False) -> None:
        """Ask what the agent is to know of what was changed at its shell."""
        state = self._context.state
        model = views.handover(state) if state and not self._context.in_past else None
        if model is not None and self._context.no_dialog:
            self._context.push(
                HandoverDialog(model, unasked=unasked), partial(self._settle, self._context.agent)
            )

    def _settle(self, agent: str, decision: HandoverDecision | None) -> None:
        if decision is None:
            self._context.say(
                "the agent waits until you say what it is to know; t or i opens this again", "note"
            )
        else:
            self._context.send(cmd.SettleChanges(agent=agent, accept=decision.accept, follow=decision.follow))

    def on_terminal_pane_hand_back(self) -> None:
        """Hand the shell back."""
        self.action_return_shell()
