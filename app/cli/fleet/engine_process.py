"""The engine of a shard: `pilothouse` with these words, which ends at once when its shard's process does."""

from __future__ import annotations

import os
import signal
import sys

from engine.sandbox import kernel


def main() -> int:
    """Run the command line behind the process id of whoever starts it."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return 1  # it died before it could be watched
    from app.cli.main import main as pilothouse

    return pilothouse(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
