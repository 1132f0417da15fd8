"""The stand-alone shell, against a recorded transcript."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.commands.coder_shell import Shell, coder, parse_line
from engine.core.actions import ErrorCode, SandboxSession
from engine.tools.simple_coder import SimpleCoder
from engine.tools.simple_coder_commands import COMMANDS
from tests.patience import PATIENCE_S


async def answers(root: Path, *lines: str) -> tuple[int, list[dict[str, Any]]]:
    out = io.StringIO()
    code = await coder(root, lines, out=out)
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("line", "args"),
    [
        ('run "python --version"', {"command": "python --version"}),
        ("run python -c \"print('a  b')\"", {"command": "python -c \"print('a  b')\""}),
        ("run 'ls' -l", {"command": "'ls' -l"}),
        ("run", {}),
        ('write a.py print("hi  there")', {"path": "a.py", "content": 'print("hi  there")'}),
        ('write "my file" "one  two"', {"path": "my file", "content": "one  two"}),
        ("write f ''", {"path": "f", "content": ""}),
        ("write f", {"path": "f"}),
        ("append a\\ b x 'y'", {"path": "a b", "content": "x 'y'"}),
        ("replace f 'a b' c", {"path": "f", "old": "a b", "new": "c"}),
        ("ls", {}),
        ("ls 'my dir'", {"path": "my dir"}),
        ("start python -m http.server 8000", {"command": "python -m http.server 8000"}),
        ("job_output j1 50", {"job": "j1", "lines": 50}),
        ("job_output j1 many", {"job": "j1", "lines": "many"}),
        ("wait_job j1 'up and running' 2.5", {"job": "j1", "text": "up and running", "seconds": 2.5}),
    ],
)
def test_a_line_becomes_one_call_with_its_quoting(line: str, args: dict[str, object]) -> None:
    assert parse_line(line, COMMANDS.get) == (line.split()[0], args)


async def test_commands_give_one_line_of_json_each_and_share_a_session(tmp_path: Path) -> None:
    code, said = await answers(tmp_path, "mkdir a", "cd a", "write f hello", "read f")
    assert code == 0
    assert said[1] == {"status": "SUCCESS", "message": "Current directory is now: ./a"}
    assert said[3] == {"status": "SUCCESS", "content": "hello"}


async def test_the_exit_code_is_1_when_a_command_did_not_succeed(tmp_path: Path) -> None:
    code, said = await answers(tmp_path, "ls", "read none", "ls")
    assert (code, [answer["status"] for answer in said]) == (1, ["SUCCESS", "ERROR", "SUCCESS"])


async def test_an_unbalanced_quote_is_an_error_and_the_session_goes_on(tmp_path: Path) -> None:
    """Behaviour 60."""
    shell = Shell(SimpleCoder(tmp_path), io.StringIO())
    shell.session = SandboxSession(venv="v")
    await shell.execute("mkdir a")
    await shell.execute("cd a")
    result = await shell.execute('write f "open')
    assert result.code is ErrorCode.BAD_ARGUMENTS
    assert shell.session == SandboxSession(cwd="a", venv="v")
    assert (await shell.execute("write f x")).ok


async def test_too_many_words_are_refused(tmp_path: Path) -> None:
    _, said = await answers(tmp_path, "mkdir my dir", "nonsense a b", "help me")
    assert [answer["reason"] for answer in said] == ["bad_arguments", "unknown_command", "bad_arguments"]
    assert list(tmp_path.iterdir()) == []


async def test_the_shells_actor_is_the_operator(tmp_path: Path) -> None:
    code, said = await answers(tmp_path, "write f x", "toggle_autonomous_mode", "rm f")
    assert (code, said[2]) == (0, {"status": "SUCCESS", "message": "File deleted: f"})


async def test_lines_from_a_pipe_are_answered_compactly(tmp_path: Path) -> None:
    out = io.StringIO()
    code = await coder(tmp_path, source=io.StringIO("# notes\n\nls\nread none\nexit\nls\n"), out=out)
    assert code == 1
    assert out.getvalue().splitlines()[0] == '{"status": "SUCCESS", "items": []}'
    assert len(out.getvalue().splitlines()) == 2


async def test_a_root_that_cannot_be_used_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert await coder(tmp_path / "file", ["ls"]) == 2
    assert "there is no sandbox to work in" in capsys.readouterr().err


async def test_what_a_program_prints_is_inert(tmp_path: Path) -> None:
    """Behaviour 61."""
    hostile = "\\x1b]52;c;eA==\\x07\\x1b[2J\\x7f\\u009b2J\\u202e[@click=app.quit]x[/]"
    (tmp_path / "\x1b[2Jname").write_text("")
    out = io.StringIO()
    await coder(tmp_path, [f"run python -c \"print('{hostile}')\"", "ls"], out=out)
    assert out.getvalue().isascii()
    assert out.getvalue().replace("\n", "").isprintable()
    assert "\x1b]52" in json.loads(out.getvalue().splitlines()[0])["stdout"]


async def test_background_jobs_live_as_long_as_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.py").write_text("import time; print('ready', flush=True); time.sleep(600)")
    lines = ["start python app.py", "wait_job j1 ready 20", "start python app.py", "stop_job", "stop_job j2"]
    code, said = await answers(tmp_path, *lines, "job_output j1 5", "job_output j1 no", "jobs")
    assert code == 1
    reasons = [answer.get("reason") for answer in said]
    assert reasons == [None, None, None, "bad_arguments", None, None, "bad_arguments", None]
    assert "Several jobs run; name one of j1 python app.py, j2 python app.py." in said[3]["message"]
    assert said[4]["message"].startswith("Job j2 stopped after ")
    assert said[5]["content"] == "ready"
    assert [item.split(" | ")[0] for item in said[7]["items"]] == ["j1", "j2"]
    assert capsys.readouterr().err == "background jobs end with this shell: j1 python app.py\n"


class Terminal:
    """The interactive shell on a terminal of its own."""

    def __init__(self, root: Path) -> None:
        script = "import asyncio, sys; from pathlib import Path; from app.commands.coder_shell import coder; "
        script += "sys.exit(asyncio.run(coder(Path(sys.argv[1]))))"
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(root)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=Path(__file__).parents[3],
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(slave)
        self.shown = ""

    def until(self, pattern: str) -> str:
        """Read until the pattern is shown; returns what came up to its end."""
        while not (match := re.search(pattern, self.shown)):
            try:
                data = os.read(self.master, 4096)
            except OSError:
                data = b""
            assert data, f"ended without {pattern!r}: {self.shown!r}"
            self.shown += data.decode().replace("\r\n", "\n")
        found, self.shown = self.shown[: match.end()], self.shown[match.end() :]
        return found

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.process.kill()
    opened.process.wait()
    os.close(opened.master)


def test_the_interactive_transcript_is_the_seeds(terminal: Terminal) -> None:
    banner = (
        "--- SimpleCoder Interactive Session ---\nType 'help' for a list of commands, or 'exit' to quit.\n"
    )
    assert terminal.until(r"\./ \$ ") == banner + "./ $ "
    terminal.type("ls\n")
    assert terminal.until(r"\./ \$ ") == 'ls\n{\n  "status": "SUCCESS",\n  "items": []\n}\n./ $ '
    terminal.type("mkdir test_project\n")
    assert '"message": "Directory created/ensured at test_project"' in terminal.until(r"\./ \$ ")
    terminal.type("cd test_project\n")
    assert '"message": "Current directory is now: ./test_project"' in terminal.until(r"\n\./test_project \$ ")
    terminal.type("exit\n")
    terminal.until("Exiting.\n")
    assert terminal.process.wait(PATIENCE_S) == 0


def test_the_end_of_input_leaves(terminal: Terminal) -> None:
    terminal.until(r"\$ ")
    terminal.type("\x04")
    terminal.until("Exiting.")
    assert terminal.process.wait(PATIENCE_S) == 0


def test_ctrl_c_ends_the_command_and_not_the_shell(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until(r"\$ ")
    terminal.type("mkdir a\n")
    terminal.until(r"\$ ")
    terminal.type("cd a\n")
    terminal.until(r"a \$ ")
    terminal.type("run \"python -c 'import time; open(chr(98), chr(119)); time.sleep(99)'\"\n")
    terminal.until("run")
    while not (tmp_path / "a/b").exists():
        assert terminal.process.poll() is None
        os.sched_yield()
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert '"reason": "cancelled"' in terminal.until(r"\n\./a \$ ")
    terminal.type("ls\n")
    assert '"b"' in terminal.until(r"\n\./a \$ ")
