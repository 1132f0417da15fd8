"""The engine of a shard: `pilothouse serve`, which ends at once when its shard's process does.

It loads the program before its shard has the lease, then waits for a line on standard input: a JSON object
with the URL of the journal, `journal`, and the words of the command line, `words`.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from engine.sandbox import kernel


def main() -> int:
    """Run the command line behind the process id of whoever starts it; without a line, end."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return 1  # it died before it could be watched
    import app.cli.serve  # noqa: F401 - takes most of a second
    from app.cli.main import main as pilothouse
    from engine.core.store import JOURNAL

    if not (line := sys.stdin.readline()):
        return 1
    order = json.loads(line)
    os.environ[JOURNAL] = order["journal"]
    return pilothouse(order["words"])


if __name__ == "__main__":
    sys.exit(main())
