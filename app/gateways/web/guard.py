"""What every request has to pass: host, origin, token and scope; refusals are counted and recorded."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from app.gateways.web.tokens import BROWSER_S, Kind, Scope, Token, TokenError, TokenStore
from engine.core.text import StrictJsonError, read_json

TOKEN = web.RequestKey("token", Token)
"""Whose request it is."""
WRONG, WINDOW_S = 8, 60.0
"""Wrong tokens that one address may try within the time."""
BODY_BYTES, BODY_S = 64 * 1024, 10.0
CONNECTIONS = 200
_HOST = re.compile(r"(?:(?P<name>[a-z0-9_.-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{1,5}))?")
LOOK_S = 1.0
"""How often it is looked whether a token still holds whose pages are open."""
ADDRESSES = 256
"""Addresses of which it is known what they did."""
HEADERS = {
    "Server": "pilothouse",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
}


class RefusedError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        code: of the kind of refusal, such as `token.wrong`.
        message: why, and what to do.
        token: whose request it was, where that is known.
    """

    def __init__(self, status: int, code: str, message: str, token: Token | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.token = status, code, token


class Refusal(NamedTuple):
    """What is recorded of a refusal; how many alike there were is counted."""

    code: str
    token: str
    scope: str
    address: str


class Guard:
    """Lets requests through, or refuses them.

    Args:
        store: the tokens.
        cookie: the name of the cookie that has the token.
        hosts: names of this machine that are good, beside addresses and its own name.
        secure: whether it is HTTPS.
        needs: what scope each route needs, by its name; None for one that anybody may ask for.
        connections: how many connections there are.
    """

    def __init__(
        self,
        store: TokenStore,
        cookie: str,
        hosts: Iterable[str],
        secure: bool,
        needs: dict[str, Scope | None],
        connections: Callable[[], int],
    ) -> None:
        self.store, self._cookie, self._secure, self._needs = store, cookie, secure, needs
        self._hosts = {"localhost", socket.gethostname().lower(), *(host.lower() for host in hosts)}
        self._connections = connections
        self._wrong: dict[str, deque[float]] = {}
        self.refused: Counter[str] = Counter()
        """All refusals, by code."""
        self.unrecorded: Counter[Refusal] = Counter()

    @property
    def middleware(self) -> Middleware:
        """For the application."""

        @web.middleware
        async def handle(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._handle(request, handler)

        return handle

    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check(request)
            return await handler(request)
        except RefusedError as error:
            return self._refusal(request, error)
        except TokenError as error:
            return self._refusal(request, RefusedError(503, "token.file", str(error)))
        except web.HTTPException as error:
            if error.status >= 400:
                self.note(RefusedError(error.status, f"http.{error.status}", ""), request)
            raise

    def _refusal(self, request: web.Request, error: RefusedError) -> web.StreamResponse:
        self.note(error, request)
        response: web.Response
        if (
            error.status == 401
            and request.method == "GET"
            and "text/html" in request.headers.get("Accept", "")
        ):
            response = web.Response(status=303, headers={"Location": "/login"})
        else:
            response = web.json_response({"code": error.code, "message": str(error)}, status=error.status)
        if error.code in ("token.wrong", "token.late"):
            self.forget(response)
        return response

    def note(self, error: RefusedError, request: web.Request) -> None:
        """Count a refusal; a page that has no token yet is none."""
        if error.code == "token.missing":
            return
        self.refused[error.code] += 1
        token = error.token or request.get(TOKEN)
        name, scope = (token.name, token.scope.value) if token is not None else ("", "")
        refusal = Refusal(error.code, name, scope, address_of(request))
        if refusal not in self.unrecorded and len(self.unrecorded) >= ADDRESSES:
            refusal = Refusal(error.code, "", "", "many")
        self.unrecorded[refusal] += 1

    def recorded(self, refusal: Refusal, count: int) -> None:
        """So many of a refusal stand in the journal."""
        self.unrecorded[refusal] -= count
        if not self.unrecorded[refusal]:
            del self.unrecorded[refusal]

    # -------------------------------------------------------------- where it comes from

    def _check(self, request: web.Request) -> None:
        """Raise what is wrong with a request, and say whose it is."""
        host = request.headers.get("Host", "")
        if not self._is_ours(host) or not request.raw_path.startswith("/"):
            raise RefusedError(421, "host", f"this server is not called {host[:80]!r}: [web] hosts names it")
        self._check_origin(request, host)
        needed = self._needs.get(request.match_info.route.name or "", Scope.WATCH)
        # Who has a token is let in however many others knock.
        full = self._connections() > CONNECTIONS
        if full and (needed is None or self.store.find(request.cookies.get(self._cookie, "")) is None):
            raise RefusedError(503, "connections", f"there are {CONNECTIONS} connections already")
        if needed is None:
            return
        token = self.token_of(request)
        if not token.scope.covers(needed):
            message = f"the token {token.name} is for {token.scope}, and this needs {needed}"
            raise RefusedError(403, "scope", message, token)
        request[TOKEN] = token

    def _is_ours(self, host: str) -> bool:
        if (match := _HOST.fullmatch(host.lower())) is None or int(match["port"] or 80) > 65_535:
            return False
        name = match["name"] or match["v6"]
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)  # an address is no name that somebody else could make lead here
        except ValueError:
            return False
        return True

    def _check_origin(self, request: web.Request, host: str) -> None:
        """See that no other site's page sends this; what changes something has to say where it is from."""
        origin = request.headers.get("Origin")
        changes = request.method != "GET" or request.headers.get("Upgrade") is not None
        if (origin is None and changes) or (
            origin is not None and origin not in (f"http://{host}", f"https://{host}")
        ):
            raise RefusedError(403, "origin", "another site's page sent this")
        site = request.headers.get("Sec-Fetch-Site", "none")
        if site not in ("same-origin", "none") and request.headers.get("Sec-Fetch-Mode") != "navigate":
            raise RefusedError(403, "origin", "another site's page sent this")

    # -------------------------------------------------------------- tokens

    def token_of(self, request: web.Request) -> Token:
        """Whose cookie a request has.

        Raises:
            RefusedError: nobody's.
        """
        secret = request.cookies.get(self._cookie)
        if secret is None:
            raise RefusedError(401, "token.missing", "log in first")
        return self.checked(request, self.store.find(secret))

    def checked(self, request: web.Request, token: Token | None) -> Token:
        """The token, where there is one that may be used now.

        Raises:
            RefusedError: there is none, which is remembered of the address.
        """
        if token is not None and token.kind is not Kind.LINK:
            return token
        now, address = asyncio.get_running_loop().time(), address_of(request)
        while len(self._wrong) > ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
        tries = self._wrong.setdefault(address, deque(maxlen=WRONG))
        tries.append(now)
        raise RefusedError(401, "token.wrong", "no such token, or it has expired or was revoked")

    def may_try(self, request: web.Request) -> None:
        """See that an address has not just given too many wrong tokens.

        Raises:
            RefusedError: it has.
        """
        now, tries = asyncio.get_running_loop().time(), self._wrong.get(address_of(request), ())
        if sum(now - at < WINDOW_S for at in tries) >= WRONG:
            raise RefusedError(429, "token.often", f"too many wrong tokens: wait {WINDOW_S:g} s")

    def remember(self, response: web.Response, secret: str) -> None:
        """Have the browser keep a token."""
        response.set_cookie(
            self._cookie, secret, max_age=BROWSER_S, httponly=True, samesite="Strict", secure=self._secure
        )

    def forget(self, response: web.Response) -> None:
        """Have the browser forget its token."""
        response.del_cookie(self._cookie, httponly=True, samesite="Strict", secure=self._secure)

    async def revoked(self, token: Token) -> None:
        """Wait until a token does not hold any more."""
        while any(each.digest == token.digest for each in self._known()):  # noqa: ASYNC110 - it is a file
            await asyncio.sleep(LOOK_S)

    def _known(self) -> list[Token]:
        try:
            return self.store.all()
        except TokenError:
            return []


async def body_of(request: web.Request) -> dict[str, Any]:
    """The JSON object that a request brings.

    Raises:
        RefusedError: it brings none, or too slowly.
    """
    if request.content_type != "application/json":
        raise RefusedError(415, "body.type", "send application/json")
    try:
        async with asyncio.timeout(BODY_S):
            value = read_json(await request.text())
    except TimeoutError:
        raise RefusedError(408, "body.slow", f"it took longer than {BODY_S:g} s to come") from None
    except (StrictJsonError, UnicodeDecodeError, LookupError):
        raise RefusedError(400, "body.json", "this is no JSON") from None
    if not isinstance(value, dict):
        raise RefusedError(400, "body.json", "send a JSON object")
    return value


def address_of(request: web.Request) -> str:
    """From where a request comes."""
    return (request.remote or "")[:64]
