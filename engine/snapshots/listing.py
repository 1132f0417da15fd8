"""Directories that are written down instead of kept: virtual environments and caches.

What makes a directory one of them is its name, or what lies in it; a workspace can therefore hide files from
its snapshots this way, and each such directory is named in the snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from itertools import islice

from engine.snapshots.cursor import OPEN_DIRECTORY, Cursor
from engine.snapshots.entry import Entry, Kind, canonical, escape
from engine.snapshots.policy import SnapshotPolicy
from engine.snapshots.reading import HashingSink, Sink, reading

VENV_OMITTED = "a virtual environment, left out by policy"
CACHE_OMITTED = "a cache, left out by policy"
_CONFIGURATION = "pyvenv.cfg"
_CONFIGURATION_BYTES = 64 * 1024
_NAMES = 10_000
"""Names in a list, at most."""


def is_cache(cursor: Cursor, name: str, policy: SnapshotPolicy) -> bool:
    """Whether a directory of this name, where the cursor stands, is a cache that is not kept whole."""
    if policy.caches == "whole":
        return False
    if name in policy.cache_names:
        return True
    return any(
        path.rpartition("/")[2] == name and path.count("/") == cursor.depth and cursor.path(name) == path
        for path in policy.cache_paths
    )


def is_venv(names: Collection[str]) -> bool:
    """Whether a directory with these names is a virtual environment."""
    return _CONFIGURATION in names and ("bin" in names or "Scripts" in names)


def venv_entry(cursor: Cursor, name: str, policy: SnapshotPolicy, sink: Sink) -> Entry:
    """The entry of the virtual environment that the cursor stands in.

    Raises:
        OSError: its parts cannot be read.
    """
    if policy.venvs == "skip":
        return Entry(escape(name), Kind.OMITTED, why=VENV_OMITTED)
    found = _distributions(cursor.fd)
    body = {"configuration": _configuration(cursor.fd), "distributions": found}
    why = f"a virtual environment: its {len(found)} distributions are listed, its files are not kept"
    return Entry(escape(name), Kind.LISTED, digest=sink.put(canonical(body)), why=why)


def cache_entry(cursor: Cursor, name: str, policy: SnapshotPolicy, sink: Sink) -> Entry:
    """The entry of a cache in the directory that the cursor stands in.

    Raises:
        OSError: it is to be listed and cannot be read.
    """
    if policy.caches == "skip":
        return Entry(escape(name), Kind.OMITTED, why=CACHE_OMITTED)
    with _Opened(cursor.fd, name) as descriptor:
        names = sorted(map(escape, _names(descriptor)))
    return Entry(
        escape(name),
        Kind.LISTED,
        digest=sink.put(canonical({"names": names})),
        why=f"a cache: its {len(names)} names are listed, its content is not kept",
    )


def listed_digest(cursor: Cursor, name: str) -> str:
    """What the list of a virtual environment or cache, in the directory of the cursor, is now.

    Raises:
        OSError: it cannot be read.
    """
    policy, sink = SnapshotPolicy(venvs="list", caches="list"), HashingSink()
    cursor.enter(name)
    try:
        if is_venv(_names(cursor.fd)):
            return venv_entry(cursor, name, policy, sink).digest
    finally:
        cursor.leave()
    return cache_entry(cursor, name, policy, sink).digest


class _Opened:
    """A directory's descriptor for the length of a `with`; no link is followed."""

    def __init__(self, directory: int, name: str) -> None:
        self._descriptor = os.open(name, OPEN_DIRECTORY, dir_fd=directory)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _names(descriptor: int) -> list[str]:
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in islice(entries, _NAMES)]


def _configuration(venv: int) -> str:
    """The text of pyvenv.cfg, which says which Python it was made with."""
    try:
        with reading(venv, _CONFIGURATION) as descriptor:
            return os.read(descriptor, _CONFIGURATION_BYTES).decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def _distributions(venv: int) -> list[list[str]]:
    """Name and version of what is installed, by the names of the metadata directories."""
    found: set[tuple[str, str]] = set()
    try:
        with _Opened(venv, "lib") as library:
            for python in filter(lambda name: name.startswith("python"), _names(library)):
                with _Opened(library, python) as versioned, _Opened(versioned, "site-packages") as packages:
                    found |= {_distribution(name) for name in _names(packages) if name.endswith("-info")}
    except OSError:
        return [list(pair) for pair in sorted(found)]  # an unfinished environment: what there is of it
    return [list(pair) for pair in sorted(found)]


def _distribution(directory: str) -> tuple[str, str]:
    """`six-1.17.0.dist-info` is six, 1.17.0."""
    name, _, version = directory.rpartition(".")[0].partition("-")
    return escape(name), escape(version.partition("-py")[0])
