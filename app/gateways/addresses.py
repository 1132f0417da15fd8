"""Where the engines of a user answer: for each a socket, and a record that says whose it is.

Both lie in a directory that only the user may enter, outside of every workspace and named by a hash of the
workspace's path: what a folder holds can lead nobody to a socket. Imports little, as `pilothouse do` begins
here.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from app.commands.user import user_home

PATH_BYTES = 107
"""What the address of a Unix socket may have."""
RECORD_BYTES = 16 * 1024
CONNECT_S = 2.0
BACKLOG = 128


class AddressError(Exception):
    """An engine cannot be reached, or cannot be made so; the message says why and what to do."""


class EngineRecord(NamedTuple):
    """What stands beside a socket."""

    workspace: str
    """The resolved path."""
    pid: int
    version: str
    kind: str
    """`cockpit`, `serve`, `run`, `do` or `mcp`."""
    unit: str = ""
    """The systemd unit that started it; empty for none."""


class Address(NamedTuple):
    """The place of one engine."""

    directory: Path
    name: str

    def file(self, ending: str) -> Path:
        """A file of this engine's: `sock`, `json` or `log`."""
        return self.directory / f"{self.name}.{ending}"


# ------------------------------------------------------------------ directories


def directories() -> tuple[Path, ...]:
    """Where engines of this user may answer, the usual place first; none of them need exist."""
    chosen = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    session = (Path(chosen) / "pilothouse",) if _is_own(Path(chosen)) else ()
    return (*session, user_home() / "run")


def _is_own(directory: Path, *, private: bool = False) -> bool:
    """Whether a directory, and no link to one, is this user's; `private`: and nobody else may enter it."""
    try:
        status = directory.lstat()
    except OSError:
        return False
    closed = not (status.st_mode & 0o077) if private else not (status.st_mode & 0o022)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and closed


def _private_directory() -> Path:
    """The directory for a new engine, made where it is missing.

    Raises:
        AddressError: none can be had that only this user may enter.
    """
    for directory in directories():
        with suppress(OSError):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_own(directory, private=True):
            return directory
    raise AddressError(f"{directories()[-1]} has to be a directory of yours with mode 0700")


def name_of(workspace: Path) -> str:
    """The name of a workspace's files; blocking."""
    return hashlib.sha256(os.fsencode(workspace.resolve())).hexdigest()[:32]


def addresses_of(workspace: Path) -> list[Address]:
    """Where an engine of the workspace may answer; blocking."""
    name = name_of(workspace)
    return [Address(place, name) for place in directories() if _is_own(place, private=True)]


def new_address(workspace: Path) -> Address:
    """Where a new engine of the workspace is to answer; blocking.

    Raises:
        AddressError: there is no place for it.
    """
    return Address(_private_directory(), name_of(workspace))


# ------------------------------------------------------------------ sockets


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """The path as an address of a Unix socket; a long one through its directory's descriptor."""
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Whoever puts or removes a socket does it alone."""
    end = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(end, fcntl.LOCK_EX)
        yield
    finally:
        os.close(end)


def listen(address: Address, record: EngineRecord) -> socket.socket:
    """A socket that listens at this address, and the record beside it, in the place of what was there.

    Raises:
        AddressError: the disk refused.
    """
    fresh = address.file(f"{os.getpid()}.new")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _locked(address.directory):
            fresh.unlink(missing_ok=True)
            with _reachable(fresh) as path:
                listening.bind(path)
            fresh.chmod(0o600)
            listening.listen(BACKLOG)
            _note(address, record)
            fresh.rename(address.file("sock"))
    except OSError as error:
        listening.close()
        raise AddressError(f"{address.directory} cannot be used: {error.strerror or error}") from error
    return listening


def _note(address: Address, record: EngineRecord) -> None:
    """Put the record of an engine beside its socket; with the directory locked."""
    noted = address.file(f"{os.getpid()}.json")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(noted, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(record._asdict(), file)
    noted.rename(address.file("json"))


def note_change(address: Address, record: EngineRecord) -> None:
    """Say anew what an engine is that listens; blocking."""
    with suppress(OSError), _locked(address.directory):
        _note(address, record)


def withdraw(address: Address) -> None:
    """Remove the socket and its record; for the engine that listens there."""
    with suppress(OSError), _locked(address.directory):
        for ending in ("sock", "json"):
            address.file(ending).unlink(missing_ok=True)


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Process id and user id of the other end."""
    pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, user


def _refuse_strangers(connection: socket.socket, address: Address) -> None:
    if peer_of(connection)[1] != os.getuid():
        raise AddressError(f"{address.file('sock')} is another user's: nothing is sent there")


def connect(address: Address) -> socket.socket | None:
    """A connection to the engine that listens at this address; None where none does; blocking.

    Raises:
        AddressError: it is somebody else's, or takes no connection.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_S)
    try:
        with _reachable(address.file("sock")) as path:
            connection.connect(path)
        _refuse_strangers(connection, address)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise AddressError(f"the engine at {address.file('sock')} takes no connection: {error}") from error
    except AddressError:
        connection.close()
        raise
    return connection


def find_engine(workspace: Path) -> tuple[Address, socket.socket] | None:
    """A connection to the engine of a workspace; None where none answers; blocking.

    Raises:
        AddressError: see `connect`.
    """
    for address in addresses_of(workspace):
        if (connection := connect(address)) is not None:
            return address, connection
    return None


# ------------------------------------------------------------------ records


def read_record(address: Address) -> EngineRecord | None:
    """The record of an engine; None where there is none that can be read."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with os.fdopen(os.open(address.file("json"), flags), "rb") as file:
            given: Any = json.loads(file.read(RECORD_BYTES))
        workspace, version, kind, unit = (
            str(given[name]) for name in ("workspace", "version", "kind", "unit")
        )
        return EngineRecord(workspace, int(given["pid"]), version, kind, unit)
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None


def engines() -> list[tuple[Address, EngineRecord]]:
    """All engines of this user that listen; what ended ones left behind is cleared away; blocking."""
    running = []
    for directory in directories():
        if not _is_own(directory, private=True):
            continue
        for file in sorted(directory.glob("*.json")):
            address = Address(directory, file.stem)
            if (record := read_record(address)) is not None and not _cleared(address):
                running.append((address, record))
    return running


def record_of(workspace: Path) -> EngineRecord | None:
    """The record of the engine that listens for a workspace; None where none does; blocking."""
    name = name_of(workspace)
    return next((record for address, record in engines() if address.name == name), None)


def _cleared(address: Address) -> bool:
    """Whether no engine listened at an address, which is then cleared away."""
    with _locked(address.directory):
        try:
            connection = connect(address)
        except AddressError:
            return False
        if connection is not None:
            connection.close()
            return False
        for ending in ("sock", "json"):
            address.file(ending).unlink(missing_ok=True)
        return True
