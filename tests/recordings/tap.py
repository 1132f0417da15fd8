"""Runs a program and keeps what goes through its pipes: `tap.py FILE PROGRAM [ARGUMENT …]`.

Each line of the file is the direction (`in` or `out`) and the line itself.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import IO

LOCK = threading.Lock()


def carry(source: IO[bytes], target: IO[bytes], way: str, kept: IO[bytes]) -> None:
    for line in iter(source.readline, b""):
        with LOCK:
            kept.write(way.encode() + b" " + line)
            kept.flush()
        target.write(line)
        target.flush()
    target.close()


def main(file: str, *words: str) -> int:
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin
    assert child.stdout
    with open(file, "wb") as kept:
        there = (sys.stdin.buffer, child.stdin, "in", kept)
        threading.Thread(target=carry, args=there, daemon=True).start()
        carry(child.stdout, sys.stdout.buffer, "out", kept)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
