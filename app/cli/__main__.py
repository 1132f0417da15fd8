"""`python -m app.cli` is the `pilothouse` command."""

import sys

from app.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
