"""The envelope of an event, its place in the hash chain, and what can go wrong with a journal.

`seq` is the order in the workspace and is given at commit; it is not part of the hash, so that streams
running side by side replay to the same heads. Each error's message is one line fit for the operator.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from engine.model import LateModel

# These errors are named after what happened to the journal, which reads better in a message than `…Error`.
# ruff: noqa: N818


class JournalError(Exception):
    """Something about the journal or its blobs that the operator should know."""


class JournalMissing(JournalError):
    """There is no journal here, and none was to be created."""


class JournalLocked(JournalError):
    """Another engine writes to this workspace."""

    def __init__(self, path: Path | str, pid: str, since: str) -> None:
        super().__init__(
            f"Process {pid} has had this workspace open since {since} ({path}), and this needs it alone: "
            "leave the cockpit there, or end what serves it with: pilothouse serve --stop"
        )
        self.pid = pid
        """Process id of the writer as it wrote it down, or `unknown`."""
        self.since = since
        """When the writer opened the workspace, ISO 8601 UTC, or `an unknown time`."""


class JournalTooNew(JournalError):
    """A newer Pilothouse wrote this journal."""

    def __init__(self, path: Path | str, matches: int, known: int) -> None:
        super().__init__(
            f"{path} has schema version {matches} and this Pilothouse knows versions up to {known}: "
            "open it with a newer Pilothouse; nothing was changed."
        )
        self.found = matches
        self.known = known


class JournalCorrupt(JournalError):
    """The file is not a journal, or is damaged."""

    def __init__(self, path: Path | str, reason: str) -> None:
        reason = " ".join(reason.split())
        super().__init__(
            f"{path} cannot be read as a journal ({reason}); nothing was changed. "
            "What can be done about it says: pilothouse sessions repair"
        )
        self.path = path
        self.reason = reason


class JournalUnsound(JournalCorrupt):
    """The journal is not what was written: nothing is built upon it without the operator's word."""

    def __init__(self, path: Path, event: str, problem: str, sound: int) -> None:
        problem = " ".join(problem.split())
        workspace = path.parent.parent
        JournalError.__init__(
            self,
            f"{path} is not sound at {event or 'its beginning'} ({problem}); nothing was changed. Look at "
            "it: pilothouse sessions verify, sessions show. Then either go back to its "
            f"{sound:,} sound events: pilothouse sessions repair --restore; or go on with all that can "
            "be read, and answer for the break: pilothouse sessions repair --accept-break. The old file is "
            f"kept either way. (--workspace {workspace})",
        )
        self.path = path
        self.reason = problem
        self.event = event
        """The first event that is not sound; empty where there is no journal where one was."""
        self.sound = sound
        """How many events before it are sound."""


class JournalReadError(JournalError):
    """The journal could not be read just now."""


class JournalConflict(JournalError):
    """Events do not follow the head of their stream; nothing of their batch was written."""


class JournalRefused(JournalError):
    """An event holds something that the store cannot keep; nothing of its batch was written."""


class JournalWriteError(JournalError):
    """The disk refused; nothing of the batch was written and the same events can be committed again."""


class JournalClosed(JournalError):
    """The journal is closed or closing."""


class BlobError(JournalError):
    """Something about a blob."""


class BlobMissing(BlobError):
    """No blob has this digest."""


class BlobCorrupt(BlobError):
    """The content of a blob does not match its digest."""


class BlobWriteError(BlobError):
    """A blob could not be written; nothing was left behind."""


WORKSPACE = "workspace"
"""Stream of what concerns no single agent; a stream beside it is named after it and a word."""
MEMORY = f"{WORKSPACE}@memory"
"""Stream of what agents remember."""
MASTERMIND = f"{WORKSPACE}@mastermind"
"""Stream of what Mastermind did."""
CREW = f"{WORKSPACE}@crew"
"""Stream of the agents that hand work to each other."""
GENESIS = ""
"""Hash before the first event of a stream."""


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
"""Made once: `json.dumps` with these options would make an encoder for every call."""


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no white space, UTF-8 unescaped, no NaN.

    Lone surrogates (file names that are not UTF-8) become JSON escapes, so that every text can be stored.
    """
    text = _encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


class Event(NamedTuple):
    """One thing that happened, as it is stored; a named tuple, because events are made by the thousand."""

    stream: str
    """The agent (or `workspace`, `mastermind`) it belongs to; a branch of a stream is `name@branch`."""
    version: int
    """Its place in the stream, from 1."""
    at: str
    """Recorded clock, ISO 8601 UTC."""
    tick: int
    """Tick of the agent, 0 outside of any."""
    actor: str
    """`agent`, `operator:<name>`, `background:<job>`, `world`, `system`."""
    causes: tuple[str, ...]
    """References (`stream:version`) of the events this one follows from."""
    kind: str
    """Name of the payload's type, such as `action.started`."""
    body: str
    """The payload as canonical JSON."""
    hash: str
    """SHA-256 over the previous hash of the stream and all of the above, in hex."""
    seq: int = 0
    """Total order in the workspace, from 1; 0 until it is committed."""

    @property
    def ref(self) -> str:
        """How other events name this one."""
        return f"{self.stream}:{self.version}"


def chain_hash(
    previous: str,
    stream: str,
    version: int,
    at: str,
    tick: int,
    actor: str,
    causes: tuple[str, ...],
    kind: str,
    body: str,
) -> str:
    """The hash of an event that follows one with hash `previous`.

    It depends on the stored text of the payload, so verification needs no knowledge of payload types.
    """
    head = canonical([previous, stream, version, at, tick, actor, causes, kind])
    return hashlib.sha256(f"{head}\n{body}".encode()).hexdigest()


def of_agent(stream: str) -> bool:
    """Whether a stream is an agent's, and not the workspace's or memory's."""
    return stream != WORKSPACE and "@" not in stream


class Payload(BaseModel, metaclass=LateModel):
    """What an event says; each subclass is one kind: `class GoalMoved(Payload, kind="goal.moved")`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    kind: ClassVar[str] = ""
    external: ClassVar[bool] = False
    """True for what came from outside the agent's own cycle; replay feeds these in."""

    def __init_subclass__(cls, *, kind: str, external: bool = False, **config: Any) -> None:
        super().__init_subclass__(**config)
        cls.kind, cls.external = kind, external

    def body(self) -> str:
        """The payload as canonical JSON."""
        return canonical(self.model_dump())
