"""An agent's time: looking at the past, comparing, going back, forking and undoing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from app.cockpit.context import CockpitContext, in_background
from app.cockpit.controllers.agents import Agents
from app.cockpit.controllers.layout import Layout
from app.commands.comparison import PastError, compare_words, read_ref
from app.commands.rewind import (
    adopted_parts,
    preview_rewind,
    rewind_command,
    rewind_parts,
    rewind_title,
    run_fork,
)
from app.commands.time import ForkRequest, RewindRequest, read_fork, read_rewind
from app.projection import agent_views as past_views
from app.projection.projector import Projector
from engine.agent.steering.rewind_preview import RewindError, RewindPreview
from engine.agent.steering.undo import UndoError
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core.journal import JournalError
from engine.core.streams import Mark, StreamHistory, mark_at_offset
from widgets.base.dialog import BoxDialog
from widgets.base.facts import SignedPart
from widgets.dialogs.preview import YES, ComparisonDialog, RewindDialog, RewindModel
from widgets.panes.timeline import Timeline

EARLIER = 600
"""Events before the place whose output and thoughts the panes show."""

SLICE = 32
"""Events brought in between two turns of the loop."""

PREPARED = 8
"""Agents whose past is made ready before anybody looks."""

PREPARE_AFTER_S = 2.0
"""How long after the first screen it is made ready to look back."""

Move = Callable[[Sequence[Mark], int | None], int | None]
"""From the marks and the place, None for now, to another place."""


class TimeTravel:
    """Looking at the past, where nothing can be done, and changing time, with a preview first."""

    def __init__(self, context: CockpitContext, agents: Agents, layout: Layout) -> None:
        self._context = context
        self._agents = agents
        self._layout = layout
        self._pasts: dict[str, StreamHistory] = {}
        """The histories of agents that were looked back on."""
        self._moves: tuple[Move, ...] = ()
        """Where the operator wants to go and was not taken yet."""
        self.moving = False
        """Whether a worker goes there; it continues until nothing more is wanted."""

    def action_earlier(self) -> None:
        """Back by a mark."""
        self._travel(partial(mark_at_offset, by=-1))

    def action_later(self) -> None:
        """Forward by a mark; behind the last one is now."""
        if self._context.in_past or self.moving:
            self._travel(partial(mark_at_offset, by=1))
        else:
            self._context.say("this is now; [ goes back", "note")

    def action_first(self) -> None:
        """The first mark."""
        self._travel(lambda marks, at: marks[0].version if marks else at)

    def action_now(self) -> None:
        """Back to what happens."""
        if self.moving:
            self._travel(lambda _marks, _at: None)
        elif self._context.in_past:
            self._layout.to_now()
        else:
            self._context.say("this is now", "note")

    def on_timeline_place(self, mark: int) -> None:
        """Go to the mark that was clicked."""
        self._travel(lambda marks, at: marks[mark].version if mark < len(marks) else at)

    def go_to_place(self, place: str) -> None:
        """Go to the event that a word of the command bar names."""
        try:
            version = read_ref(place, self._context.agent, self._context.past_at)
        except PastError as error:
            self._context.say(str(error), "error")
            return
        self._travel(lambda _marks, _at: version)

    def on_search_dialog_go(self, ref: str) -> None:
        """Leave the search for the event that was chosen, in its agent's past."""
        agent, _, version = ref.rpartition(":")
        if isinstance(self._context.app.screen, BoxDialog):
            self._context.app.screen.dismiss(None)
        self._go_to(agent, int(version))

    def _go_to(self, agent: str, version: int) -> None:
        """Look at an agent as it was at an event."""
        if agent != self._context.agent:
            self._layout.to_now()
            if not self._context.projector.select(agent):
                self._context.say(
                    f"agent {agent} is not here any more; why {agent}:{version} tells of the event", "note"
                )
                return
        self._travel(lambda _marks, _at: version)

    def _travel(self, move: Move) -> None:
        """Go somewhere; keys that come while the panes are made are taken together."""
        agent = self._context.agent
        if (engine := self._context.engine_of(agent)) is None:
            return
        self._moves = (*self._moves, move)
        if not self.moving:
            self.moving = True
            self._context.settle(self._go(engine, agent), "past")

    async def _go(self, engine: WorkspaceEngine, agent: str) -> None:
        try:
            while self._moves and agent == self._context.agent:
                past = self._past_of(engine, agent)
                marks = await past.marks()
                # What happened last looks as now does, so there is nothing to go back to.
                reach = [*marks][:-1] if marks and marks[-1].version >= await past.head() else marks
                moves, self._moves = self._moves, ()
                at = self._context.past_at
                for move in moves:
                    at = move(reach, at)
                if at is not None:
                    await self._look_back(engine, past, marks, at)
                elif self._context.in_past:
                    self._layout.to_now()
                elif not marks:
                    self._context.say(f"{agent} has no past yet: give it a goal", "note")
        except JournalError as error:
            self._context.say(str(error), "error")
        finally:
            self.moving, self._moves = False, ()

    async def prepare(self, engine: WorkspaceEngine) -> None:
        """Once all else stands, make ready to look back: the shown agent first, of many not all."""
        await asyncio.sleep(PREPARE_AFTER_S)
        try:
            for agent in sorted(engine.agents, key=lambda agent: agent != self._context.agent)[:PREPARED]:
                await self._past_of(engine, agent).prepare()
        except JournalError:
            return  # looking back reports it

    def _past_of(self, engine: WorkspaceEngine, agent: str) -> StreamHistory:
        if agent not in self._pasts:
            self._pasts[agent] = engine.past(agent)
        return self._pasts[agent]

    async def _look_back(
        self, engine: WorkspaceEngine, past: StreamHistory, marks: Sequence[Mark], at: int
    ) -> None:
        """Show every pane as it was after an event."""
        event = await past.event(at)
        if event is None:
            self._context.say(
                f"{past.stream}:{at} has not happened yet; the newest event is {await past.head()}", "error"
            )
            return
        before = max(at - EARLIER, 0)
        shown = Projector(self._context.settings.operator)
        for other in self._context.live.states:
            if other.agent_id == past.stream:
                shown.add(past.stream, await past.state(before), [])
                continue
            beside = self._past_of(engine, other.agent_id)
            version = await beside.version_at(event.seq)
            if version:
                shown.add(other.agent_id, await beside.state(version), [])
        if not shown.select(past.stream):
            shown.add(past.stream, await past.state(before), [])
            shown.select(past.stream)
        for number, earlier in enumerate(await past.events(before + 1, at), 1):
            shown.take(earlier)
            if not number % SLICE:
                await asyncio.sleep(0)
        if self._context.agent != past.stream:
            return  # the operator turned to another agent meanwhile
        self._layout.show_past(shown, event)
        self._context.pane(Timeline).show(past_views.timeline(marks, event, await past.head()))

    @in_background("compare", PastError, JournalError, opens=True)
    async def compare(self, points: str) -> None:
        """Compare two points that words of the command bar name."""
        agent = self._context.agent
        if (engine := self._context.engine_of(agent)) is None:
            return
        past = self._past_of(engine, agent)
        comparison = await compare_words(engine, past, points, self._context.past_at)
        if self._context.no_dialog:
            parts = [SignedPart(part.title, part.lines, part.note) for part in comparison.parts]
            self._context.push(ComparisonDialog(comparison.title, parts))

    def action_rewind(self) -> None:
        """In the past: go back there. Else type where to."""
        if self._context.in_past:
            self.rewind(read_rewind("here"))
        else:
            self._context.open_bar("rewind ")

    def rewind(self, request: RewindRequest) -> None:
        """Show what a rewind of the shown agent would do, and do it when the operator agrees."""
        self._preview(self._context.agent, request, self._context.past_at)

    @in_background("rewind", RewindError, JournalError, KeyError, opens=True)
    async def _preview(self, agent: str, asked: RewindRequest, here: int | None) -> None:
        if (engine := self._context.engine_of(agent, present=True)) is None:
            return
        self._context.say("reading what a rewind would do …", "note")
        preview = await preview_rewind(engine, agent, asked, here)
        if self._context.no_dialog:
            self._context.say("", "note")
            self._open_preview(preview, asked, here)

    def _open_preview(self, preview: RewindPreview, asked: RewindRequest, here: int | None) -> None:
        parts = tuple(SignedPart(part.title, part.lines, part.note) for part in rewind_parts(preview))
        refused = f"files cannot be brought back: {preview.trouble}" if preview.trouble else ""
        model = RewindModel(rewind_title(preview), parts, "" if asked.paths else asked.scope, refused=refused)

        def decided(result: str | None) -> None:
            if result == YES:
                self._layout.to_now()
                self._context.send(rewind_command(preview))
            elif result:
                self._preview(preview.agent, replace(asked, scope=result), here)

        self._context.push(RewindDialog(model), decided)

    def action_fork(self) -> None:
        """In the past: let a new agent begin there. Else type where from."""
        if self._context.in_past:
            self.fork(read_fork("here"))
        else:
            self._context.open_bar("fork ")

    def fork(self, request: ForkRequest) -> None:
        """Let new agents begin at a point of the shown agent's time."""
        self._fork(self._context.agent, request, self._context.past_at)

    @in_background("fork", RewindError, JournalError)
    async def _fork(self, agent: str, asked: ForkRequest, here: int | None) -> None:
        """Make the forks, and look at the first of them."""
        if (engine := self._context.engine_of(agent, present=True)) is None:
            return
        made, receipt = await run_fork(engine, agent, asked, self._context.settings.operator, here)
        if made:
            self._layout.to_now()
            self._agents.select_soon(made[0])
        several = f"{', '.join(made)} run; outcomes shows their results" if asked.times else ""
        line = several if several and receipt.ok else receipt.message
        self._context.say(line, "ok" if receipt.ok else "error")

    @in_background("adopt", RewindError, JournalError, KeyError, opens=True)
    async def adopt(self, fork: str) -> None:
        """Show what taking over a fork's files would do, and do it when the operator agrees."""
        agent = self._context.agent
        if self._context.engine is None or self._context.refused_in_past():
            return
        parts = adopted_parts(await self._context.engine.time_travel.adopt_preview(agent, fork))
        if not self._context.no_dialog:
            return
        shown = tuple(SignedPart(part.title, part.lines, part.note) for part in parts)
        model = RewindModel(f"{agent} takes over the files of {fork}", shown, "", yes="take over")

        def decided(result: str | None) -> None:
            if result == YES:
                self._context.send(cmd.AdoptFork(agent=agent, fork=fork))

        self._context.push(RewindDialog(model), decided)

    def undo(self, *, again: bool = False) -> None:
        """Show what undoes or redoes the operator's last change, and do it when they agree."""
        if not self._context.refused_in_past() and self._context.no_dialog:
            self._offer_undo(self._context.agent, again)

    @in_background("undo", UndoError, JournalError, KeyError, opens=True)
    async def _offer_undo(self, agent: str, again: bool) -> None:
        if (engine := self._context.engine_of(agent, present=True)) is None:
            return
        offer = await engine.time_travel.undo_offer(agent, again=again)
        if not self._context.no_dialog:
            return
        if isinstance(offer.command, cmd.Rewind):
            back = offer.command
            self._preview(agent, RewindRequest(str(back.to), back.scope, back.paths), None)
            return
        verb = "Redo" if again else "Undo"
        back_again = "undo" if again else "redo"
        whose = (
            f"Of {offer.of}, given by {offer.by}. It is recorded as your command; {back_again} takes it back."
        )
        question, command = f"{verb}: {offer.words}", offer.as_command(agent)
        self._context.confirm(
            question, whose, lambda: self._context.send(command), yes=verb.lower(), no="leave it"
        )
