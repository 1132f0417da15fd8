"""The tour: ten steps for a new user, in a line above the command bar.

Which steps are done is folded from the events that follow and from what is on the screen, so no key can break
it and none has to be pressed in order: the line shows the first step that is not done. What was done is kept
beside the user's other state, for all workspaces, and the tour goes on where it was left.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import suppress

from textual.content import Content
from textual.widgets import Static

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.run import RunControl
from app.cockpit.keymap import KEYS, shown_keys
from app.commands.user import state_home
from engine.core.journal import Event
from engine.core.user_key import write_own
from engine.value import dataclass
from widgets.panes.plan import PlanPane
from widgets.terminal.pane import TerminalPane

FILE, OFF = "tour.json", "PILOTHOUSE_NO_TOUR"
GIVE_WORK = "no step is left: {command} and type: goal create a directory called tour"
"""What is said where a step needs a plan and there is none."""
NOT_HERE = "this step needs an agent without a program: {tour_next} passes it"
OF_GOALS = ("look", "edit", "break", "goal")
"""What an agent with a program cannot do: its plans and its goals are those of the program."""
BACK = " all is where it was, and paused · ? shows all keys, F1 the guide · esc closes"


@dataclass(frozen=True, slots=True)
class TourStep:
    """One thing to try."""

    name: str
    says: str
    """`{ACTION}` stands for the key of an action."""
    kind: str = ""
    """The event of the operator that shows that it was done."""
    does: str = ""
    """What its command has to be, where the kind is not enough."""
    screen: str = ""
    """The dialog whose opening shows that it was done."""
    planned: bool = False
    """Whether it needs a step that has not run yet."""


STEPS = (
    TourStep("step", "{step} runs one action and no more: press it", "agent.step_granted", planned=True),
    TourStep("look", "↑ and ↓ move through the plan: look at another step", planned=True),
    TourStep("edit", "{edit} opens the selected step: change it, ctrl+s saves", "plan.revised", planned=True),
    TourStep("break", "{breakpoint} on a later step holds the agent there", "breakpoint.set", planned=True),
    TourStep("run", "{toggle_run} runs the agent, and pauses it", "agent.resumed", planned=True),
    TourStep("stop", "{stop} stops it with all its processes, and reports it", "agent.stopped"),
    TourStep("goal", "{command} and type: goal list the files", "goal.adopted"),
    TourStep("undo", "{undo} undoes your last change", "command.received", "undo"),
    TourStep("why", "{why} says why the selected step is there", screen="WhyDialog"),
    TourStep("back", "{leave} leaves; start again, and all is where it was"),
)


class TourRecord:
    """What of the tour was done, in a file of the user's."""

    def __init__(self) -> None:
        """Read it; blocking."""
        self._path = state_home() / FILE
        self.done: set[str] = set()
        self.off = False
        self.known = False
        """Whether the tour was offered before."""
        with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
            kept = json.loads(self._path.read_bytes()[:4_096])
            self.done, self.off = {str(name) for name in kept["done"]}, kept["off"] is True
            self.known = True

    @property
    def finished(self) -> bool:
        """Whether nothing is left."""
        return self.next is None

    @property
    def next(self) -> TourStep | None:
        """The first step that was not done."""
        return next((step for step in STEPS if step.name not in self.done), None)

    def write(self) -> None:
        """Keep it; a disk that refuses costs only the memory of it. Blocking."""
        done = sorted(self.done)
        with suppress(OSError):
            write_own(self._path, json.dumps({"done": done, "off": self.off}).encode())


class Tour:
    """Shows the tour's line, and sees what of it is done.

    Args:
        context: the engine and the screen.
        run: closes what escape closes first.
    """

    def __init__(self, context: CockpitContext, run: RunControl) -> None:
        self._context, self._run = context, run
        self._record = TourRecord()
        self._line: Static | None = None
        self._writing = asyncio.Lock()
        self._since = 0
        """The place of the last event before the tour."""
        context.event_watchers.append(self._take)
        context.frame_hooks.append(self._look)

    # -------------------------------------------------------------- beginning and leaving

    async def begin_of_itself(self, *, new: bool) -> None:
        """Begin or go on as the program starts, where nobody has said that it is not wanted.

        Args:
            new: whether the workspace is, where one may begin who has never seen the tour.
        """
        record = self._record
        unwanted = os.environ.get(OFF) or not self._context.settings.tour
        unwanted = unwanted or (new and record.next is STEPS[-1])  # which tells of an older workspace
        if unwanted or record.off or record.next is None or not (record.known or new):
            return
        await self._begin()
        if record.next is STEPS[-1] and self._line is not None:
            record.done.add(record.next.name)
            self._line.update(Content.assemble((" tour done ", "reverse"), BACK))
            self._keep()

    async def _begin(self) -> None:
        if self._context.engine is None or self._line is not None:
            return
        self._since = await self._context.engine.head()
        self._line = Static(id="tour", markup=False)
        await self._context.app.screen_stack[0].mount(self._line, before="#timeline")
        self._keep()

    def show(self, how: str = "") -> None:
        """Begin, pass over a step, or leave the tour."""
        if how == "off":
            self._leave()
        elif how == "next" and self._record.next is not None:
            self._did(self._record.next.name)
        else:
            if self._record.finished:
                self._record.done.clear()
            self._record.off = False
            self._context.run(self._begin(), "tour")

    def action_tour_next(self) -> None:
        """Pass over a step."""
        self.show("next" if self._line is not None else "")

    def action_close_receipt(self) -> None:
        """What escape does: close the stop report, else leave the tour."""
        if self._line is not None and not self._run.shows_receipts:
            self._leave()
        else:
            self._run.action_close_receipt()

    def _leave(self) -> None:
        self._record.off = True
        self._end("the tour is off · : tour resumes it")

    def _end(self, says: str) -> None:
        if self._line is not None:
            self._line.remove()
            self._line = None
        self._keep()
        self._context.say(says, "note")

    def _keep(self) -> None:
        self._context.run(self._write(), "keep the tour")

    async def _write(self) -> None:
        async with self._writing:
            await asyncio.to_thread(self._record.write)

    # -------------------------------------------------------------- what was done

    def _take(self, event: Event) -> None:
        if self._line is None or event.seq <= self._since or not event.actor.startswith("operator"):
            return
        for step in STEPS:
            if step.kind == event.kind and step.name not in self._record.done and _fits(step, event):
                self._did(step.name)

    def _look(self) -> None:
        """See what is on the screen, and say what is next."""
        step = self._record.next
        if self._line is None or step is None:
            return
        screen = type(self._context.app.screen).__name__
        if opened := [each.name for each in STEPS if each.screen == screen]:
            self._did(*opened)
        if self._has_work and self._context.pane(PlanPane).looks_elsewhere:
            self._did("look")
        self._show()

    def _did(self, *names: str) -> None:
        if not self._record.done.issuperset(names):
            self._record.done.update(names)
            self._keep()
            self._show()
            if self._record.finished:
                self._end("the tour is over · ? shows all keys, F1 the guide")

    def _show(self) -> None:
        step = self._record.next
        if self._line is None or step is None:
            return
        says = step.says if self._has_work or not step.planned else GIVE_WORK
        if self._context.reasoner is not None and (step.name in OF_GOALS or says == GIVE_WORK):
            says = NOT_HERE
        self._line.display = not isinstance(self._context.app.screen_stack[0].focused, TerminalPane)
        text = Content.assemble(
            (f" tour {STEPS.index(step) + 1}/{len(STEPS)} ", "reverse"),
            f" {says.format_map(self._key_names)} · esc ends it",
        )
        if text != self._line.content:
            self._line.update(text)

    @property
    def _has_work(self) -> bool:
        state = self._context.state
        return state is not None and (state.has_work if state.reasons else state.step is not None)

    @property
    def _key_names(self) -> Mapping[str, str]:
        keys = self._context.keys
        return {key.action: shown_keys(key.bound_to(keys).keys).split()[0] for key in KEYS}


def _fits(step: TourStep, event: Event) -> bool:
    return not step.does or json.loads(event.body)["command"]["do"] == step.does
