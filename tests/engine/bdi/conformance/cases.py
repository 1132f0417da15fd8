"""The conformance cases as files hold them: a program or a body, and what Jason prints."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FRAME = """{beliefs}
!go.
+!go <- {body}.
-!go[error(E)] <- .print("failed ", E).
"""
"""Around a body; it says when the goal fails."""


@dataclass(frozen=True)
class Case:
    """One rule of the language."""

    name: str
    prints: list[str] = field(default_factory=list)
    """Under Jason; with several agents each line behind the agent's name, agent by agent."""
    body: str = ""
    beliefs: str = ""
    program: str = ""
    """The whole program, in place of body and beliefs."""
    agents: Mapping[str, str] = field(default_factory=dict)
    """Programs of the agents beside `ag`."""
    wait: int = 400
    """Milliseconds after which Jason is stopped."""
    alone: bool = False
    """Whether Jason runs it in a process of its own."""
    ours: list[str] | None = None
    """What is printed here, where that differs for a reason."""
    reason: str = ""

    @property
    def text(self) -> str:
        """The program of `ag`."""
        return self.program or FRAME.format(beliefs=self.beliefs, body=self.body)


def case_files() -> list[Path]:
    """The files, in order."""
    return sorted(Path(__file__).parent.glob("*.toml"))


def read_cases(path: Path) -> list[Case]:
    """The cases of one file."""
    return [Case(**row) for row in tomllib.loads(path.read_text("utf-8"))["case"]]
