"""The command where the surroundings are bad: roots that cannot be one, homes, languages, terminals."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import forking
from tests.engine.sandbox.jail_runs import ORDINARY, REPOSITORY, free_uid, ids, python_of
from tests.patience import PATIENCE_S


def pilothouse(here: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", *words],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        cwd=here,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def forked(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command where nothing is strange that counts before it begins."""
    done = forking.run(forking.CLI, *words, cwd=here)
    assert "Traceback" not in done.stdout + done.stderr
    return done


def a_file(root: Path) -> None:
    root.write_text("")


def a_link(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    root.symlink_to("elsewhere")


def a_link_to_nothing(root: Path) -> None:
    root.symlink_to("nowhere")


def a_link_to_itself(root: Path) -> None:
    root.symlink_to(root.name)


@pytest.mark.parametrize("words", [("run", "list the files"), ("coder", "-c", "ls"), ("do", "agent_list")])
@pytest.mark.parametrize(
    ("lay", "said"),
    [
        (a_file, "there is a file of that name"),
        (a_link, "is a symbolic link to 'elsewhere'"),
        (a_link_to_nothing, "is a symbolic link to 'nowhere'"),
        (a_link_to_itself, "is a symbolic link to 'sandbox'"),
    ],
)
def test_a_root_that_cannot_be_one_is_one_line_and_exit_code_2(
    tmp_path: Path, words: tuple[str, ...], lay: Callable[[Path], None], said: str
) -> None:
    lay(tmp_path / "sandbox")
    done = forked(tmp_path, *words, "--workspace", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert str(tmp_path / "sandbox") in done.stderr
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("words", [("run", "list the files"), ("coder", "-c", "ls")])
def test_a_workspace_that_cannot_be_made_is_one_line_and_exit_code_2(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file/below", Path("/proc/pilothouse")):
        done = forked(tmp_path, *words, "--workspace", str(place))
        assert (done.returncode, done.stderr.count("\n"), str(place) in done.stderr) == (2, 1, True)


def test_a_workspace_reached_through_a_link_is_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    done = pilothouse(tmp_path, "run", "create a directory named 'made'", "--workspace", "link")
    assert done.returncode == 0
    assert (tmp_path / "real/sandbox/made").is_dir()


def test_a_directory_that_was_deleted_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    code = (
        "import os, sys; os.rmdir(os.getcwd())\n"
        "from app.cli.main import main\nsys.exit(main(['coder', '-c', 'ls']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path / "gone",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the current directory was deleted" in done.stderr


@pytest.fixture(scope="module")
def users_own() -> Iterator[Path]:
    """A directory of an ordinary user, on a way that everybody may go."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as base:
        Path(base).chmod(0o755)
        own = Path(base, "own")
        own.mkdir()
        if os.getuid() == 0:
            os.chown(own, free_uid(), free_uid())
        Path(base, "locked").mkdir(mode=0o555)
        yield own


HOMES = {
    "no home": {},
    "a home that cannot be written": {"HOME": "../locked"},
    "a home that is not there": {"HOME": "/nonexistent"},
    "no language and no terminal": {"HOME": ".", "TERM": "dumb", "LANG": "C", "LC_ALL": "C"},
    "an old encoding": {"HOME": ".", "PYTHONIOENCODING": "ascii"},
}


@pytest.mark.parametrize("home", HOMES)
def test_an_ordinary_user_can_work_wherever_home_is(users_own: Path, home: str) -> None:
    packages = os.pathsep.join([str(REPOSITORY), *site.getsitepackages()])
    environment = {"PATH": os.defpath, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", **HOMES[home]}

    def run(*words: str) -> str:
        done = subprocess.run(
            [python_of(ORDINARY), "-m", "app.cli.main", *words, "--workspace", "ws"],
            env=environment, cwd=users_own, capture_output=True, text=True, timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL, **ids(ORDINARY),
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return done.stdout

    lines = run("coder", "-c", "write 'ä.txt' é", "-c", "run cat 'ä.txt'", "-c", "ls").splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["SUCCESS"] * 3
    assert json.loads(lines[1])["stdout"] == "é"
    assert "Layers of the jail" in run("doctor")


def test_a_workspace_that_another_user_closed_is_named_without_a_traceback(users_own: Path) -> None:
    packages = os.pathsep.join([str(REPOSITORY), *site.getsitepackages()])
    environment = {"PATH": os.defpath, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "."}
    closed = users_own / "closed"
    closed.mkdir()
    (closed / ".pilothouse").mkdir(mode=0o000)
    if os.getuid() == 0:
        os.chown(closed / ".pilothouse", free_uid(), free_uid())
    for words, code in (
        ("doctor", 1),
        ("sessions list", 2),
        ("why a1", 2),
        ("memory search x", 2),
        ("do status", 2),
    ):
        done = subprocess.run(
            [python_of(ORDINARY), "-m", "app.cli.main", *words.split(), "--workspace", "closed"],
            env=environment, cwd=users_own, capture_output=True, text=True, timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL, **ids(ORDINARY),
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert (done.returncode, "Traceback" in said) == (code, False), said
        assert ".pilothouse" in said
        assert "check who may" in said


def test_a_workspace_in_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = pilothouse(tmp_path, "do", "agent_list", "--workspace", "no/such")
    assert (done.returncode, "does not exist: make it, or correct --workspace" in done.stderr) == (2, True)
    assert not (tmp_path / "no").exists()


def test_what_is_wrong_with_settings_is_said_before_a_line_is_carried_out(tmp_path: Path) -> None:
    (tmp_path / "pilothouse.toml").write_text('them = "x"')
    done = pilothouse(tmp_path, "do", "agent_create bdi_agent ann", "--workspace", ".")
    assert (done.returncode, "pilothouse.toml: them: " in done.stderr) == (0, True), done.stderr


def test_without_a_terminal_the_cockpits_mission_is_run(tmp_path: Path) -> None:
    words = ["--workspace", str(tmp_path / "ws"), "--mission", "first-flight"]
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", *words],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert "achieved" in done.stdout.lower()
