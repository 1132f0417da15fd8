"""Phase 6, second half: generated code is compiled, imported and tested in the sandbox (ontology spec §2.7).

What runs is a copy: nothing that the tests do can change what is registered. The suite has to pass, to have
at least five tests, and to fail when the agent has another id.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.building import inside
from engine.building.findings import CheckOutcome, Findings
from engine.building.staging import remove_tree, write_files
from engine.sandbox import Ended, JailRefusal, Launch, Launcher, ProcessResult, SandboxPolicy, best_jail
from engine.sandbox.completion import to_the_end
from engine.sandbox.environment import child_environment
from engine.sandbox.policy import MIB, Network
from engine.sandbox.programs import BASE_PYTHON

LIMIT_S = 60.0
MEMORY_BYTES = 512 * MIB
LEAST_ROOM = 64 * 1024
LEAST_TESTS = 5
MUTANT_ID = "mutant-of-nobody"
_ENGINE = Path(__file__).resolve().parent.parent
_ID = re.compile(rb"^id: .*$", re.M)


@dataclass(frozen=True, slots=True)
class Tried:
    """What trying a folder came to."""

    compiles: CheckOutcome
    tests_pass: CheckOutcome
    output: str = ""
    """The last 100 lines of a run that failed."""


async def try_files(files: Mapping[str, bytes], place: Path, policy: SandboxPolicy, found: Findings) -> Tried:
    """Compile, import and test an agent's files in the sandbox.

    Args:
        files: the agent's files by path.
        place: a directory of ours, in which a copy is made and taken away.
        policy: the workspace's; here it is tightened.
        found: where everything is told.

    Raises:
        asyncio.CancelledError: every process has ended and the copy is gone.
        OSError: the copy could not be written.
    """
    for path, data in files.items():
        if path.endswith(".py") and not path.startswith("skill/") and not _compiles(path, data, found):
            return _untried(f"{path} is no Python")
    packages, missing = _packages()
    if missing:
        found.error("NO_PYTEST", f"{', '.join(missing)} is not installed", hint="pip install pytest")
        return _untried("not tried")
    policy = _tightened(policy, packages)
    jail = await asyncio.to_thread(best_jail, policy)
    if isinstance(jail, JailRefusal):
        found.error("NO_JAIL", jail.message, hint="pilothouse doctor says what is missing")
        return _untried("not tried")
    root = Path(tempfile.mkdtemp(prefix="try-", dir=place))
    try:
        job = await to_the_end(asyncio.to_thread(_laid, files, root, policy))
        job |= {"engine": str(_ENGINE), "packages": list(packages)}
        result = await _run(root, job, policy, jail)
        room = (await asyncio.to_thread(shutil.disk_usage, root)).free
    finally:
        await to_the_end(asyncio.to_thread(remove_tree, root))
    tried = _judged(result, found)
    if found.errors and room < LEAST_ROOM:
        found.error("DISK_FULL", "there was no room left to try it", str(place), "make room, and build again")
    return tried


def _compiles(path: str, data: bytes, found: Findings) -> bool:
    try:
        compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        found.error("NOT_PYTHON", str(error), f"{path}:{line}")
        return False
    return True


def _packages() -> tuple[tuple[str, ...], list[str]]:
    """Where the packages lie that the tests need, and which are not there."""
    places, missing = set(), []
    for name in ("pytest", "pydantic", "yaml"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            missing.append(name)
        else:
            places.add(str(Path(spec.origin).resolve().parent.parent))
    return tuple(sorted(places)), missing


def _tightened(policy: SandboxPolicy, packages: tuple[str, ...]) -> SandboxPolicy:
    return replace(
        policy,
        memory_bytes=min(policy.memory_bytes, MEMORY_BYTES),
        wall_clock_s=LIMIT_S,
        cpu_s=min(policy.cpu_s, int(LIMIT_S)),
        processes=min(policy.processes, 32),
        network=Network.OFF,
        grace_s=min(policy.grace_s, 0.1),
        read_only=(str(_ENGINE), *packages),
    )


def _laid(files: Mapping[str, bytes], root: Path, policy: SandboxPolicy) -> dict[str, Any]:
    """The copy and its mutant, whose agent.yaml has another id."""
    write_files(root / "agent", files)
    for name in (policy.home, policy.tmp):
        (root / name).mkdir(mode=0o700)
    mutated, times = _ID.subn(b"id: " + MUTANT_ID.encode(), files.get("agent.yaml", b""))
    if times:
        write_files(root / "mutant", {**files, "agent.yaml": mutated})
    (root / "inside.py").write_bytes(Path(inside.__file__).read_bytes())
    return {
        "folder": str(root / "agent"),
        "mutant": str(root / "mutant") if times else "",
        "log": str(root / "log"),
    }


async def _run(root: Path, job: Mapping[str, Any], policy: SandboxPolicy, jail: Any) -> ProcessResult:
    words = (str(BASE_PYTHON), "-s", "-S", "-B", "-P", str(root / "inside.py"), json.dumps(job))
    env = child_environment(root, policy, None)
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    cwd = os.open(root / "agent", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await Launcher(root, policy).run(
            Launch(words[0], words, env), cwd, jail=jail, limit_s=LIMIT_S, output=lambda _stream, _text: None
        )
    finally:
        os.close(cwd)


def _judged(result: ProcessResult, found: Findings) -> Tried:
    try:
        told = json.loads(result.stdout.rpartition("\n")[2])
    except ValueError:
        told = None
    if not isinstance(told, dict) or result.ended is not Ended.EXIT:
        why = f"{result.ended} {result.problem}".strip()
        found.error("NOT_TRIED", f"the sandbox gave no answer: {why}", hint=result.stderr[-300:])
        return Tried(
            CheckOutcome("compiles", False, why), CheckOutcome("tests_pass", False, why), result.stderr
        )
    imported = told["imported"]
    if not imported["ok"]:
        found.error("NOT_IMPORTED", "the generated code cannot be imported", hint=imported["output"][-300:])
        return Tried(CheckOutcome("compiles", False, "import fails"), _not_run(), imported["output"])
    compiles = CheckOutcome("compiles", True, f"imported in the sandbox, tier {result.tier}")
    return _tests(told, compiles, found)


def _tests(told: Mapping[str, Any], compiles: CheckOutcome, found: Findings) -> Tried:
    tests, mutant = told.get("tests", {}), told.get("mutant")
    count = tests.get("passed", 0)
    measured = (
        f"{count} passed, {tests.get('failed', 0)} failed, exit {tests.get('code', tests.get('ended'))}"
    )
    output = str(tests.get("output", ""))
    if tests.get("code") != 0:
        code = "NO_TESTS" if tests.get("code") == 5 else "TESTS_FAIL"
        words = "there are no tests" if code == "NO_TESTS" else f"the tests fail: {measured}"
        found.error(code, words, "tests", _last_words(output))
        return Tried(compiles, CheckOutcome("tests_pass", False, measured), output)
    if count < LEAST_TESTS:
        found.error("FEW_TESTS", f"{count} tests ran; {LEAST_TESTS} is the least", "tests")
        return Tried(compiles, CheckOutcome("tests_pass", False, measured), output)
    if not mutant or mutant.get("code") == 0 or not mutant.get("failed"):
        found.error("MUTANT_LIVES", "the tests do not notice when the agent has another id", "tests")
        return Tried(compiles, CheckOutcome("tests_pass", False, "the mutant passes"), output)
    return Tried(compiles, CheckOutcome("tests_pass", True, f"{measured}; the mutant fails"))


def _last_words(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith(("E  ", "FAILED", "ERROR"))]
    return "; ".join(lines[-3:])


def _untried(why: str) -> Tried:
    return Tried(CheckOutcome("compiles", False, why), _not_run())


def _not_run() -> CheckOutcome:
    return CheckOutcome("tests_pass", False, "not run")
