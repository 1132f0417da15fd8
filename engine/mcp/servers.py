"""One MCP server: connected, watched, asked, connected again once, and shut down.

The SDK's connection has to be left by the task that entered it, so each server has one task that owns it;
calls come from any task. A server that dies is connected once more; if it dies again within a minute it
stays down until it is told to restart. A call that was under way is never repeated. Source: ontology spec
§1.14, data-stack §6.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.domain.ports import Clock
from engine.mcp import names
from engine.mcp.answers import RESULT_LIMIT, CallAnswer, Outcome, answer_of, cut
from engine.mcp.health import ServerState, ServerView, shown
from engine.mcp.process import StartError, Streams, Surroundings
from engine.mcp.settings import MissingVariableError, ServerSettings

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool

HANDSHAKE_S = 10.0
"""Seconds for the start, the handshake and all pages of tools (ontology spec §1.14)."""
LOOK_S = 5.0
"""Seconds that a server has to answer when it is looked after."""
FRESH_S = 60.0
"""How long what was seen of its health counts."""
STEADY_S = 60.0
"""A server that lived so long after it came up is connected once more when it dies."""
PAGES_LIMIT, TOOLS_LIMIT = 100, 1_000
LOG_LINES = 200
_LINE_LIMIT = 500


def _nobody(_view: ServerView) -> None:
    """Nobody is told."""


class Server:
    """A server of `mcp.json`; `begin` it, and always `close` it.

    Args:
        settings: how it is reached.
        around: where its program runs.
        clock: tells since when it is in its state, and when it was looked after.
        told: called with each change of state or tools, on the loop.
        withheld: why it may not start before `allow`, in words; empty where it may.
    """

    def __init__(
        self,
        settings: ServerSettings,
        around: Surroundings,
        clock: Clock,
        told: Callable[[ServerView], None] = _nobody,
        withheld: str = "",
    ) -> None:
        self.settings = settings
        self.tools: dict[str, Tool] = {}
        """What it lists, by name; kept when it is down."""
        self._left_out = 0
        self._around, self._clock, self._told = around, clock, told
        self._state, self._since, self._error = ServerState.STOPPED, clock.now(), ""
        self._trouble = Outcome.DOWN
        """What a call is told while it is down."""
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._unfinished = ""
        self._restarts = 0
        self._identity, self._held = "", ""
        self._looked = float("-inf")
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._settled, self._lost, self._wanted = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._closing = False
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

    async def health(self, *, fresh: bool = False) -> ServerView:
        """How it is; it is asked for its tools where that was not done in the last minute, or `fresh`."""
        await self.settled()
        client = self._client
        due = fresh or self._clock.monotonic() - self._looked >= FRESH_S
        if client is None or not due:
            return self.view
        try:
            async with asyncio.timeout(LOOK_S):
                await self._list(client)
        except TimeoutError:
            self._to(ServerState.DEGRADED, f"it did not answer within {LOOK_S:g} s")
        except Exception as error:  # noqa: BLE001  whatever a server does wrong is told of it
            if _connection_lost(error):
                self._die(client)
                return await self.settled()
            if self._client is client:
                self._to(ServerState.DEGRADED, shown(error))
        else:
            self._to(ServerState.OK)
        return self.view

    # -------------------------------------------------------------- asking

    async def call(self, tool: str, args: Mapping[str, Any], timeout_s: float | None = None) -> CallAnswer:
        """Call a tool; whatever goes wrong is an answer.

        Args:
            tool: the tool's own name.
            args: what it is given; the server checks it.
            timeout_s: seconds it may take; those of the settings where they are fewer, or it is None.

        Raises:
            asyncio.CancelledError: the server was told that the call is no longer wanted.
        """
        await self._settled.wait()
        client = self._client
        if client is None:
            return CallAnswer(self._trouble, f"{self.name} is {self._state}: {self._error or 'not begun'}")
        if tool not in self.tools:
            return CallAnswer(Outcome.UNKNOWN_TOOL, f"{self.name} has no tool {shown(tool, 80)!r}")
        limit_s = min(timeout_s or self.settings.timeout_s, self.settings.timeout_s)
        try:
            return answer_of(await client.call_tool(tool, dict(args), read_timeout_seconds=limit_s))
        except Exception as error:  # noqa: BLE001  a server is foreign: its fault is an answer
            return self._failed(client, tool, error, limit_s)

    def _failed(self, client: Client, tool: str, error: Exception, limit_s: float) -> CallAnswer:
        from mcp import MCPError
        from mcp.types import REQUEST_TIMEOUT

        code = error.code if isinstance(error, MCPError) else None
        if code == REQUEST_TIMEOUT:
            self._looked = float("-inf")
            return CallAnswer(Outcome.TIMEOUT, f"{self.name}.{tool} did not answer within {limit_s:g} s")
        if _connection_lost(error):
            self._die(client)
            said = f"{self.name} ended while {tool} ran; whether it did anything is not known"
            return CallAnswer(Outcome.CRASHED, f"{said}{self._last_words()}")
        told = f"{code}: {error}" if code is not None else f"{type(error).__name__}: {error}"
        return CallAnswer(
            Outcome.SERVER_ERROR, cut(f"{self.name} answered with an error {told}", RESULT_LIMIT)
        )

    # -------------------------------------------------------------- life

    def begin(self) -> None:
        """Connect, and stay connected; harmless when done twice. Without leave it only says so."""
        if self._withheld:
            self._trouble = Outcome.NO_LEAVE
            self._to(ServerState.WAITING, self._withheld)
        elif self._owner is None:
            self._trouble = Outcome.DOWN
            self._to(ServerState.STARTING)
            self._owner = asyncio.create_task(self._own(), name=f"mcp {self.name}")

    async def restart(self) -> ServerView:
        """Connect anew, also where it stands; waits until that is settled."""
        self.begin()
        if not self._withheld:
            self._settled.clear()
            self._end_life()
        return await self.settled()

    def allow(self) -> None:
        """Let it start, and begin."""
        self._withheld = ""
        self.begin()

    async def withhold(self, why: str) -> None:
        """End it where it runs, and let it not start before `allow`; afterwards no process of it is left."""
        self._withheld = why
        await self.close()
        self._owner, self._closing, self.tools = None, False, {}
        self.begin()

    async def close(self) -> None:
        """Shut it down; afterwards no process of it is left."""
        self._closing = True
        self._end_life()
        if self._owner is not None:
            await asyncio.gather(self._owner, return_exceptions=True)
        self._to(ServerState.STOPPED)

    def _end_life(self) -> None:
        """Let the connection that there is end, whether it stands or is being made."""
        self._wanted.set()
        self._lost.set()
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def _own(self) -> None:
        try:
            await self._live_on()
        finally:
            self._settled.set()  # nobody waits for what will not come

    async def _live_on(self) -> None:
        spare = 1
        while not self._closing:
            wanted, came = self._wanted.is_set(), self._clock.monotonic()
            self._wanted.clear()
            self._lost.clear()
            spare = 1 if wanted else spare
            up = await self._live()
            if self._closing or self._wanted.is_set():
                continue
            if up and self._clock.monotonic() - came >= STEADY_S:
                spare = 1
            if up and spare:
                spare, self._restarts = spare - 1, self._restarts + 1
                continue
            self._settled.set()
            await self._wanted.wait()

    async def _live(self) -> bool:
        """One connection from its start to its end; whether it ever stood."""
        self._to(ServerState.STARTING)
        try:
            # Importing the SDK takes half a second.
            await asyncio.to_thread(import_module, "engine.mcp.transport")
        except ImportError as error:
            self._down(f"the SDK of MCP cannot be imported: {shown(error)}")
            return False
        from mcp import MCPError
        from mcp.types import UNSUPPORTED_PROTOCOL_VERSION

        if self._wanted.is_set():
            return False
        up = False
        slow = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._slow)
        try:
            async with asyncio.timeout(HANDSHAKE_S) as self._patience, self._connected() as client:
                info = client.server_info
                self._identity = shown(f"{info.name} {info.version}", 100) if info is not None else ""
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
            if not self._wanted.is_set():
                self._slow()
        except (StartError, MissingVariableError) as error:
            self._down(shown(error))
        except Exception as error:  # noqa: BLE001  whatever a server does wrong is told of it
            if isinstance(error, MCPError) and error.code == UNSUPPORTED_PROTOCOL_VERSION:
                changed, self._mode = self._mode != "auto", "auto"
                slow.cancel()
                if changed:
                    return await self._live()
            self._down(f"{_first(error)}{self._last_words()}")
        finally:
            slow.cancel()
            self._client = self._patience = None
        return up

    def _connected(self) -> AbstractAsyncContextManager[Client]:
        from mcp import Client

        from engine.mcp.transport import over_http, over_program

        logging.getLogger("mcp").addHandler(logging.NullHandler())
        logging.getLogger("mcp").propagate = False  # it would write on the operator's screen
        if self.settings.url:
            transport = over_http(self.settings, self._around)
        else:
            transport = over_program(self.settings, self._around, self._heard, self._began, self._lost.set)
        return Client(transport, mode=self._mode, cache=None, message_handler=self._noticed)

    def _began(self, streams: Streams) -> None:
        self._held = streams.tier.value

    async def _noticed(self, message: object) -> None:
        """Look after the tools at the next occasion where the server says that they changed."""
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._looked = float("-inf")

    async def _list(self, client: Client) -> None:
        """Learn all pages of its tools."""
        found: dict[str, Tool] = {}
        left_out = 0
        cursor: str | None = None
        for _ in range(PAGES_LIMIT):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if names.allowed(tool.name) and tool.name not in found and len(found) < TOOLS_LIMIT:
                    found[tool.name] = tool
                else:
                    left_out += 1
            if not page.next_cursor or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        changed = found != self.tools
        self.tools, self._left_out, self._looked = found, left_out, self._clock.monotonic()
        if changed and self._client is client:
            self._told(self.view)

    # -------------------------------------------------------------- states

    def _to(self, state: ServerState, error: str = "") -> None:
        changed = (state, error) != (self._state, self._error)
        if state is not self._state:
            self._since = self._clock.now()
        if state is not ServerState.STARTING or not self._error:
            self._error = error  # why it had to be started again stays to be seen
        self._state = state
        if state in (ServerState.OK, ServerState.DEGRADED, ServerState.STOPPED, ServerState.WAITING):
            self._settled.set()
        elif state is ServerState.STARTING:
            self._settled.clear()
        if changed:
            self._told(self.view)

    def _down(self, error: str, trouble: Outcome = Outcome.DOWN) -> None:
        """It is down; whether that is settled is said once it is not to be connected again."""
        self._client = None
        self._trouble = trouble
        if not self._closing:
            self._settled.clear()
            self._to(ServerState.DOWN, error)

    def _die(self, client: Client) -> None:
        """Its connection has ended, where it is still the one that there is."""
        if self._client is client:
            self._down(f"it ended{self._last_words()}")
            self._lost.set()

    def _slow(self) -> None:
        if self._client is None:
            said = f"its handshake took longer than {HANDSHAKE_S:g} s{self._last_words()}"
            self._down(said, Outcome.SLOW_START)
            self._settled.set()

    def _heard(self, text: str) -> None:
        lines = (self._unfinished + text).split("\n")
        self._unfinished = lines.pop()[-_LINE_LIMIT:]
        self._log.extend(shown(line, _LINE_LIMIT) for line in lines if line.strip())

    def _last_words(self) -> str:
        last = shown(self._unfinished) or (self._log[-1] if self._log else "")
        return f"; it last said: {last}" if last else ""


def _connection_lost(error: BaseException) -> bool:
    """Whether an error means that the server is not there any more."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    if isinstance(error, MCPError):
        return error.code == CONNECTION_CLOSED
    over_http = type(error).__module__.partition(".")[0] in ("httpx2", "httpcore2")
    return isinstance(error, ConnectionError) or (over_http and "Timeout" not in type(error).__name__)


def _first(error: BaseException) -> str:
    """The first error of a group, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return shown(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
