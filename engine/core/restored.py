"""What the operator brought back into an agent's prompts: texts that were cut or left out of them."""

from __future__ import annotations

from pydantic import Field

from engine.core.command import Command
from engine.core.journal import Payload
from engine.value import dataclass

RESTORED_LIMIT = 60_000
"""Characters of one text; of a longer one its beginning and its end are kept."""
RESTORED_KEPT = 8


@dataclass(frozen=True, slots=True)
class RestoredText:
    """A text that is in each prompt until the operator lets it go."""

    what: str
    """The action whose answer it is, or the belief whose value."""
    about: str
    """What that is, on a line."""
    text: str
    tokens: int
    """About how many it takes of each prompt."""
    event: str = ""


class ContextRestored(Payload, kind="context.restored"):
    """A text is in each prompt from now on."""

    what: str
    about: str
    text: str
    tokens: int


class ContextReleased(Payload, kind="context.released"):
    """A text that was brought back is in no prompt any more."""

    what: str


class RestoreContext(Command, do="restore_context"):
    """Have what was cut or left out of a prompt in the next ones."""

    what: str = Field(min_length=1, max_length=200)
    """An action, or the key of a belief."""
    about: str = ""
    text: str = ""
    """The text; the engine reads it from the journal, whatever was given."""
    tokens: int = 0


class ReleaseContext(Command, do="release_context"):
    """Let a text that was brought back go."""

    what: str = Field(min_length=1, max_length=200)
