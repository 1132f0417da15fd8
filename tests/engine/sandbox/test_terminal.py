"""The operator's shell in the jail: a real terminal, and nothing of what was typed unseen is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.core.actions import ErrorCode, SandboxSession
from engine.sandbox.paths import PathError
from engine.sandbox.policy import Tier
from engine.sandbox.shell import OperatorShell, ShellNotesDirectory, shell_command, shell_launch
from engine.sandbox.terminal import Terminal
from tests.engine.sandbox.shell_desk import TIERS, Desk, alive, until

CTRL_C, CTRL_D, CTRL_Z = b"\x03", b"\x04", b"\x1a"
OpenDesk = Callable[..., Any]


@pytest.fixture
async def open_desk(tmp_path: Path) -> AsyncIterator[OpenDesk]:
    desks: list[Desk] = []

    async def open_(tier: Tier, **more: Any) -> Desk:
        desk = Desk(tmp_path, tier, **more)
        desks.append(desk)
        await desk.sit_down()
        return desk

    yield open_
    for desk in desks:
        await desk.get_up()


@pytest.fixture(params=TIERS)
async def desk(request: pytest.FixtureRequest, open_desk: OpenDesk) -> Desk:
    made: Desk = await open_desk(request.param)
    return made


async def test_it_is_a_terminal_with_job_control(desk: Desk) -> None:
    assert "/dev/" in await desk.types("tty")
    assert "tty works" in await desk.types("echo tty works >/dev/tty")
    desk.terminal.resize(41, 133)
    assert "41 133" in await desk.types("stty size")
    await desk.runs("sleep 1000")
    desk.terminal.write(CTRL_C)
    await desk.sees("$ ")
    assert "130" in await desk.types("echo code $?")
    await desk.runs("sleep 1001")
    desk.terminal.write(CTRL_Z)
    await desk.sees("Stopped")
    await desk.sees("$ ")
    await desk.types("bg")
    assert "Running" in await desk.types("jobs")
    await desk.types("kill %1; wait")
    desk.terminal.write(CTRL_D)
    answer = await desk.answer()
    assert answer["commands"][:2] == ["tty", "echo tty works >/dev/tty"]
    assert desk.record.sizes[-1] == (41, 133)


CURSES = """
import curses
def main(screen):
    screen.addstr(2, 3, "full screen %d" % curses.LINES)
    while (key := screen.getch()) != ord("q"):
        screen.addstr(3, 3, "key %d" % key)
curses.wrapper(main)
"""


async def test_a_full_screen_program_draws_reads_keys_and_follows_the_size(desk: Desk) -> None:
    (desk.root / "screen.py").write_text(CURSES)
    desk.terminal.resize(30, 100)
    desk.terminal.write(b"python3 screen.py\n")
    await desk.sees("full screen 30")
    desk.terminal.resize(20, 60)
    await desk.sees("key 410")  # KEY_RESIZE
    desk.terminal.write(b"x")
    await desk.sees("120")
    desk.terminal.write(b"q")
    await desk.sees("$ ")


async def test_a_large_paste_arrives_whole(open_desk: OpenDesk) -> None:
    desk = await open_desk(Tier.FULL)
    paste = b"".join(b"%06d %s\n" % (n, b"x" * 56) for n in range(16_384))
    await desk.types("stty -echo", "$ ")
    desk.terminal.write(b"cat >pasted\n")
    await until(lambda: (desk.root / "pasted").exists())
    desk.terminal.write(paste + CTRL_D)
    await desk.sees("$ ")
    assert (desk.root / "pasted").read_bytes() == paste


async def test_a_key_that_interrupts_does_not_wait_behind_a_paste_that_nobody_reads(
    open_desk: OpenDesk,
) -> None:
    desk = await open_desk(Tier.FULL)
    await desk.runs("sleep 1000")
    for _ in range(9):
        desk.terminal.write(b"never read\n" * 100_000)
    await desk.sees("\a")  # more than may wait
    desk.terminal.write(CTRL_C)
    await desk.sees("^C")
    await desk.sees("./ $ ")
    assert "130" in await desk.types("echo code $?", "./ $ ")


async def test_a_flood_leaves_the_loop_to_others_and_the_record_bounded(open_desk: OpenDesk) -> None:
    desk = await open_desk(Tier.FULL)
    desk.terminal.write(b"yes\n")
    turns = 0
    while len(desk.screen) < 2_000_000:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 500
    desk.terminal.write(CTRL_C)
    await desk.sees("^C")
    await desk.sees("./ $ ")
    seen: list[bytes] = []
    desk.terminal.follow(seen.append)
    assert len(seen[0]) <= 256 * 1024
    assert seen[0].rstrip().endswith(b"$")


# What is kept of what was typed

SECRET = "correct-horse"


UNSEEN = {
    "read -s": ("read -sp wo''rd: WORD", f"{SECRET}\n"),
    "getpass": ("""python3 -c 'import getpass; getpass.getpass("wo" "rd:")'""", f"{SECRET}\n"),
    "raw mode": (
        """python3 -c 'import os, tty; tty.setraw(0); os.write(1, b"wo" b"rd:"); os.read(0, 9)'; stty sane""",
        SECRET,
    ),
    "stty -echo": ("stty -echo; printf wo''rd:; cat >/dev/null; stty echo", f"{SECRET}\n\x04"),
    "blind at the prompt": ("stty -echo; printf wo''rd:", f"export WORD={SECRET}\n"),
}


@pytest.mark.parametrize("way", UNSEEN)
async def test_what_is_typed_unseen_is_kept_nowhere(open_desk: OpenDesk, way: str) -> None:
    desk = await open_desk(Tier.FULL)
    line, keys = UNSEEN[way]
    await desk.types(line, "word:")
    if way.startswith("blind"):
        await desk.sees("$ ")
    desk.terminal.write(keys.encode())
    await desk.sees("$ ")
    await desk.types("stty echo")
    await desk.types('python3 -c \'import time; print("u" "p"); time.sleep(1000)\' $WORD &', "up")
    answer = await desk.hands_back()
    assert SECRET not in desk.record.text
    assert desk.record.keys == [None]  # one for each key would tell how many there were
    assert SECRET not in str(answer)
    assert answer["processes"][0].endswith("time.sleep(1000)" + (" …" if "WORD" in line + keys else ""))
    assert [path for path in desk.root.rglob("*") if path.is_file()] == []


async def test_what_is_typed_in_sight_is_recorded_and_plays_back(open_desk: OpenDesk) -> None:
    desk = await open_desk(Tier.FULL)
    await desk.runs("cat")
    desk.terminal.write("gr\u00fcn\n".encode())
    await desk.sees("gr\u00fcn\r\ngr\u00fcn")
    desk.terminal.answer(b"\x1b[24;80R\n")
    await desk.sees("^[[24;80R")
    desk.terminal.write(CTRL_D)
    await desk.sees("$ ")
    seen: list[bytes] = []
    desk.terminal.follow(seen.append)
    await desk.hands_back()
    assert "gr\u00fcn\n" in "".join(key or "" for key in desk.record.keys)
    assert "24;80R" not in "".join(key or "" for key in desk.record.keys)
    assert "".join(desk.record.output).encode().startswith(seen[0])


# How it ends


async def test_handing_back_ends_what_runs_and_says_what_it_was(desk: Desk) -> None:
    stubborn = "import signal, time; signal.signal(1, 1); signal.signal(15, 1); print('up'); time.sleep(1000)"
    await desk.types("sleep 1001 & setsid sleep 1002 & (setsid sleep 1003 &)")
    await desk.types(f'exec 7<&0; python3 -c "{stubborn}"', "up")
    answer = await desk.hands_back("mind the gap")
    assert (answer["note"], answer["message"]) == (
        "mind the gap",
        "The operator handed the shell back; 4 processes that still ran ended with it.",
    )
    names = sorted(answer["processes"])
    assert names[1:] == ["sleep 1001", "sleep 1002", "sleep 1003"]
    assert names[0].startswith("python")


async def test_a_shell_that_does_not_end_when_asked_is_ended(open_desk: OpenDesk) -> None:
    desk = await open_desk(Tier.FULL)
    await desk.runs("trap '' HUP TERM; trap - EXIT; exec sleep 1000", "sleep 1000")
    answer = await desk.hands_back()
    assert answer["message"].startswith("The operator handed the shell back")


@pytest.mark.parametrize("tier", TIERS)
async def test_a_cut_off_shell_leaves_nothing(open_desk: OpenDesk, tier: Tier) -> None:
    desk = await open_desk(tier)
    await desk.runs("trap '' HUP TERM; (setsid sleep 1001 &); sleep 1002", "sleep 1001", "sleep 1002")
    desk.call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await desk.call
    assert alive(desk.root) == []
    assert desk.coder.sessions.shells == {}
    assert list(desk.root.glob(".tmp/*")) == []


async def test_it_tells_where_it_stood_and_which_variables_were_set(open_desk: OpenDesk) -> None:
    desk = await open_desk(Tier.FULL)
    await desk.types("mkdir -p shop/stock; cd shop/stock")
    await desk.types("COLOUR=red; export PATH=$PATH:/x; unset LANG; declare -a LIST=(1 2)")
    await desk.types(
        "set -eu; python3 -m venv ../.venv; source ../.venv/bin/activate", "(.venv) ./shop/stock $ "
    )
    answer = await desk.hands_back()
    assert (answer["cwd"], answer["venv"]) == ("shop/stock", "shop/.venv")
    assert answer["variables"] == {"added": ("COLOUR", "LIST"), "changed": ("PATH",), "removed": ("LANG",)}
    desk.session = SandboxSession(cwd="shop", venv="shop/.venv")
    await desk.sit_down()
    assert "shop/.venv/bin/python" in await desk.types("type python")
    await desk.types("deactivate; cd ..; rm -r shop; mkdir gone; cd gone; rmdir ../gone")
    answer = await desk.hands_back()
    assert (answer["cwd"], answer["venv"]) == ("shop", None)
    assert answer["variables"] == {"added": (), "changed": (), "removed": ()}


# What could be hostile

PLANT = """
import os, shutil, sys
place = sys.argv[1]
shutil.rmtree(place)
os.mkdir(place)
{what}
os.kill(os.getppid(), 9)
"""


@pytest.mark.parametrize(
    "what",
    [
        "os.mkfifo(place + '/notes'); os.mkfifo(place + '/history')",
        "os.symlink('/etc/passwd', place + '/notes'); os.symlink('/etc/passwd', place + '/history')",
        "open(place + '/notes', 'w').truncate(1 << 29)",
        "open(place + '/notes', 'wb').write(b'/etc\\0/usr\\0+' + b'A' * 1000 + b'\\0+\\x1b]0;x\\0?X\\0')",
        "open(place + '/notes', 'wb').write(b'../..\\0\\xff\\0')",
        "shutil.rmtree(place); open(place, 'w').close()",
    ],
)
async def test_what_the_shell_leaves_behind_is_not_trusted(open_desk: OpenDesk, what: str) -> None:
    desk = await open_desk(Tier.KERNEL)
    (desk.root / "plant.py").write_text(PLANT.format(what=what))
    desk.terminal.write(b"python3 plant.py $__pilothouse_place\n")
    answer = await desk.answer()
    assert (answer["cwd"], answer["venv"], answer["commands"]) == (".", None, [])
    assert answer["variables"] == {"added": (), "changed": (), "removed": ()}
    assert list(desk.root.glob(".tmp/*")) == []


@pytest.mark.parametrize("tier", [Tier.KERNEL, Tier.FULL])
async def test_the_shell_is_in_the_jail_and_cannot_type_for_the_operator(
    open_desk: OpenDesk, tier: Tier
) -> None:
    desk = await open_desk(tier)
    outside = desk.root.parent / "outside"
    outside.write_text("secret")
    assert "secret" not in await desk.types(f"cat {outside}; echo x >>{outside}; ls {desk.root.parent}")
    assert outside.read_text() == "secret"
    push = "import fcntl, termios, os; fcntl.ioctl(os.open('/dev/tty', 2), termios.TIOCSTI, b'x')"
    assert "Operation not permitted" in await desk.types(f'python3 -c "{push}"')
    assert "Permission denied" in await desk.types("exec 9<>/dev/tcp/127.0.0.1/22; echo done")
    outside.unlink()


async def test_a_directory_with_a_hostile_name_runs_nothing_and_stays_a_name(open_desk: OpenDesk) -> None:
    desk = await open_desk(Tier.FULL)
    name = "$(touch ran)`touch ran`\x1b]0;t\x07\\u"
    (desk.root / name).mkdir()
    (desk.root / ".home/.inputrc").write_text('"\\C-m": "touch ran\\n"\n')
    desk.terminal.write(b"cd \\$*\n")
    await desk.sees("./$(touch ran)`touch ran`?]0;t?\\u $ ")
    answer = await desk.hands_back()
    assert answer["cwd"] == name
    assert not list(desk.root.rglob("ran"))


async def test_only_the_operator_gets_a_shell_and_only_where_it_is_recorded(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Tier.PATHS)
    for context in (desk.context("agent"), replace(desk.context(), observer=None)):
        refused = await desk.coder.call("shell", {}, context)
        assert refused.code is ErrorCode.NOT_ALLOWED
    await desk.get_up()


async def test_where_there_is_no_bash_it_is_sh(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    with pytest.raises(PathError, match="Neither bash nor sh"):
        shell_command([str(bare)])
    (bare / "sh").symlink_to("/bin/sh")
    assert shell_command([str(bare)]) == (str(bare / "sh"), "shell.sh")

    root = tmp_path / "root"
    (root / "shop").mkdir(parents=True)
    desk = Desk(root, Tier.FULL)
    shell = OperatorShell(Terminal(desk.record, "a1", lambda _stream, _text: None))
    shell.terminal.follow(desk.screen.extend)
    place = ShellNotesDirectory(desk.coder.files, "pilot")
    async with desk.coder._held(["/bin/sh"], desk.context()) as (launch, cwd, jail):
        rc = place.prepare(desk.session, "shell.sh")
        run = asyncio.create_task(
            shell.live(desk.coder.launcher, shell_launch(launch, rc), cwd, jail, limit_s=60)
        )
        await desk.sees("$ ")
        shell.terminal.write(b"cd shop\n")
        await desk.sees("shop $ ")
        shell.terminal.write(b"sleep 1000\n")
        await until(lambda: any(line.startswith("sleep") for line in alive(root)))
        shell.hand_back("")
        await run
    shell.terminal.close()
    assert alive(root) == []
    assert place.read(desk.session).session.cwd == "shop"
    await desk.get_up()
