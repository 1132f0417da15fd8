"""One MCP server: connected, watched, called, connected again once, and shut down.

The SDK's connection has to be closed by the task that opened it, so each server has one task that owns it;
calls come from any task. A server that dies is connected once more; if it dies again within a minute it stays
down. A call that was under way is never repeated.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.core.ports import Clock
from engine.tools.mcp import names
from engine.tools.mcp.health import (
    CallAnswer,
    CallStatus,
    ServerState,
    ServerView,
    answer_of,
    health_line,
    truncate_result,
)
from engine.tools.mcp.process import ProgramEnvironment, StartError, Streams
from engine.tools.mcp.settings import MissingVariableError, ServerSettings

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool


HANDSHAKE_S = 10.0
"""Seconds for the start, the handshake and all pages of tools."""
STEADY_S = 60.0
"""A server that lived so long after it started is connected once more when it dies."""
PAGES_LIMIT, TOOLS_LIMIT = 100, 1_000
LOG_LINES = 200
_LINE_LIMIT = 500


class Server:
    """A server of `mcp.json`; `begin` it, and always `close` it.

    Args:
        settings: how it is reached.
        around: where its program runs.
        clock: says since when it is in its state.
        on_change: called with each change of state or tools, on the loop.
        withheld: why it may not start before `allow`, in words; empty where it may.
    """

    def __init__(
        self,
        settings: ServerSettings,
        around: ProgramEnvironment,
        clock: Clock,
        on_change: Callable[[ServerView], None] = lambda _view: None,
        withheld: str = "",
    ) -> None:
        self.settings = settings
        self.tools: dict[str, Tool] = {}
        """What it lists, by name; kept when it is down."""
        self._left_out = 0
        self._around, self._clock, self._on_change = around, clock, on_change
        self._state, self._since, self._error = ServerState.STOPPED, clock.now(), ""
        self._trouble = CallStatus.DOWN
        """The answer to a call while it is down."""
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._unfinished = ""
        self._restarts = 0
        self._identity, self._held = "", ""
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._settled, self._lost, self._closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._withheld = withheld
        self._patience: asyncio.Timeout | None = None
        """Of the handshake that is under way."""
        self._mode = "auto" if settings.url else "legacy"
        """Programs are greeted with `initialize`, as ever; a newer one that refuses it is probed."""

    # -------------------------------------------------------------- how it is

    @property
    def name(self) -> str:
        """Its name in `mcp.json`."""
        return self.settings.name

    @property
    def view(self) -> ServerView:
        """How it is now, as far as it is known without asking."""
        return ServerView(
            self.name,
            self._state,
            self.settings.transport,
            tuple(self.tools),
            self._since,
            self._error,
            self._identity,
            self._restarts,
            tuple(self._log),
            self._held,
            self._left_out,
        )

    async def settled(self) -> ServerView:
        """Wait until it is up, or known to be down."""
        await self._settled.wait()
        return self.view

    # -------------------------------------------------------------- asking

    async def call(self, tool: str, args: Mapping[str, Any], timeout_s: float | None = None) -> CallAnswer:
        """Call a tool; whatever goes wrong is an answer.

        Args:
            tool: the tool's own name.
            args: what it is given; the server checks it.
            timeout_s: seconds it may take; those of the settings where they are fewer, or it is None.

        Raises:
            asyncio.CancelledError: the server was informed that the call is cancelled.
        """
        await self._settled.wait()
        client = self._client
        if client is None:
            return CallAnswer(self._trouble, f"{self.name} is {self._state}: {self._error or 'not begun'}")
        if tool not in self.tools:
            return CallAnswer(CallStatus.UNKNOWN_TOOL, f"{self.name} has no tool {health_line(tool, 80)!r}")
        limit_s = min(timeout_s or self.settings.timeout_s, self.settings.timeout_s)
        try:
            return answer_of(await client.call_tool(tool, dict(args), read_timeout_seconds=limit_s))
        except Exception as error:  # noqa: BLE001  a server is foreign: its fault is an answer
            return self._failed(client, tool, error, limit_s)

    def _failed(self, client: Client, tool: str, error: Exception, limit_s: float) -> CallAnswer:
        from engine.tools.mcp import transport

        code = transport.error_code(error)
        if code == transport.REQUEST_TIMEOUT:
            text = f"{self.name}.{tool} did not answer within {limit_s:g} s"
            return CallAnswer(CallStatus.TIMEOUT, text)
        if transport.connection_lost(error):
            self._die(client)
            text = f"{self.name} ended while {tool} ran; whether it did anything is not known"
            return CallAnswer(CallStatus.CRASHED, f"{text}{self._last_words()}")
        detail = f"{code}: {error}" if code is not None else f"{type(error).__name__}: {error}"
        text = truncate_result(f"{self.name} answered with an error {detail}")
        return CallAnswer(CallStatus.SERVER_ERROR, text)

    # -------------------------------------------------------------- life

    def begin(self) -> None:
        """Connect, and stay connected; harmless when done twice. Without permission it only says so."""
        if self._withheld:
            self._trouble = CallStatus.NO_PERMISSION
            self._to(ServerState.WAITING, self._withheld)
        elif self._owner is None:
            self._trouble = CallStatus.DOWN
            self._to(ServerState.STARTING)
            self._owner = asyncio.create_task(self._own(), name=f"mcp {self.name}")

    def allow(self) -> None:
        """Let it start, and begin."""
        self._withheld = ""
        self.begin()

    async def withhold(self, why: str) -> None:
        """End it where it runs, and let it not start before `allow`; afterwards no process of it is left."""
        self._withheld = why
        await self.close()
        self._owner, self.tools = None, {}
        self._closing.clear()
        self.begin()

    async def close(self) -> None:
        """Shut it down; afterwards no process of it is left."""
        self._closing.set()
        self._lost.set()
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())
        if self._owner is not None:
            await asyncio.gather(self._owner, return_exceptions=True)
        self._to(ServerState.STOPPED)

    async def _own(self) -> None:
        try:
            await self._live_on()
        finally:
            self._settled.set()  # callers must not wait for what will not come

    async def _live_on(self) -> None:
        spare = 1
        while not self._closing.is_set():
            started = self._clock.monotonic()
            self._lost.clear()
            up = await self._live()
            if self._closing.is_set():
                return
            if up and self._clock.monotonic() - started >= STEADY_S:
                spare = 1
            if up and spare:
                spare, self._restarts = spare - 1, self._restarts + 1
                continue
            self._settled.set()
            await self._closing.wait()

    async def _live(self) -> bool:
        """One connection from its start to its end; whether it was ever connected."""
        self._to(ServerState.STARTING)
        try:
            # Importing the SDK takes half a second.
            await asyncio.to_thread(import_module, "engine.tools.mcp.transport")
        except ImportError as error:
            self._down(f"the SDK of MCP cannot be imported: {health_line(error)}")
            return False
        from engine.tools.mcp import transport

        if self._closing.is_set():
            return False
        up = False
        slow = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._slow)
        try:
            connection = transport.connect(
                self.settings,
                self._around,
                self._mode,
                heard=self._heard,
                began=self._began,
                lost=self._lost.set,
            )
            async with asyncio.timeout(HANDSHAKE_S) as self._patience, connection as client:
                info = client.server_info
                self._identity = health_line(f"{info.name} {info.version}", 100) if info is not None else ""
                await self._list(client)
                slow.cancel()
                self._patience.reschedule(None)
                self._patience = None
                up = not self._lost.is_set()
                if up:
                    self._client = client
                    self._to(ServerState.OK)
                await self._lost.wait()
                self._die(client)
        except TimeoutError:
            if not self._closing.is_set():
                self._slow()
        except (StartError, MissingVariableError) as error:
            self._down(health_line(error))
        except Exception as error:  # noqa: BLE001  whatever a server does wrong becomes its state
            if transport.error_code(error) == transport.UNSUPPORTED_PROTOCOL_VERSION:
                changed, self._mode = self._mode != "auto", "auto"
                slow.cancel()
                if changed:
                    return await self._live()
            self._down(f"{_first(error)}{self._last_words()}")
        finally:
            slow.cancel()
            self._client = self._patience = None
        return up

    def _began(self, streams: Streams) -> None:
        self._held = streams.tier.value

    async def _list(self, client: Client) -> None:
        """Learn all pages of its tools."""
        tools: dict[str, Tool] = {}
        left_out = 0
        cursor: str | None = None
        for _ in range(PAGES_LIMIT):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if names.allowed(tool.name) and tool.name not in tools and len(tools) < TOOLS_LIMIT:
                    tools[tool.name] = tool
                else:
                    left_out += 1
            if not page.next_cursor or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        changed = tools != self.tools
        self.tools, self._left_out = tools, left_out
        if changed and self._client is client:
            self._on_change(self.view)

    # -------------------------------------------------------------- states

    def _to(self, state: ServerState, error: str = "") -> None:
        changed = (state, error) != (self._state, self._error)
        if state is not self._state:
            self._since = self._clock.now()
        if state is not ServerState.STARTING or not self._error:
            self._error = error  # why it had to be started again stays to be seen
        self._state = state
        if state in (ServerState.OK, ServerState.STOPPED, ServerState.WAITING):
            self._settled.set()
        elif state is ServerState.STARTING:
            self._settled.clear()
        if changed:
            self._on_change(self.view)

    def _down(self, error: str, trouble: CallStatus = CallStatus.DOWN) -> None:
        """It is down; whether that is settled is said once it is not to be connected again."""
        self._client = None
        self._trouble = trouble
        if not self._closing.is_set():
            self._settled.clear()
            self._to(ServerState.DOWN, error)

    def _die(self, client: Client) -> None:
        """Its connection has ended, where it is still the one that there is."""
        if self._client is client:
            self._down(f"it ended{self._last_words()}")
            self._lost.set()

    def _slow(self) -> None:
        if self._client is None:
            message = f"its handshake took longer than {HANDSHAKE_S:g} s{self._last_words()}"
            self._down(message, CallStatus.SLOW_START)
            self._settled.set()

    def _heard(self, text: str) -> None:
        lines = (self._unfinished + text).split("\n")
        self._unfinished = lines.pop()[-_LINE_LIMIT:]
        self._log.extend(health_line(line, _LINE_LIMIT) for line in lines if line.strip())

    def _last_words(self) -> str:
        last = health_line(self._unfinished) or (self._log[-1] if self._log else "")
        return f"; it last said: {last}" if last else ""


def _first(error: BaseException) -> str:
    """The first error of a group, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return health_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
