"""A box: a copy of a project in a directory of its own, whose programs run in the jail.

What is found out there comes back as JSON. The copy takes regular files only, so nothing in it leads out.
Source: mindX spec §6.4 and §7 behaviours 51 to 55.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.domain.text import clean_line
from engine.mastermind.code.projects import Project
from engine.mastermind.code.tree import LeftOut, read_bytes, walk
from engine.sandbox import (
    Confinement,
    Ended,
    JailRefusal,
    Launch,
    Launcher,
    SandboxPolicy,
    best_jail,
    layers,
)
from engine.sandbox.environment import child_environment
from engine.sandbox.programs import BASE_PYTHON

_HARNESS = Path(__file__).with_name("harness.py")
_LARGEST_FILE = 20_000_000
_LARGEST_RESULT = 64_000_000
Tests = dict[str, dict[str, Any]]
"""By id: outcome (`passed`, `failed`, `error`, `skipped`, `xfailed`), seconds, and where it failed: path,
line, message; with `lines` the lines that it ran, by file."""


class BoxError(Exception):
    """Nothing could be run; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where boxes are made and what holds the programs in them."""

    policy: SandboxPolicy
    jail: Confinement
    scratch: Path | None = None
    """Where boxes are made; the system's directory for temporary files by default."""

    @classmethod
    def standing(cls, policy: SandboxPolicy | None = None, scratch: Path | None = None) -> Workshop:
        """The workshop of this machine; blocking when it is first asked for.

        Raises:
            BoxError: the machine has no jail that the policy is content with.
        """
        policy = policy or SandboxPolicy()
        jail = best_jail(policy, layers())
        if isinstance(jail, JailRefusal):
            raise BoxError(jail.message)
        return cls(policy, jail, scratch)


class Box:
    """One copy of a project. Use it as an asynchronous context; it is removed at the end.

    Args:
        workshop: what holds its programs.
        root: the directory that paths count from.
        project: what is copied, with its tests.
        files: contents in place of the project's own, by path from the root; None leaves a file out.
        copies: how many trees there are, for candidates that are tried side by side.
    """

    def __init__(
        self,
        workshop: Workshop,
        root: Path,
        project: Project,
        files: Mapping[str, str | None] | None = None,
        *,
        copies: int = 1,
    ) -> None:
        self._workshop, self._root, self._project = workshop, root, project
        self._files, self._copies = dict(files or {}), copies
        self._top = Path()
        self.left = LeftOut()
        """What was not copied."""

    async def __aenter__(self) -> Box:
        """Make it.

        Raises:
            BoxError: it cannot be made.
        """
        try:
            await asyncio.to_thread(self._make)
        except OSError as error:
            await self.__aexit__(None, None, None)
            raise BoxError(f"{self._project.id} cannot be copied: {error}") from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove it."""
        if self._top != Path():
            await asyncio.to_thread(shutil.rmtree, self._top, ignore_errors=True)

    def _make(self) -> None:
        self._top = Path(tempfile.mkdtemp(prefix="box-", dir=self._workshop.scratch)).resolve()
        policy = self._workshop.policy
        for name in (policy.home, policy.tmp, "run", "empty", *self.trees):
            (self._top / name).mkdir()
        shutil.copyfile(_HARNESS, self._top / "run" / "harness.py")
        changed = {self._project.inside(path): text for path, text in self._files.items()}
        source = (self._root / self._project.directory).resolve()
        for path in walk(source, self.left, hidden=True):
            if path in changed or path.startswith("held_out/"):
                continue
            try:
                data = read_bytes(source / path, _LARGEST_FILE, beneath=source)
            except OSError as error:
                self.left.add(error.strerror or str(error), path)
                continue
            self._put(path, data)
        for path, text in changed.items():
            if text is not None:
                self._put(path, text.encode("utf-8", "surrogateescape"))

    @property
    def trees(self) -> list[str]:
        """The names of its copies."""
        return [f"tree{number}" for number in range(self._copies)]

    @property
    def name(self) -> str:
        """The project's directory in a copy."""
        return Path(self._project.directory).name or "project"

    @property
    def roots(self) -> list[str]:
        """The directories that hold its copies."""
        return [str(self._top / tree) for tree in self.trees]

    def _put(self, path: str, data: bytes) -> None:
        for tree in self.trees:
            target = self._top / tree / self.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    def add(self, path: str, data: bytes) -> None:
        """Put one more file into every copy, by its path from the project's directory."""
        self._put(path, data)

    async def tests(self, wanted: Sequence[str] = (), *, lines: bool = False, limit_s: float = 60.0) -> Tests:
        """Run tests, all when none is named; what became of each by its id.

        Args:
            wanted: ids of tests or files, from the project's directory.
            lines: note the lines of the project that each ran.
            limit_s: seconds by the clock.

        Raises:
            BoxError: nothing came of it.
        """
        said = await self.work({"mode": "tests", "tests": list(wanted), "lines": lines}, limit_s)
        if "tests" not in said:
            raise BoxError(f"The tests of {self._project.id} gave nothing: {_problems(said)}")
        tests: Tests = said["tests"]
        return tests

    async def work(self, job: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Have the harness do a job; see `engine.mastermind.code.harness`.

        Raises:
            BoxError: the harness said nothing, or a limit ended it.
        """
        top = str(self._top / "tree0")
        job = {**job, "top": top, "empty": str(self._top / "empty"), "project": self.name, "limit_s": limit_s}
        result = self._top / "run" / "result.json"
        await asyncio.to_thread(self._write_job, job, result)
        ended, problem, complaint = await self._run(limit_s + 5)
        try:
            said: dict[str, Any] = await asyncio.to_thread(_read_result, result)
        except (OSError, ValueError) as error:
            words = clean_line(problem or complaint or str(error), limit=300)
            raise BoxError(f"Nothing came of running {self._project.id} ({ended}): {words}") from error
        return said

    def _write_job(self, job: dict[str, Any], result: Path) -> None:
        with suppress(FileNotFoundError):
            result.unlink()
        (self._top / "run" / "job.json").write_text(json.dumps(job), encoding="utf-8")

    async def _run(self, limit_s: float) -> tuple[Ended, str, str]:
        places = libraries(self._root, self._project)
        policy = self._workshop.policy
        policy = replace(policy, read_only=(*policy.read_only, *places))
        env = child_environment(self._top, policy, None)
        env |= {
            "PYTHONPATH": os.pathsep.join(places),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        run = self._top / "run"
        words = (str(BASE_PYTHON), str(run / "harness.py"), str(run / "job.json"), str(run / "result.json"))
        cwd = os.open(self._top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            done = await Launcher(self._top, policy).run(
                Launch(words[0], words, env),
                cwd,
                jail=self._workshop.jail,
                limit_s=limit_s,
                output=lambda stream, text: None,
            )
        finally:
            os.close(cwd)
        return done.ended, done.problem, done.stderr.rpartition("\n")[2]


def libraries(root: Path, project: Project) -> list[str]:
    """Directories with packages that its programs may read: its own virtual environment's, and pytest's."""
    top = (root / project.directory).resolve()
    found = []
    for name in (".venv", "venv", "env"):
        if (top / name / "pyvenv.cfg").is_file():
            places = sorted((top / name / "lib").glob("python3*/site-packages"))
            found += [str(place.resolve()) for place in places if place.resolve().is_relative_to(top)]
    return [*found, *_test_libraries()]


def _test_libraries() -> list[str]:
    """Where this installation has pytest, when it has."""
    found = importlib.util.find_spec("pytest")
    if found is None or found.origin is None:
        return []
    return [str(Path(found.origin).resolve().parent.parent)]


def _read_result(path: Path) -> Any:
    said = json.loads(read_bytes(path, _LARGEST_RESULT))
    if not isinstance(said, dict):
        raise ValueError("the harness said something else than an object")  # noqa: TRY004
    return said


def _problems(said: Mapping[str, Any]) -> str:
    return clean_line("; ".join(map(str, said.get("problems", []))) or "no reason was given", limit=300)
