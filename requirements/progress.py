"""Run pip, and say how far it is: on a terminal in one line, elsewhere a line now and then.

Arguments are those of Python: `progress.py -m pip install … -r run.txt`. What is wrong pip says itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import IO

LOOK_S, LINE_S = 0.5, 10.0
"""Seconds between two looks, and between two lines where there is no terminal."""


def main(arguments: list[str]) -> int:
    """Install, and show it; pip's exit code."""
    files = [path for path in arguments if path.endswith(".txt")]
    pinned = {
        name for path in files for name in re.findall(r"^([\w.-]+)==", Path(path).read_text(), re.MULTILINE)
    }
    site, seen = Path(sysconfig.get_path("purelib")), list[str]()
    before = len([*site.glob("*.dist-info")])
    command = [sys.executable, *arguments, "--progress-bar", "off"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as pip:
        assert pip.stdout is not None
        reader = threading.Thread(target=_read, args=(pip.stdout, seen), daemon=True)
        reader.start()
        began = said = time.monotonic()
        while pip.poll() is None:
            reader.join(LOOK_S)
            time.sleep(LOOK_S if not reader.is_alive() else 0)
            now = time.monotonic()
            if sys.stderr.isatty() or now - said >= LINE_S:
                said = now
                fetched = len([line for line in seen if line.startswith("Collecting ")])
                done = len([*site.glob("*.dist-info")]) - before
                doing = f"installed {done}" if done > 0 else f"fetched {fetched}"
                _show(f"  {doing} of {len(pinned)} packages · {now - began:.0f} s")
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return pip.returncode


def _read(output: IO[str], seen: list[str]) -> None:
    seen.extend(output)


def _show(text: str) -> None:
    sys.stderr.write(f"\r{text}\x1b[K" if sys.stderr.isatty() else f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
