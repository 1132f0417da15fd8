"""What can go wrong with memory, each with a message that says what was wrong and what to do."""

from __future__ import annotations

# Named after what happened, as the journal's are.
# ruff: noqa: N818


class MemoryFault(Exception):
    """Something about memory that the caller should know."""


class MemoryInputError(MemoryFault):
    """A request holds something that memory does not take; nothing was written."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter
        """The parameter that was wrong, empty when several were."""


class MemoryNotFound(MemoryInputError):
    """There is no such thing, or it belongs to another workflow."""


class MemoryRefused(MemoryFault):
    """What was asked is not allowed as things stand, such as ending an action twice."""


class MemoryUnavailable(MemoryFault):
    """The database of memories could not be read or written just now; the journal is not affected."""
