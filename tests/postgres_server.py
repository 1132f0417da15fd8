"""A PostgreSQL server for tests: on a directory and a unix socket of its own, as an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

WANTED = bool(os.environ.get("PILOTHOUSE_TEST_POSTGRES"))
"""Whether the tests of what is in PostgreSQL were asked for, as `make test-extras` does."""


def binaries() -> Path | None:
    """Where the newest server's programs are."""
    places = [Path(found).resolve().parent] if (found := shutil.which("postgres")) else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name))
    return places[-1] if places else None


def left_out() -> str:
    """Why tests of what is in PostgreSQL cannot run; empty where they can."""
    if not WANTED:
        return "run them with: make test-extras"
    if find_spec("asyncpg") is None:
        return "asyncpg is not installed: make test-extras installs it"
    return "" if binaries() else "there is no PostgreSQL here; on Debian: apt-get install postgresql"


class PostgresServer:
    """One server; `start` it, and always `remove` it."""

    def __init__(self, *settings: str, environment: dict[str, str] | None = None) -> None:
        place = binaries()
        assert place is not None
        self._binaries, self._settings, self._environment = place, settings, environment or {}
        self.room = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path is short
        self.data = self.room / "data"
        # The server refuses to run as root.
        self._as = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(self.room, "nobody", self._as["group"])
        self._run("initdb", "-D", str(self.data), "-U", "pilot", "-A", "trust", "-E", "UTF8", "--no-sync")
        self._process: subprocess.Popen[bytes] | None = None

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [self._binaries / program, *words], check=True, capture_output=True, cwd=self.room, **self._as
        )

    @property
    def url(self) -> str:
        return f"postgresql://pilot@/postgres?host={self.room}"

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def start(self) -> PostgresServer:
        words = ["listen_addresses=", f"unix_socket_directories={self.room}", *self._settings]
        options = [part for word in words for part in ("-c", word)]
        with (self.room / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self.data, *options],
                stdout=log,
                stderr=log,
                cwd=self.room,
                start_new_session=True,
                env={**os.environ, **self._environment},
                **self._as,
            )
        return self.wait()

    def wait(self) -> PostgresServer:
        """Return once it takes connections."""
        ready = [self._binaries / "pg_isready", "-q", "-h", self.room]
        while subprocess.run(ready).returncode:
            assert self._process is not None
            assert self._process.poll() is None, (self.room / "log").read_text()
            time.sleep(0.05)  # it may have much to read again, and needs the processor for that
        return self

    def sql(self, *statements: str, database: str = "postgres") -> str:
        """What psql answers."""
        words = [self._binaries / "psql", "-h", str(self.room), "-U", "pilot", "-d", database, "-At"]
        words += [part for statement in statements for part in ("-c", statement)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def kill(self) -> None:
        """End the server and its backends at once, as a power cut would."""
        assert self._process is not None
        while pids := self._all():  # a new server does not start beside a backend of this one
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()
        self._process.wait()  # one that is about to end has no directory any more, and is there all the same

    def _all(self) -> list[int]:
        """The server's processes, also those that were begun a moment before it died."""
        found = []
        for place in Path("/proc").glob("[0-9]*/cwd"):
            with suppress(OSError):
                if place.readlink() == self.data:
                    found.append(int(place.parent.name))
        return found

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.room, ignore_errors=True)
