"""What people and models get wrong: names nobody can type, programs nobody can run, a root that goes away."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.ports import CallContext
from engine.sandbox.paths import name_text, parse_name
from engine.sandbox.policy import SandboxPolicy
from engine.tools.simple_coder import SimpleCoder

STRANGE = [
    b"caf\xe9",
    b"\xff\xfe",
    b"esc\x1b[2J\x07",
    b"two\nlines",
    "turn\u202eed".encode(),
    b"a\\xe9b",
    b"a\\x5cxe9",
    b"-rf",
    b"'quote\"",
    b" blank ",
]


class Hands:
    """A coder with a session, as an agent has it; rm is armed."""

    def __init__(self, root: Path, **policy: Any) -> None:
        self.tool = SimpleCoder(root, SandboxPolicy(**policy), environ={})
        self.session = SandboxSession(autonomous=True)

    async def __call__(self, command: str, /, **args: Any) -> ToolResult:
        answer = await self.tool.call(command, args, CallContext(self.session))
        self.session = answer.session or self.session
        return answer


@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw))
def test_every_name_can_be_shown_on_a_line_and_is_the_same_name_again(raw: bytes) -> None:
    name = os.fsdecode(raw)
    text = name_text(name)
    assert text.isprintable()
    text.encode()
    assert os.fsencode(parse_name(text)) == raw
    assert name_text(parse_name(text)) == text


@pytest.mark.parametrize("raw", STRANGE, ids=repr)
async def test_a_name_that_ls_shows_is_taken_by_every_command(tmp_path: Path, raw: bytes) -> None:
    hands = Hands(tmp_path)
    here = os.fsencode(tmp_path)
    os.mkdir(here + b"/" + raw)
    Path(os.fsdecode(here + b"/" + raw + b"/" + raw)).write_text("needle\n")
    [directory] = (await hands("ls")).data["items"]
    assert directory.isprintable()
    assert (await hands("cd", path=directory)).ok
    assert hands.session.prompt.isprintable()
    [name] = (await hands("ls")).data["items"]
    assert (await hands("read", path=name)).data["content"] == "needle\n"
    assert (await hands("write", path=name, content="a needle\n")).ok
    assert (await hands("append", path=name, content="b\n")).ok
    assert (await hands("replace", path=name, old="b", new="c")).ok
    assert (await hands("find", text="needle")).data["items"] == [f"{name}:1: a needle"]
    assert (await hands("copy", source=name, target="plain")).ok
    assert (await hands("move", source="plain", target=f"{name}2")).ok
    assert (await hands("rm", path=name)).ok
    assert os.listdir(here + b"/" + raw) == [raw + b"2"]
    ran = await hands("run", command=["python", "-c", "import os; print(os.listdir(b'.'))"])
    assert ran.data["stdout"] == str([raw + b"2"])
    gone = await hands("read", path=name)
    assert (gone.code, gone.message.isprintable()) == (ErrorCode.NOT_FOUND, True)


ELF_OF_ANOTHER_MACHINE = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf7\x00" + bytes(100)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("", "bad_arguments", "The command is empty"),
        ([], "bad_arguments", "The command is empty"),
        ("echo 'open", "bad_arguments", "a quote is not closed"),
        ("echo " + "x " * 40_000, "bad_arguments", "65,536 is the most"),
        (["echo", "x" * 3_000_000], "too_large", "put long text into a file"),
        ("pyton x.py", "not_allowed", "Did you mean 'python'?"),
        ("./data", "not_allowed", "is a path; `run` takes the name of an allowed program. Allowed:"),
        ("./data/x.py", "not_allowed", "`run python ./data/x.py`"),
        ("sh -c ls", "not_allowed", "There is no shell"),
        ("cd data", "not_allowed", "Use the cd command"),
        *((name, "not_allowed", "needs a terminal") for name in ("less x", "top", "stty -a", "vim")),
        ("python data", "exit_status", "can't find '__main__' module"),
        ("python -c 'input()'", "exit_status", "The operator can take the shell".lower()),
        ("python -c 'import getpass; getpass.getpass()'", "exit_status", "there is no terminal"),
        ("python -c 'import os; os.get_terminal_size()'", "exit_status", "there is no terminal"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_command_that_cannot_be_run_is_answered_with_what_to_do(
    tmp_path: Path, command: Any, code: str, words: str
) -> None:
    (tmp_path / "data").mkdir()
    answer = await Hands(tmp_path)("run", command=command)
    assert answer.code == code
    told = " ".join(str(answer.data.get(part, "")) for part in ("message", "stderr", "hint"))
    assert words.lower() in told.lower()


async def test_ten_thousand_arguments_are_passed_on(tmp_path: Path) -> None:
    done = await Hands(tmp_path)("run", command=["echo", *["y"] * 10_000])
    assert done.ok
    assert "y y y" in done.data["stdout"]


async def test_a_console_script_that_is_no_program_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    hands = Hands(tmp_path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    assert (await hands("activate_venv", venv_name="v")).ok
    script = tmp_path / "v/bin/tox"
    for content, code, words in (
        (b"echo no first line\n", ErrorCode.WRONG_TYPE, "without a first line"),
        (ELF_OF_ANOTHER_MACHINE, ErrorCode.WRONG_TYPE, "no program for this machine"),
        (b"#!/no/such/interpreter\n", ErrorCode.NOT_FOUND, "first line names"),
    ):
        script.write_bytes(content)
        script.chmod(0o755)
        answer = await hands("run", command="tox")
        assert (answer.status, answer.code) == (ResultStatus.ERROR, code), answer
        assert words in answer.message
    script.chmod(0o644)  # then it is no console script at all
    assert (await hands("run", command="tox")).code in (ErrorCode.NOT_FOUND, ErrorCode.EXIT_STATUS)


def moved(root: Path, outside: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def replaced_by_a_link(root: Path, outside: Path) -> None:
    moved(root, outside)
    root.symlink_to(outside)


def replaced_by_another(root: Path, outside: Path) -> None:
    moved(root, outside)
    root.mkdir()


def deleted(root: Path, outside: Path) -> None:
    shutil.rmtree(root)


@pytest.mark.parametrize("vanish", [moved, replaced_by_a_link, replaced_by_another, deleted])
async def test_a_root_that_goes_away_while_it_is_open_is_said_and_leads_nowhere_else(
    tmp_path: Path, vanish: Callable[[Path, Path], None]
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    hands = Hands(root)
    vanish(root, outside)
    for command, args in (
        ("ls", {}),
        ("write", {"path": "a", "content": "x"}),
        ("mkdir", {"path": "d"}),
        ("run", {"command": "touch ran"}),
        ("create_venv", {"venv_name": "v"}),
    ):
        answer = await hands(command, **args)
        assert (answer.code, answer.status) == (ErrorCode.PERMISSION, ResultStatus.ERROR)
        assert "was moved, replaced or deleted" in answer.message
    assert not any(outside.iterdir())


def test_a_root_that_is_put_back_works_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    hands = Hands(root)
    root.rename(tmp_path / "aside")
    assert asyncio.run(hands("ls")).code is ErrorCode.PERMISSION
    (tmp_path / "aside").rename(root)
    assert asyncio.run(hands("ls")).ok


DISK = """
import asyncio, os, subprocess, sys
from pathlib import Path
from tests.engine.tools.test_bad_input import Hands
root, options = Path(sys.argv[1]), sys.argv[2]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", root], check=True)
if options == "full":
    (root / "ballast").write_bytes(bytes(64 * 1024))
else:
    subprocess.run(["mount", "-o", "remount,ro", root], check=True)
fill = ["python", "-c", "open('b', 'w').write('x' * 9000)"]
calls = [("ls", {}), ("write", {"path": "a", "content": "x" * 9000}), ("run", {"command": fill})]
async def main():
    hands = Hands(root, disk_floor_bytes=1)
    for command, args in calls:
        answer = await hands(command, **args)
        print(command, answer.code, answer.message, answer.data.get("stderr", "").splitlines()[-1:])
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [("full", ["no space is left", "No space left on device"]), ("read-only", ["read-only file system"] * 2)],
)
def test_a_root_on_a_full_or_read_only_disk_says_so(tmp_path: Path, options: str, said: list[str]) -> None:
    command = ["unshare", "-m", sys.executable, "-c", DISK, str(tmp_path), options]
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"]).returncode:
        pytest.skip("THIS MACHINE CANNOT MOUNT A SMALL DISK: it needs a mount namespace")
    done = subprocess.run(command, capture_output=True, text=True)
    ls, *others = done.stdout.splitlines()
    assert ls.startswith("ls None"), done.stderr
    for line, words in zip(others, said, strict=True):
        assert words in line
