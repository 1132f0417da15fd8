"""The command bar and the help: lines in, commands out."""

from __future__ import annotations

from dataclasses import replace

from textual import on
from textual.widget import Widget
from textual.widgets import Input, TextArea

from app.cockpit import keymap
from app.cockpit.approval_keys import ApprovalKeys
from app.cockpit.budget_keys import BudgetKeys
from app.cockpit.build_keys import BuildKeys
from app.cockpit.context_keys import ContextKeys
from app.cockpit.goal_keys import GoalKeys
from app.cockpit.mastermind_keys import MastermindKeys
from app.cockpit.meta_keys import MetaKeys
from app.cockpit.past_keys import PastKeys
from app.cockpit.recap_keys import RecapKeys
from app.cockpit.sandbox_keys import SandboxKeys
from app.cockpit.search_keys import SearchKeys
from app.cockpit.stop_keys import StopKeys
from app.cockpit.time_keys import TimeKeys
from app.doing import context_of, generated_text, help_text
from app.grammar import asks_preview, complete, hint, is_of_crew, is_of_mastermind, read_line, wishes
from app.missions import agent_for, free_name, lay_down
from app.verb import Context, GrammarError, Intent, Local
from engine.domain import commands as cmd
from engine.domain import crew_commands as cc
from engine.domain import mastermind_commands as mm
from engine.library import Mission
from widgets import CommandBar, Completion, PlanPane, TerminalPane
from widgets.dialogs import HelpDialog, HelpGroup, HelpKey, HelpModel

WITH_A_MODEL = (
    HelpKey("no model is set", "agents plan by the plan library, and say which clause no recipe covers"),
    HelpKey("ANTHROPIC_API_KEY", "set it before you open the cockpit, and Claude plans for new agents"),
    HelpKey("ANTHROPIC_BASE_URL", "or this: a server of your own that speaks the Messages API"),
    HelpKey("PILOTHOUSE_MODEL", "the model's name; pilothouse doctor --model tries it"),
    HelpKey("PILOTHOUSE_MODEL_FAST", "of agents that want a fast one; _DEEP of those that want a deep one"),
)


class CommandLine(
    BuildKeys,
    ApprovalKeys,
    BudgetKeys,
    SandboxKeys,
    ContextKeys,
    GoalKeys,
    MastermindKeys,
    MetaKeys,
    PastKeys,
    TimeKeys,
    SearchKeys,
    StopKeys,
    RecapKeys,
):
    """What is typed in the bar, and the words it knows."""

    def action_command(self) -> None:
        """Go to the command bar."""
        self._open_bar("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key of the command bar comes before all others, but not where a text is typed.

        While a shell has the focus every key is the shell's, those that the operator chose themselves too.
        """
        if isinstance(self.focused, TerminalPane):
            return False
        typing = isinstance(self.focused, Input | TextArea)
        if action == "command":
            return not typing and len(self.screen_stack) == 1
        if action in ("first", "now"):
            # Elsewhere these keys are the focused pane's, for its first and last line.
            return self._in_past and not typing and len(self.screen_stack) == 1
        return super().check_action(action, parameters)

    @on(CommandBar.LineChanged)
    def _line_changed(self, event: CommandBar.LineChanged) -> None:
        self._desk.lay(line=event.text)

    @on(CommandBar.LeaveRequested)
    def _bar_left(self) -> None:
        self._focus_pane("plan")

    def _bar_context(self) -> Context:
        if self._engine is None:
            return Context()
        context = context_of(self._engine, self._agent, self._projector.state)
        return replace(
            self._with_crew(self._with_mastermind(context)),
            missions=tuple(self._missions),
            themes=tuple(self.available_themes),
        )

    def _completions(self, text: str) -> list[Completion]:
        if not text.strip():
            return []
        if is_of_mastermind(text):
            self._mastermind_soon()
        if is_of_crew(text):
            self._crew_soon()
        return [Completion(line, about) for line, about in complete(text, self._bar_context())]

    def _hint(self, text: str) -> str:
        return hint(text)

    @on(CommandBar.CommandEntered)
    def _command_entered(self, event: CommandBar.CommandEntered) -> None:
        # Who is used to vi types the colon in the bar too.
        line = event.text.lstrip(": ")
        asked = asks_preview(line)
        self._history.add(asked if asked is not None else event.text)
        if asked is not None or wishes(line):
            self._preview(asked if asked is not None else line)
        else:
            self._enter(line)

    @on(CommandBar.PreviewRequested)
    def _preview_requested(self, event: CommandBar.PreviewRequested) -> None:
        self._preview(event.text.lstrip(": "))

    def _preview(self, line: str) -> None:
        def do(meant: str, chosen: str) -> None:
            self.query_one("#command", CommandBar).clear()
            self._enter(meant, chosen)

        self._show_preview(line, self._bar_context(), do)

    def _enter(self, line: str, component: str = "") -> None:
        """Do what a line says; a fault of the program is told, and the cockpit goes on (behaviour 4)."""
        try:
            intent = read_line(line, self._bar_context())
            if isinstance(intent, mm.StartJob) and component:
                intent = intent.model_copy(update={"component": component})
            self._do_intent(intent)
        except GrammarError as error:
            self._say(str(error), "error")
        except Exception as error:  # noqa: BLE001 - whatever it is, the operator keeps the cockpit
            self._fault(error)

    def _do_intent(self, intent: Intent) -> None:
        if isinstance(intent, Local):
            self._do_locally(intent)
            return
        if isinstance(intent, mm.StartJob) and intent.verb == "agent_build":
            self._build_entered(intent)
            return
        if isinstance(intent, mm.ForMastermind):
            self._ask_mastermind(intent)
            return
        if isinstance(intent, cc.ForCrew):
            self._ask_crew(intent, self._shows_resumed(intent))
            return
        if isinstance(intent, cmd.CallTool | cmd.TakeShell):
            # Whoever calls the sandbox wants to see its answer, in the narrow layout too.
            self._show_beside("session")
        self._send(intent)

    def _do_locally(self, intent: Local) -> None:
        match intent.action:
            case "quit":
                self.action_leave()
            case "help":
                self._help(intent.argument)
            case "past":
                self._past_entered(intent.argument)
            case "compare":
                self._compare_entered(intent.argument)
            case "rewind":
                self._rewind_entered(intent.argument)
            case "undo" | "redo":
                self._undo(again=intent.action == "redo")
            case "fork":
                self._fork_entered(intent.argument)
            case "adopt":
                self._adopt_entered(intent.argument)
            case "outcomes":
                self._outcomes_entered()
            case "policy":
                self.action_policy()
            case "budgets":
                self._open_budgets(intent.argument)
            case "memories":
                self._open_browser(intent.argument)
            case "meta":
                self.action_meta()
            case "context":
                self.action_context()
            case "recap":
                self._open_recap(intent.argument)
            case "search":
                self._open_search(intent.argument)
            case "why":
                self._ask_why(intent.argument or self._selected_subject())
            case "wrong" | "right" | "retract":
                self._mark_entered(intent.action, intent.argument)
            case "play":
                self.run_worker(self._write_cast(intent.argument), name="play", exit_on_error=False)
            case "drift":
                self.run_worker(self._tell_drift(intent.argument), name="drift", exit_on_error=False)
            case "inbox":
                self.action_inbox()
            case "approvals" | "envelope" | "approve_all":
                told = self._tell_approvals(intent.action, intent.argument)
                self.run_worker(told, name="approvals", exit_on_error=False)
            case "world":
                self.action_world()
            case "breakpoints":
                self.action_breakpoints()
            case "break_dry":
                self._dry_entered(intent.argument)
            case "step_all":
                self._step_all(intent.argument)
            case "generated_plans":
                if not self._open_plans():
                    self._say(generated_text(self._projector.state, short=True), "note")
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
                here = [one for one in self._live.states if not one.handed_back]
                agents = [f"{s.agent_id} {s.mode.value.lower()}" for s in here]
                self._say(" · ".join(agents) or "no agents yet", "note")
            case "status":
                self.run_worker(self._tell_status(), name="status", exit_on_error=False)
            case "say":
                self._say(intent.argument, "note")
            case _:
                if not self._crew_entered(intent):
                    self._answer_entered(intent)

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
        if self._refused_in_past():
            return
        mission = self._missions.get(name)
        if mission is None:
            self._say(f"there is no mission '{name}'; missions: {', '.join(self._missions)}", "error")
        elif mission.agent is None and not self._agent:
            self._say("no agent yet", "error")
        else:
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
        words += tuple(
            HelpKey(row["verb"], f"a plugin that cannot be used: {row['wrong']}") for row in answer["broken"]
        )
        wrong = tuple(HelpKey(f"{number}", problem) for number, problem in enumerate(self.problems, 1))
        groups = (*keymap.help_groups(self._keys), HelpGroup("Words of the command bar", words))
        if self._settings.model is None:
            groups = (*groups, HelpGroup("With a model", WITH_A_MODEL))
        if wrong:
            groups = (HelpGroup("Problems", wrong), *groups)
        model = HelpModel(groups, about=about)
        self.push_screen(HelpDialog(model))

    async def _start_mission(self, mission: Mission, agent: str) -> None:
        assert self._engine is not None
        if mission.agent is not None:
            agent = free_name(mission.agent.id, self._engine.agents)
            if not (await self._submit(agent_for(mission, agent))).ok:
                return
            self._select_soon(agent)
        receipt = await lay_down(self._engine, agent, mission)
        if not receipt.ok:
            self._say(receipt.message, "error")
            return
        await self._submit(cmd.AdoptGoal(agent=agent, text=mission.goal))
