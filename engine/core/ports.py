"""Ports: the only ways in for what is not determined.

Their answers are recorded, so that a session replays with no model, no network and no clock.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Protocol

from engine.core.actions import SandboxSession, ToolResult
from engine.value import dataclass


class Clock(Protocol):
    """Time of day, durations and waiting."""

    def now(self) -> str:
        """The current time as ISO 8601 in UTC with microseconds and a `Z`."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary point, never going back."""

    async def sleep(self, seconds: float) -> None:
        """Wait; may be cancelled."""


class Ids(Protocol):
    """Names that must be unique beyond one agent (sessions, workspaces)."""

    def new(self, prefix: str) -> str:
        """A new id that starts with the prefix."""


class Permits(Protocol):
    """Leave to ask a model, where all who work on handoffs together may only ask so often at once."""

    def held(self, handoff: str) -> AbstractAsyncContextManager[None]:
        """Waits for leave and holds it inside; nobody who waits for another handoff holds any.

        Args:
            handoff: for which handoff the model is asked.
        """


class Randomness(Protocol):
    """Random numbers; seeded from the journal so that replay draws the same."""

    def uniform(self, low: float, high: float) -> float:
        """A number between low and high."""


_BEGAN_NS = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def time_of_day() -> float:
    """Seconds since 1970: the machine's clock when the program began, and what has passed since.

    A clock that is set while agents run (by hand, by a time server) must not use up budgets, or let waits and
    beliefs end years too early or an hour too late.
    """
    return (_BEGAN_NS + time.clock_gettime_ns(time.CLOCK_BOOTTIME)) / 1e9


class SystemClock:
    """The machine's clock."""

    def now(self) -> str:
        """The current UTC time."""
        return datetime.fromtimestamp(time_of_day(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic(self) -> float:
        """The loop's clock."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait in the event loop."""
        await asyncio.sleep(seconds)


class HastyClock(SystemClock):
    """The machine's clock; waits are fifty times shorter, as delays teach nothing in a scratch workspace."""

    async def sleep(self, seconds: float) -> None:
        """Wait a little."""
        await super().sleep(seconds / 50)


class RandomIds:
    """Ids of 40 random bits in lower-case base 32, short enough to type."""

    _alphabet = "abcdefghijkmnpqrstuvwxyz23456789"

    def new(self, prefix: str) -> str:
        """`prefix-xxxxxxxx`."""
        return prefix + "-" + "".join(secrets.choice(self._alphabet) for _ in range(8))


@dataclass(slots=True)
class Ports:
    """The set of ports an engine is opened with."""

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    seed: Callable[[], int] = field(default=lambda: secrets.randbits(32))
    """Draws the seed of a session's randomness; the seed itself is recorded."""

    def randomness(self, seed: int) -> Randomness:
        """A generator for one session."""
        return random.Random(seed)


OutputSink = Callable[[str, str], None]
"""Receives `(stream, text)` while a tool runs; stream is `stdout` or `stderr`."""


class SessionObserver(Protocol):
    """Records what happens in a sandbox session beside the answers of its calls."""

    def job_started(self, job: str, command: str, action: str) -> None:
        """A program continues in the background."""

    def job_output(self, job: str, stream: str, text: str, skipped: int) -> None:
        """A piece of what a job prints, and how many characters before it were not kept."""

    def job_ended(self, job: str, ended: str, code: int | None, message: str) -> None:
        """A job and everything it started has ended."""

    def typed(self, action: str, text: str | None) -> None:
        """The operator typed at the shell; None where the terminal's echo was off."""

    def resized(self, action: str, rows: int, columns: int) -> None:
        """The operator's terminal has another size."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """Everything a tool may know about a call besides its arguments."""

    session: SandboxSession
    actor: str = "agent"
    """`agent`, `operator:<name>` or `background:<job>`."""
    output: OutputSink = field(default=lambda _stream, _text: None)
    timeout_s: float | None = None
    """Wall-clock limit asked for by the caller; the tool's own limit also holds."""
    beliefs: Mapping[str, Any] = field(default_factory=dict)
    """Belief values of the caller, by key."""
    world: Mapping[str, Any] = field(default_factory=dict)
    """The small world that the caller lives in; empty where it lives in none."""
    agent: str = ""
    action: str = ""
    """The action's id."""
    goal: str = ""
    workflow: str = ""
    """The workflow that the caller began for the goal at hand; empty where it is its root goal's own."""
    """The goal that the call serves; for an operator's the one that the agent pursues. Empty for none."""
    event: str = ""
    """Reference of the event by which the action started; empty where none is recorded."""
    observer: SessionObserver | None = None
    """None where nothing records a session: jobs then live unrecorded, and no shell can be taken."""

    granted: bool = False
    """Whether the operator was asked for exactly this call, or had allowed it, before it started."""
    own: str = ""
    """SHA-256 in hex of what the caller itself wrote last to the file that it writes; empty for nothing."""

    @property
    def by_operator(self) -> bool:
        """True when a person asked for the call."""
        return self.actor.startswith("operator")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool command."""

    name: str
    description: str
    type: str = "string"
    """JSON type: string, integer, number, boolean, array, object."""
    required: bool = True
    default: Any = None
    kind: str = "text"
    """What a string means: `text` (never corrected), `path`, `name`, `shell`."""
    exists: str = ""
    """What a path must lead to for the command to be of any use: `file`, `directory` or `any`; empty where
    something new may come to be there. Only such a path can be wrong for certain."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One sub-command of a tool: its arguments, and what it may change."""

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    mutates: bool = False
    writes: bool = False
    """Whether it changes something that lasts beside the sandbox's files, such as memory."""
    undo: str = "none"
    """`none`, `workspace` or `irreversible` (see `Undo`)."""
    example: str = ""
    operator_only: bool = False
    """True when the tool refuses it to agents, so that no model is offered it."""
    runs_only: bool = False
    """True for what only agents are offered that work on a handoff, each by its own specification."""
    resumes: bool = False
    """True when a call that the program's end cut off is made again on reopening: it only waits, and whoever
    it waits for knows what was asked before."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the arguments where another part checks them, who knows more than the parameters
    say: arguments that are left out then stay out."""
    open: bool = False
    """Whether there may be other arguments than the parameters; only where another part checks them."""
    overwrites: bool = False
    """Whether its `content` takes the place of what is in the file at `path`."""
    request: bool = False
    """Whether an agent's call is put to the operator, whatever they allowed before."""


class Tool(Protocol):
    """A group of commands that an agent can call."""

    @property
    def id(self) -> str:
        """Name under which plans refer to it."""

    @property
    def description(self) -> str:
        """What it is for, in a sentence."""

    @property
    def commands(self) -> Mapping[str, CommandSpec]:
        """Its sub-commands by name."""

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run one command whose arguments were validated against its spec.

        Never raises for what a person, file or program did wrong: it answers ERROR or FAILURE with a code.
        Raises `asyncio.CancelledError` only after everything it started has ended.
        """
