"""Generated code is tried in the sandbox: what does not hold does not pass, and nothing gets out."""

from __future__ import annotations

import dataclasses
import shutil
from functools import partial
from pathlib import Path

import pytest

from engine.crew.builder.findings import Findings, PendingBuild
from engine.crew.builder.generated_code import TrialResult, generate, trial_files
from engine.crew.builder.phases import PHASES, BuildEnvironment, BuildState
from engine.crew.builder.tools import WorkspaceTools
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.tier import best_jail
from tests.building.corpus import plain, skill
from tests.building.folders import from_text, no_agent

POLICY = SandboxPolicy()


async def files_of(tmp_path: Path) -> dict[str, bytes]:
    data = skill(plain("tried"))
    around = BuildEnvironment(WorkspaceTools(tmp_path, tmp_path, POLICY), no_agent)
    work = BuildState(PendingBuild(tmp_path), around, from_text(data))
    for _, phase in PHASES:
        await phase(work, Findings())
    return generate(work.spec, work.skill, from_text(data), Findings())


async def tried(files: dict[str, bytes], tmp_path: Path) -> tuple[TrialResult, list[str]]:
    place = tmp_path / "place"
    place.mkdir(exist_ok=True)
    found = Findings()
    came = await trial_files(files, place, POLICY, found)
    assert list(place.iterdir()) == []
    return came, [one.code for one in found.errors]


TESTS = ("tests/test_agent.py", "tests/test_handoff.py")
WEAK = "".join(f"def test_{n}():\n    assert {n} >= 0\n" for n in range(6)).encode()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (dict.fromkeys(TESTS, b""), "NO_TESTS"),
        ({TESTS[0]: b"def test_one():\n    assert False\n"}, "TESTS_FAIL"),
        (dict.fromkeys(TESTS, WEAK), "MUTANT_LIVES"),
        ({TESTS[0]: b"def test_one():\n    pass\n", TESTS[1]: b""}, "FEW_TESTS"),
        ({TESTS[0]: b"import os\n\ndef test_one():\n    os._exit(0)\n"}, "TESTS_FAIL"),
        ({"agent.py": b"raise SystemExit(0)\n"}, "NOT_IMPORTED"),
        ({"agent.py": b"def agent(:\n"}, "NOT_PYTHON"),
        ({"tools.py": b"import no_such_module\n"}, "NOT_IMPORTED"),
    ],
)
async def test_a_suite_that_shows_nothing_does_not_pass(
    changes: dict[str, bytes], code: str, tmp_path: Path
) -> None:
    """Line 54."""
    came, codes = await tried(await files_of(tmp_path) | changes, tmp_path)
    assert codes == [code]
    assert not (came.compiles.passed and came.tests_pass.passed)


async def test_a_trial_that_had_no_room_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: whole._replace(free=0))
    files = await files_of(tmp_path)
    assert (await tried(files, tmp_path))[1] == []
    _, codes = await tried(files | {TESTS[0]: b"def test_one():\n    assert False\n"}, tmp_path)
    assert codes == ["TESTS_FAIL", "DISK_FULL"]


async def test_tests_reach_no_network_no_key_and_no_file_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    probe = f"""
import os, socket
import pytest

def test_no_network():
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", 9), timeout=1)

def test_no_key():
    assert not [name for name in os.environ if "KEY" in name or "TOKEN" in name]

def test_no_file():
    with pytest.raises(OSError):
        open({str(secret)!r}).read()
"""
    files = await files_of(tmp_path)
    came, codes = await tried(files | {"tests/test_probe.py": probe.encode()}, tmp_path)
    assert (codes, came.tests_pass.passed) == ([], True)
    assert came.tests_pass.measured.startswith("12 passed")


async def test_a_jail_without_namespaces_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "engine.crew.builder.generated_code.best_jail", partial(best_jail, at_most=Tier.KERNEL)
    )
    came, codes = await tried(await files_of(tmp_path), tmp_path)
    assert (codes, came.tests_pass.passed) == ([], True)
    assert came.compiles.measured.endswith("KERNEL")


async def test_what_takes_too_much_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.crew.builder.generated_code.LIMIT_S", 1.5)
    files = await files_of(tmp_path)
    waiting = {"agent.py": b"import time\n\ntime.sleep(600)\n"}
    came, codes = await tried(files | waiting, tmp_path)
    assert codes == ["NOT_TRIED"]
    assert not came.compiles.passed
    assert dataclasses.asdict(came)["compiles"]["measured"].startswith("timeout")
