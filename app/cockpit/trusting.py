"""Asks whether a folder is trusted, before it is opened and anything of it counts."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path

from app.cockpit.terminal_app import TerminalApp
from app.commands.folder_items import Item, items_of
from app.commands.settings import Settings, untrusted_line
from engine.core.trust import FolderTrust, TrustError
from widgets.base.facts import Section
from widgets.dialogs.questions import TrustChoice, TrustDialog


class TrustApp(TerminalApp[TrustChoice]):
    """Shows the question, and gives the answer."""

    def __init__(self, trust: FolderTrust, said: str = "") -> None:
        super().__init__()
        items = [_section(item) for item in items_of(trust) if item.how != "trusted"]
        self.dialog = TrustDialog(str(trust.workspace.resolve()), items, said)

    def on_mount(self) -> None:
        """Ask; a signal leaves."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, partial(self.exit, "leave"))
        self.push_screen(self.dialog, self.exit)


def _section(item: Item) -> Section:
    return Section(f"{item.path} ({item.how})", "\n".join(item.would), "text")


def trusted_settings(workspace: Path, settings: Settings, theme: str | None) -> Settings | None:
    """The settings after the user was asked where there is something to ask; None where they leave."""
    said = ""
    while (trust := settings.trust) is not None and untrusted_line(trust):
        choice = TrustApp(trust, said).run()
        if choice == "restricted":
            break
        if choice != "trust":
            return None
        try:
            # Exactly what was shown: what changed meanwhile is shown first.
            settings = Settings.load(workspace, theme=theme, trust=trust.digest)
        except TrustError as error:
            settings, said = Settings.load(workspace, theme=theme), str(error)
    return settings
