"""What an automatic reviewer is asked and may answer, and who it is, as the operator's settings say."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from engine.core.approvals import Answer, Call
from engine.core.reasons import NONE, Reason
from engine.core.thinking import ModelCalled
from engine.value import dataclass

TIMEOUT_S, LONGEST_S = 30.0, 600.0
SETTINGS = ("reviewer", "reviewer_jail", "reviewer_timeout_s")
"""What of `[approvals]` is about the reviewer, and no policy."""


@dataclass(frozen=True, slots=True)
class ReviewerChoice:
    """Who reviews, as the operator's settings say."""

    command: tuple[str, ...] = ()
    """A program with its arguments; empty for the model that thinks."""
    jail: bool = False
    """Whether the program runs in the jail of the workspace, and not as the operator's own."""
    timeout_s: float = TIMEOUT_S

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> ReviewerChoice | None:
        """What `[approvals]` says of a reviewer; None where it names none.

        Raises:
            ValueError: it cannot be read; the message says what to write.
        """
        who, jail = given.get("reviewer"), given.get("reviewer_jail", False)
        seconds = given.get("reviewer_timeout_s", TIMEOUT_S)
        if who is None:
            return None
        wrong = isinstance(seconds, bool) or not isinstance(seconds, int | float)
        if wrong or not 0 < seconds <= LONGEST_S or not isinstance(jail, bool):
            raise ValueError(
                f"reviewer_timeout_s is over 0 and up to {LONGEST_S:g}, reviewer_jail true or false"
            )
        if who == "model":
            return cls(timeout_s=float(seconds))
        kind, _, line = who.partition(" ") if isinstance(who, str) else ("", "", "")
        words = tuple(shlex.split(line))
        whole = words and ("/" not in words[0] or words[0].startswith(("/", "~/")))
        if kind != "command" or not whole:
            raise ValueError(
                'reviewer is "model", or "command PROGRAM ARGUMENTS" with a name or a whole path'
            )
        return cls(words, jail, float(seconds))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reviewer answers; with trouble it has no opinion."""

    answer: Answer = Answer.ASK
    reason: str = ""
    trouble: Reason = NONE


Record = Callable[[ModelCalled], None]


class Reviewer(Protocol):
    """Looks at a call that the operator would be asked about."""

    @property
    def name(self) -> str:
        """As it is shown: `command check-it`, `model NAME`."""

    async def review(self, request: Mapping[str, Any], record: Record) -> Verdict:
        """Its verdict; never an exception, and never without end. Calls of a model are recorded."""


def request_of(call: Call, agent: str, action: str, goal: str, why: str) -> dict[str, Any]:
    """What a reviewer is given of a call."""
    about = {"agent": agent, "action": action, "goal_id": call.goal, "goal": goal, "why": why}
    facts = {"line": call.line, "paths": call.paths, "hosts": call.hosts, "client": call.client}
    undo = {"undo": call.undo.value, "changes": call.changes}
    return {**about, "tool": call.tool, "command": call.command, "args": call.args, **facts, **undo}
