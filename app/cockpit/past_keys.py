"""Looking at the past: every pane as it was at an event, while agents go on and nothing can be done to them.

What is looked at is a projection of its own, made of the state before some events and those events. The
projection of what happens goes on beside it, so that coming back is at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual import on

from app.cockpit.layout import Layout
from app.projection import Projector
from engine.journal.errors import JournalError
from engine.journal.past import Mark, Past, along
from widgets.dialogs.box import BoxDialog
from widgets.timeline import Timeline

if TYPE_CHECKING:
    from app.comparing import Comparison
    from engine.engine import Engine
    from widgets.dialogs.search import SearchDialog

EARLIER = 600
"""Events before the place whose output and thoughts the panes show."""
SLICE = 32
"""Events brought in between two turns of the loop."""
PREPARED = 8
"""Agents whose past is made ready before anybody looks."""
PREPARE_AFTER_S = 2.0
"""How long after the first screen it is made ready to look back."""
FAR = 10
"""Marks that the shifted keys go."""

Move = Callable[[Sequence[Mark], int | None], int | None]
"""From the marks and the place, None for now, to another place."""


class PastKeys(Layout):
    """Going back and forward in an agent's time, and comparing two points of it."""

    _moves: tuple[Move, ...] = ()
    """Where the operator wants to go and was not taken yet."""
    _moving = False
    """Whether a worker goes there; it goes on until nothing more is wanted."""

    # -------------------------------------------------------------- keys

    def action_earlier(self, marks: int = 1) -> None:
        """Back by so many marks."""
        self._travel(partial(along, by=-marks))

    def action_much_earlier(self) -> None:
        """Back by ten marks."""
        self.action_earlier(FAR)

    def action_later(self, marks: int = 1) -> None:
        """Forward by so many marks; behind the last one is now."""
        if self._in_past or self._moving:
            self._travel(partial(along, by=marks))
        else:
            self._say("this is now; [ goes back", "note")

    def action_much_later(self) -> None:
        """Forward by ten marks."""
        self.action_later(FAR)

    def action_first(self) -> None:
        """The first mark."""
        self._travel(lambda marks, at: marks[0].version if marks else at)

    def action_now(self) -> None:
        """Back to what happens."""
        if self._moving:
            self._travel(lambda _marks, _at: None)
        elif self._in_past:
            self._to_now()
        else:
            self._say("this is now", "note")

    @on(Timeline.PlaceChosen)
    def _place_chosen(self, event: Timeline.PlaceChosen) -> None:
        self._travel(lambda marks, at: marks[event.mark].version if event.mark < len(marks) else at)

    def _past_entered(self, text: str) -> None:
        """Go to the event that a word of the command bar names."""
        from app.comparing import PastError, read_ref

        try:
            version = read_ref(text, self._agent, self._past_at)
        except PastError as error:
            self._say(str(error), "error")
            return
        self._travel(lambda _marks, _at: version)

    # The name of the handler says which dialog's message it takes, so that it need not be imported before.

    def on_search_dialog_go_requested(self, event: SearchDialog.GoRequested) -> None:
        """Leave the search for the event that was chosen, in its agent's past."""
        agent, _, version = event.found.ref.rpartition(":")
        if isinstance(self.screen, BoxDialog):
            self.screen.dismiss(None)
        self._go_to(agent, int(version))

    def _go_to(self, agent: str, version: int) -> None:
        """Look at an agent as it was at an event."""
        if agent != self._agent:
            self._to_now()
            if not self._projector.select(agent):
                self._say(
                    f"agent {agent} is not here any more; why {agent}:{version} tells of the event", "note"
                )
                return
        self._travel(lambda _marks, _at: version)

    # -------------------------------------------------------------- going there

    def _travel(self, move: Move) -> None:
        """Go somewhere; keys that come while the panes are made are taken together."""
        if self._engine is None or not self._agent:
            self._say("there is no agent yet", "error")
            return
        self._moves = (*self._moves, move)
        if not self._moving:
            self._moving = True
            self.run_worker(self._go(self._engine, self._agent), name="past", exit_on_error=False)

    async def _go(self, engine: Engine, agent: str) -> None:
        try:
            while self._moves and agent == self._agent:
                past = self._past_of(engine, agent)
                marks = await past.marks()
                # What happened last looks as now does, so there is nothing to go back to.
                reach = [*marks][:-1] if marks and marks[-1].version >= await past.head() else marks
                moves, self._moves = self._moves, ()
                at = self._past_at
                for move in moves:
                    at = move(reach, at)
                if at is not None:
                    await self._look_back(engine, past, marks, at)
                elif self._in_past:
                    self._to_now()
                elif not marks:
                    self._say(f"{agent} has no past yet: give it a goal", "note")
        except JournalError as error:
            self._say(str(error), "error")
        finally:
            self._moving, self._moves = False, ()

    async def _prepare_past(self, engine: Engine) -> None:
        """Once all else stands, make ready to look back: the shown agent first, of many not all."""
        await asyncio.sleep(PREPARE_AFTER_S)
        try:
            for agent in sorted(engine.agents, key=lambda one: one != self._agent)[:PREPARED]:
                await self._past_of(engine, agent).prepare()
        except JournalError:
            return  # whoever looks back is told of it

    def _past_of(self, engine: Engine, agent: str) -> Past:
        if agent not in self._pasts:
            self._pasts[agent] = engine.past(agent)
        return self._pasts[agent]

    async def _look_back(self, engine: Engine, past: Past, marks: Sequence[Mark], at: int) -> None:
        """Show every pane as it was after an event."""
        from app.projection import past_views

        event = await past.event(at)
        if event is None:
            self._say(
                f"{past.stream}:{at} has not happened yet; the newest event is {await past.head()}", "error"
            )
            return
        before = max(at - EARLIER, 0)
        shown = Projector()
        for other in self._live.states:
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
        if self._agent != past.stream:
            return  # the operator turned to another agent meanwhile
        self._show_past(shown, event)
        self.query_one(Timeline).show(past_views.timeline(marks, event, await past.head()))

    # -------------------------------------------------------------- comparing

    def _compare_entered(self, text: str) -> None:
        """Compare two points that words of the command bar name."""
        if self._engine is None or not self._agent:
            self._say("there is no agent yet", "error")
            return
        self.run_worker(self._carry_out(self._engine, self._agent, text), name="compare", exit_on_error=False)

    async def _carry_out(self, engine: Engine, agent: str, text: str) -> None:
        from app.comparing import PastError, compare_words

        try:
            found = await compare_words(engine, self._past_of(engine, agent), text, self._past_at)
        except (PastError, JournalError) as error:
            self._say(str(error), "error")
            return
        if len(self.screen_stack) == 1:
            self._show_comparison(found)

    def _show_comparison(self, found: Comparison) -> None:
        from widgets.dialogs.comparison import ComparisonDialog, ComparisonModel
        from widgets.dialogs.signed_parts import SignedPart

        parts = (
            SignedPart(
                title,
                tuple((one.sign, f"{one.what}: {one.text}" if one.text else one.what) for one in changes),
                note,
            )
            for title, changes, note in found.sections
        )
        self.push_screen(ComparisonDialog(ComparisonModel(found.title, tuple(parts))))
