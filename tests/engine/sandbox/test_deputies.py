"""The cockpit never runs or loads what an agent wrote: sandbox spec §3.6, §6 cases 84 and 85."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

REPOSITORY = Path(__file__).parents[3]
ROOMS = [
    path for room in ("app", "widgets", "themes", "engine") for path in (REPOSITORY / room).rglob("*.py")
]
STARTS = {"system", "popen", "startfile", "posix_spawn", "posix_spawnp", "fork", "forkpty"}
"""Calls of `os` that start a program, besides the families exec and spawn."""


def starting(path: Path) -> list[str]:
    """What in a module could start a program."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Attribute):
            whole = ast.unparse(node)
            if whole.startswith("os.") and (node.attr in STARTS or node.attr.startswith(("exec", "spawn"))):
                names = ["subprocess"]
            if node.attr.startswith(("create_subprocess", "subprocess_")):
                names = ["subprocess"]
        roots = {name.partition(".")[0] for name in names}
        found += sorted(roots & {"subprocess", "pty", "multiprocessing", "webbrowser", "pexpect"})
    return found


EXCEPTED = {
    "app/cli/serve.py": "systemctl, with the name of the unit that was installed",
    "app/cli/attach.py": "this program again, as the cockpit of an agent that was chosen on a fleet's board",
    "app/cli/fleet/cluster.py": "Ray, where none runs on this machine; the words are the module's own",
    "app/cli/fleet/shard.py": "this program again, as the engine of a shard",
    "app/cli/man.py": "man, with the page that was made",
    "app/cli/doctor.py": "tmux, for its options; with the name of none that an agent chose",
    "widgets/base/external_editor.py": "the editor that the user's environment names",
    "app/cli/launcher.py": "this program again, in a session of its own",
    "app/gateways/notifying.py": "the program that the user's own settings name, without secrets",
    "app/gateways/web/process.py": "the server of web pages, of this program",
    "engine/memory/minilm.py": "the embedder, a module of this program; texts go in as data",
    "engine/agent/acp/player.py": "runs in the jail only, and runs there what it got leave for",
    "engine/improve/judge/fork_server.py": "runs in the jail only, and forks there for each question",
}
"""Modules outside of the sandbox that start programs, and why nothing that an agent wrote is run by it."""


def test_only_the_sandbox_starts_programs() -> None:
    found = {
        str(path.relative_to(REPOSITORY))
        for path in ROOMS
        if not path.is_relative_to(REPOSITORY / "engine" / "sandbox") and starting(path)
    }
    assert found == set(EXCEPTED)


@pytest.mark.parametrize(
    "words", [("doctor", "--json"), ("run", "--mission", "first-flight")], ids=["doctor", "run"]
)
def test_a_cockpit_started_among_planted_modules_loads_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    launcher, sandbox, mark = tmp_path / "pilothouse", tmp_path / "sandbox", tmp_path / "loaded"
    launcher.mkdir()
    sandbox.mkdir()
    # As the console script does it, whose own directory comes first on the path and not the current one.
    (launcher / "run.py").write_text("import sys; from app.cli.main import main; sys.exit(main())")
    names = ("json", "os", "sqlite3", "app", "engine", "textual", "sitecustomize", "usercustomize", "_signal")
    for name in names:
        (sandbox / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()")
    (sandbox / "evil.pth").write_text(f"import os; open({str(mark)!r}, 'w').close()")
    done = subprocess.run(
        [sys.executable, str(launcher / "run.py"), *words, "--workspace", str(tmp_path)],
        cwd=sandbox, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert not mark.exists()
