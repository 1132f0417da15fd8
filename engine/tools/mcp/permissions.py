"""Permissions for the servers of a workspace's `mcp.json`: what is asked, and what the operator decided.

Each entry needs permission once, a changed entry of the same name needs it again, and a permission counts
only with the user's seal (`engine.core.user_key`).
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from enum import StrEnum
from pathlib import Path

from engine.core.agents import ServerDistrusted, ServerTrusted
from engine.core.events import payload_of
from engine.core.journal import WORKSPACE, Event, canonical
from engine.core.store.port import JournalStore
from engine.core.text import clean, clean_line
from engine.core.user_key import UserKey
from engine.tools.mcp.settings import ServerSettings
from engine.value import dataclass

WHAT_LIMIT = 2_000
"""Characters of a command line that an event keeps."""
ENTRY_SHOWN = 12
"""Characters of an entry's hash that are shown."""


class PermissionState(StrEnum):
    """Whether a server may start."""

    OWN = "own"
    """The user's own settings name it, so nothing is asked."""
    GIVEN = "given"
    ASKED = "asked"
    """Not decided yet."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """What was said last about a server's entry."""

    standing: PermissionState
    by: str = ""


def entry_of(settings: ServerSettings) -> str:
    """A hash of all that says what is started or reached; how long a call may take is no part of it."""
    facts = [
        *(settings.name, settings.command, list(settings.args), dict(settings.env), settings.cwd),
        *(settings.url, dict(settings.headers), settings.jail),
    ]
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def escape_invisible(text: str) -> str:
    r"""A text as it is, with what cannot be seen written out: an escape as `\x1b`, a line's end as `\n`."""
    shown = (char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    return clean("".join(shown), limit=sys.maxsize)


def command_line(settings: ServerSettings) -> str:
    """The whole command line as a shell would need it, or the address; safe to show."""
    if settings.url:
        return escape_invisible(settings.url)
    return escape_invisible(shlex.join((settings.command, *settings.args)))


def permission_question(settings: ServerSettings, workspace: Path) -> tuple[tuple[str, str], ...]:
    """What an operator has to know before they permit it: labels and texts, all of it, safe to show.

    Args:
        settings: the server's entry.
        workspace: whose `mcp.json` names it.
    """
    facts = [("server", settings.name)]
    if settings.url:
        facts.append(("connects to", command_line(settings)))
        facts.append(("headers", ", ".join(settings.headers) or "none"))
    else:
        place = "the sandbox" if settings.jail else str(workspace)
        facts.append(("starts", command_line(settings)))
        facts.append(("in", escape_invisible(str(Path(place) / settings.cwd))))
        facts.append(("environment", ", ".join(settings.env) or "nothing of its own"))
        held = "by the sandbox's jail" if settings.jail else "by nothing: it may do whatever you may"
        facts.append(("held", held))
    return (*facts, ("entry", entry_of(settings)[:ENTRY_SHOWN]))


class ServerPermissions:
    """What the operator said about the servers of one workspace.

    Args:
        workspace: whose `mcp.json` names them.
        home: the user's own directory, outside of any workspace; None, or one that cannot be written, lets
            permissions count until this program ends.
    """

    def __init__(self, workspace: Path, home: Path | None) -> None:
        self._key = UserKey(workspace, home)
        self._said: dict[tuple[str, str], PermissionDecision] = {}

    @property
    def lasting(self) -> bool:
        """Whether a permission that is given now counts in later sessions, as far as is known."""
        return self._key.lasting

    async def restore(self, store: JournalStore) -> None:
        """Read what was said in earlier sessions."""
        trusted = await store.last(sys.maxsize, WORKSPACE, kind=ServerTrusted.kind)
        distrusted = await store.last(sys.maxsize, WORKSPACE, kind=ServerDistrusted.kind)
        for event in sorted((*trusted, *distrusted), key=lambda entry: entry.version):
            self.take(event)

    def take(self, event: Event) -> None:
        """Take in a decision; a permission counts only with this directory's seal. Reads the key once."""
        payload = payload_of(event)
        if not isinstance(payload, ServerTrusted | ServerDistrusted):
            return
        by = clean_line(event.actor.removeprefix("operator:"), limit=40)
        if isinstance(payload, ServerDistrusted):
            self._said[payload.server, payload.entry] = PermissionDecision(PermissionState.REFUSED, by)
        elif self._key.bears(payload.seal, payload.server, payload.entry):
            self._said[payload.server, payload.entry] = PermissionDecision(PermissionState.GIVEN, by)

    def word(self, settings: ServerSettings) -> PermissionDecision:
        """What was said last about this entry."""
        if settings.own:
            return PermissionDecision(PermissionState.OWN)
        return self._said.get((settings.name, entry_of(settings)), PermissionDecision(PermissionState.ASKED))

    def hint(self, settings: ServerSettings) -> str:
        """Why an entry may not start, and how permission is given, on a line; empty where it may."""
        word = self.word(settings)
        if word.standing in (PermissionState.OWN, PermissionState.GIVEN):
            return ""
        refused = word.standing is PermissionState.REFUSED
        who = f"{word.by or 'the operator'} let it not start; " if refused else ""
        return f"{who}{permission_hint(settings.name)}"

    def given(self, settings: ServerSettings) -> ServerTrusted:
        """The event by which an entry is permitted; makes the key where there is none yet. Blocking."""
        entry = entry_of(settings)
        what = clean_line(command_line(settings), limit=WHAT_LIMIT)
        seal = self._key.seal(settings.name, entry)
        return ServerTrusted(server=settings.name, entry=entry, what=what, seal=seal)


def permission_hint(name: str) -> str:
    """How permission is given, on a line."""
    return f"mcp_trust {name} in the cockpit's bar, or pilothouse do 'mcp_trust {name}', lets it start"
