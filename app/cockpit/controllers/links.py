"""The crew and Mastermind as the cockpit sees them: opened late, and asked without making a key wait.

The names beneath the workspace, for completion, are looked up off the loop and answered from memory.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from app.cockpit.context import CockpitContext, in_background
from app.commands.command import Context
from app.projection.projector import Pane
from engine.core import campaigns as mm
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.improvement import MastermindState
from engine.core.journal import Event

if TYPE_CHECKING:
    from engine.crew.crew import Crew
    from engine.crew.state import CrewState, Handoff
    from engine.improve.mastermind import Mastermind


async def paths_in(root: Path) -> tuple[str, ...]:
    """Directories (ending in `/`) and files in a directory; hidden ones not. Blocking work off the loop."""
    entries = await asyncio.to_thread(lambda: [(path.name, path.is_dir()) for path in root.iterdir()])
    return tuple(sorted(name + "/" * inside for name, inside in entries if not name.startswith(".")))


Part = TypeVar("Part")
State = TypeVar("State")


class Link(Generic[Part, State]):
    """A part of the engine, opened when it is first needed."""

    name = ""

    def __init__(self, context: CockpitContext) -> None:
        self._context = context
        self.part: Part | None = None
        """None while it is not open."""
        self._opening = False

    @property
    @abstractmethod
    def state(self) -> State | None:
        """What it knows; None while it is not open."""

    @abstractmethod
    async def _open_part(self) -> Part:
        """It, opened by the engine."""

    @abstractmethod
    def _first_opened(self, part: Part) -> None:
        """Called once it is open."""

    def open_soon(self) -> None:
        """Open it behind the screen, so that its names can be completed."""
        if self._context.engine is not None and self.part is None and not self._opening:
            self._opening = True
            self._context.run(self.open(), self.name)

    async def open(self) -> Part:
        """It, open.

        Raises:
            JournalError: its stream cannot be read.
        """
        try:
            part = await self._open_part()
        finally:
            self._opening = False
        if self.part is None:
            self.part = part
            self._first_opened(part)
        return part

    def show(self, show: Callable[[State], None]) -> None:
        """Show something of its state on the cockpit's own screen: at once, or when it is open."""
        if self._context.opened_engine() is None or not self._context.no_dialog:
            return
        if self.state is not None:
            show(self.state)
        else:
            self._context.open_later(self._show(show), self.name)

    async def _show(self, show: Callable[[State], None]) -> None:
        await self.open()
        if self._context.no_dialog and self.state is not None:
            show(self.state)

    def ask(self, command: cmd.Command, then: Callable[[str], None] | None = None) -> None:
        """Send a command; the key or line that asked for it does not wait."""
        self._context.run(self.send(command, then), command.do)

    async def send(self, command: cmd.Command, then: Callable[[str], None] | None = None) -> cmd.Receipt:
        """Send a command, and say how it was taken."""
        if self._context.engine is not None and not self._context.in_past:
            await self.open()
        receipt = await self._context.submit(command)
        if receipt.ok:
            self._done(command, receipt)
        if then is not None:
            then(receipt.message)
        return receipt

    def _done(self, command: cmd.Command, receipt: cmd.Receipt) -> None:
        """Called after a command was carried out."""


class CrewLink(Link["Crew", "CrewState"]):
    """The crew, opened when it is first needed."""

    name = "crew"

    def __init__(self, context: CockpitContext, open_guided: Callable[[str], None]) -> None:
        super().__init__(context)
        self._open_guided = open_guided
        self.request_watchers: list[Callable[[], None]] = []
        """Called when an agent of the crew asked the operator, or asks no more."""
        self.change_watchers: list[Callable[[], None]] = []
        """Called after each event of the crew."""
        self._over: tuple[int, int] | None = None
        """How many runs were over at which version of the crew's state."""

    def runs_over(self) -> int | None:
        """How many runs of handoffs are over, ever; None while the crew is not open, and in the past."""
        state = self.state
        if state is None or self._context.in_past:
            return None
        if self._over is None or self._over[0] != state.version:
            over = sum(
                not handoff.open and bool(handoff.run) and not handoff.proof
                for handoff in state.handoffs.values()
            )
            self._over = (state.version, over)
        return self._over[1]

    def handoff(self, name: str) -> Handoff | None:
        """A handoff; None while the crew is not open, and where there is none of that name."""
        return self.state.handoffs.get(name) if self.state is not None else None

    @property
    def needs(self) -> tuple[int, Callable[[], int]] | None:
        """The version of the crew's state, and what counts its requests; None while it is not open."""
        crew = self.part
        return (crew.state.version, lambda: len(crew.needs)) if crew is not None else None

    @property
    def state(self) -> CrewState | None:
        """What the crew knows; None while it is not open."""
        return self.part.state if self.part is not None else None

    async def _open_part(self) -> Crew:
        assert self._context.engine is not None
        return await self._context.engine.crew()

    def _first_opened(self, part: Crew) -> None:
        self._context.live.dirty.add(Pane.GOALS)
        if count := len(part.needs):
            waits = "1 request waits" if count == 1 else f"{count} requests wait"
            self._context.say(f"{waits} for you: F", "note")

    def with_names(self, context: Context) -> Context:
        """What lines are understood against, with what the crew knows."""
        return replace(context, crew=self.state)

    def take(self, event: Event) -> None:
        """Take an event of the crew's stream in."""
        self.open_soon()
        payload = ev.payload_of(event)
        if payload.kind in ("crew.human_opened", "crew.human_closed"):
            self.announce_change()
        if payload.kind == "crew.human_opened":
            self._context.app.call_later(self._announce_request, dict(getattr(payload, "request", {})))
        elif payload.kind == "crew.handoff_ended":
            self._context.live.dirty.add(Pane.GOALS)
            self._context.app.call_later(self._announce_result, str(getattr(payload, "handoff", "")))
        for watcher in self.change_watchers:
            watcher()

    def announce_change(self) -> None:
        """Tell an open inbox that other things may wait than before."""
        for watcher in self.request_watchers:
            watcher()

    def _announce_request(self, request: dict[str, object]) -> None:
        """Say which agent asks; a guided session opens by itself."""
        self._say_request(request)
        if str(request.get("reason_code")).startswith("guided"):
            self._open_guided(str(request.get("handoff_id") or ""))

    def _say_request(self, request: dict[str, object]) -> None:
        if request.get("reason_code") == "conversation":
            if question := str(request.get("question") or ""):
                self._context.say(f"{request.get('agent_id')}: {question} · say TEXT answers", "asks")
            return
        if request.get("blocking"):
            self._context.app.bell()
        title = f"{request.get('agent_id')} asks ({request.get('id')}): {request.get('title')}"
        self._context.say(f"{title} · F answers it", "asks" if request.get("blocking") else "note")

    def _announce_result(self, name: str) -> None:
        """Say how a handoff of the operator's ended."""
        handoff = self.handoff(name)
        if handoff is None or handoff.context.parent_id or handoff.group or handoff.result is None:
            return
        result = handoff.result
        cancelled = handoff.state.value == "cancelled"
        code = "" if cancelled else f"{result.error_code or ''} "
        why = f": {code}{result.error}" if result.error else ""
        line = f"{handoff.id} {handoff.agent} {handoff.state.words}{why} · H shows it"
        self._context.say(line, "ok" if result.success else "note" if cancelled else "error")


class ImproveLink(Link["Mastermind", MastermindState]):
    """Mastermind, opened when it is first needed."""

    name = "mastermind"

    def __init__(
        self,
        context: CockpitContext,
        job_over: Callable[[str], None],
        status_of: Callable[[MastermindState], tuple[str, str]],
    ) -> None:
        super().__init__(context)
        self._job_over = job_over
        self._status_of = status_of
        self._components: tuple[tuple[str, str], ...] = ()
        self._paths: tuple[str, ...] = ()
        self.stale = False
        """Whether something has happened that open dialogs do not show yet."""
        self.own_jobs: frozenset[str] = frozenset()
        """Jobs that were begun here, whose answers are shown by themselves."""

    @property
    def state(self) -> MastermindState | None:
        """What Mastermind knows; None while it is not open."""
        return self.part.state if self.part is not None else None

    async def _open_part(self) -> Mastermind:
        assert self._context.engine is not None
        return await self._context.engine.mastermind()

    def _first_opened(self, part: Mastermind) -> None:
        self.stale = True
        self._context.run(self.look_at_components(), "components")

    def take(self, event: Event) -> None:
        """Take an event of Mastermind's stream in."""
        self.stale = True
        self.open_soon()
        payload = ev.payload_of(event)
        if payload.kind == "mastermind.job_ended":
            self._context.app.call_later(self._job_over, str(getattr(payload, "job", "")))

    async def look_at_components(self) -> None:
        """What can be improved and where it lies, for completion."""
        if self.part is None or self._context.engine is None:
            return
        self._paths = await paths_in(self._context.engine.root)
        self._components = tuple(
            (component.id, component.title) for component in await self.part.components()
        )

    @in_background("settle")
    async def settle(self, items: Iterable[str], approve: bool, then: Callable[[str], None]) -> None:
        """Approve or reject items of the backlog, one after the other."""
        submit = self._context.submit
        then("; ".join([(await submit(mm.SettleItem(item=each, approve=approve))).message for each in items]))

    def with_names(self, context: Context) -> Context:
        """What lines are understood against, with what Mastermind knows."""
        return replace(context, mastermind=self.state, components=self._components, paths=self._paths)

    def status(self) -> tuple[str, str]:
        """What the status line says of jobs and campaigns; nothing before there are any."""
        return self._status_of(self.state) if self.state is not None else ("", "")

    def _done(self, command: cmd.Command, receipt: cmd.Receipt) -> None:
        if isinstance(command, mm.StartJob | mm.ApplyCandidate):
            self.own_jobs |= {str(receipt.data.get("job", ""))}
