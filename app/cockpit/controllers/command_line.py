"""The command bar: lines in, commands and views out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.links import CrewLink, ImproveLink
from app.cockpit.input_history import InputHistory, UnsentInputStore
from app.commands.command import Answer, Context, GrammarError, Request
from app.commands.command_runner import begin_request, context_of, preview_line, with_component
from app.commands.missions import AgentFaultError
from app.commands.registry import (
    complete,
    hint,
    is_improvement_request,
    needed_state,
    preview_asked,
    read_line,
)
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import campaigns as mm
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.value import dataclass, replace
from widgets.dialogs.preview import PreviewDialog, PreviewModel
from widgets.panes.command_bar import Completion, one_line

ANSWER_S = 2.0
"""How long keys wait for the answer to a line; one that is refused later is found in the history."""

Views = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class CockpitHost:
    """Carries one line out on the screen; see `app.commands.command.CommandHost`.

    Args:
        engine: the open workspace.
        context: against which the line was understood.
        bar: the part of the cockpit that it needs.
        views: shows, asks or selects, by name.
        links: the crew and Mastermind.
    """

    engine: WorkspaceEngine
    context: Context
    bar: CockpitContext
    views: Views
    links: Mapping[str, CrewLink | ImproveLink]

    @property
    def operator(self) -> str:
        """In whose name commands are sent."""
        return self.bar.settings.operator

    async def submit(self, command: cmd.Command) -> Answer:
        """Send a command; what follows from it is shown where it appears, and not waited for."""
        if isinstance(command, mm.StartJob) and command.verb == "agent_build":
            self.views["build"](command)
            return 0, {"ok": True, "message": ""}, ""
        if isinstance(command, mm.ForMastermind):
            receipt = await self.links["improve"].send(command)
        elif isinstance(command, cc.ForCrew):
            receipt = await self.links["crew"].send(command, self.views["resumed"](command))
        else:
            receipt = await self.bar.submit(command)
        answer = {**receipt.data, "ok": receipt.ok, "message": receipt.message, "event": receipt.event}
        return int(not receipt.ok), answer, ""

    def say(self, text: str) -> None:
        """Show a message in the bar."""
        self.bar.say(text, "note")

    def view(self, name: str, /, **arguments: object) -> bool:
        """Show what only a screen can show."""
        show = self.views.get(name)
        if show is None:
            return False
        show(**arguments)
        return True


class CommandLine:
    """Understands what is typed in the bar, and completes it.

    Args:
        context: the engine and the shown agent.
        views: shows, asks or selects what a line wants to see, by name.
        mastermind: sends commands about the system itself.
        crew: sends commands to the crew.
        history: the lines of before.
        unsent: keeps the half-typed line.
        themes: the names of the themes.
    """

    def __init__(
        self,
        context: CockpitContext,
        views: Views,
        *,
        mastermind: ImproveLink,
        crew: CrewLink,
        history: InputHistory,
        unsent: UnsentInputStore,
        themes: Callable[[], tuple[str, ...]],
    ) -> None:
        self._context = context
        self._views = views
        self._links: dict[str, CrewLink | ImproveLink] = {"improve": mastermind, "crew": crew}
        self._history = history
        self._unsent = unsent
        self._themes = themes

    # -------------------------------------------------------------- the bar

    def action_command(self) -> None:
        """Go to the command bar."""
        self._context.open_bar("")

    def on_command_bar_line(self, text: str) -> None:
        """Keep the half-typed line."""
        self._unsent.update(line=text)

    def on_command_bar_leave(self, text: str) -> None:
        """Give the keys back to the pane that had them; the line is kept with those of before."""
        self._history.add(text)
        self._context.leave_bar()

    def on_command_bar_entered(self, text: str) -> None:
        """Do what a line says, or show what it would do."""
        # Who is used to vi types the colon in the bar too.
        line = text.lstrip(": ")
        bare = preview_asked(line)
        self._history.add(bare if bare is not None else text)
        if bare is not None or is_improvement_request(line):
            self._preview(bare if bare is not None else line, text)
        else:
            self._enter_typed(text, line)

    def on_command_bar_preview(self, text: str) -> None:
        """Show what the line would do."""
        self._preview(text.lstrip(": "), text)

    def _enter_typed(self, text: str, line: str, component: str = "") -> None:
        """Do what the bar says; later keys wait for whether it is refused, and stays to be mended."""
        over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.enter(line, component, over.set_result)
        if over.done():
            self._leave_bar(text, good=over.result())
        else:
            self._context.settle(self._leave_after(text, over), "line")

    async def _leave_after(self, text: str, over: asyncio.Future[bool]) -> None:
        await asyncio.wait([over], timeout=ANSWER_S)
        self._leave_bar(text, good=not over.done() or over.result())

    def _leave_bar(self, text: str, *, good: bool) -> None:
        """Leave the bar, unless it has another line by now, or the refused one and nobody has gone on."""
        bar = self._context.bar
        if one_line(bar.input.value) == text and (good or self._context.app.key_queue.waits):
            bar.clear()
            self._context.leave_bar()

    def completions(self, text: str) -> list[Completion]:
        """What a half-typed line can become."""
        if not text.strip():
            return []
        if needed := needed_state(text):
            self._links[needed].open_soon()
        return [Completion(line, about) for line, about in complete(text, self.line_context())]

    def hint(self, text: str) -> str:
        """What a half-typed line still needs."""
        return hint(text, self._context.agent)

    def line_context(self) -> Context:
        """What lines are understood against."""
        if self._context.engine is None:
            return Context()
        context = context_of(self._context.engine, self._context.agent, self._context.state)
        for link in self._links.values():
            context = link.with_names(context)
        return replace(context, missions=lambda: self._context.missions, themes=self._themes())

    # -------------------------------------------------------------- carrying lines out

    def enter(
        self, line: str, component: str = "", over: Callable[[bool], object] = lambda _good: None
    ) -> None:
        """Do what a line says; an error of the program is said, and the cockpit continues.

        Args:
            line: as it was typed.
            component: the one that was chosen, where several could be meant.
            over: is told whether it was done, and not refused.
        """
        good: bool | None = False
        try:
            request = with_component(read_line(line, self.line_context()), component)
            engine = self._context.opened_engine()
            if engine is not None and not (
                request.changes and request.sends is None and self._context.refused_in_past()
            ):
                good = self._begin(self._host(engine, request.context), request, over)
        except GrammarError as error:
            self._context.say(str(error), "error")
        except Exception as error:  # noqa: BLE001 - whatever it is, the operator keeps the cockpit
            self._context.fault(error)
        if good is not None:
            over(good)

    def _host(self, engine: WorkspaceEngine, context: Context) -> CockpitHost:
        return CockpitHost(engine, context, self._context, self._views, self._links)

    def _begin(self, host: CockpitHost, request: Request, over: Callable[[bool], object]) -> bool | None:
        """Carry a request out: what only opens a view at once, all else beside the screen (None)."""
        begins, was = self._context.made_from
        if was and isinstance(request.sends, cmd.ChangeGoal) and request.line.split()[:2] == begins:
            request = replace(request, sends=request.sends.model_copy(update={"was": was}))
        self._context.made_from = ([], ())
        answer = begin_request(host, request)
        if isawaitable(answer):
            self._context.run(self._finish(request, answer, over), request.command.name)
            return None
        return answer is None or self._show(request, answer)

    async def _finish(
        self, request: Request, work: Awaitable[Answer | None], over: Callable[[bool], object]
    ) -> None:
        good = False
        try:
            if request.command.needs and request.sends is None:
                await self._links[request.command.needs].open()
            answer = await work
        except (GrammarError, AgentFaultError) as error:
            self._context.say(str(error), "error")
        except Exception as error:  # noqa: BLE001 - whatever it is, the operator keeps the cockpit
            self._context.fault(error)
        else:
            good = answer is None or self._show(request, answer)
        over(good)

    def _show(self, request: Request, answer: Answer) -> bool:
        """Show an answer: in the bar, and one of several lines to read; whether it is no refusal."""
        code, _, text = answer
        if not text:
            return code in (0, 3)
        good = "ok" if request.changes else "note"
        self._context.say(text.replace("\n", " · "), {0: good, 3: "note"}.get(code, "error"))
        if "\n" in text and code in (0, 3) and self._context.no_dialog:
            self._context.show_text(request.command.help.partition(";")[0].capitalize(), text)
        return code in (0, 3)

    def _preview(self, line: str, text: str) -> None:
        """Show what a line would do; enter in the dialog does it."""
        if self._context.engine is not None and self._context.no_dialog:
            self._context.open_later(self._show_preview(self._context.engine, line, text), "preview")

    async def _show_preview(self, engine: WorkspaceEngine, line: str, text: str) -> None:
        if needed := needed_state(line):
            await self._links[needed].open()
        preview = await preview_line(self._host(engine, self.line_context()), line)

        def answered(component: str | None) -> None:
            if component is None:
                self._context.open_bar(preview.line)
            else:
                self._enter_typed(text, preview.line, component)

        choices = tuple((choice.id, choice.rule) for choice in preview.choices)
        model = PreviewModel(preview.line, preview.does, preview.facts, choices, preview.wrong)
        self._context.push(PreviewDialog(model), answered)
