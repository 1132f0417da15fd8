"""A tree is analysed and written down by reading alone, whatever is in it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from engine.improve.code.analysis import AnalysisError, analyze
from engine.improve.judge.box import Boxes
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.tier import JailRefusal, best_jail

needs_jail = pytest.mark.skipif(isinstance(best_jail(SandboxPolicy()), JailRefusal), reason="no jail here")


def lay(top: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return top


PACKAGE = {
    "pkg/__init__.py": "from pkg.one import first\n",
    "pkg/one.py": "from pkg import two\n\n\ndef first(x: int) -> int:\n    return two.second(x)\n",
    "pkg/two.py": "import pkg.one\nimport os\n\n\ndef second(x):\n"
    + "".join(f"    if x == {number}:\n        return {number}\n" for number in range(12)),
    "pkg/alone.py": "def third():\n    out = []\n    for n in range(9):\n        if n not in out:\n"
    "            out.append(n)\n    return out\n",
    "tests/test_one.py": "from pkg.one import first\n\n\ndef test_first():\n    assert first(3) == 3\n",
}


async def test_the_report_names_structure_complexity_tests_and_findings(tmp_path: Path) -> None:
    lay(tmp_path, PACKAGE)
    report = await analyze(tmp_path)
    assert report.packages == ("pkg",)
    assert report.cycles == (("pkg.one", "pkg.two"),)
    assert [(one.name, one.complexity) for one in report.complex] == [("second", 13)]
    assert report.untested == ("pkg/alone.py", "pkg/two.py")
    assert report.test_count == 1
    assert ("pkg/two.py", "F401") in {(one.path, one.code) for one in report.static}
    assert [(one.path, one.line) for one in report.slow] == [("pkg/alone.py", 4)]
    assert report.hot[0].path == "pkg/two.py"
    assert "13 second pkg/two.py:5" in report.as_text()
    assert report == await analyze(tmp_path)
    near = await analyze(tmp_path, focus="improve alone")
    assert [one.path for one in near.hot] == ["pkg/alone.py"]
    assert "no path and no function" in (await analyze(tmp_path, focus="zebra")).as_text()


async def test_what_cannot_be_read_is_told_and_ends_nothing(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "broken.py": "def (:\n",
            "latin.py": b"# -*- coding: latin-1 -*-\nname = 'caf\xe9'\n",
            "odd.py": b"x = '\xff\xfe'\n",
            "nul.py": b"x = 1\0\n",
            "deep.py": "x = " + "(" * 5000 + ")" * 5000 + "\n",
            "tower.py": "x = " + "-" * 100_000 + "1\n",
            "huge.py": "x = 1\n" * 300_000,
            ".venv/lib.py": "x = 1\n",
            "\x1b[31mred.py": "x = 1\n",
        },
    )
    (tmp_path / "passwd.py").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe.py")
    report = await analyze(tmp_path)
    told = {line.partition(":")[0] for line in report.problems}
    assert {"broken.py", "odd.py", "nul.py", "deep.py", "tower.py", "huge.py"} <= told
    assert {one.path for one in report.modules} == {"latin.py", "\x1b[31mred.py"}
    assert any("symbolic link: passwd.py" in line for line in report.left_out)
    assert any("no regular file: pipe.py" in line for line in report.left_out)
    assert "\x1b" not in report.as_text()
    for path in ("..", "/etc", "nothing", "a\0b"):
        with pytest.raises(AnalysisError):
            await analyze(tmp_path, path)
    (tmp_path / "out").symlink_to("/etc")
    with pytest.raises(AnalysisError, match="leads out"):
        await analyze(tmp_path, "out")


async def test_an_analysis_is_cancelled_at_once_and_leaves_no_process(tmp_path: Path) -> None:
    """Behaviour 12, for the analysis: cancelling ends its processes."""
    lay(tmp_path, {f"m{number}.py": PACKAGE["pkg/two.py"] * 6 for number in range(300)})
    begun = asyncio.Event()
    work = asyncio.create_task(analyze(tmp_path, tell=lambda done, of, text: begun.set()))
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    said = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in said


@needs_jail
async def test_changes_come_from_git_and_nothing_of_the_tree_is_run(tmp_path: Path) -> None:
    """Behaviour 51: `git -c alias` and its like; hooks, monitors and filters of the tree are not run."""
    tree = lay(tmp_path / "tree", {**PACKAGE, ".gitignore": "*.log\n/build/\n", "noise.log": "noise\n"})
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tree)]
    mark = tree / "ran"
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    (tree / "pkg/one.py").write_text(PACKAGE["pkg/one.py"] + "\n\nX = 1\n")
    subprocess.run([*git, "commit", "-qam", "two"], check=True, capture_output=True)
    hook = tree / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.editor", "alias.log"):
        subprocess.run([*git, "config", key, f"!{hook}" if "alias" in key else str(hook)], check=True)
    boxes = Boxes()
    report = await analyze(tmp_path, "tree", boxes=boxes)
    assert {one.path: one.changes for one in report.hot}["pkg/one.py"] == 2
    assert not mark.exists()
