"""What of the jail works on this machine: each layer is tried, never concluded from a version.

The trial runs in children that are thrown away and takes some 30 ms, once in a process. Blocking.
Source: sandbox spec §1, §5.3, §5.6.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.sandbox import bwrap, kernel, landlock, seatbelt
from engine.sandbox.boot import __file__ as boot_file
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.programs import BASE_PYTHON
from engine.sandbox.seccomp import FilterOptions, build_filter
from engine.sandbox.syscall_numbers import MACHINES

_PATIENCE_S = 30.0
_NOT_LINUX = "this needs Linux"
_INSTALL_BWRAP = (
    "install the distribution's package bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; "
    "Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap)"
)
_NAMESPACE_FIXES = (
    ("uid map", "AppArmor restricts user namespaces: install the profile bwrap-userns-restrict"),
    ("loopback", "AppArmor restricts user namespaces: install the profile bwrap-userns-restrict"),
    (
        "new namespace",
        "allow user namespaces: sysctl user.max_user_namespaces=15000, or in a container "
        "--security-opt seccomp=unconfined",
    ),
    ("disable-userns", "install a bubblewrap of version 0.8 or later"),
)
_LANDLOCK_FIXES = (
    ("not implemented", "use a kernel of 5.13 or later built with CONFIG_SECURITY_LANDLOCK"),
    ("not supported", "add landlock to the list lsm= on the kernel's command line"),
    ("not permitted", "the container's seccomp profile forbids it: allow landlock_create_ruleset"),
)


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer of the jail, as found."""

    name: str
    ok: bool
    reason: str
    """What it gives when it works, why not when it does not."""
    fix: str = ""
    """What the operator can do, when it does not work."""


@dataclass(frozen=True, slots=True)
class Layers:
    """What this machine gives."""

    reports: tuple[LayerReport, ...]
    landlock_abi: int = 0
    bwrap: str | None = None
    """Absolute path, when it works."""

    def __getitem__(self, name: str) -> LayerReport:
        """The report of a layer; one that was not tried does not work."""
        found = [report for report in self.reports if report.name == name]
        return found[0] if found else LayerReport(name, False, "it was not tried")


@cache
def layers() -> Layers:
    """What works here; tried once in a process."""
    return probe()


def probe() -> Layers:
    """Try every layer now."""
    if sys.platform != "linux":
        found = [LayerReport(name, False, _NOT_LINUX) for name in ("landlock", "seccomp", "namespaces")]
        return Layers((*found, _seatbelt()))
    if kernel.MACHINE not in MACHINES:
        why = f"no table of system calls for {kernel.MACHINE}; known are {', '.join(MACHINES)}"
        return Layers((LayerReport("seccomp", False, why),))
    answers = _trial()
    abi = answers.get("abi", 0)
    abi = abi if isinstance(abi, int) and not answers["landlock"] else 0
    namespaces, path = _namespaces()
    reports = (
        _landlock(str(answers["landlock"]), abi),
        _simple("scope", answers, "a command is killed whole, at once", "needs a kernel of 6.12 or later"),
        _simple(
            "seccomp",
            answers,
            f"{kernel.MACHINE}, {len(_filter()) // 8} instructions",
            "needs a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp",
        ),
        _simple(
            "broker",
            answers,
            "chmod, chown and times of files outside are refused",
            "another seccomp listener is above; start Pilothouse outside of it",
        ),
        namespaces,
        _simple("capabilities", answers, "none are kept" + _root_note(), "start Pilothouse as another user"),
    )
    return Layers(reports, abi, path)


def _root_note() -> str:
    return "; run by root, processes are counted, not capped" if os.getuid() == 0 else ""


def _filter() -> bytes:
    return build_filter(FilterOptions(), kernel.MACHINE)


def _trial() -> dict[str, str | int]:
    """The answers of `engine.sandbox.trial`; each layer fails when it cannot be run."""
    command = [str(BASE_PYTHON), "-I", "-S", str(Path(boot_file).resolve()), "trial"]
    why = ""
    try:
        done = subprocess.run(
            command, input=_filter(), capture_output=True, env={}, cwd="/", timeout=_PATIENCE_S, check=False
        )
        answers = ast.literal_eval(done.stdout.decode())
        if isinstance(answers, dict):
            return answers
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    except (SyntaxError, ValueError):
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return dict.fromkeys(
        ("landlock", "scope", "seccomp", "broker", "capabilities"), why or "the trial did not run"
    )


def _simple(name: str, answers: dict[str, str | int], good: str, fix: str) -> LayerReport:
    why = str(answers[name])
    return LayerReport(name, not why, why or good, fix if why else "")


def _landlock(why: str, abi: int) -> LayerReport:
    if why:
        fixes = [fix for words, fix in _LANDLOCK_FIXES if words in why]
        return LayerReport("landlock", False, why, fixes[0] if fixes else _LANDLOCK_FIXES[0][1])
    lost = landlock.missing(abi)
    reason = f"ABI {abi}" + (f": {'; '.join(lost)}" if lost else ": files, TCP ports, signals")
    return LayerReport("landlock", True, reason)


def _namespaces() -> tuple[LayerReport, str | None]:
    """Whether bwrap makes what `engine.sandbox.bwrap` asks of it."""
    path = bwrap.find()
    if path is None:
        there = [place for place in bwrap.CANDIDATES if os.access(place, os.X_OK)]
        why = f"{there[0]} is not root's own" if there else "bubblewrap is not installed"
        return LayerReport("namespaces", False, why, _INSTALL_BWRAP), None
    with tempfile.TemporaryDirectory() as root:
        arguments = bwrap.arguments(Path(root).resolve(), SandboxPolicy(), ())
        try:
            done = subprocess.run(
                [path, *arguments, "--", "/bin/sh", "-c", ":"],
                capture_output=True, env={}, timeout=_PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return LayerReport("namespaces", False, str(error), _INSTALL_BWRAP), None
    if done.returncode == 0:
        return LayerReport("namespaces", True, f"{path}: files, processes and network of its own"), path
    why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    fixes = [fix for words, fix in _NAMESPACE_FIXES if words in why]
    return LayerReport("namespaces", False, why, fixes[0] if fixes else _NAMESPACE_FIXES[2][1]), None


def _seatbelt() -> LayerReport:
    if not os.access(seatbelt.PROGRAM, os.X_OK):
        return LayerReport("seatbelt", False, f"there is no {seatbelt.PROGRAM}", "use Linux or macOS")
    why = "the profile is written and not tested, and the supervisor that starts commands needs Linux"
    return LayerReport("seatbelt", False, why, "use Linux, or accept unconfined commands")
