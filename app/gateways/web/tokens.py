"""Tokens by which browsers use a workspace's engine: a file of the user's, outside of every workspace.

A token is 256 random bits, shown once; the file has its SHA-256, so whoever reads the file cannot come in.
Imports little of ours, as each request asks it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from app.commands.user import user_home
from app.gateways.addresses import name_of

NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}")
PREFIX = "ph_"
LINK_S, BROWSER_S = 600, 30 * 86_400
"""How long a link can be used, once, and how long the browser that used it stays logged in."""
FILE_BYTES = 1_048_576
TOKENS, BROWSERS = 200, 10
"""Tokens of a workspace, and browsers of one name that are logged in by a token."""


class Scope(StrEnum):
    """What a token allows; each more than the one before."""

    WATCH = "watch"
    ANSWER = "answer"
    """To answer what waits, and to stop agents."""
    CONTROL = "control"
    """All that the cockpit can do."""

    def covers(self, other: Scope) -> bool:
        """Whether it allows what another does."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


class Kind(StrEnum):
    """How a token came to be."""

    TOKEN = "token"
    LINK = "link"
    """It can be used once, for a token of a browser."""
    BROWSER = "browser"


class Token(NamedTuple):
    """What is kept of a token."""

    name: str
    scope: Scope
    digest: str
    created: int
    """Seconds since 1970."""
    expires: int = 0
    """0 for never."""
    kind: Kind = Kind.TOKEN


class TokenError(Exception):
    """Tokens cannot be read, kept or made; the message says why and what to do."""


class TokenStore:
    """The tokens of one workspace; all methods block.

    Args:
        workspace: its directory.
        home: the user's own directory.
        now: seconds since 1970.
    """

    def __init__(
        self, workspace: Path, home: Path | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self._file = (home or user_home()) / "tokens" / f"{name_of(workspace)}.json"
        self._now = now
        self._read: tuple[tuple[int, ...], list[Token]] | None = None

    def all(self) -> list[Token]:
        """All that have not expired, oldest first; read again only where the file has changed.

        Raises:
            TokenError: the file cannot be read, or others can read it.
        """
        try:
            status = self._file.lstat()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TokenError(f"{self._file} cannot be read: {error.strerror}") from None
        mark = (status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode, status.st_uid)
        if self._read is None or self._read[0] != mark:
            if status.st_mode & 0o170077 != 0o100000 or status.st_uid != os.getuid():
                raise TokenError(
                    f"{self._file} is not yours alone: look at it, then chmod 600 it or delete it"
                )
            self._read = (mark, self._parsed())
        return [token for token in self._read[1] if not token.expires or token.expires > self._now()]

    def _parsed(self) -> list[Token]:
        try:
            with self._file.open("rb") as file:
                rows = json.loads(file.read(FILE_BYTES + 1))
            return [
                Token(str(name), Scope(scope), str(digest), int(created), int(expires), Kind(kind))
                for name, scope, digest, created, expires, kind in rows
            ]
        except (OSError, ValueError, TypeError) as error:
            raise TokenError(f"{self._file} is damaged ({error}): delete it and make new tokens") from None

    def find(self, secret: str) -> Token | None:
        """The token with this secret. Errors as for `all`."""
        digest = _digest(secret)
        return next((token for token in self.all() if secrets.compare_digest(token.digest, digest)), None)

    def add(self, name: str, scope: Scope, *, kind: Kind = Kind.TOKEN, seconds: int = 0) -> str:
        """Make a token; its secret, which is kept nowhere.

        Args:
            name: in whose name commands are recorded.
            scope: what it allows.
            kind: a link replaces the links of this name.
            seconds: until it expires; 0 for never.

        Raises:
            TokenError: there is one of this name, or it cannot be kept.
        """
        if not NAME.fullmatch(name):
            raise TokenError(f"{name[:40]!r} is no name: use up to 32 letters, digits, - _ or .")
        with self._changing() as tokens:
            if kind is Kind.LINK:
                tokens[:] = [each for each in tokens if (each.name, each.kind) != (name, kind)]
            elif kind is Kind.TOKEN and any(each.name == name for each in tokens):
                raise TokenError(f"there is a token {name} already: choose another name, or revoke it")
            return self._put(tokens, name, scope, kind, seconds)

    def swap(self, link: str) -> tuple[Token, str] | None:
        """The token of a browser for a link, which cannot be used again; None where it is no link."""
        with self._changing() as tokens:
            digest = _digest(link)
            used = next((each for each in tokens if (each.digest, each.kind) == (digest, Kind.LINK)), None)
            if used is None:
                return None
            tokens.remove(used)
            secret = self._put(tokens, used.name, used.scope, Kind.BROWSER, BROWSER_S)
            return tokens[-1], secret

    def browser(self, token: Token) -> tuple[Token, str]:
        """A token of a browser of whoever has this one; it ends no later, and the oldest give way to it."""
        with self._changing() as tokens:
            alike = [each for each in tokens if (each.name, each.kind) == (token.name, Kind.BROWSER)]
            tokens[:] = [each for each in tokens if each not in alike[: max(len(alike) - BROWSERS + 1, 0)]]
            left = token.expires - int(self._now()) if token.expires else BROWSER_S
            secret = self._put(tokens, token.name, token.scope, Kind.BROWSER, min(left, BROWSER_S))
            return tokens[-1], secret

    def revoke(self, name: str, digest: str = "") -> int:
        """Take all tokens of a name back, or one of them; how many."""
        with self._changing() as tokens:
            gone = [each for each in tokens if each.name == name and digest in ("", each.digest)]
            tokens[:] = [each for each in tokens if each not in gone]
        return len(gone)

    def _put(self, tokens: list[Token], name: str, scope: Scope, kind: Kind, seconds: int) -> str:
        if len(tokens) >= TOKENS:
            raise TokenError(f"there are {TOKENS} tokens: revoke some")
        secret, now = PREFIX + secrets.token_urlsafe(32), int(self._now())
        tokens.append(Token(name, scope, _digest(secret), now, now + seconds if seconds else 0, kind))
        return secret

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """All tokens, to be changed in place; kept at the end, while no other program changes them."""
        fresh = self._file.with_suffix(f".{secrets.token_hex(4)}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                tokens = self.all()
                yield tokens
                end = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                with os.fdopen(end, "w", encoding="utf-8") as file:
                    json.dump(tokens, file)
                fresh.replace(self._file)
            finally:
                os.close(lock)
        except OSError as error:
            raise TokenError(f"{self._file} cannot be written: {error.strerror}") from None
        finally:
            fresh.unlink(missing_ok=True)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
