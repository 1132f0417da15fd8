"""A disk that is full or broken at a chosen write, for a program that is started on it."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

EVERY_LATER = 1 << 62
"""As the last call that fails: no write succeeds until `mend`."""
_NUMBERS = 5


def built(directory: Path) -> Path:
    """The library that a program has to be started with; skips the test where nothing compiles it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc): NO full disk was tested")
    library = directory / "disk_faults.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


class DiskFaults:
    """Counts the writes below a directory, of all processes, and lets some fail."""

    def __init__(self, control: Path, below: Path) -> None:
        control.write_bytes(bytes(8 * _NUMBERS))
        self.environment = {"FAULTS_CONTROL": str(control), "FAULTS_BELOW": str(below)}
        """What the program needs beside the library."""
        with control.open("r+b") as file:
            self._numbers = mmap.mmap(file.fileno(), 0)

    def _get(self, place: int) -> int:
        return int(struct.unpack_from("q", self._numbers, 8 * place)[0])

    def _set(self, place: int, number: int) -> None:
        struct.pack_into("q", self._numbers, 8 * place, number)

    @property
    def calls(self) -> int:
        """Writes so far."""
        return self._get(0)

    @property
    def failed(self) -> int:
        return self._get(4)

    def break_at(self, first: int, last: int, error: int) -> None:
        """Let the calls of these numbers fail, counted from 1, with an error number such as `ENOSPC`."""
        self._set(3, error)
        self._set(2, last)
        self._set(1, first)

    def mend(self) -> None:
        """From now on all succeed."""
        self._set(2, 0)
