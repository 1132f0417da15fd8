"""Whole builds: idempotence, versions, and what goes wrong at any place leaves what was there (spec §2.9)."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.crew.builder.findings import BuildResult, PendingBuild, Status
from engine.crew.builder.registration import BuildPaths, RegistrationError, read_agent, read_build, repair
from engine.crew.ontology.spec import AgentSpec
from tests.engine.crew.builder.corpus import SKILLS, laid, lay, plain, skill
from tests.engine.crew.builder.folders import FolderRegistrar, builder_of
from tests.engine.crew.builder.folders import build as built_of


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Time and inode of everything below a folder."""
    return {
        path.relative_to(folder).as_posix(): (path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in sorted(folder.rglob("*"))
    }


def codes(result: BuildResult) -> list[str]:
    return [one.code for one in result.errors]


def staging(workspace: Path) -> list[str]:
    return sorted(path.name for path in (workspace / ".builds").glob("*"))


REQUIRED = {"mcp_servers": [{"server": "slow", "tools": ["find"], "required": True}]}


class Refusing(FolderRegistrar):
    """Registers no second version."""

    async def register(self, spec: AgentSpec, folder: Path) -> None:
        if spec.version == "1.0.1":
            raise RegistrationError("the database is locked")


async def test_a_build_again_writes_nothing_and_a_failed_one_brings_the_former_version_back(
    tmp_path: Path,
) -> None:
    """Line 55."""
    folder = laid(tmp_path / "skills", "release-train")
    (folder / "SKILL.md").write_bytes(
        SKILLS["release-train"]["SKILL.md"].replace(b'  mindrian-version: "1.10"\n', b"")
    )
    workspace = tmp_path / "workspace"
    first = await built_of(workspace, folder)
    assert (first.status, first.spec.version, len(first.phases)) == (Status.BUILT, "1.0.0", 7)
    assert first.files == ("agent.yaml", "instructions.md")
    assert staging(workspace) == []
    before = state(workspace)
    again = await built_of(workspace, folder)
    assert (again.status, again.spec, again.output_path) == (Status.UP_TO_DATE, first.spec, first.output_path)
    assert again.files == first.files
    assert state(workspace) == before

    (folder / "notes.md").write_text("changed", encoding="utf-8")
    registrar = Refusing(BuildPaths(workspace))
    failed = await built_of(workspace, folder, registrar=registrar)
    last = failed.phases[-1].number
    assert (failed.status, codes(failed), last) == (Status.FAILED, ["NOT_REGISTERED"], 7)
    assert await registrar.resolve("release-train") == first.spec
    assert state(Path(first.output_path)).keys() == {
        one[21:] for one in before if one.startswith("agents/release-train/")
    }
    assert len(staging(workspace)) == 1

    builder = builder_of(workspace)
    second = await builder.build(PendingBuild(folder))
    assert (second.status, second.spec.version) == (Status.BUILT, "1.0.1")
    assert await builder.remove("release-train")
    assert not await builder.remove("release-train")
    assert await FolderRegistrar(BuildPaths(workspace)).resolve("release-train") is None
    assert not BuildPaths(workspace).agent("release-train").exists()


@pytest.mark.parametrize(
    "name", ["docx", "brainstorm-ideas", "review-council", "socratic-coach", "odd-unicode"]
)
async def test_each_type_is_built(name: str, tmp_path: Path) -> None:
    """Line 49."""
    result = await built_of(tmp_path / "workspace", laid(tmp_path, name))
    assert result.status is Status.BUILT, [str(one) for one in result.findings]
    agent = Path(result.output_path)
    assert SKILLS[name]["SKILL.md"].endswith((agent / "instructions.md").read_bytes())
    assert (agent / "skill" / "SKILL.md").read_bytes() == SKILLS[name]["SKILL.md"]
    build = json.loads((agent / "BUILD.json").read_text(encoding="utf-8"))
    assert [phase["passed"] for phase in build["phases"]] == [True] * 6
    assert build["type"]["rule"]


async def test_two_builds_at_once_make_one_agent(tmp_path: Path) -> None:
    folder = laid(tmp_path, "comma-tools")
    workspace = tmp_path / "workspace"
    builder = builder_of(workspace)
    results = await asyncio.gather(*(builder.build(PendingBuild(folder)) for _ in range(2)))
    assert sorted(one.status for one in results) == [Status.BUILT, Status.UP_TO_DATE]
    assert {one.spec.version for one in results} == {"1.0.0"}


async def test_a_dry_run_leaves_nothing(tmp_path: Path) -> None:
    result = await built_of(tmp_path / "ws", laid(tmp_path, "with-crlf"), dry_run=True)
    assert (result.status, result.success, len(result.phases)) == (Status.DRY_RUN, True, 6)
    assert staging(tmp_path / "ws") == []
    assert not (tmp_path / "ws" / "agents").exists()


@pytest.mark.parametrize(
    ("data", "more", "status", "code"),
    [
        (b"no skill\n", {}, Status.FAILED, "NO_FRONTMATTER"),
        (skill(plain("x")), {"overrides": {"type": "gizmo"}}, Status.FAILED, "UNKNOWN_TYPE"),
        (skill(plain("x"), "z" * 200_001), {}, Status.FAILED, "TOO_BIG"),
        (skill(plain("x")), {"overrides": {"tools": 7}}, Status.FAILED, "BAD_SPEC"),
        (skill(plain("x")), {"trust": False}, Status.NEEDS_OPERATOR, ""),
        (skill(plain("x")), {"overrides": {"tools": REQUIRED}}, Status.FAILED, "MCP_DOWN"),
        (
            skill("name: x\ndescription: Replace with description of the skill"),
            {},
            Status.FAILED,
            "PLACEHOLDER",
        ),
    ],
)
async def test_what_cannot_be_built_ends_clearly(
    data: bytes, more: dict[str, Any], status: Status, code: str, tmp_path: Path
) -> None:
    folder = lay(tmp_path / "x", {"SKILL.md": data + b"\n"})
    result = await built_of(tmp_path / "ws", folder, **more)
    assert (result.status, codes(result)[:1]) == (status, [code] if code else [])
    assert (result.choice is not None) == (status is Status.NEEDS_OPERATOR)
    assert not (tmp_path / "ws" / "agents").exists()
    assert staging(tmp_path / "ws") == []
    json.dumps(result.as_json())


async def test_a_full_disk_in_phase_6_fails_and_leaves_no_staging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "instructions.md":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return whole(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    result = await built_of(tmp_path / "ws", laid(tmp_path, "on"))
    assert (result.status, codes(result), result.phases[-1].number) == (Status.FAILED, ["DISK_FULL"], 6)
    assert (staging(tmp_path / "ws"), result.output_path) == ([], "")


async def test_the_staging_that_a_dead_process_left_is_kept_for_a_day(tmp_path: Path) -> None:
    left = tmp_path / "ws" / ".builds"
    for name, age in (("b-new", 700), ("b-old", 25 * 3600)):
        lay(left / name, {"log": b"x"})
        os.utime(left / name, (time.time() - age,) * 2)
    assert (await built_of(tmp_path / "ws", laid(tmp_path, "on"))).status is Status.BUILT
    assert staging(tmp_path / "ws") == ["b-new"]


class Connecting:
    """A server whose program starts and never shakes hands."""

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.process: asyncio.subprocess.Process | None = None

    async def lacks(self, server: str, tools: Sequence[str]) -> str:
        self.process = await asyncio.create_subprocess_exec("sleep", "600")
        self.up.set()
        try:
            await self.process.wait()
        finally:
            self.process.kill()
            await self.process.wait()
        return "it ended"


async def test_an_interrupt_in_phase_4_leaves_no_child_and_no_agent(tmp_path: Path) -> None:
    tools = Connecting()
    folder = lay(tmp_path / "x", {"SKILL.md": skill(plain("x"))})
    source = PendingBuild(folder, overrides={"tools": REQUIRED})
    building = asyncio.create_task(builder_of(tmp_path / "ws", lacks=tools.lacks).build(source))
    await tools.up.wait()
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert tools.process is not None
    assert tools.process.returncode is not None
    assert staging(tmp_path / "ws") == []
    assert not (tmp_path / "ws" / "agents").exists()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from engine.crew.builder.findings import PendingBuild
from engine.crew.builder.registration import BuildPaths
from tests.engine.crew.builder.folders import FolderRegistrar, builder_of

class Dying(FolderRegistrar):
    async def register(self, spec, folder):
        if spec.version == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)
        await super().register(spec, folder)

workspace = Path(sys.argv[1])
builder = builder_of(workspace, registrar=Dying(BuildPaths(workspace)))
asyncio.run(builder.build(PendingBuild(Path(sys.argv[2]))))
"""


async def test_a_kill_during_the_swap_is_repaired_at_the_next_start(tmp_path: Path) -> None:
    folder, workspace = laid(tmp_path, "on"), tmp_path / "ws"
    first = await built_of(workspace, folder)
    (folder / "more.md").write_text("more", encoding="utf-8")
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(workspace), str(folder), "1.0.1"]
    done = await asyncio.to_thread(subprocess.run, command, check=False, cwd=Path(__file__).parents[4])
    assert done.returncode == -9
    assert read_build(Path(first.output_path)).version == "1.0.1"
    places = BuildPaths(workspace)
    repair(places)
    assert read_agent(places.agent("on")).version == "1.0.1"
    assert staging(workspace) == []

    # Killed between the two renames: the agent's place is empty.
    spec = read_agent(places.agent("on"))
    places.agent("on").rename(places.former("on"))
    repair(places)
    assert read_agent(places.agent("on")) == spec


async def test_a_version_may_be_declared_and_not_lowered(tmp_path: Path) -> None:
    folder, workspace = laid(tmp_path, "version-ten"), tmp_path / "ws"
    assert (await built_of(workspace, folder)).spec.version == "1.10.0"
    text = (folder / "SKILL.md").read_text(encoding="utf-8")
    (folder / "SKILL.md").write_text(text.replace("1.10", "1.9"), encoding="utf-8")
    lower = await built_of(workspace, folder)
    assert (lower.status, codes(lower)) == (Status.FAILED, ["VERSION_LOWER"])


async def test_a_workspace_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "ws").write_text("a file", encoding="utf-8")
    result = await built_of(tmp_path / "ws", laid(tmp_path, "on"))
    assert (result.status, codes(result)) == (Status.FAILED, ["IO"])


async def test_an_id_that_leads_out_of_the_workspace_is_none(tmp_path: Path) -> None:
    builder = builder_of(tmp_path / "ws")
    (tmp_path / "BUILD.json").write_text("{}", encoding="utf-8")
    for name in ("..", "../x", "/etc", "a/b", ""):
        assert not await builder.remove(name)
        folder = lay(tmp_path / "x", {"SKILL.md": skill(plain("x"))})
        result = await builder.build(PendingBuild(folder, overrides={"id": name}))
        assert codes(result) == ["BAD_SPEC"]


async def test_a_sidecar_lies_beside_the_skill(tmp_path: Path) -> None:
    folder = lay(
        tmp_path / "x", {"SKILL.md": skill(plain("x")), "agent.yaml": b"id: y\nversion: 2.0.0\ntype: role\n"}
    )
    result = await built_of(tmp_path / "ws", folder, dry_run=True)
    assert (result.spec.id, result.spec.version, result.spec.type) == ("y", "2.0.0", "role")
    lay(folder, {"agent.yaml": b"id: [\n"})
    result = await built_of(tmp_path / "ws", folder)
    assert [(one.code, one.where) for one in result.errors] == [("BAD_SIDECAR", "agent.yaml:2")]
