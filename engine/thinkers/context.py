"""Context: what `it`, `the file` and `the project` mean, from clause to clause."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from engine.domain.action import SandboxSession
from engine.library.parameters import ParameterType, Reference
from engine.library.words import Word


@dataclass(frozen=True, slots=True)
class Mention:
    """Something that was named."""

    kind: str
    """`file`, `directory`, `project` or `venv`."""
    path: str
    """Relative to the sandbox root, `/`-separated."""


class Context:
    """What a plan has named so far, and the directory it will be in."""

    def __init__(self, session: SandboxSession) -> None:
        self.cwd = session.cwd
        self._mentions: list[Mention] = []
        if self.cwd != ".":
            self._mentions.append(Mention("project", self.cwd))
        if session.venv:
            self._mentions.append(Mention("venv", session.venv))

    @property
    def project(self) -> str:
        """The name of the project the agent is in, `project` when there is none."""
        path = next((m.path for m in reversed(self._mentions) if m.kind == "project"), self.cwd)
        return posixpath.basename(path).strip(".") or "project"

    def name(self, kind: str, path: str) -> None:
        """Note that a clause named something, by a path relative to the directory the plan is in."""
        self._mentions.append(Mention(kind, self._from_root(path)))

    def enter(self, path: str) -> None:
        """Note that the plan changes its directory."""
        self.cwd = self._from_root(path)

    def resolve(self, reference: Reference, kind: ParameterType) -> str | None:
        """The last thing named that a reference fits, relative to the directory the plan is in."""
        for mention in reversed(self._mentions):
            path = posixpath.relpath(mention.path, self.cwd)
            if mention.kind in reference.kinds and kind.accepts(Word(path, path, 0, 0, quoted=True)):
                return path
        return None

    def _from_root(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.cwd, path))
