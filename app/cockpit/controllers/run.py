"""Run, pause, step, stop and leave; the receipt of a stop stays until it was read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.widgets import Input, TextArea

from app.cockpit.context import CockpitContext
from app.commands import breakpoints as stopping
from app.commands.settings_tables import OnLost
from app.projection.event_lines import ending_jobs_text
from engine.api.engine import Engine
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core.agents import RunState
from engine.core.sandbox import StopReceipt
from engine.core.state import AgentState
from widgets.base.facts import Fact
from widgets.dialogs.questions import LeaveChoice, LeaveDialog
from widgets.dialogs.stop import THAW, StopDialog, StopModel, StopReceiptPane

SECOND_PRESS_S = 3.0

AGAIN = "press ctrl+c again to leave"


class RunControl:
    """The keys that let the agent run, hold it, and leave the cockpit."""

    def __init__(
        self, context: CockpitContext, intervene: Callable[[], None], leave_app: Callable[[int], None]
    ) -> None:
        self._context = context
        self._intervene = intervene
        self._exit = leave_app
        self._receipts: tuple[StopReceipt, ...] = ()
        self._leaving = False
        """Those that have not been put away, the newest of each agent."""
        self._last_interrupt = -SECOND_PRESS_S
        self._engine_closed: asyncio.Future[None] | None = None

    def action_toggle_run(self) -> None:
        """Run, or pause."""
        if self._context.shown_state() is not None:
            self._context.ask(self._toggle_run)

    async def _toggle_run(self, state: AgentState) -> None:
        if state.run is RunState.RUNNING:
            await self._context.submit(cmd.Pause(agent=state.agent_id))
        elif state.intervention is not None:
            self._intervene()
        else:
            await self._context.submit(cmd.Run(agent=state.agent_id))

    def action_stop_panel(self) -> None:
        """Choose how much is to be stopped, and of whom."""
        if self._context.state is None:
            self._context.say("there is no agent yet", "error")
        elif self._context.no_dialog and not self._context.refused_in_past():
            self._context.push(StopDialog(self._stop_model()))

    def _stop_model(self) -> StopModel:
        engine, agent, states = self._context.engine, self._context.agent, self._context.live.states
        family = len(engine.family(agent)) if engine is not None else 1
        counts = {"agent": 1, "children": family, "all": len(states)}
        thaw = (
            "let frozen processes continue" if any(state.frozen for state in states) else "nothing is frozen"
        )
        grades = [
            (each.value, f"{at}", *words) for at, (each, words) in enumerate(stopping.GRADES.items(), 1)
        ]
        scopes = tuple((name, f"{words} ({counts[name]})") for name, words in stopping.STOP_SCOPES.items())
        return StopModel(agent, (*grades, (THAW, "0", THAW, thaw)), scopes, self._stop_lines())

    def _stop_lines(self) -> tuple[Fact, ...]:
        return tuple(
            Fact("", text, style)
            for receipt in self._receipts
            for style, text in stopping.receipt_rows(receipt)
        )

    def take_receipt(self, receipt: StopReceipt) -> None:
        """Show a receipt beside those of other agents; a new stop of an agent puts all before it away."""
        others = tuple(kept for kept in self._receipts if kept.agent != receipt.agent)
        anew = any(kept.agent == receipt.agent and kept.stop != receipt.stop for kept in self._receipts)
        self._show_receipts((receipt,) if anew else (*others, receipt))

    def drop_receipt(self, agent: str) -> None:
        """Put away the receipt of an agent that runs again."""
        kept = tuple(receipt for receipt in self._receipts if receipt.agent != agent)
        if kept != self._receipts:
            self._show_receipts(kept)

    def _show_receipts(self, receipts: tuple[StopReceipt, ...]) -> None:
        self._receipts = receipts
        hint = "X grades · esc or a click closes"
        self._context.pane(StopReceiptPane).show(self._stop_lines(), hint)
        if (panel := self._context.showing(StopDialog)) is not None:
            panel.show(self._stop_model())

    @property
    def shows_receipts(self) -> bool:
        """Whether there are receipts that were not put away."""
        return bool(self._receipts)

    def action_close_receipt(self) -> None:
        """Put the receipts away."""
        self._show_receipts(())

    def on_stop_receipt_pane_dismissed(self) -> None:
        """Put the receipts away."""
        self.action_close_receipt()

    def on_stop_dialog_stop(self, grade: str, scope: str) -> None:
        """Stop as was chosen, or let frozen processes continue."""
        command = {"agent": self._context.agent, "scope": scope}
        if grade == THAW:
            self._context.send(cmd.Thaw.model_validate(command))
        else:
            self._context.send(cmd.Stop.model_validate({**command, "grade": grade}))

    def action_interrupt(self) -> None:
        """Copy what is selected; where nothing is, pause; pressed twice, leave."""
        if self._copy_selection():
            return
        now = asyncio.get_running_loop().time()
        if now - self._last_interrupt < SECOND_PRESS_S:
            self.action_leave()
            return
        self._last_interrupt = now
        state = self._context.state
        if state is not None and state.run is RunState.RUNNING:
            self._context.ask(self._pause)
        else:
            self._context.say(AGAIN, "note")

    async def _pause(self, state: AgentState) -> None:
        receipt = await self._context.submit(cmd.Pause(agent=state.agent_id))
        self._context.say(f"{receipt.message} · {AGAIN}", "ok" if receipt.ok else "error")

    def _copy_selection(self) -> bool:
        focused = self._context.app.focused
        typed = focused.selected_text if isinstance(focused, Input | TextArea) else ""
        text = typed or self._context.app.screen.get_selected_text() or ""
        if text:
            self._context.copy(text, "selection")
            self._context.app.screen.clear_selection()
        return bool(text)

    @property
    def at_work(self) -> tuple[str, ...]:
        """Agents that run, act or have jobs."""
        return tuple(
            state.agent_id
            for state in self._context.live.states
            if state.acting or state.running_jobs or (state.run is RunState.RUNNING and state.has_work)
        )

    def action_leave(self) -> None:
        """Leave; ask first when that would cut an action or a background job off."""
        engine = self._context.engine
        if engine is not None and engine.link:
            self.leave(0)  # which ends the connection, and nothing else
            return
        if self._can_detach and (at_work := self.at_work):
            self._context.push(LeaveDialog(f"At work: {', '.join(at_work)}"), self._leave_as)
            return
        running = [state for state in self._context.live.states if state.acting]
        jobs = [job for state in self._context.live.states for job in state.running_jobs]
        if not running and jobs:
            self._ask_to_leave("Leave while background jobs run?", f"The {ending_jobs_text(jobs)}.")
            return
        if not running:
            self.leave(0)
            return
        names = ", ".join(state.agent_id for state in running)
        again = any(state.action and state.action.step for state in running)
        self._ask_to_leave(
            f"Leave while {names} runs an action?",
            "The action is cut off and recorded"
            + ("; it runs again when you let the agent go on." if again else "; it does not run again.")
            + (f" Besides, the {ending_jobs_text(jobs)}." if jobs else "")
            + (" Your shell ends, with all that runs in it." if any(s.shell_taken for s in running) else ""),
        )

    def _ask_to_leave(self, question: str, consequence: str) -> None:
        self._context.confirm(question, consequence, lambda: self.leave(0), yes="leave", no="stay")

    def _leave_as(self, choice: LeaveChoice | None) -> None:
        if choice == "detach":
            self._detach()
        elif choice == "stop":
            self.leave(0)

    @property
    def _can_detach(self) -> bool:
        server = self._context.server
        return self._context.detachable and server is not None and not server.trouble

    def _detach(self) -> None:
        """Take the screen down and keep the engine."""
        engine = self._context.engine
        if isinstance(engine, Engine):
            self._context.kept, self._context.engine = engine, None
            self._exit(0)

    def goes_on(self) -> bool:
        """Whether the engine goes on where the terminal is lost; then the screen is taken down."""
        wanted = self._context.settings.on_lost is OnLost.GO_ON
        if wanted and self._can_detach and self.at_work:
            self._detach()
        return self._context.kept is not None

    def leave_on(self, number: int) -> None:
        """Leave because a signal says so."""
        self.leave(128 + number)

    def leave(self, code: int) -> None:
        """Close the engine, and leave with this exit code; who asks again has asked already."""
        if self._leaving:
            return
        self._leaving = True
        self._context.run(self._close_and_exit(code), "leave")

    async def _close_and_exit(self, code: int) -> None:
        self._context.say("closing …", "note")
        await self._close()
        self._exit(code)

    async def _close(self) -> None:
        """Close the engine once; who asks again, as by a second signal, waits for the same end."""
        engine, self._context.engine = self._context.engine, None
        if engine is not None:
            self._engine_closed = asyncio.ensure_future(self._close_engine(engine))
        if self._engine_closed is not None:
            await asyncio.shield(self._engine_closed)

    async def _close_engine(self, engine: WorkspaceEngine) -> None:
        if self._context.server is not None:
            await self._context.server.close("the operator left the cockpit")
        await engine.close()

    async def on_unmount(self) -> None:
        """However the screen ended, the engine is closed in good order."""
        await self._close()
