"""Who holds the controls of an agent, where several operators work with one engine; commands and events."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from engine.core.command import Command
from engine.core.journal import Payload
from engine.value import dataclass

OPERATOR_NAME = r"[A-Za-z0-9_.-]{1,32}"
"""What an operator may be called."""
PROGRAMS = frozenset({"cli", "fleet", "headless", "mcp", "mission", "operator", "serve"})
"""In whose names programs send commands that no person gave; they hold no controls."""


def operator_of(actor: str) -> str:
    """The operator who is an event's actor; empty where a program or an agent is."""
    kind, _, name = actor.partition(":")
    return name if kind == "operator" and name not in PROGRAMS else ""


@dataclass(frozen=True, slots=True)
class Control:
    """Who commands an agent; it stays so over sessions until it is given up, given on or taken."""

    holder: str = ""
    """The operator's name; empty for nobody, and then any operator commands it."""
    since: str = ""
    """Since when, ISO 8601 UTC."""
    asked: tuple[tuple[str, str], ...] = ()
    """Who asked the holder for the controls, and in which event, oldest first."""

    def bars(self, actor: str) -> bool:
        """Whether somebody else than this actor holds the controls."""
        return bool(self.holder) and actor != f"operator:{self.holder}"


class ForControl(Command):
    """What concerns the controls of an agent, and not the agent itself."""


class AskControl(ForControl, do="ask_control"):
    """Ask who holds the controls for them."""


class TakeControl(ForControl, do="take_control"):
    """Take the controls, whoever holds them."""


class GiveControl(ForControl, do="give_control"):
    """Give the controls to another operator."""

    to: Annotated[str, Field(pattern=f"^{OPERATOR_NAME}$")]


class FreeControl(ForControl, do="free_control"):
    """Give the controls up, so that nobody holds them."""


class ControlTaken(Payload, kind="control.taken", external=True):
    """An operator took the controls, or has them because others were connected when they gave a command."""

    holder: str
    before: str = ""
    """Who held them; empty for nobody."""


class ControlAsked(Payload, kind="control.asked", external=True):
    """An operator asked who holds the controls for them."""

    by: str
    holder: str


class ControlGiven(Payload, kind="control.given", external=True):
    """The holder gave the controls to somebody else, or up."""

    holder: str = ""
    """Who has them now; empty for nobody."""
    before: str
