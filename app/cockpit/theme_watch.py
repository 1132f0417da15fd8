"""The operator's own themes, live while their files change."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.cockpit.base import CockpitBase
from app.settings import Settings
from engine.library import Mission
from engine.library.watching import Fingerprint, fingerprint, watch_directory
from engine.sandbox.policy import Tier
from themes import DEFAULT_THEME, load_themes


class ThemeWatch(CockpitBase):
    """Registers themes at the start, and again whenever one of the operator's files changes."""

    _read_themes: Fingerprint = ()
    """What the operator's files looked like when they were read last."""

    def __init__(
        self,
        workspace: Path,
        *,
        mission: Mission | None = None,
        settings: Settings,
        accept: Tier | None = None,
    ) -> None:
        super().__init__(workspace, mission=mission, settings=settings, accept=accept)
        # Before the panes are there: a theme that is taken later styles each of them a second time.
        self._problems += [*self._register_themes(), *self._choose_theme()]

    def _register_themes(self) -> list[str]:
        """Register the shipped and the operator's themes; answers what is wrong with them. Blocking."""
        self._read_themes = fingerprint(self._settings.themes_directory)
        themes, problems = load_themes(self._settings.themes_directory)
        for theme in themes.values():
            self.register_theme(theme)
        return problems

    def _choose_theme(self) -> list[str]:
        """Take the theme that was asked for; answers why it could not be taken."""
        wanted = self._settings.theme or DEFAULT_THEME
        known = wanted in self.available_themes
        self.theme = wanted if known else DEFAULT_THEME
        return [] if known else [f"there is no theme '{wanted}'"]

    async def _watch_themes(self) -> None:
        """Keep the operator's themes live until the cockpit closes; what changed before is found at once."""
        directory = self._settings.themes_directory

        async def look() -> None:
            if await asyncio.to_thread(fingerprint, directory) != self._read_themes:
                self._themes_changed()

        await watch_directory(directory, look, asyncio.Event())

    def _themes_changed(self) -> None:
        problems = self._register_themes()
        current = self.theme
        # A theme that is set again under its own name is not applied again, so it is left and retaken.
        with self.batch_update():
            self.theme = DEFAULT_THEME if current != DEFAULT_THEME else "textual-dark"
            self.theme = current if current in self.available_themes else DEFAULT_THEME
        self._say(problems[0] if problems else "themes read again", "error" if problems else "ok")
