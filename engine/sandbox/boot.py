"""Starts a module of the sandbox in a bare interpreter: `python -I -S boot.py MODULE ARGUMENTS…`.

The packages `engine` and `engine.sandbox` are put there without running their `__init__`, which would
load far more than a command needs; its start is measured in milliseconds.
"""

from __future__ import annotations

import sys


def boot() -> None:
    """Import the module named in argv[1] and run its `main`."""
    here = __file__.rpartition("/")[0]
    for name, path in (("engine", here.rpartition("/")[0]), ("engine.sandbox", here)):
        package = type(sys)(name)
        package.__path__ = [path]
        sys.modules[name] = package
    # importlib would load more than the module itself does
    __import__(f"engine.sandbox.{sys.argv[1]}", fromlist=["main"]).main(sys.argv[2:])


if __name__ == "__main__":
    boot()
