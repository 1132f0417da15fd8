"""The SimpleCoder session, against a recorded transcript."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.ports import CallContext
from engine.sandbox.policy import SandboxPolicy
from engine.tools.simple_coder import SimpleCoder
from tests.patience import PATIENCE_S

TRANSCRIPT_VERSION = f"Python {sys.version.split()[0]}"


class Agent:
    """Somebody with a session, as the engine keeps it between calls."""

    def __init__(self, root: Path, actor: str = "agent", policy: SandboxPolicy | None = None) -> None:
        self.root = root
        self.tool = SimpleCoder(root, policy, environ={})
        self.session = SandboxSession()
        self.actor = actor
        self.timeout_s: float | None = None
        self.live: list[tuple[str, str]] = []

    async def __call__(self, name: str, /, **args: Any) -> ToolResult:
        context = CallContext(
            self.session,
            actor=self.actor,
            output=lambda *said: self.live.append(said),
            timeout_s=self.timeout_s,
        )
        result = await self.tool.call(name, args, context)
        if result.session is not None:
            self.session = result.session
        return result

    async def run(self, command: str | list[str]) -> ToolResult:
        return await self("run", command=command)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.tool.close()


@pytest.fixture(scope="module")
def venv_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one environment at test_project/.venv, made by the tool itself."""
    root = tmp_path_factory.mktemp("venv")

    async def make() -> ToolResult:
        maker = Agent(root)
        await maker("mkdir", path="test_project")
        await maker("cd", path="test_project")
        return await maker("create_venv", venv_name=".venv")

    made = asyncio.run(make())
    assert made.as_json() == {
        "status": "SUCCESS",
        "message": "Venv '.venv' created. Activate it with: activate_venv '.venv'",
    }
    return root


@pytest.fixture
async def active(venv_root: Path) -> Agent:
    agent = Agent(venv_root)
    await agent("cd", path="test_project")
    await agent("activate_venv", venv_name=".venv")
    return agent


async def test_the_seeds_transcript(venv_root: Path, tmp_path: Path) -> None:
    fresh = Agent(tmp_path)
    assert (await fresh("ls")).as_json() == {"status": "SUCCESS", "items": []}
    assert (await fresh("mkdir", path="test_project")).as_json() == {
        "status": "SUCCESS",
        "message": "Directory created/ensured at test_project",
    }
    agent = Agent(venv_root)
    assert (await agent("cd", path="test_project")).as_json() == {
        "status": "SUCCESS",
        "message": "Current directory is now: ./test_project",
    }
    assert (await agent("activate_venv", venv_name=".venv")).as_json() == {
        "status": "SUCCESS",
        "message": "Venv '.venv' is now active for this session.",
    }
    assert agent.session.prompt == "(.venv) ./test_project $"
    assert list((await agent.run("python --version")).as_json().items()) == [
        ("status", "SUCCESS"),
        ("return_code", 0),
        ("stdout", TRANSCRIPT_VERSION),
        ("stderr", ""),
        ("tier", agent.tool.tier),
    ]


async def test_ls_sorts_and_marks_directories_and_hides_the_private_home(agent: Agent) -> None:
    await agent("write", path="b.txt", content="")
    await agent("mkdir", path="a")
    await agent.run("touch c.txt")
    assert (await agent("ls")).data["items"] == ["a/", "b.txt", "c.txt"]


async def test_write_read_append_replace(agent: Agent) -> None:
    assert (await agent("write", path="d/f.txt", content="é one\n")).message == "Wrote 7 bytes to d/f.txt"
    assert (await agent("append", path="d/f.txt", content="one\n")).ok
    assert (await agent("replace", path="d/f.txt", old="one", new="two")).data == {
        "message": "Replaced 2 occurrences in d/f.txt",
        "count": 2,
    }
    assert (await agent("read", path="d/f.txt")).data == {"content": "é two\ntwo\n"}


async def test_replace_of_what_is_not_there_changes_nothing(agent: Agent) -> None:
    await agent("write", path="f", content="x")
    answer = await agent("replace", path="f", old="y", new="z")
    assert (answer.status, answer.code) == (ResultStatus.ERROR, ErrorCode.NOT_FOUND)
    assert (await agent("replace", path="f", old="", new="z")).code is ErrorCode.BAD_ARGUMENTS
    assert (agent.root / "f").read_text() == "x"


async def test_append_makes_the_file_and_its_parents(agent: Agent) -> None:
    assert (await agent("append", path="d/f", content="x")).ok
    assert (agent.root / "d/f").read_text() == "x"


async def test_find_gives_paths_that_read_takes(agent: Agent) -> None:
    await agent("write", path="p/a.py", content="x = 1\ny = 22\n")
    await agent("cd", path="p")
    assert (await agent("find", text="22")).data["items"] == ["a.py:2: y = 22"]
    assert (await agent("find", text="22", path="..")).data["items"] == ["a.py:2: y = 22"]
    assert (await agent("find", text="22", path="none")).code is ErrorCode.NOT_FOUND


async def test_move_and_copy(agent: Agent) -> None:
    await agent("write", path="a", content="x")
    assert (await agent("copy", source="a", target="d/b")).message == "Copied a to d/b"
    assert (await agent("move", source="a", target="d")).message == "Moved a to d/a"
    assert (await agent("ls", path="d")).data["items"] == ["a", "b"]
    assert (await agent("move", source="d/a", target="d/b")).code is ErrorCode.EXISTS


async def test_paths_are_relative_to_the_sessions_directory(agent: Agent) -> None:
    await agent("mkdir", path="a/b")
    await agent("cd", path="a/b")
    await agent("write", path="../f", content="x")
    assert (agent.root / "a/f").is_file()
    assert (await agent("cd", path="../..")).message == "Current directory is now: ./"
    assert (await agent("cd", path="..")).code is ErrorCode.OUTSIDE_ROOT
    assert agent.session.cwd == "."


async def test_the_tool_holds_no_session(agent: Agent) -> None:
    await agent("mkdir", path="a")
    moved = await agent.tool.call("cd", {"path": "a"}, CallContext(SandboxSession()))
    assert moved.session == SandboxSession(cwd="a")
    assert moved.beliefs["session.cwd"] == "a"
    assert (await agent.tool.call("ls", {}, CallContext(SandboxSession()))).data["items"] == ["a/"]


async def test_a_directory_that_is_gone_is_an_error_and_not_a_crash(agent: Agent) -> None:
    await agent("mkdir", path="a")
    await agent("cd", path="a")
    (agent.root / "a").rmdir()
    assert (await agent("ls")).code is ErrorCode.NOT_FOUND
    assert (await agent.run("ls")).code is ErrorCode.NOT_FOUND
    assert (await agent("cd", path="..")).ok


async def test_a_directory_replaced_by_a_link_does_not_lead_programs_outside(
    agent: Agent, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (agent.root / "a").symlink_to(outside)
    agent.session = SandboxSession(cwd="a")
    assert (await agent.run("touch planted")).code is ErrorCode.OUTSIDE_ROOT
    assert list(outside.iterdir()) == []


async def test_content_that_is_no_unicode_is_refused(agent: Agent) -> None:
    assert (await agent("write", path="f", content="\ud800")).code is ErrorCode.BAD_ARGUMENTS
    assert not (agent.root / "f").exists()


async def test_wrong_calls_are_answered_not_raised(agent: Agent) -> None:
    assert (await agent("nonsense")).code is ErrorCode.UNKNOWN_COMMAND
    assert (await agent("read")).code is ErrorCode.BAD_ARGUMENTS
    assert (await agent("read", path="a", tool_id="x")).code is ErrorCode.BAD_ARGUMENTS
    assert (await agent("close")).code is ErrorCode.UNKNOWN_COMMAND


async def test_help_has_a_line_for_each_command(agent: Agent) -> None:
    lines = (await agent("help")).data["content"].splitlines()
    assert [line.split()[0] for line in lines] == list(agent.tool.commands)


# The safety switch: item 58


async def test_rm_needs_autonomous_mode(agent: Agent) -> None:
    """Behaviour 58."""
    await agent("write", path="f", content="x")
    refused = await agent("rm", path="f")
    assert (refused.status, refused.code) == (ResultStatus.ERROR, ErrorCode.NOT_ALLOWED)
    assert (agent.root / "f").exists()
    agent.session = replace(agent.session, autonomous=True)
    assert (await agent("rm", path="f")).ok
    assert not (agent.root / "f").exists()


@pytest.mark.parametrize("actor", ["agent", "background:consolidation", "world", ""])
async def test_nobody_but_the_operator_switches_autonomous_mode(agent: Agent, actor: str) -> None:
    """Behaviour 58."""
    agent.actor = actor
    answer = await agent("toggle_autonomous_mode")
    assert (answer.status, answer.code, answer.session) == (ResultStatus.ERROR, ErrorCode.NOT_ALLOWED, None)
    assert "operator must grant" in answer.message


async def test_the_operator_switches_autonomous_mode(agent: Agent) -> None:
    agent.actor = "operator:ann"
    assert (await agent("toggle_autonomous_mode")).message == "Autonomous mode ENABLED."
    assert agent.session.autonomous
    assert (await agent("toggle_autonomous_mode")).message == "Autonomous mode DISABLED."
    assert not agent.session.autonomous


async def test_rm_removes_single_files_only(agent: Agent) -> None:
    agent.session = SandboxSession(autonomous=True)
    await agent("mkdir", path="d")
    assert (await agent("rm", path="d")).code is ErrorCode.WRONG_TYPE
    assert (await agent("rm", path=".")).code is ErrorCode.NOT_ALLOWED


# run: items 54-56, 62


async def test_a_failing_program_is_failure_with_both_streams(agent: Agent) -> None:
    """Behaviour 56."""
    done = await agent.run("python -c \"import sys; print('a'); print('b', file=sys.stderr); sys.exit(3)\"")
    assert done.as_json() == {
        "status": "FAILURE",
        "return_code": 3,
        "stdout": "a",
        "stderr": "b",
        "tier": agent.tool.tier,
        "reason": "exit_status",
    }
    assert done.beliefs["run.last.return_code"] == 3


async def test_a_program_over_its_time_is_failure_with_timeout(agent: Agent) -> None:
    """Behaviour 54."""
    agent.timeout_s = 3.5
    done = await agent.run(["python", "-c", "print('so far', flush=True); import time; time.sleep(60)"])
    assert (done.status, done.code) == (ResultStatus.FAILURE, ErrorCode.TIMEOUT)
    assert done.data["stdout"] == "so far"
    assert "3.5 s" in done.message


async def test_the_policys_limit_holds_against_a_longer_wish(tmp_path: Path) -> None:
    agent = Agent(tmp_path, policy=SandboxPolicy(wall_clock_s=0.3, grace_s=0.1))
    agent.timeout_s = 60
    assert (await agent.run(["python", "-c", "import time; time.sleep(60)"])).code is ErrorCode.TIMEOUT


async def test_an_end_by_signal_names_it(agent: Agent) -> None:
    done = await agent.run(["python", "-c", "import os; os.abort()"])
    assert (done.data["return_code"], done.code) == (-6, ErrorCode.EXIT_STATUS)
    assert done.message == "Ended by signal SIGABRT (6)."


async def test_endless_output_is_cut_and_says_so(tmp_path: Path) -> None:
    """Behaviours 55 and 56."""
    agent = Agent(tmp_path, policy=SandboxPolicy(output_bytes=300_000, output_head_bytes=100))
    done = await agent.run(["python", "-c", "while True: print('y' * 1000)"])
    assert (done.status, done.code) == (ResultStatus.FAILURE, ErrorCode.TOO_LARGE)
    assert done.data["truncated"]["stdout"] > 0
    assert "293.0 KiB" in done.message


async def test_output_is_streamed_to_the_context(agent: Agent) -> None:
    await agent.run("echo hello")
    assert agent.live == [("stdout", "hello\n")]


async def test_a_program_starts_in_the_sessions_directory(agent: Agent) -> None:
    await agent("mkdir", path="a")
    await agent("cd", path="a")
    done = await agent.run(["python", "-c", "import os; print(os.getcwd())"])
    assert done.data["stdout"] == str(agent.root / "a")


async def test_leading_blanks_of_output_stay(agent: Agent) -> None:
    assert (await agent.run(["echo", "  M file  "])).data["stdout"] == "  M file"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("bash -c ls", ErrorCode.NOT_ALLOWED, "not an allowed program"),
        ("rm f", ErrorCode.NOT_ALLOWED, "rm command of simple_coder"),
        ("pyton x.py", ErrorCode.NOT_ALLOWED, "Did you mean 'python'"),
        ("./run.py", ErrorCode.NOT_ALLOWED, "run python ./run.py"),
        ("/bin/ls", ErrorCode.NOT_ALLOWED, "is a path"),
        ("ls | wc", ErrorCode.BAD_ARGUMENTS, "no shell"),
        ("echo 'open", ErrorCode.BAD_ARGUMENTS, "quote is not closed"),
        ("", ErrorCode.BAD_ARGUMENTS, "empty"),
    ],
)
async def test_refused_commands_are_errors_that_say_what_to_do(
    agent: Agent, command: str, code: ErrorCode, words: str
) -> None:
    answer = await agent.run(command)
    assert (answer.status, answer.code) == (ResultStatus.ERROR, code)
    assert words in answer.data["message"]


async def test_an_unreachable_server_is_a_network_failure(agent: Agent) -> None:
    with socket.socket() as unused:  # bound and not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        done = await agent.run(f"git clone http://127.0.0.1:{unused.getsockname()[1]}/x")
    assert (done.status, done.code) == (ResultStatus.FAILURE, ErrorCode.NETWORK)


async def test_the_same_words_from_another_program_are_no_network_failure(agent: Agent) -> None:
    script = "import sys; print('Connection refused'); sys.exit(1)"
    assert (await agent.run(["python", "-c", script])).code is ErrorCode.EXIT_STATUS


async def test_git_does_not_climb_out_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    os.system(f"git -C {tmp_path} init -q")
    agent = Agent(tmp_path / "root")
    assert (await agent.run("git rev-parse --show-toplevel")).data["return_code"] == 128


async def test_cancelling_a_call_ends_the_program(agent: Agent) -> None:
    script = "import time; open('started', 'w').close(); time.sleep(60); open('survived', 'w')"
    call = asyncio.create_task(agent.run(["python", "-c", script]))
    async with asyncio.timeout(PATIENCE_S):
        while not (agent.root / "started").exists():
            await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not [name for name in os.listdir("/proc") if _cwd(name) == str(agent.root)]


def _cwd(name: str) -> str:
    try:
        return os.readlink(f"/proc/{name}/cwd")
    except OSError:
        return ""


# Virtual environments: item 57


async def test_an_active_venv_gives_python_and_pip_and_nothing_else(active: Agent) -> None:
    """Behaviour 57."""
    planted = active.root / "test_project/.venv/bin/git"
    planted.write_text("#!/bin/sh\necho hijacked\n")
    planted.chmod(0o755)
    try:
        prefix = await active.run(
            ["python", "-c", "import sys, os; print(sys.prefix, os.environ['VIRTUAL_ENV'])"]
        )
        pip = await active.run("pip --version")
        git = await active.run("git --version")
    finally:
        planted.unlink()
    venv = str(active.root / "test_project/.venv")
    assert prefix.data["stdout"] == f"{venv} {venv}"
    assert venv in pip.data["stdout"]
    assert git.data["stdout"].startswith("git version")


async def test_a_console_script_of_the_venv_is_found(active: Agent) -> None:
    assert (await active.run("tox")).code in (ErrorCode.NOT_FOUND, ErrorCode.EXIT_STATUS)
    script = active.root / "test_project/.venv/bin/tox"
    script.write_text("#!/bin/sh\necho mine\n")
    script.chmod(0o755)
    try:
        assert (await active.run("tox")).data["stdout"] == "mine"
    finally:
        script.unlink()


async def test_deactivate_restores_the_host_python(active: Agent) -> None:
    """Behaviour 57."""
    assert (await active("deactivate_venv")).message == "Venv deactivated."
    done = await active.run(
        ["python", "-c", "import sys, os; print('VIRTUAL_ENV' in os.environ, sys.prefix)"]
    )
    assert done.data["stdout"] == f"False {sys.base_prefix}"
    assert (await active("deactivate_venv")).message == "No venv was active."


async def test_pip_without_a_venv_does_not_touch_the_host(agent: Agent) -> None:
    done = await agent.run("pip install nothing-at-all")
    assert done.status is ResultStatus.FAILURE
    assert "virtualenv" in done.data["stderr"]


@pytest.mark.parametrize(
    "fake",
    [
        "empty",
        "no config",
        "own python",
        "pipe",
        "linked bin",
        "foreign home",
        "no home",
        "own link",
        "link to sh",
    ],
)
async def test_a_fake_venv_is_refused(active: Agent, tmp_path: Path, fake: str) -> None:
    """Behaviour 57."""
    agent = Agent(tmp_path)
    venv = tmp_path / "fv"
    if fake == "empty":
        venv.mkdir()
    else:
        shutil.copytree(active.root / "test_project/.venv", venv, symlinks=True)
    if fake == "no config":
        (venv / "pyvenv.cfg").unlink()
    elif fake == "own python":
        (venv / "bin/python").unlink()
        (venv / "bin/python").write_text("#!/bin/sh\necho owned\n")
        (venv / "bin/python").chmod(0o755)
    elif fake == "pipe":
        (venv / "bin/python").unlink()
        os.mkfifo(venv / "bin/python")
    elif fake == "no home":
        (venv / "pyvenv.cfg").write_bytes(b"home = /usr\0bin\n")
    elif fake == "linked bin":
        (venv / "bin").rename(tmp_path / "mybin")
        (venv / "bin").symlink_to("../mybin")
    elif fake == "foreign home":
        (venv / "pyvenv.cfg").write_text(f"home = {tmp_path}\n")
    elif fake == "own link":
        (tmp_path / "evil").write_text("#!/bin/sh\n")
        (tmp_path / "evil").chmod(0o755)
        (venv / "bin/python").unlink()
        (venv / "bin/python").symlink_to("../../evil")
    elif fake == "link to sh":
        (venv / "pyvenv.cfg").write_text(f"home = {os.path.realpath('/bin')}\n")
        (venv / "bin/python").unlink()
        (venv / "bin/python").symlink_to(os.path.realpath("/bin/sh"))
    answer = await agent("activate_venv", venv_name="fv")
    assert (answer.status, answer.code) == (ResultStatus.ERROR, ErrorCode.NOT_ALLOWED)
    assert agent.session.venv is None


async def test_a_venv_that_turned_fake_is_not_used(active: Agent, tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    shutil.copytree(active.root / "test_project/.venv", tmp_path / "v", symlinks=True)
    assert (await agent("activate_venv", venv_name="v")).ok
    (tmp_path / "v/bin/python").unlink()
    (tmp_path / "v/bin/python").symlink_to("/bin/sh")
    assert (await agent.run("python --version")).code is ErrorCode.NOT_ALLOWED


async def test_a_missing_venv_says_how_to_make_it(agent: Agent) -> None:
    answer = await agent("activate_venv", venv_name=".venv")
    assert answer.code is ErrorCode.NOT_FOUND
    assert "create_venv" in answer.message


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/usr", "a b", "", "é", "a;b"])
async def test_venv_names_are_plain(agent: Agent, name: str) -> None:
    assert (await agent("create_venv", venv_name=name)).code is ErrorCode.BAD_ARGUMENTS
    assert (await agent("activate_venv", venv_name=name)).code is ErrorCode.BAD_ARGUMENTS


async def test_create_venv_does_not_overwrite(active: Agent) -> None:
    assert (await active("create_venv", venv_name=".venv")).code is ErrorCode.EXISTS


async def test_half_a_venv_is_removed_so_that_it_can_be_made_again(agent: Agent) -> None:
    agent.timeout_s = 0.15
    assert (await agent("create_venv", venv_name="v")).code is ErrorCode.TIMEOUT
    assert (await agent("ls")).data["items"] == []


async def test_a_script_that_dies_for_want_of_network_is_a_network_failure(agent: Agent) -> None:
    script = "raise ConnectionError('[Errno -2] Name or service not known')"
    result = await agent.run(["python", "-c", script])
    assert (result.status, result.code) == (ResultStatus.FAILURE, ErrorCode.NETWORK)


async def test_a_run_that_only_mentions_the_network_is_not_a_network_failure(agent: Agent) -> None:
    script = "import sys; sys.exit('Connection refused\\nFAILED (failures=1)')"
    result = await agent.run(["python", "-c", script])
    assert result.code is ErrorCode.EXIT_STATUS


# The jail as an agent meets it


async def test_a_refusal_of_the_jail_says_so_and_not_to_work_around_it(agent: Agent) -> None:
    done = await agent.run(["python", "-c", "open('/usr/planted', 'w')"])
    assert (done.status, done.data["tier"]) == (ResultStatus.FAILURE, agent.tool.tier)
    assert "Do not work around it" in done.data["hint"]
    assert "hint" not in (await agent.run(["python", "-c", "raise SystemExit(1)"])).data


async def test_with_the_network_off_an_install_fails_with_a_hint(active: Agent) -> None:
    done = await active.run("pip install surely-not-there")
    assert (done.status, done.code) == (ResultStatus.FAILURE, ErrorCode.NETWORK)
    assert "The network is off in this sandbox; only the operator can grant more." in done.data["hint"]


async def test_home_and_scratch_of_programs_lie_at_the_root_and_are_not_listed(agent: Agent) -> None:
    script = "import os, tempfile; print(os.environ['HOME'], tempfile.gettempdir())"
    done = await agent.run(["python", "-c", script])
    assert done.data["stdout"] == f"{agent.root}/.home {agent.root}/.tmp"
    assert (await agent("ls")).data["items"] == []


async def test_what_came_to_be_behind_the_gates_back_is_not_replaced(agent: Agent) -> None:
    """Behaviour 58."""
    (agent.tool.files.root / "f").write_text("theirs")
    answer = await agent("write", path="f", content="mine")
    assert answer.code is ErrorCode.NOT_ALLOWED
    assert "has other content (6 bytes); to replace it needs the operator" in answer.message
    agent.session = replace(agent.session, autonomous=True)
    assert (await agent("write", path="f", content="mine")).ok
    assert (await agent("read", path="f")).data == {"content": "mine"}
