"""Tries each layer of the jail in a child that is thrown away, and prints the results.

Run as `boot.py trial` in a bare interpreter, with a seccomp filter on standard input; see
`engine.sandbox.tier`. A layer's answer is empty when it works, else the reason.
"""

from __future__ import annotations

import _socket
import os

from engine.sandbox import kernel, landlock, process_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SECRET = "/etc/passwd"


def main(arguments: list[str]) -> None:
    """Print a dict of answers by layer, with the version of Landlock."""
    with os.fdopen(0, "rb") as source:
        program = source.read()
    answers: dict[str, str | int] = {
        "capabilities": _in_child(kernel.drop_capabilities),
        "landlock": _in_child(_landlock),
        "scope": _in_child(_scope),
        "seccomp": _in_child(lambda: _seccomp(program)),
        "broker": _in_child(lambda: _listener(program)),
        "abi": landlock.abi(),
    }
    os.write(1, repr(answers).encode())


def _in_child(work: Callable[[], None]) -> str:
    """Run the work in a fork; what it raised, in words."""
    result, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except (OSError, KeyError, ValueError) as error:
            os.write(telling, f"{type(error).__name__}: {error}"[:500].encode())
        finally:
            os._exit(0)
    os.close(telling)
    with os.fdopen(result, "rb") as file:
        answer = file.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return answer or (f"the child ended with {status}" if status else "")


def _landlock() -> None:
    kernel.forbid_new_privileges()
    os.close(os.open(_SECRET, os.O_RDONLY))
    files = landlock.handled_files(landlock.abi())
    ruleset = landlock.create_ruleset(files)
    landlock.restrict_self(ruleset)
    try:
        os.open(_SECRET, os.O_RDONLY)
    except PermissionError:
        return
    raise OSError(0, "a file could be read in spite of it")


def _scope() -> None:
    kernel.drop_capabilities()
    landlock.enter_signal_scope()
    if not process_table.out_of_reach([os.getppid()]):
        raise OSError(0, "a process outside could be signalled in spite of it")


def _seccomp(program: bytes) -> None:
    kernel.forbid_new_privileges()
    kernel.install_filter(program)
    try:
        _socket.socket(_socket.AF_UNIX)
    except PermissionError:
        return
    raise OSError(0, "a socket could be made in spite of it")


def _listener(program: bytes) -> None:
    kernel.forbid_new_privileges()
    kernel.install_filter(program, listener=True)
