"""The program in the box: it forks for each question, and the fork alone runs candidate code.

Stand-alone, started by `engine.improve.judge.box` in a jail, with nothing but the standard library. The
parent never imports the candidate. It holds the pipe to the judge, reads the processor clock of the fork from
outside, ends what a fork leaves behind and clears its files before the next. The fork shuts the pipe to the
judge before it imports anything of the candidate's and reports to the parent only.

Code in a fork can still find this program's objects in its own process and report something false. It then
has to know the right answer, for answers are compared outside; has to let checks fail that must fail, which
look like the others; and has to take as little time as it reports, for the kernel counts it, too. An audit
hook reports what it reaches for; what the hook misses the jail holds back. Where a project's own tests are
all there is, code that tells canaries from tests by what they assert can still get past them; sealed calls
answer that.
"""

from __future__ import annotations

import contextlib
import gc
import json
import marshal
import os
import select
import shutil
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":  # in the box there is no package
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    from fork_child import Fork  # type: ignore[import-not-found]

    del sys.modules["fork_child"]  # a candidate may have a module of this name
else:
    from engine.improve.judge.fork_child import Fork

MOST_BYTES = 32 << 20
"""What one fork may report."""
_SUBREAPER, _DUMPABLE = 36, 4


def prctl(option: int, value: int) -> None:
    """Set a property of this process, where that can be done."""
    with contextlib.suppress(Exception):  # the layers around hold without it
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class ForkServer:
    """Between the judge and the forks."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        root = config["root"]
        # Both ends at once, so that neither waits for the other to open; then the names are removed.
        self._asked = os.open(f"{root}/{config['asked']}", os.O_RDONLY)
        self._told = os.open(f"{root}/{config['told']}", os.O_WRONLY)
        for name in ("asked", "told"):
            os.unlink(f"{root}/{config[name]}")  # noqa: PTH108
        places = (root, *config["scratch"])
        self._rooms = {place: set(_names(place)) - {config["home"], config["tmp"]} for place in places}
        prctl(_SUBREAPER, 1)
        prctl(_DUMPABLE, 0)

    def serve(self) -> None:
        """Answer until the judge has no more questions."""
        while True:
            size = self._exactly(4)
            if not size:
                return
            ask = marshal.loads(self._exactly(struct.unpack("<I", size)[0]))
            header, words = self._one(ask)
            data = json.dumps(header).encode()
            self._send(struct.pack("<II", len(data), len(words)) + data + words)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = os.read(self._asked, count - len(data))
            if not piece:
                return b""
            data += piece
        return data

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._told, data) :]

    def _one(self, ask: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Fork, follow the fork to its end, clear up; what the kernel says of it, and what it said itself."""
        if not ask["calls"]:
            self._load_pytest()
        gc.freeze()
        hear, say = os.pipe()
        wait, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                for end in (hear, go, self._asked, self._told):
                    os.close(end)
                Fork(self.config, ask, say, wait).run()
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
            finally:
                os._exit(code)
        os.close(say)
        os.close(wait)
        words, clocks, late = self._follow(pid, hear, go, ask)
        os.close(go)
        if late:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        left, orphans = self._end_all()
        words += _rest(hear) if not late else b""
        os.close(hear)
        header = {
            "code": os.waitstatus_to_exitcode(status),
            "clocks": clocks,
            "processor": used.ru_utime + used.ru_stime + orphans,
            "late": late,
            "left": left,
            "spoilt": self._clear(),
        }
        return header, words

    def _load_pytest(self) -> None:
        """Load pytest with its plugins once, on an empty directory, so that the forks need not."""
        if "pytest" not in sys.modules:
            import pytest

            empty = f"{self.config['root']}/{self.config['tmp']}/empty"
            os.makedirs(empty, exist_ok=True)  # noqa: PTH103
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", empty, empty])

    def _follow(
        self, pid: int, hear: int, go: int, ask: dict[str, Any]
    ) -> tuple[bytes, dict[str, float], bool]:
        """Read until its last word; the words, its clock at each stage, and whether it came too late."""
        nonce, words, seen = ask["nonce"].encode(), b"", 0
        clocks: dict[str, float] = {}
        until = time.monotonic() + ask["limit_s"]
        while len(words) < MOST_BYTES:
            left = until - time.monotonic()
            if left <= 0 or not select.select([hear], [], [], left)[0]:
                return words, clocks, True
            piece = os.read(hear, 1 << 16)
            if not piece:
                return words, clocks, False
            words += piece
            while (end := words.find(b"\n", seen)) >= 0:
                mine, kind = [*words[seen:end].split(b" ", 2), b"", b""][:2]
                seen = end + 1
                if mine == nonce and kind in (b"ready", b"done", b"end"):
                    clocks.setdefault(kind.decode(), _clock_of(pid))
                    with contextlib.suppress(OSError):
                        os.write(go, b".")
                    if kind == b"end":
                        return words, clocks, False
        return words, clocks, True

    def _end_all(self) -> tuple[int, float]:
        """End and collect what the fork left; how many there were, and their processor seconds."""
        count, spent = 0, 0.0
        until = time.monotonic() + 5
        while time.monotonic() < until:
            try:
                pid, _, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return count, spent
            if pid:
                count, spent = count + 1, spent + used.ru_utime + used.ru_stime
                continue
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
            time.sleep(0.002)
        return count + 1, spent

    def _clear(self) -> bool:
        """Take away all files of the fork; True when something stays."""
        stays = False
        for place, mine in self._rooms.items():
            for name in set(_names(place)) - mine:
                path = f"{place}/{name}"
                if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                    shutil.rmtree(path, onerror=_harder)
                else:
                    with contextlib.suppress(OSError):
                        os.unlink(path)  # noqa: PTH108
            stays = stays or bool(set(_names(place)) - mine)
        for name in ("home", "tmp"):
            with contextlib.suppress(OSError):
                os.mkdir(f"{self.config['root']}/{self.config[name]}", 0o700)  # noqa: PTH102
        return stays


def _names(place: str) -> list[str]:
    try:
        return os.listdir(place)  # noqa: PTH208
    except OSError:
        return []


def _harder(function: Callable[..., Any], path: str, _error: Any) -> None:
    """A directory that was locked is opened before it is taken away."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)  # noqa: PTH101, PTH120
        os.chmod(path, 0o700)  # noqa: PTH101
        if function in (os.rmdir, os.unlink):
            function(path)
        else:
            shutil.rmtree(path, ignore_errors=True)


def _rest(hear: int) -> bytes:
    """What was written after the last word; all that could write more has ended."""
    words = b""
    os.set_blocking(hear, False)
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(hear, 1 << 16):
            words += piece
            if len(words) > MOST_BYTES:
                break
    return words


def _clock_of(pid: int) -> float:
    """Processor seconds of another process so far, as the kernel counts them."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return -1.0


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:  # noqa: PTH123
        given = marshal.load(file)
    sys.path[:] = [path for path in sys.path if path and not path.startswith(given["given"])]
    sys.path += given["packages"]
    ForkServer(given).serve()
