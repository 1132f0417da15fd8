"""What every command has in common, and its receipt."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from engine.model import LateModel

AGENT_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "for to that which with a an the and or but so as if when where how why what who "
        "create creating make making",
    )
)
"""Words that are no agent's id: a sentence was typed where an id was meant."""
RESERVED_IDS = frozenset({"workspace", "mastermind", "all"})
GOAL_LIMIT = 8_000
NOT_TOLD = frozenset({"do", "agent", "submission", "was"})
"""Fields of commands that are none of their arguments."""


def check_agent_id(value: str) -> str:
    """The id, if an agent may have it.

    Raises:
        ValueError: says what is wrong and what an id looks like.
    """
    if value.lower() in STOP_WORDS or value in RESERVED_IDS:
        raise ValueError(f"'{value}' cannot be an agent's id; choose a name such as builder-2")
    if not AGENT_ID.fullmatch(value):
        raise ValueError(
            f"'{value[:40]}' is no agent id: a lower-case letter, then up to 31 of a-z 0-9 _ -, "
            "such as builder-2"
        )
    return value


AgentId = Annotated[str, AfterValidator(check_agent_id)]
GoalText = Annotated[str, Field(min_length=1, max_length=GOAL_LIMIT)]


class Command(BaseModel, metaclass=LateModel):
    """What an operator asks; `class DropGoal(Command, do="drop_goal")` registers one."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    do: str = ""
    agent: str = ""
    submission: str = Field(default="", max_length=80, exclude_if=lambda given: not given)
    """An id that its sender gave it: what comes again under it is answered, and not carried out again."""

    def __init_subclass__(cls, *, do: str = "", **config: Any) -> None:
        super().__init_subclass__(**config)
        if do:
            # A field of its own, so that `do` says of which kind a command is when one is read.
            cls.__annotations__ = {"do": Literal[do], **cls.__annotations__}
            cls.do = do


def made_from() -> Any:
    """The field of an edit for the lines that its editor showed before; it stands nowhere while it is empty.

    Where they are others by then, the edit is refused, so that nobody overwrites what they have not seen.
    """
    return Field(default=(), max_length=1_000, exclude_if=lambda lines: not lines)


NOT_RECORDED = "not recorded yet"
"""How the message of a receipt begins whose command the journal may still take."""


class Receipt(BaseModel, metaclass=LateModel):
    """The result of a command; when it is returned, what it says is durable."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    ok: bool
    message: str
    event: str = ""
    """Reference of the event that recorded the command."""
    data: dict[str, Any] = {}
