"""The program that serves web pages for an engine: it is started beside it, watched, and started again.

The listening socket is made here, so an address that cannot be had is said at the start, and browsers wait
while it starts again. Nothing of HTTP is in the engine's process.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
import ssl
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from app.commands.user import operator_name
from app.gateways.addresses import AddressError
from app.gateways.web.tokens import LINK_S, Kind, Scope, TokenError, TokenStore
from engine.core.secrets import plain_environment

BACKLOG = 64
END_S = 5.0
"""How long it may take to end."""
FIRST_S, LONGEST_S = 0.5, 30.0
"""What is waited before it is started again, twice as long each time."""
LINE_BYTES = 64 * 1024


class WebOptions(NamedTuple):
    """How web pages are served."""

    address: str
    """`ADDRESS:PORT`."""
    certificate: Path | None = None
    key: Path | None = None
    hosts: tuple[str, ...] = ()


class WebProcess:
    """Serves web pages beside an engine; bind the address by making one, then `begin` and `close` it.

    Args:
        workspace: its directory.
        options: how.

    Raises:
        AddressError: they cannot be served so; the message says why and what to do.
    """

    name = "web"

    def __init__(self, workspace: Path, options: WebOptions) -> None:
        if find_spec("textual_serve") is None:
            raise AddressError("web pages need textual-serve: pip install 'pilothouse[web]'")
        self._workspace, self._options = workspace.resolve(), options
        self._check_tls()
        host, port = _split(options.address)
        self._tokens = TokenStore(workspace)
        self._local = True
        self._listening = self._bound(host, port)
        scheme = "https" if options.certificate is not None else "http"
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{shown}:{self._listening.getsockname()[1]}/"
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._starts, self._trouble, self._ended, self._refused = 0, "", "", dict[str, int]()

    def _check_tls(self) -> None:
        certificate, key = self._options.certificate, self._options.key
        if (certificate is None) != (key is None):
            raise AddressError("HTTPS needs both files: --tls-cert and --tls-key")
        if certificate is not None and key is not None:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
            except (OSError, ssl.SSLError) as error:
                raise AddressError(f"{certificate} and {key} give no HTTPS: {error}") from None

    def _bound(self, host: str, port: int) -> socket.socket:
        try:
            family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._local = ipaddress.ip_address(place[0]).is_loopback
            if not self._local and not self._tokens.all():
                raise AddressError(
                    f"{host} can be reached from other machines, and there is no token yet: "
                    "pilothouse tokens add NAME makes one"
                )
            return socket.create_server((str(place[0]), port), family=family, backlog=BACKLOG)
        except (OSError, UnicodeError) as error:
            raise AddressError(f"{self._options.address} cannot be served: {error}") from None
        except TokenError as error:
            raise AddressError(str(error)) from None

    def lines(self) -> list[str]:
        """How to come in, in sentences; on this machine a link that can be used once.

        Raises:
            AddressError: no link can be kept.
        """
        if self._local:
            try:
                link = self._tokens.add(operator_name(), Scope.CONTROL, kind=Kind.LINK, seconds=LINK_S)
            except TokenError as error:
                raise AddressError(str(error)) from None
            return [f"web pages: {self.url}login#{link} (once, within {LINK_S // 60} minutes)"]
        plain = self._options.certificate is None
        warning = " Without HTTPS everybody on the way can read tokens." if plain else ""
        return [f"web pages: {self.url} asks for a token: pilothouse tokens list shows them.{warning}"]

    @property
    def status(self) -> dict[str, Any]:
        """How it is."""
        pid = self._process.pid if self._process is not None and self._process.returncode is None else None
        address = self._options.address
        files = [str(file or "") for file in (self._options.certificate, self._options.key)]
        return {"url": self.url, "address": address, "tls": files, "pid": pid, "starts": self._starts} | {
            "trouble": self._trouble,
            "ended": self._ended,
            "refused": self._refused,
        }

    def begin(self) -> None:
        """Start it, and start it again whenever it ends."""
        self._task = asyncio.create_task(self._keep(), name="web pages")

    async def close(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._listening.close()

    async def _keep(self) -> None:
        wait, loop = FIRST_S, asyncio.get_running_loop()
        while True:
            begun = loop.time()
            try:
                code = await self._run()
                self._ended = (
                    f"the web server ended {f'with code {code}' if code >= 0 else f'by signal {-code}'}"
                )
                self._trouble = f"{self._ended}, and is started again"
            except OSError as error:
                self._trouble = f"the web server cannot be started: {error}"
            wait = FIRST_S if loop.time() - begun > LONGEST_S else min(LONGEST_S, wait * 2)
            await asyncio.sleep(wait)

    async def _run(self) -> int:
        options, number = self._options, self._listening.fileno()
        words = [
            sys.executable,
            "-P",
            "-m",
            "app.gateways.web.server",
            str(self._workspace),
            f"--fd={number}",
        ]
        words += [f"--host={host}" for host in options.hosts]
        if options.certificate is not None:
            words += ["--tls", str(options.certificate), str(options.key)]
        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(
            *words,
            stdin=pipe,
            stdout=pipe,
            pass_fds=(number,),
            limit=LINE_BYTES,
            start_new_session=True,
            env=plain_environment(),
        )
        self._starts += 1
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                self._take(line)
            return await process.wait()
        finally:
            await asyncio.shield(_ended(process))

    def _take(self, line: bytes) -> None:
        """What it says of itself."""
        with suppress(ValueError, AttributeError):
            said = json.loads(line)
            self._refused = said.get("refused", self._refused)
            if "ready" in said:
                self._trouble = ""


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End it in good order, or at all."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()


def _split(address: str) -> tuple[str, int]:
    """Host and port of an address."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise AddressError(f"{address!r} is no address: use one such as 127.0.0.1:8765 or [::1]:8765")
    return host, int(port)
