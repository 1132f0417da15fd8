"""A box: one tree, the suite's material over it, and a program that asks its code, in the firmest jail here.

What the candidate may only read (its tree, the tests, the program) lies beside the jail's root; below the
root is nothing but room to write, which is cleared after each question. Questions go in one by one through a
named pipe whose name is gone before any code of the candidate runs. What is right is never in the box.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import marshal
import os
import random
import secrets
import shutil
import stat
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.mastermind.judge import forked, inside
from engine.mastermind.judge.suite import Boxed, Check, Split
from engine.sandbox import (
    Confinement,
    JailRefusal,
    Launch,
    Launcher,
    ProcessResult,
    SandboxPolicy,
    Tier,
    best_jail,
)
from engine.sandbox.environment import child_environment
from engine.sandbox.places import SYSTEM, interpreter
from engine.sandbox.policy import MIB
from engine.sandbox.programs import BASE_PYTHON

LEFT_OUT = frozenset(
    {".git", ".venv", "venv", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
)
"""Directories that are never part of a candidate."""
DECOY = "held_out_answers.json"
_SCRATCH = ("/tmp", "/dev/shm")
_SAID_BYTES = 256 * 1024


class BoxError(Exception):
    """Nothing can be judged here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a box may use."""

    check_s: float = 30.0
    """Wall-clock seconds for one question; then it has failed."""
    processor_s: int = 60
    """Processor seconds of each process."""
    memory_bytes: int = 1024 * MIB
    processes: int = 64
    disk_bytes: int = 256 * MIB
    output_bytes: int = 4 * MIB
    whole_s: float = 600.0
    """Wall-clock seconds for the box."""

    def policy(self, base: SandboxPolicy, readable: tuple[str, ...]) -> SandboxPolicy:
        """The operator's policy, tightened, with no network and nothing to read but what is given."""
        tighter = base.tightened(
            replace(
                base,
                cpu_s=self.processor_s,
                memory_bytes=self.memory_bytes,
                processes=self.processes,
                disk_bytes=self.disk_bytes,
                output_bytes=self.output_bytes,
                scratch_bytes=self.disk_bytes,
                file_bytes=self.disk_bytes,
                grace_s=min(base.grace_s, 0.05),
            ).with_network(type(base.network).OFF)
        )
        return replace(tighter, read_only=readable)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one question."""

    ended: str = ""
    """Why the box ended over it; empty while it goes on."""
    problem: str = ""
    code: int = 0
    """Exit code of the fork; -N for signal N."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """Its last word."""
    touched: tuple[tuple[str, str], ...] = ()
    """What it reached for, as event and path; only what is not free to all."""
    forged: int = 0
    """Lines that this program did not write."""
    late: bool = False
    left: int = 0
    """Processes that it left behind."""
    spoilt: bool = False
    """Whether it left files that could not be taken away."""
    clocks: Mapping[str, float] = field(default_factory=dict)
    """Processor seconds at the end of each stage, taken from outside."""
    processor_s: float = 0.0
    """Of its whole tree, by the kernel."""
    steps: Mapping[str, int] = field(default_factory=dict)


class Box:
    """One jailed program that asks one tree; use `opened`."""

    def __init__(
        self, place: Path, tree: Path, suite: Boxed, jail: Confinement, policy: SandboxPolicy
    ) -> None:
        self.place = place
        self.given, self.root = place / "given", place / "root"
        self.jail, self.policy = jail, policy
        self.said = ""
        """What came on its standard output and error, bounded."""
        self.token = secrets.token_hex(8)
        """In the decoy and nowhere else."""
        self._suite, self._tree = suite, tree
        self._run: asyncio.Task[ProcessResult] | None = None
        self._kept: list[int] = []
        self._reader: asyncio.StreamReader | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._writer: asyncio.WriteTransport | None = None

    def lay(self, material: Mapping[str, bytes], decoy: Mapping[str, Any]) -> None:
        """Put everything in its place; blocking."""
        for made in (self.place, self.given, self.root):
            made.mkdir(mode=0o700, exist_ok=True)
        tree = self.given / "tree"
        copy_tree(self._tree, tree)
        for path, data in material.items():
            target = _beneath(tree, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for module in (inside, forked):
            name = module.__name__.rpartition(".")[2]
            shutil.copyfile(module.__file__ or "", self.given / f"{name}.py")
        (self.given / DECOY).write_text(json.dumps({"note": self.token, "answers": decoy}), "utf-8")

    async def open(self, seed: int) -> None:
        """Start the program."""
        names = {name: secrets.token_hex(8) for name in ("asked", "told")}
        for name in names.values():
            os.mkfifo(self.root / name, 0o600)
        config = self._config() | names
        (self.given / "config").write_bytes(marshal.dumps(config))
        for path in (self.policy.home, self.policy.tmp):
            os.makedirs(self.root / path, mode=0o700, exist_ok=True)  # noqa: PTH103
        env = child_environment(self.root, self.policy, None) | {
            "PYTHONHASHSEED": str(seed % 4294967295),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        words = ("-s", "-S", "-B", "-P", str(self.given / "inside.py"), str(self.given / "config"))
        launch = Launch(str(BASE_PYTHON), (str(BASE_PYTHON), *words), env)
        await self._connect(names)
        cwd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        self._kept.append(cwd)
        run = Launcher(self.root, self.policy).run(
            launch, cwd, jail=self.jail, limit_s=self.policy.wall_clock_s, output=self._output
        )
        self._run = asyncio.create_task(run)

    def _config(self) -> dict[str, Any]:
        packages = [str(path) for path in self._suite.packages]
        scratch = list(_SCRATCH) if self.jail.tier is Tier.FULL else []
        tree = os.path.normpath(self.given / "tree" / self._suite.root)
        free = [str(self.root), *scratch, "/dev"]
        return {
            "given": str(self.given),
            "root": str(self.root),
            "store": str(self.place.parent),
            "laid": str(self.given / "tree"),
            "tree": tree,
            "imports": list(self._suite.imports),
            "plugins": list(self._suite.plugins),
            "packages": packages,
            "scratch": scratch,
            "home": self.policy.home,
            "tmp": self.policy.tmp,
            "free_to_write": free,
            "free_to_read": [*free, tree, *packages, *map(os.path.realpath, (*SYSTEM, *interpreter()))],
        }

    def _output(self, _stream: str, text: str) -> None:
        self.said += text[: max(0, _SAID_BYTES - len(self.said))]

    async def _connect(self, names: Mapping[str, str]) -> None:
        """Open both pipes; an end that stays open both ways keeps each from waiting for the other side."""
        loop = asyncio.get_running_loop()
        for name in names.values():
            self._kept.append(os.open(self.root / name, os.O_RDWR | os.O_NONBLOCK))
        hear = os.fdopen(os.open(self.root / names["told"], os.O_RDONLY | os.O_NONBLOCK), "rb", 0)
        say = os.fdopen(os.open(self.root / names["asked"], os.O_WRONLY | os.O_NONBLOCK), "wb", 0)
        reader = asyncio.StreamReader(limit=2**26)
        self._reader = reader
        heard, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), hear)
        self._writer, _ = await loop.connect_write_pipe(asyncio.Protocol, say)
        self._transports = [heard, self._writer]

    async def ask(
        self, check: Check, limits: Limits, *, seed: int, steps: bool = False, measured: bool = False
    ) -> Told:
        """Put one question and wait for what comes of it."""
        assert self._run is not None
        assert self._reader is not None
        assert self._writer is not None
        nonce = secrets.token_hex(16)
        question = {
            "nonce": nonce,
            "calls": [(call.target, tuple(call.args), dict(call.kwargs)) for call in check.calls],
            "test": check.test,
            "seed": seed,
            "steps": steps,
            "measured": measured,
            "limit_s": limits.check_s,
        }
        data = marshal.dumps(question)
        self._writer.write(struct.pack("<I", len(data)) + data)
        heard = asyncio.ensure_future(self._heard())
        try:
            await asyncio.wait({heard, self._run}, return_when=asyncio.FIRST_COMPLETED)
            if not heard.done():
                result = self._run.result()
                return Told(ended=result.ended, problem=result.problem or result.stderr[-500:])
            header, words = heard.result()
        finally:
            heard.cancel()
            with contextlib.suppress(asyncio.CancelledError, asyncio.IncompleteReadError):
                await heard
        return _told(header, words, nonce)

    async def _heard(self) -> tuple[dict[str, Any], bytes]:
        assert self._reader is not None
        sizes = struct.unpack("<II", await self._reader.readexactly(8))
        header = json.loads(await self._reader.readexactly(sizes[0]))
        return header, await self._reader.readexactly(sizes[1])

    async def close(self) -> ProcessResult | None:
        """End it with all its processes, and take its files away."""
        try:
            if self._run is not None:
                self._run.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    return await self._run
            return None
        finally:
            for transport in self._transports:
                transport.close() if not isinstance(transport, asyncio.WriteTransport) else transport.abort()
            for end in self._kept:
                os.close(end)
            self._kept.clear()
            await asyncio.to_thread(remove_tree, self.place)


def _told(header: Mapping[str, Any], words: bytes, nonce: str) -> Told:
    """The program's header with what the fork said, which is believed only in the form that is due."""
    touched: list[tuple[str, str]] = []
    stages: dict[str, Any] = {}
    forged = 0
    for line in words.decode("utf-8", "replace").splitlines():
        mine, _, rest = line.partition(" ")
        kind, _, text = rest.partition(" ")
        try:
            data = json.loads(text) if mine == nonce else None
        except ValueError:
            data = None
        if mine != nonce or kind not in ("touched", "ready", "done", "end") or kind in stages:
            forged += 1
        elif kind == "touched" and isinstance(data, list) and len(data) == 2:
            touched.append((str(data[0]), str(data[1])))
        elif kind != "touched":
            stages[kind] = data
    said = stages.get("end")
    return Told(
        code=int(header["code"]),
        said=said if isinstance(said, dict) else {},
        touched=tuple(touched),
        forged=forged,
        late=bool(header["late"]),
        left=int(header["left"]),
        spoilt=bool(header["spoilt"]),
        clocks=dict(header["clocks"]),
        processor_s=float(header["processor"]),
        steps={kind: data for kind, data in stages.items() if isinstance(data, int)},
    )


class Boxes:
    """Makes boxes in one place that belongs to the judge."""

    def __init__(self, store: Path, policy: SandboxPolicy, limits: Limits, at_most: Tier = Tier.FULL) -> None:
        self.store, self.limits, self._base = store, limits, policy
        found = best_jail(policy, at_most=at_most)
        if isinstance(found, JailRefusal):
            raise BoxError(found.message)
        self.jail = found

    @contextlib.asynccontextmanager
    async def opened(
        self, tree: Path, suite: Boxed, material: Mapping[str, bytes], decoy: Mapping[str, Any], *, seed: int
    ) -> Any:
        """A box on a copy of the tree, gone afterwards."""
        place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="box-", dir=self.store))
        readable = (str(place / "given"), *(str(path) for path in suite.packages))
        policy = replace(self.limits.policy(self._base, readable), wall_clock_s=self.limits.whole_s)
        box = Box(place, tree, suite, self.jail, policy)
        try:
            await asyncio.to_thread(box.lay, material, decoy)
            await box.open(seed)
            yield box
        finally:
            await box.close()


def files_of(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    """All entries of a tree but directories, by path beneath it, in order; links are not followed."""
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        for name in sorted([*names, *links]):
            path = Path(folder, name)
            yield path.relative_to(tree).as_posix(), path.lstat()


def copy_tree(source: Path, target: Path) -> None:
    """Copy the regular files of a tree; links and anything else are left out."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, status in files_of(source):
        if stat.S_ISREG(status.st_mode):
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, place)
            place.chmod(0o700 if status.st_mode & 0o100 else 0o600)


def remove_tree(place: Path) -> None:
    """Take a tree away, whatever was done to the modes of its directories."""

    @contextmanager
    def opened(path: str) -> Iterator[None]:
        with contextlib.suppress(OSError):
            os.chmod(path, 0o700)  # noqa: PTH101
        yield

    for folder, folders, _ in os.walk(place):
        for name in folders:
            path = os.path.join(folder, name)  # noqa: PTH118
            if not os.path.islink(path):  # noqa: PTH114
                with opened(path):
                    pass
    shutil.rmtree(place, ignore_errors=True)


def _beneath(tree: Path, path: str) -> Path:
    """A path of the suite's material, which may not lead out of the tree.

    Raises:
        ValueError: it does.
    """
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"material of the suite has to lie below the workspace's directory, not at {path!r}")
    return tree / path


def shuffled(checks: list[Check], seed: int) -> list[Check]:
    """The checks in an order that nobody can foresee who does not know the seed."""
    checks = list(checks)
    random.Random(f"order {seed}").shuffle(checks)
    return checks


def material_of(suite: Boxed, splits: tuple[Split, ...]) -> dict[str, bytes]:
    """The suite's files for some splits."""
    return {path: data for split in splits for path, data in suite.material(split).items()}
