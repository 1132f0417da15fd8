"""What all of Mastermind's part of the cockpit stands on: it is opened late, asked without waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from app import faults
from app.cockpit.base import CockpitBase
from app.verb import Context
from engine.domain import mastermind_commands as mm
from engine.domain.mastermind import MastermindState

if TYPE_CHECKING:
    from engine.mastermind.mastermind import Mastermind


class MastermindBase(CockpitBase):
    """Mastermind, once somebody needs it."""

    _mastermind: Mastermind | None = None
    _components: tuple[tuple[str, str], ...] = ()
    _paths: tuple[str, ...] = ()
    _opening_mastermind = _mastermind_stale = False
    _own_jobs: frozenset[str] = frozenset()
    """Jobs that were begun here, whose answers are shown by themselves."""

    # -------------------------------------------------------------- what there is

    @property
    def _mastermind_state(self) -> MastermindState | None:
        return self._mastermind.state if self._mastermind is not None else None

    def _mastermind_soon(self) -> None:
        """Open Mastermind behind the screen, so that its names can be completed."""
        if self._engine is not None and self._mastermind is None and not self._opening_mastermind:
            self._opening_mastermind = True
            self.run_worker(self._open_mastermind(), name="mastermind", exit_on_error=False)

    async def _open_mastermind(self) -> Mastermind:
        """Mastermind, open.

        Raises:
            JournalError: its stream cannot be read.
        """
        assert self._engine is not None
        try:
            opened = await self._engine.mastermind()
        finally:
            self._opening_mastermind = False
        if self._mastermind is None:
            self._mastermind, self._mastermind_stale = opened, True
            self.run_worker(self._look_at_components(), name="components", exit_on_error=False)
        return opened

    async def _look_at_components(self) -> None:
        """What can be improved and where it lies, for completion."""
        if self._mastermind is None or self._engine is None:
            return
        from app.cockpit.sandbox_names import names_below

        self._paths = await names_below(self._engine.root)
        self._components = tuple((one.id, one.title) for one in await self._mastermind.components())

    def _with_mastermind(self, context: Context) -> Context:
        """What lines are understood against, with what Mastermind knows."""
        return replace(
            context, mastermind=self._mastermind_state, components=self._components, paths=self._paths
        )

    def _standing_of_mastermind(self) -> tuple[str, str]:
        """What the status line says of jobs and campaigns; nothing before there are any."""
        if self._mastermind is None:
            return "", ""
        from app.projection import mastermind_views as views

        return views.standing(self._mastermind.state)

    # -------------------------------------------------------------- commands

    def _ask_mastermind(self, command: mm.ForMastermind, then: Callable[[str], None] | None = None) -> None:
        """Send a command; the key or line that asked for it does not wait."""
        self.run_worker(self._asked_mastermind(command, then), name=command.do, exit_on_error=False)

    async def _asked_mastermind(
        self, command: mm.ForMastermind, then: Callable[[str], None] | None = None
    ) -> None:
        if self._engine is not None and not self._in_past:
            await self._open_mastermind()
        receipt = await self._submit(command)
        if receipt.ok and isinstance(command, mm.StartJob | mm.ApplyCandidate):
            self._own_jobs |= {str(receipt.data.get("job", ""))}
        if then is not None:
            then(receipt.message)

    def _read_text(self, title: str, text: str) -> None:
        from widgets.dialogs.told import TextDialog

        self.push_screen(TextDialog(title, text))

    # -------------------------------------------------------------- faults

    def _fault(self, error: BaseException) -> None:
        """Say that something broke, under the id by which the log has the rest; the cockpit goes on."""
        self._say(faults.told(self._workspace, error), "error")
