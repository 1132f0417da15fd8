"""The envelope of an event: who, when, why, and its place in the hash chain.

Source: ARCHITECTURE.md, events. `seq` is the order in the workspace and is given at commit;
it is not part of the hash, so that streams running side by side replay to the same heads.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

WORKSPACE = "workspace"
"""Stream of what concerns no single agent; a stream beside it is named after it and a word."""
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
