"""One session with a program: started in the jail, greeted, given its turns, and what it sends taken in.

Nothing that it asks for is done here. A request that would do something waits as an `Ask` until somebody
answers it; what only reads the session's own terminals is answered at once.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.agent.acp.delegation import DelegationTool
from engine.agent.acp.requests import (
    DELEGATE,
    Ask,
    Delegation,
    RequestReader,
    model_of,
    read_terminal,
    refusal,
    refusal_text,
)
from engine.agent.acp.settings import AcpError, Program, launch_of, own_files, policy_of
from engine.agent.acp.transport import InvalidLineError, LineTransport
from engine.agent.acp.updates import Earlier, ToolCall, TurnEnd, Updates
from engine.core.ports import SessionObserver
from engine.core.text import clean_line, first_problem
from engine.models.messages import Piece
from engine.sandbox.jail import Launch
from engine.sandbox.jobs import BackgroundJob
from engine.sandbox.paths import PathError
from engine.sandbox.policy import PolicyError
from engine.sandbox.process import Launcher
from engine.sandbox.tier import JailRefusal, best_jail
from engine.tools.mcp.process import open_reader, open_writer
from engine.tools.simple_coder import SimpleCoder
from engine.value import replace

VERSION = 1
"""The protocol's version."""
GREETING_S = 180.0
"""Seconds that the program has for each answer until its session is open."""
CANCEL_S = 10.0
"""Seconds that it has to end a turn that was cancelled; then its processes are ended."""
MESSAGE_LIMIT = 8 * 1024 * 1024
"""Bytes of one message."""
INVALID_MOST = 20
"""Lines that are no messages, after which nothing more is read."""
ASKS_MOST = 32
"""Requests that may wait at a time."""
UPDATES_MOST = 200_000
"""Updates of one turn; a program that sends more is held to be out of its mind."""
PROGRAM = "program"
"""The program's name among the agent's jobs."""


class AcpSession:
    """A program and the session with it.

    Args:
        agent: whose program it is.
        program: what it is, and what it may use.
        coder: gives the agent's sandbox.
        hear: takes pieces of what it says and thinks.
    """

    def __init__(
        self, agent: str, program: Program, coder: Callable[[], SimpleCoder], hear: Callable[[Piece], None]
    ) -> None:
        self._agent, self.program, self._coder = agent, program, coder
        self._came = asyncio.Event()
        self.updates = Updates(hear, self._came.set, lambda text: text.replace(f"{coder().files.root}/", ""))
        self._reader = RequestReader(coder, self.updates.take_call)
        self._delegation = DelegationTool(coder, program.hands_to)
        self.id = ""
        """The program's own id of the session; empty where none is open."""
        self.label = program.name
        """Name and version, as the program gives them."""
        self.lacks: tuple[str, ...] = ()
        """What the protocol has and this program does not."""
        self.terminals: dict[str, BackgroundJob] = {}
        self._asks: deque[Ask] = deque()
        self._job: BackgroundJob | None = None
        self._connection: Any = None
        self._turn: asyncio.Task[TurnEnd] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._trouble = ""
        self._loading = self._cancelled = False

    # -------------------------------------------------------------- the program

    @property
    def alive(self) -> bool:
        """Whether the program runs and its session is open."""
        return self._job is not None and not self._job.over.is_set() and bool(self.id)

    @property
    def plan(self) -> tuple[tuple[str, str], ...] | None:
        """The program's plan, where it changed since it was taken; it is taken now."""
        plan, self.updates.plan = self.updates.plan, None
        return plan

    @property
    def in_turn(self) -> bool:
        """Whether a turn is under way, or its end was not taken yet."""
        return self._turn is not None

    async def open(self, observer: SessionObserver | None, earlier: Earlier) -> None:
        """Start the program and open a session, an earlier one where the program can.

        Raises:
            AcpError: it cannot be; no process is left.
        """
        await self.close()
        try:
            await self._delegation.open(self._hand_on, self._refuse, MESSAGE_LIMIT)
            await self._start(observer)
            await self._greet(earlier)
        except BaseException as error:
            await self.close()
            if isinstance(error, PathError | PolicyError | OSError):
                raise AcpError(f"{self.program.name} was not started: {error}") from None
            raise

    async def _start(self, observer: SessionObserver | None) -> None:
        from acp.connection import Connection  # late, and imported in a thread before: it takes a second

        coder, root = self._coder(), self._coder().files.root

        def prepare() -> tuple[Launch, Launcher, Any]:
            for private in (coder.policy.home, coder.policy.tmp):
                coder.files.private_directory(private)
            tier = coder.tier
            policy = policy_of(self.program, coder.policy, tier)
            launch = launch_of(self.program, root, policy, os.environ)
            policy = replace(policy, read_only=(*policy.read_only, *own_files(Path(launch.executable))))
            return launch, Launcher(root, policy), best_jail(policy)

        launch, launcher, jail = await asyncio.to_thread(prepare)
        if isinstance(jail, JailRefusal):
            raise AcpError(jail.message)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        reader, writer = await open_reader(ours_in, MESSAGE_LIMIT), await open_writer(ours_out)
        try:
            with coder.files.directory(".") as cwd:
                self._job = await coder.sessions.start_job(
                    self._agent,
                    self.program.settings.recording or shlex.join(self.program.words),
                    launch,
                    cwd,
                    launcher=launcher,
                    jail=jail,
                    observer=observer,
                    name=PROGRAM,
                    standard=(theirs_in, theirs_out),
                )
        except BaseException:
            writer.close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._trouble = ""
        transport = LineTransport(reader, writer, MESSAGE_LIMIT, self._refuse)
        self._connection, self._invalid = Connection(self._handle, transport), 0
        self._begin(self._watch(self._job))

    async def _watch(self, job: BackgroundJob) -> None:
        await job.over.wait()
        if self._job is job:
            self._fail("")
            self._came.set()

    async def _refuse(self, line: InvalidLineError) -> bool:
        """Leave a line alone that is no message; not many of them, and none without an end."""
        self._invalid += 1
        if line.endless:
            self._fail(f"it sent a message of more than {MESSAGE_LIMIT // 2**20} MiB")
        elif self._invalid > INVALID_MOST:
            self._fail(f"it sent more than {INVALID_MOST} lines that are no messages of the protocol")
        return not self._trouble

    def _fail(self, why: str) -> None:
        """Nothing more is read of the program: end it."""
        self._trouble = self._trouble or why
        if self._job is not None and not self._job.over.is_set():
            self._job.stop()
        if self._connection is not None:
            self._begin(self._connection.close())

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def trouble(self) -> str:
        """Why the program is gone, in words."""
        job = self._job
        told = (
            f"{self.label}: {self._trouble}" if self._trouble else f"{self.label} {job.told if job else ''}"
        )
        last = next((line for line in reversed(job.newest(5)) if line.strip()), "") if job is not None else ""
        return clean_line(f"{told}; it said: {last}" if last else told, limit=400)

    async def close(self) -> None:
        """End the program and all that it started."""
        job, self._job, self.id = self._job, None, ""
        if job is not None and not job.over.is_set():
            job.stop()
            await job.over.wait()
        await self._delegation.close()
        if self._connection is not None:
            await self._connection.close()
        self._answer_all()
        if self._turn is not None:
            self._turn.cancel()
        tasks = [*self._tasks, *([self._turn] if self._turn is not None else [])]
        self._turn = self._connection = None
        await asyncio.gather(
            *(task for task in tasks if task is not asyncio.current_task()), return_exceptions=True
        )

    # -------------------------------------------------------------- the session

    async def _greet(self, earlier: Earlier) -> None:
        about = {"fs": {"readTextFile": self.program.reads, "writeTextFile": True}, "terminal": True}
        hello = {"protocolVersion": VERSION, "clientInfo": {"name": "pilothouse", "version": "1"}}
        answer = await self._ask("initialize", {**hello, "clientCapabilities": about})
        if (version := answer.get("protocolVersion")) != VERSION:
            raise AcpError(
                f"{self.program.name} speaks version {str(version)[:20]} of the protocol, and Pilothouse "
                f"{VERSION}: update the program"
            )
        info = answer.get("agentInfo") or {}
        name = f"{info.get('title') or info.get('name') or self.program.name} {info.get('version') or ''}"
        self.label, can = clean_line(name.strip(), limit=60), answer.get("agentCapabilities") or {}
        more = can.get("sessionCapabilities") or {}
        known = "session/resume" if "resume" in more else "session/load" if can.get("loadSession") else ""
        forks = "session/fork" if "fork" in more else ""
        opened = await self._open_session(forks if earlier.forked else known, earlier)
        self.updates.take_options(opened)
        lacks = {
            "earlier sessions": known,
            "forks": forks,
            "modes": "mode" in self.updates.options,
            "a choice of models": "model" in self.updates.options,
        }
        self.lacks = tuple(what for what, has in lacks.items() if not has)
        wanted = self.program.settings
        for option, value in {"mode": wanted.mode, "model": wanted.model, **wanted.options}.items():
            if value != "":
                await self.choose(option, value)

    async def _open_session(self, method: str, earlier: Earlier) -> dict[str, Any]:
        """Open an earlier session where there is a method for it, or else one that is told what was done."""
        where = {"cwd": str(self._coder().files.root), "mcpServers": self._delegation.servers}
        opened: dict[str, Any] = {}
        if earlier.session and method:
            self._loading, self.id = True, "" if earlier.forked else earlier.session
            try:
                opened = await self._ask(method, {**where, "sessionId": earlier.session})
            except AcpError:
                self.id = ""
            finally:
                self._loading = False
        if not self.id and not opened.get("sessionId"):
            opened = await self._ask("session/new", where)
        given = opened.get("sessionId") if not self.id else self.id
        self.id = given if isinstance(given, str) else ""
        if not self.id:
            raise AcpError(f"{self.label} opened no session: it gave no id")
        return opened

    async def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer.

        Raises:
            AcpError: the program refused it, ended, or did not answer in time.
        """
        from acp.exceptions import RequestError

        try:
            async with asyncio.timeout(GREETING_S):
                answer = await self._connection.send_request(method, dict(params))
        except TimeoutError:
            raise AcpError(f"{self.label} did not answer {method} within {GREETING_S:g} s") from None
        except ConnectionError:
            await self._last_words()
            raise AcpError(f"{method}: {self.trouble}") from None
        except RequestError as error:
            raise AcpError(f"{self.label} refused {method}: {refusal_text(error)}") from None
        return answer if isinstance(answer, dict) else {}

    async def _last_words(self) -> None:
        """Wait a moment until it is known how the program ended."""
        if self._job is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._job.over.wait(), 2.0)

    async def choose(self, option: str, value: Any) -> None:
        """Choose a mode, a model or another option.

        Raises:
            AcpError: there is no such option or value, or the program refuses.
        """
        known = self.updates.options.get(option)
        if known is None:
            listed = ", ".join(self.updates.options) or "none"
            raise AcpError(f"{self.label} has no option '{option[:40]}'; it has: {listed}")
        if known["values"] and value not in known["values"]:
            listed = clean_line(", ".join(known["values"]), limit=300)
            raise AcpError(f"{self.label} has no {option} '{str(value)[:60]}'; it has: {listed}")
        if known.get("own"):
            await self._ask(f"session/set_{option}", {"sessionId": self.id, f"{option}Id": value})
        else:
            kind = {"type": "boolean"} if isinstance(value, bool) else {}
            about = {"sessionId": self.id, "configId": option, "value": value, **kind}
            self.updates.take_options(await self._ask("session/set_config_option", about))
        self.updates.options[option]["value"] = value

    # -------------------------------------------------------------- turns

    def prompt(self, text: str) -> None:
        """Give the program its turn; `next` tells what comes of it."""
        self.updates.said, self.updates.count, self._cancelled = "", 0, False
        self._turn = asyncio.create_task(self._prompted(text), name=f"turn of {self._agent}")
        self._turn.add_done_callback(lambda _: self._came.set())

    async def _prompted(self, text: str) -> TurnEnd:
        from acp.exceptions import RequestError

        blocks = [{"type": "text", "text": text}]
        try:
            answer = await self._connection.send_request(
                "session/prompt", {"sessionId": self.id, "prompt": blocks}
            )
        except ConnectionError:
            await self._last_words()
            return TurnEnd("failed", self.trouble)
        except RequestError as error:
            return TurnEnd("failed", f"{self.label}: {refusal_text(error)}")
        return self.updates.take_end(answer, self.label)

    async def next(self) -> Ask | TurnEnd | None:
        """What comes of the turn next: something that it asks for, its end, or a new plan (None)."""
        try:
            async with asyncio.timeout(self.program.settings.quiet_s):
                while (
                    not (self._turn is None or self._turn.done() or self._asks) and self.updates.plan is None
                ):
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            self.cancel(f"nothing came of its turn for {self.program.settings.quiet_s:g} s")
            return await self.next() if self._turn is not None else TurnEnd("failed", "it does nothing")
        if self.updates.plan is not None:
            return None
        if self._asks:
            return self._asks.popleft()
        turn, self._turn = self._turn, None
        if turn is None or turn.cancelled():
            return TurnEnd("cancelled", self._trouble)
        return turn.result()

    async def call_over(
        self, call: ToolCall, most_s: float, silent_s: float, serve: Callable[[Ask], Awaitable[bool]]
    ) -> bool:
        """Wait until a tool call of the program's own is over; False where the program does not say so.

        Args:
            call: the tool call.
            most_s: seconds to wait at most.
            silent_s: seconds to wait while the program asks for something else.
            serve: does what is asked as a part of this call; False where it is none.
        """
        over = asyncio.ensure_future(call.over.wait())
        turn, until = self._turn, asyncio.get_running_loop().time() + most_s
        try:
            while not over.done() and turn is not None and not turn.done():
                self._came.clear()
                if self._asks and await serve(self._asks[0]):
                    self._asks.popleft()
                    continue
                # Work that it hands on is an action of its own, for which this one does not wait.
                asks = bool(self._asks)
                if asks and self._asks[0].method == DELEGATE:
                    break
                came = asyncio.ensure_future(self._came.wait())
                left = until - asyncio.get_running_loop().time()
                done, _ = await asyncio.wait(
                    {over, came, turn},
                    timeout=silent_s if asks else left,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                came.cancel()
                if not done:
                    break
        finally:
            over.cancel()
        return call.over.is_set()

    def cancel(self, why: str) -> None:
        """Ask the program to end its turn; one that does not is ended itself."""
        self._answer_all()
        if self._turn is None or self._turn.done() or self._cancelled or self._connection is None:
            return
        self._cancelled = True
        self._begin(self._end_turn(self._turn, self._connection, why))

    async def _end_turn(self, turn: asyncio.Task[TurnEnd], connection: Any, why: str) -> None:
        with suppress(ConnectionError):
            await connection.send_notification("session/cancel", {"sessionId": self.id})
        await asyncio.wait({turn}, timeout=CANCEL_S)
        if not turn.done():
            self._fail(
                f"{why}; it did not end its turn within {CANCEL_S:g} s when it was asked to, so it was ended"
            )

    async def cancelled(self, why: str) -> None:
        """End the turn, and return when it has ended."""
        self.cancel(why)
        while self._turn is not None:
            self.updates.plan = None
            if isinstance(ask := await self.next(), Ask):
                ask.reply(refusal(ask, why))

    def _answer_all(self) -> None:
        """Tell the program of everything that waits that it will not be done."""
        while self._asks:
            ask = self._asks.popleft()
            ask.reply(refusal(ask, "the turn was cancelled", cancelled=True))

    # -------------------------------------------------------------- what it sends

    async def _handle(self, method: str, params: Any, notification: bool) -> Any:
        from acp.exceptions import RequestError

        given = params if isinstance(params, dict) else {}
        if notification:
            if method == "session/update" and given.get("sessionId") == self.id:
                self._update(given.get("update"))
            return None
        model = model_of(method)
        if model is None:
            raise RequestError.method_not_found(method[:100])
        if given.get("sessionId") != self.id:
            raise RequestError(-32602, "there is no such session")
        return await self._answer(model, method, given)

    async def _answer(self, model: Any, method: str, given: dict[str, Any]) -> Any:
        """Answer a request, where it has the form that it should have."""
        from acp.exceptions import RequestError

        try:
            model.model_validate(given)
        except ValueError as error:
            raise RequestError(-32602, first_problem(error)) from None  # type: ignore[arg-type]
        if method.startswith("terminal/") and method != "terminal/create":
            answer = await read_terminal(self.terminals, method, given)
        else:
            answer = await self._wait_for(method, given)
        if isinstance(answer, RequestError):
            raise answer
        return answer

    async def _hand_on(self, _method: str, params: Any, _notification: bool) -> Any:
        """Answer the program's tool for handing work on."""
        return await self._answer(Delegation, DELEGATE, params)

    def _update(self, update: Any) -> None:
        if self._loading or self.updates.count >= UPDATES_MOST:
            return
        self.updates.take(update)
        if self.updates.count >= UPDATES_MOST:
            self._fail(f"it sent {UPDATES_MOST:,} updates in one turn")

    async def _wait_for(self, method: str, given: dict[str, Any]) -> Any:
        """Have an action made of a request, and wait for its answer."""
        from acp.exceptions import RequestError

        if self._turn is None or self._cancelled:
            return RequestError(-32000, "this is not your turn")
        if len(self._asks) >= ASKS_MOST:
            return RequestError(-32000, f"{ASKS_MOST} of your requests wait; wait for their answers first")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asks.append(self._reader.read(method, given, answer))
        self._came.set()
        return await answer
