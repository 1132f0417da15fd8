"""Faults of the program that are survived: told under an id, by which a log has the traceback.

Source: mindX spec §7, behaviour 4.
"""

from __future__ import annotations

import os
import secrets
import traceback
from contextlib import suppress
from pathlib import Path

from engine.domain.text import clean_line
from engine.journal.store import DATA_DIRECTORY

LOG = "faults.log"
LOG_BYTES = 1_048_576
"""From which size on the log is begun anew; the one before is kept as `faults.log.1`."""


def told(workspace: Path, error: BaseException) -> str:
    """Put a fault into the workspace's log; what is said of it, in a line that names its id."""
    ident = f"e{secrets.token_hex(3)}"
    path = workspace / DATA_DIRECTORY / LOG
    with suppress(OSError):
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        text = f"--- {ident}\n{''.join(traceback.format_exception(error))}\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    return f"{clean_line(f'{type(error).__name__}: {error}', limit=300)} (error {ident}; {LOG} has the rest)"
