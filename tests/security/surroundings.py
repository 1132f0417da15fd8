"""Where this run took place, and what holds in surroundings that it is not in, a section each."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from engine.sandbox.seccomp import FilterOptions, build_filter
from engine.sandbox.syscall_numbers import NUMBERS
from engine.sandbox.tier import layers

_TABLES = {
    "x86_64": ("asm/unistd_64.h", "x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": ("asm-generic/unistd.h",),
}
"""Where a machine's headers list the numbers, below /usr/include."""
_PLACES = ("/var/tmp", "/dev/shm")
"""Where the roots of the attempts and of the races are made."""


def lines() -> Iterator[str]:
    """What the table does not show."""
    yield "surroundings:"
    for machine, column in (("x86_64", 0), ("aarch64", 1)):
        yield f"  system calls of {machine}: {_numbers(machine, column)}"
    yield f"  delegated cgroups: {_cgroups()}"
    kinds = ", ".join(f"{place} on {kind_of(place)}" for place in _PLACES if Path(place).is_dir())
    yield f"  file systems: the attempts of this run are made on {kinds}"
    yield "  overlayfs: " + (
        "tried in this run"
        if any(kind_of(place) == "overlay" for place in _PLACES)
        else "not tried in this run; rules name directories of the merged tree, a copy-up keeps them"
    )
    yield (
        "  NFS, FUSE: not tried; the rules hold, for the client's kernel keeps them, but whoever serves "
        "the files changes them past the jail, and links may be counted otherwise"
    )
    wsl = "microsoft" in platform.release().lower()
    yield "  WSL: " + (
        "this is WSL"
        if wsl
        else "not tried; WSL 2 has a kernel of its own, its layers are found by trial; WSL 1 has none"
    )
    yield f"  containers without user namespaces: {_namespaces()}"


def numbers_of(header: str) -> dict[str, int]:
    """The numbers that a header defines."""
    found = re.findall(r"^#define\s+__NR(?:3264)?_(\w+)\s+(\d+)\s*$", header, re.M)
    return {name: int(number) for name, number in found}


def _numbers(machine: str, column: int) -> str:
    known = {name: row[column] for name, row in NUMBERS.items() if row[column] is not None}
    size = len(build_filter(FilterOptions(), machine)) // 8
    for path in _TABLES[machine]:
        header = Path("/usr/include", path)
        if header.is_file():
            theirs = numbers_of(header.read_text())
            wrong = [name for name, number in known.items() if theirs.get(name, number) != number]
            checked = sum(name in theirs for name in known)
            verdict = f"WRONG: {', '.join(wrong)}" if wrong else "none is another"
            return f"{checked} of {len(known)} are in this machine's {path}, {verdict}; {size} instructions"
    run = "run here" if platform.machine() == machine else "its filter is run by an interpreter in the tests"
    return f"{len(known)} numbers, {size} instructions; no header is here to compare with; {run}"


def _cgroups() -> str:
    root = Path("/sys/fs/cgroup")
    own = next(
        (line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line[:3] == "0::"), ""
    )
    place = root / own.strip("/")
    given = (
        (place / "cgroup.controllers").read_text().split() if (place / "cgroup.controllers").is_file() else []
    )
    delegated = bool(given) and os.access(place / "cgroup.procs", os.W_OK) and os.access(place, os.W_OK)
    here = f"here one is, with {' '.join(given)}" if delegated else "here none is"
    return f"{here}; they are not used: what no rlimit holds, memory and processes of a tree, is sampled"


def kind_of(place: str) -> str:
    """The kind of file system that a directory is on."""
    best, kind = "", "an unknown one"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4]
        inside = place == point or place.startswith(f"{point.rstrip('/')}/")
        if inside and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind


def _namespaces() -> str:
    reports = {report.name: report for report in layers().reports}
    lacking = [f"{name} ({report.reason})" for name, report in reports.items() if not report.ok]
    here = f"here is missing: {'; '.join(lacking)}" if lacking else "here they are given"
    return f"{here}; without them FULL cannot be had, and what KERNEL holds is in its columns"
