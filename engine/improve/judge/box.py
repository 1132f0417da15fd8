"""A box: one tree with files of the suite over it, and a program that runs its code, in the firmest jail.

What the candidate may only read (its tree, the tests, the program) lies beside the jail's root. Below the
root is only room to write, which is cleared after each question. Questions go in one by one through a named
pipe whose name is removed before any code of the candidate runs. Expected answers are never in the box.
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
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.improve.judge import fork_child as forked
from engine.improve.judge import fork_server as inside
from engine.improve.ports import VISIBLE, BoxedSuite, Check, JobRefused, Split
from engine.sandbox.files import remove_directory
from engine.sandbox.jail import SYSTEM, Confinement, Launch, interpreter
from engine.sandbox.policy import MIB, SandboxPolicy, Tier
from engine.sandbox.process import Launcher, ProcessResult
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.sandbox.tier import JailRefusal, best_jail
from engine.value import dataclass, field, replace

LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", ".pilothouse", "__pycache__", ".venv", "venv", "node_modules", ".tmp", ".home"}
    | {".cache", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".tox", ".nox"}
)
"""Directories that are never part of a candidate: caches, environments, what versions are kept in."""
DECOY = "held_out_answers.json"
PROGRAM, TREE = "work", "src"
"""Directories of a box; a program that looks at its own path sees nothing that only judging has."""
_SCRATCH = ("/tmp", "/dev/shm")
_SAID_BYTES = 256 * 1024
_DRAWN_CALL_S = 1.0
_QUESTION: dict[str, Any] = {
    "calls": [],
    "tests": [],
    "lines": False,  # whether the lines that each test runs are noted
    "files": None,  # other contents of files by path, for a trial in a copy of the tree
    "seed": 0,
    "measured": False,
    "ready": 0,
    "call_s": 0.0,  # processor seconds that one call may take; 0 for no limit
    "processor_s": 0,  # seconds of the processor after which its process is ended; 0 for the box's limit
    "work": 0,  # work after which counting it ends; 0 counts none
}
"""What a question has, and what stands where it does not say."""


class BoxError(JobRefused):
    """Nothing can be run here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class BoxLimits:
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
class BoxAnswer:
    """The answer to one question."""

    ended: str = ""
    """Why the box ended over it; empty while it continues."""
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

    @property
    def failure(self) -> str:
        """Why there is no answer; empty where there is one."""
        if self.ended:
            return f"its box ended ({self.ended}) {self.problem}".strip()
        if self.late:
            return "it took longer than it may, or said too much"
        if self.said:
            return ""
        if self.code == 0:
            return "its process ended with 0 before it reported"
        end = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"its process ended with {end}"


class Box:
    """One jailed program that asks one tree; use `opened`."""

    def __init__(self, place: Path, suite: BoxedSuite, jail: Confinement, policy: SandboxPolicy) -> None:
        self.place = place
        self.given, self.root = place / PROGRAM, place / "run"
        self.jail, self.policy = jail, policy
        self.said = ""
        """What came on its standard output and error, bounded."""
        self.token = secrets.token_hex(8)
        """In the decoy and nowhere else."""
        self.processor_s = 0.0
        """What its answers took."""
        self._suite = suite
        self._run: asyncio.Task[ProcessResult] | None = None
        self._kept: list[int] = []
        self._reader: asyncio.StreamReader | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._writer: asyncio.WriteTransport | None = None

    @property
    def alive(self) -> bool:
        """Whether its program runs."""
        return self._run is not None and not self._run.done()

    def place_files(
        self, source: Path | None, material: Mapping[str, bytes], decoy: Mapping[str, Any]
    ) -> None:
        """Put everything in its place; blocking."""
        tree = self.given / TREE
        for made in (self.place, self.given, self.root, tree):
            made.mkdir(mode=0o700)
        if source is not None:
            copy_tree(source, tree)
        for path, data in material.items():
            target = _beneath(tree, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for program in (Path(inside.__file__), Path(forked.__file__)):
            shutil.copyfile(program, self.given / program.name)
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
        env = child_environment(self.root, self.policy, None) | {"PYTHONHASHSEED": str(seed % 4294967295)}
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins load modules that a project may have itself
        words = ("-s", "-S", "-B", "-P", str(self.given / "fork_server.py"), str(self.given / "config"))
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
        tree = os.path.normpath(self.given / TREE / self._suite.root)
        free = [str(self.root), *scratch, "/dev"]
        sealed = material_of(self._suite, (Split.SEALED,)).keys() - material_of(self._suite, VISIBLE).keys()
        return {
            "given": str(self.given),
            "root": str(self.root),
            "store": str(self.place.parent),
            "laid": str(self.given / TREE),
            "tree": tree,
            "sealed": [os.path.realpath(self.given / TREE / path) for path in sorted(sealed)],
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

    async def ask(self, check: Check, limits: BoxLimits, *, seed: int, measured: bool = False) -> BoxAnswer:
        """Put a check as a question."""
        question = {
            "calls": [(call.target, tuple(call.args), dict(call.kwargs), call.again) for call in check.calls],
            "call_s": _DRAWN_CALL_S if check.drawn else 0.0,
            "tests": [check.test] if check.test else [],
            "seed": seed,
            "measured": measured,
            "ready": check.ready,
        }
        return await self.put(question, limits.check_s)

    async def put(self, question: Mapping[str, Any], limit_s: float) -> BoxAnswer:
        """Put one question and wait for its answer.

        Args:
            question: `calls`, each as target, arguments and keywords, or `tests`, nodes of pytest, all when
                empty; see `_QUESTION`.
            limit_s: seconds by the clock.
        """
        assert self._run is not None
        assert self._reader is not None
        assert self._writer is not None
        nonce = secrets.token_hex(16)
        question = {**_QUESTION, **question, "nonce": nonce, "limit_s": limit_s}
        data = marshal.dumps(question)
        self._writer.write(struct.pack("<I", len(data)) + data)
        heard = asyncio.ensure_future(self._heard())
        try:
            await asyncio.wait({heard, self._run}, return_when=asyncio.FIRST_COMPLETED)
            if not heard.done():
                result = self._run.result()
                return BoxAnswer(ended=result.ended, problem=result.problem or result.stderr[-500:])
            header, words = heard.result()
        finally:
            heard.cancel()
            await asyncio.gather(heard, return_exceptions=True)
        answer = _told(header, words, nonce)
        self.processor_s += answer.processor_s
        return answer

    async def _heard(self) -> tuple[dict[str, Any], bytes]:
        assert self._reader is not None
        sizes = struct.unpack("<II", await self._reader.readexactly(8))
        header = json.loads(await self._reader.readexactly(sizes[0]))
        return header, await self._reader.readexactly(sizes[1])

    async def close(self, placing: asyncio.Future[None]) -> None:
        """End it with all its processes, and take its files away once they are placed."""
        if self._run is not None:
            self._run.cancel()
        try:
            await _ended(placing, self._run or placing)
        finally:
            for transport in self._transports:
                transport.close() if not isinstance(transport, asyncio.WriteTransport) else transport.abort()
            for end in self._kept:
                os.close(end)
            self._kept.clear()
            await _ended(asyncio.ensure_future(asyncio.to_thread(remove_directory, self.place)))


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    """Wait for the end of tasks; when this is cancelled meanwhile, that is raised after their end."""
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        await asyncio.wait(tasks)
        raise


def _told(header: Mapping[str, Any], words: bytes, nonce: str) -> BoxAnswer:
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
    end = stages.get("end")
    return BoxAnswer(
        code=int(header["code"]),
        said=end if isinstance(end, dict) else {},
        touched=tuple(touched),
        forged=forged,
        late=bool(header["late"]),
        left=int(header["left"]),
        spoilt=bool(header["spoilt"]),
        clocks=dict(header["clocks"]),
        processor_s=float(header["processor"]),
    )


class Boxes:
    """Makes boxes in one directory.

    Args:
        store: where they are made; the system's directory for temporary files by default.
        policy: the operator's, which boxes tighten.
        limits: what each may use.
        at_most: a firmer tier is not used.

    Raises:
        BoxError: the machine has no jail that the policy is content with.
    """

    def __init__(
        self,
        store: Path | None = None,
        policy: SandboxPolicy | None = None,
        limits: BoxLimits | None = None,
        at_most: Tier = Tier.FULL,
    ) -> None:
        self.store = store or Path(tempfile.gettempdir()).resolve()
        self.policy, self.limits = policy or SandboxPolicy(), limits or BoxLimits()
        jail = best_jail(self.policy, at_most=at_most)
        if isinstance(jail, JailRefusal):
            raise BoxError(jail.message)
        self.jail = jail

    @contextlib.asynccontextmanager
    async def opened(
        self,
        tree: Path | None,
        suite: BoxedSuite,
        material: Mapping[str, bytes],
        decoy: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        limits: BoxLimits | None = None,
    ) -> AsyncIterator[Box]:
        """A box on a copy of the tree with the material over it, or on the material alone.

        It is removed afterwards.
        """
        limits, place = limits or self.limits, self.store / f"tmp{secrets.token_hex(4)}"
        readable = tuple(map(str, (place / PROGRAM, *suite.packages)))
        policy = replace(limits.policy(self.policy, readable), wall_clock_s=limits.whole_s)
        box = Box(place, suite, self.jail, policy)
        placing = asyncio.ensure_future(asyncio.to_thread(box.place_files, tree, material, decoy or {}))
        try:
            await asyncio.shield(placing)
            await box.open(seed)
            yield box
        finally:
            await box.close(placing)  # its thread goes on and makes files when this is cancelled


def files_of(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    """All entries of a tree but directories, by path beneath it, in order; links are not followed."""
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        for name in sorted([*names, *links]):
            path = Path(folder, name)
            yield path.relative_to(tree).as_posix(), path.lstat()


def tree_contents(root: Path) -> dict[str, bytes]:
    """The regular files of a tree by path; blocking."""
    regular = (path for path, status in files_of(root) if stat.S_ISREG(status.st_mode))
    return {path: (root / path).read_bytes() for path in regular}


def copy_tree(source: Path, target: Path) -> None:
    """Copy the regular files of a tree; links and anything else are left out."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, status in files_of(source):
        if stat.S_ISREG(status.st_mode):
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, place)
            place.chmod(0o700 if status.st_mode & 0o100 else 0o600)


def _beneath(tree: Path, path: str) -> Path:
    """A path of the suite's material, which may not lead out of the tree.

    Raises:
        ValueError: it does.
    """
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"material of the suite has to lie below the workspace's directory, not at {path!r}")
    return tree / path


def shuffled(checks: list[Check], seed: int) -> list[Check]:
    """The checks in an order that cannot be foreseen without the seed."""
    checks = list(checks)
    random.Random(f"order {seed}").shuffle(checks)
    return checks


def material_of(suite: BoxedSuite, splits: tuple[Split, ...]) -> dict[str, bytes]:
    """The suite's files for some splits."""
    return {path: data for split in splits for path, data in suite.material(split).items()}
