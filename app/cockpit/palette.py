"""The palette (ctrl+p): every key and every command, found by a few letters of its name."""

from __future__ import annotations

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider


class Commands(Provider):
    """The app's commands; unlike in Textual's own provider, brackets in their usage are no markup."""

    async def discover(self) -> Hits:
        """All of them."""
        for title, about, run, _ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(_shown(title, about), run, text=title)

    async def search(self, query: str) -> Hits:
        """Those whose names fit what is typed."""
        matcher = self.matcher(query)
        for title, about, run, _ in self.app.get_system_commands(self.screen):
            if (score := matcher.match(title)) > 0:
                yield Hit(score, _shown(title, about), run, text=title)


def _shown(title: str, about: str) -> Text:
    return Text.assemble((title, "bold"), f"\n{about}")
