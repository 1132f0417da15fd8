"""Attacks on the file commands, which run in the cockpit itself: sandbox spec §6 cases 1 to 20 and 84 to 90.

A program of its own, `python -m tests.security.native BASE ENTRIES`, so that it can run as any user; prints
a JSON object of outcomes: `stopped`, or what went through. With `careless` as a third word the commands
follow links wherever they lead, which shows what the attacks are worth.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.ports import CallContext
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.tools.simple_coder import SimpleCoder
from tests.security.watch import Watch

Check = Callable[["Bench"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
WORD = "the secret"
PATIENCE_S = 120.0
"""For what must be answered at once; a machine may be slow."""
FLAT_BYTES = 96 << 20
"""What the largest read may add to the memory; the policy's limit is 10 MiB."""


class ThroughError(Exception):
    """The attack did what it wanted."""


def check(name: str) -> Callable[[Check], Check]:
    def register(work: Check) -> Check:
        CHECKS[name] = work
        return work

    return register


class Careless:
    """Opens what a path leads to, as a tool would that only looks at its words."""

    def open(self, root: int, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, dir_fd=root)


class Bench:
    """A sandbox root of its own, a session, and something outside that is watched."""

    def __init__(self, base: Path, entries: int, *, careless: bool) -> None:
        self.base, self.entries = base, entries
        self.root, self.outside = base / "root", base / "outside"
        self.root.mkdir()
        (self.outside / "d").mkdir(parents=True)
        (self.outside / "f").write_text(WORD)
        (self.outside / "d" / "f").write_text(WORD)
        self.tool = SimpleCoder(self.root, SandboxPolicy())
        if careless:
            self.tool.files._opener = Careless()
        self.watch = Watch(self.outside)

    async def call(self, verb: str, /, cwd: str = ".", **args: Any) -> ToolResult:
        session = SandboxSession(cwd=cwd, autonomous=True)
        return await self.tool.call(verb, args, CallContext(session, "agent"))

    async def refused(self, verb: str, /, *codes: ErrorCode, cwd: str = ".", **args: Any) -> None:
        """Make the call; it must be refused, and with one of the codes where some are given."""
        async with asyncio.timeout(PATIENCE_S):
            answer = await self.call(verb, cwd, **args)
        if answer.status is not ResultStatus.ERROR:
            raise ThroughError(f"{verb} {args}: {answer.data}")
        if codes and answer.code not in codes:
            raise ThroughError(f"{verb} {args}: {answer.code} instead of {codes}")

    async def every_verb_refused(self, path: str, *codes: ErrorCode) -> None:
        """All that a path can be given to."""
        (self.root / "mine").write_text("x")
        for command in ("ls", "cd", "read", "mkdir", "rm"):
            await self.refused(command, *codes, path=path)
        await self.refused("write", *codes, path=path, content="x")
        await self.refused("append", *codes, path=path, content="x")
        await self.refused("replace", *codes, path=path, old="t", new="x")
        await self.refused("find", *codes, text=WORD, path=path)
        for command in ("move", "copy"):
            await self.refused(command, *codes, source=path, target="stolen")
            await self.refused(command, *codes, source="mine", target=path)

    def untouched(self) -> None:
        """Nothing outside was even opened."""
        if events := self.watch.events():
            raise ThroughError(f"outside: {events[:5]}")
        files = {str(path.relative_to(self.outside)): path.read_text() for path in self.outside.rglob("f")}
        if files != {"f": WORD, "d/f": WORD} or len(list(self.outside.rglob("*"))) != 3:
            raise ThroughError(f"outside is now {files}")
        self.watch.events()


OUT = (ErrorCode.OUTSIDE_ROOT,)
LINKED = (ErrorCode.OUTSIDE_ROOT, ErrorCode.WRONG_TYPE, ErrorCode.EXISTS, ErrorCode.NOT_FOUND)


@check("paths that leave the root")
async def _(bench: Bench) -> None:
    for path in (
        "../x",
        "../outside/f",
        "a/../../x",
        "/etc/passwd",
        "//etc",
        str(bench.outside / "f"),
        "/",
        "..",
    ):
        await bench.every_verb_refused(path, *OUT)


@check("a tilde is a plain name")
async def _(bench: Bench) -> None:
    for path in ("~", "~root", "~/.ssh/id_rsa"):
        for command in ("ls", "cd", "read", "rm"):
            await bench.refused(command, ErrorCode.NOT_FOUND, path=path)


@check("a link to a file outside")
async def _(bench: Bench) -> None:
    (bench.root / "relative").symlink_to("../outside/f")
    (bench.root / "absolute").symlink_to(bench.outside / "f")
    for name in ("relative", "absolute"):
        for command in ("read", "cd", "ls"):
            await bench.refused(command, *LINKED, path=name)
        await bench.refused("replace", *LINKED, path=name, old=WORD, new="x")
        await bench.refused("append", *LINKED, path=name, content="x")
        await bench.refused("copy", *LINKED, source=name, target=f"stolen-{name}")
        found = await bench.call("find", text=WORD)
        if found.data.get("items"):
            raise ThroughError(f"find: {found.data}")


@check("a link to a directory outside")
async def _(bench: Bench) -> None:
    (bench.root / "d").symlink_to("../outside")
    (bench.root / "mine").write_text("x")
    for path in ("d/f", "d/d/f", "d/new"):
        for command in ("read", "ls", "rm", "mkdir"):
            await bench.refused(command, *LINKED, path=path)
        await bench.refused("write", *LINKED, path=path, content="x")
        await bench.refused("move", *LINKED, source="mine", target=path)
        await bench.refused("copy", *LINKED, source=path, target="stolen")


@check("a chain of 40 links")
async def _(bench: Bench) -> None:
    (bench.root / "l0").symlink_to("../outside/f")
    for number in range(1, 60):
        (bench.root / f"l{number}").symlink_to(f"l{number - 1}")
    for number in (10, 39, 40, 59):
        await bench.refused("read", *LINKED, path=f"l{number}")


@check("an absolute link back into the root")
async def _(bench: Bench) -> None:
    (bench.root / "f").write_text("inside")
    (bench.root / "back").symlink_to(bench.root / "f")
    await bench.refused("read", ErrorCode.OUTSIDE_ROOT, path="back")


@check("a write through a dangling link")
async def _(bench: Bench) -> None:
    (bench.root / "dangling").symlink_to("../outside/new")
    for command in ("write", "append"):
        await bench.refused(command, *LINKED, path="dangling", content="x")
    await bench.refused("mkdir", *LINKED, path="dangling/new")


@check("rm through a linked parent")
async def _(bench: Bench) -> None:
    (bench.root / "d").symlink_to("../outside")
    await bench.refused("rm", *LINKED, path="d/f")


@check("rm of a link leaves its target")
async def _(bench: Bench) -> None:
    (bench.root / "link").symlink_to("../outside/f")
    answer = await bench.call("rm", path="link")
    if not answer.ok or (bench.root / "link").is_symlink():
        raise ThroughError(f"the link was not removed: {answer.data}")


@check("rm of the root")
async def _(bench: Bench) -> None:
    (bench.root / "a").mkdir()
    for path in (".", "/", str(bench.root), "..", "", "a/..", "./", "a"):
        await bench.refused("rm", path=path)
    if not (bench.root / "a").is_dir():
        raise ThroughError("a directory was removed")


@check("a working directory replaced by a link")
async def _(bench: Bench) -> None:
    (bench.root / "was").mkdir()
    (bench.root / "was").rename(bench.root / "is")
    for away in (None, "../outside"):
        if away:
            (bench.root / "was").symlink_to(away)
        for command in ("ls", "read", "rm"):
            await bench.refused(command, *LINKED, cwd="was", path="f" if command != "ls" else ".")
        await bench.refused("run", *LINKED, ErrorCode.NOT_ALLOWED, cwd="was", command="ls")


@check("a pipe, a socket, a device, a directory")
async def _(bench: Bench) -> None:
    os.mkfifo(bench.root / "fifo")
    (bench.root / "zero").symlink_to("/dev/zero")
    (bench.root / "dir").mkdir()
    os.chdir(bench.root)
    names = ["fifo", "socket", "zero", "dir"]
    if os.getuid() == 0:
        os.mknod(bench.root / "device", 0o020600, os.makedev(1, 5))
        names.append("device")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in names:
            await bench.refused("read", *LINKED, path=name)
            await bench.refused("copy", *LINKED, source=name, target="copied")
            await bench.refused("append", *LINKED, ErrorCode.NOT_ALLOWED, path=name, content="x")
        await asyncio.wait_for(bench.call("find", text="x"), PATIENCE_S)


@check("a huge, a growing and an endless file")
async def _(bench: Bench) -> None:
    with open(bench.root / "huge", "wb") as huge:
        huge.truncate(1 << 40)
    (bench.root / "zero").symlink_to("/dev/zero")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("huge", "zero"):
        await bench.refused("read", ErrorCode.TOO_LARGE, *LINKED, path=name)
    stop = threading.Event()

    def grow() -> None:
        with open(bench.root / "growing", "ab", buffering=0) as growing:
            while not stop.is_set() and growing.tell() < 64 << 20:
                growing.write(b"x" * 65536)

    growing = threading.Thread(target=grow)
    (bench.root / "growing").write_bytes(b"x")
    growing.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (await bench.call("read", path="growing")).code is not ErrorCode.TOO_LARGE:
                pass
    finally:
        stop.set()
        growing.join()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > FLAT_BYTES:
        raise ThroughError(f"memory grew by {grown >> 20} MiB")


@check("a replacement that grows without end")
async def _(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"a" * (8 << 20))
    await bench.refused("replace", ErrorCode.TOO_LARGE, path="f", old="a", new="x" * (1 << 20))
    if (bench.root / "f").stat().st_size != 8 << 20:
        raise ThroughError("the file was changed")


@check("malformed paths")
async def _(bench: Bench) -> None:
    for path in ("", "a\0b", "n" * 256, "p/" * 2500 + "f", "d/" * 3000, "bad\ud800"):
        for command in ("read", "ls", "mkdir", "rm"):
            await bench.refused(command, ErrorCode.BAD_ARGUMENTS, path=path)
        await bench.refused("write", ErrorCode.BAD_ARGUMENTS, path=path, content="x")


@check("hostile names are listed, read and removed")
async def _(bench: Bench) -> None:
    names = [b"esc\x1b[2J", b"new\nline", "rtl\u202egnp".encode(), b"-rf", b"--", b" ", b"[x]", b"quote'\""]
    names += [
        b"bad\xff\xfe",
        b"half\xed\xa0\x80",
        b"back\\slash",
        b"\\x1b",
        b"\\x5c",
        b"\x7f",
        "\u200bx".encode(),
    ]
    for number, name in enumerate(names):
        Path(os.fsdecode(os.fsencode(bench.root) + b"/" + name)).write_text(str(number))
    items = (await bench.call("ls")).data["items"]
    if not all(item.isprintable() for item in items):
        raise ThroughError(f"not all are shown escaped: {items}")
    read = [(await bench.call("read", path=item)).data.get("content") for item in items]
    if sorted(read, key=str) != sorted(map(str, range(len(names)))):
        raise ThroughError(f"{items} were read as {read}")
    for item in items:
        await bench.call("rm", path=item)
    if left := os.listdir(os.fsencode(bench.root)):
        raise ThroughError(f"{left} could not be removed")


@check("a file with a second name outside")
async def _(bench: Bench) -> None:
    os.link(bench.outside / "f", bench.root / "shared")
    bench.watch.events()
    for command in ("write", "append"):
        await bench.refused(command, ErrorCode.NOT_ALLOWED, path="shared", content="poison")
    await bench.refused("replace", ErrorCode.NOT_ALLOWED, path="shared", old=WORD, new="poison")
    await bench.refused("read", ErrorCode.NOT_ALLOWED, path="shared")
    await bench.refused("find", ErrorCode.NOT_ALLOWED, path="shared", text=WORD)
    for command in ("copy", "move"):
        await bench.refused(command, ErrorCode.NOT_ALLOWED, source="shared", target="taken")
    (bench.root / "shared").unlink()
    bench.watch.events()


@check("a directory of very many names")
async def _(bench: Bench) -> None:
    (bench.root / "many").mkdir()
    for number in range(bench.entries):
        os.close(os.open(bench.root / "many" / str(number), os.O_CREAT | os.O_WRONLY))
    answer = await bench.call("ls", path="many")
    if len(answer.data["items"]) > bench.tool.policy.list_entries:
        raise ThroughError(f"{len(answer.data['items'])} names were listed")
    bench.tool.files.remove_tree("many")


@check("a tree of 3,000 levels")
async def _(bench: Bench) -> None:
    here = os.open(bench.root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    for command in ("ls", "cd"):
        await bench.call(command, path="/".join(["d"] * 2000))
    await bench.call("find", text="x")
    await bench.refused("rm", path="d")
    bench.tool.files.remove_tree("d")


@check("files and directories for each other")
async def _(bench: Bench) -> None:
    (bench.root / "d").mkdir()
    (bench.root / "f").write_text("x")
    wrong = (ErrorCode.WRONG_TYPE,)
    for command, path in (("mkdir", "f"), ("cd", "f"), ("ls", "f"), ("read", "d"), ("rm", "d")):
        await bench.refused(command, *wrong, path=path)
    for path in ("d", "f/x"):
        await bench.refused("write", *wrong, path=path, content="x")


@check("protected names in other cases")
async def _(bench: Bench) -> None:
    for name in (".pilothouse", ".Pilothouse", ".PILOTHOUSE/journal.db", "a/../.pilothouse/x"):
        await bench.every_verb_refused(name, ErrorCode.NOT_ALLOWED)


# Deputies: cases 84 to 90


def _planted(bench: Bench, *names: str) -> Path:
    """Programs in the root that leave a mark outside of it when they run without a jail."""
    mark = bench.base / "ran"
    for name in names:
        path = bench.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    return mark


def _never_ran(mark: Path) -> None:
    if mark.exists():
        raise ThroughError("a planted program ran without a jail")


async def _every_verb(bench: Bench) -> None:
    (bench.root / "text").write_text("one two")
    for command, args in (
        ("ls", {"path": "."}),
        ("cd", {"path": "."}),
        ("read", {"path": "text"}),
        ("replace", {"path": "text", "old": "one", "new": "1"}),
        ("append", {"path": "text", "content": "x"}),
        ("find", {"text": "two"}),
        ("copy", {"source": "text", "target": "copied"}),
        ("move", {"source": "copied", "target": "moved"}),
        ("rm", {"path": "moved"}),
        ("mkdir", {"path": "made"}),
        ("policy", {}),
    ):
        await bench.call(command, **args)


@check("a repository whose settings run programs")
async def _(bench: Bench) -> None:
    mark = _planted(bench, "evil", ".git/hooks/post-checkout", ".git/hooks/pre-commit")
    evil = bench.root / "evil"
    (bench.root / ".git/config").write_text(
        f"[core]\n\tfsmonitor = {evil}\n\thooksPath = .git/hooks\n\tsshCommand = {evil}\n\tpager = {evil}\n"
        f'[filter "x"]\n\tclean = {evil}\n\tsmudge = {evil}\n[diff "x"]\n\ttextconv = {evil}\n'
    )
    (bench.root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (bench.root / ".gitattributes").write_text("* filter=x diff=x\n")
    await _every_verb(bench)
    await bench.call("run", command="git status")
    _never_ran(mark)


@check("modules planted in the working directory")
async def _(bench: Bench) -> None:
    code = f"open({str(bench.base / 'ran')!r}, 'w').close()\n"
    names = (
        "json",
        "os",
        "marshal",
        "_signal",
        "sitecustomize",
        "usercustomize",
        "encodings/__init__",
        "engine/__init__",
    )
    for name in names:
        path = bench.root / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    (bench.root / "evil.pth").write_text(f"import os; {code}")
    os.chdir(bench.root)
    await _every_verb(bench)
    answer = await bench.call("run", command="echo ran")
    if answer.data.get("stdout") != "ran":
        raise ThroughError(f"no command ran: {answer.data}")
    _never_ran(bench.base / "ran")


@check("programs planted on the PATH")
async def _(bench: Bench) -> None:
    names = ("bwrap", "python3", "python", "sh", "git", "ls", "env", "pip")
    mark = _planted(bench, *names, *(f"v/bin/{name}" for name in names))
    os.environ["PATH"] = f"{bench.root}:{bench.root}/v/bin:{os.environ['PATH']}"
    os.chdir(bench.root)
    tool = SimpleCoder(bench.root, SandboxPolicy())
    for command in ("ls", "git --version", "python --version"):
        answer = await tool.call("run", {"command": command}, CallContext(SandboxSession(), "agent"))
        if answer.status is not ResultStatus.SUCCESS:
            raise ThroughError(f"{command}: {answer.data}")
    tool.close()
    _never_ran(mark)


@check("a venv whose parts lie outside")
async def _(bench: Bench) -> None:
    venv = bench.root / "v"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(BASE_PYTHON)
    home = f"home = {BASE_PYTHON.parent}\n"
    (venv / "pyvenv.cfg").write_text(home)
    if not (await bench.call("activate_venv", venv_name="v")).ok:
        raise ThroughError("the genuine one was refused, so the others prove nothing")
    shutil.copytree(venv, bench.outside / "v", symlinks=True)
    bench.watch.events()
    fakes: dict[str, Callable[[], object]] = {
        "bin outside": lambda: (
            shutil.rmtree(venv / "bin"),
            (venv / "bin").symlink_to(bench.outside / "v/bin"),
        ),
        "home elsewhere": lambda: (venv / "pyvenv.cfg").write_text(f"home = {bench.outside}\n"),
        "settings outside": lambda: (
            (venv / "pyvenv.cfg").unlink(),
            (venv / "pyvenv.cfg").symlink_to(bench.outside / "v/pyvenv.cfg"),
        ),
        "all of it outside": lambda: (shutil.rmtree(venv), venv.symlink_to(bench.outside / "v")),
    }
    for name, fake in fakes.items():
        fake()
        if (await bench.call("activate_venv", venv_name="v")).ok:
            raise ThroughError(name)
        if venv.is_symlink():
            break
        shutil.rmtree(venv)
        shutil.copytree(bench.outside / "v", venv, symlinks=True)
        bench.watch.events()
    shutil.rmtree(bench.outside / "v")
    bench.watch.events()


@check("settings planted in the jail's HOME")
async def _(bench: Bench) -> None:
    policy = SandboxPolicy(network=Network.PORTS)
    before = child_environment(bench.root, policy, None)
    for name, text in (
        (".config/pip/pip.conf", "[global]\nindex-url = https://evil.example/simple\n"),
        (".pip/pip.conf", "[global]\nfind-links = /etc\n"),
        (".netrc", "machine evil.example login a password b\n"),
        (".gitconfig", "[core]\n\tpager = /evil\n"),
        (".npmrc", "registry=https://evil.example\n"),
    ):
        path = bench.root / policy.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    after = child_environment(bench.root, policy, None)
    if before != after or any("evil" in value for value in after.values()):
        raise ThroughError("the cockpit's own settings changed")
    inside = await bench.call(
        "run", command=["python", "-c", "import os; print(os.path.exists(os.environ['HOME'] + '/.npmrc'))"]
    )
    if inside.data.get("stdout") != "True":
        raise ThroughError(f"inside they are of use: {inside.data}")


@check("an agent changes its policy")
async def _(bench: Bench) -> None:
    await bench.refused("policy", ErrorCode.BAD_ARGUMENTS, network="on")
    before = bench.tool.policy.as_json()
    (await bench.call("policy")).data["policy"]["network"] = "on"
    if bench.tool.policy.as_json() != before or bench.tool.policy.network is not Network.OFF:
        raise ThroughError("the policy changed")


@check("an agent arms rm itself")
async def _(bench: Bench) -> None:
    await bench.refused("toggle_autonomous_mode", ErrorCode.NOT_ALLOWED)
    (bench.root / "f").write_text("x")
    answer = await bench.tool.call("rm", {"path": "f"}, CallContext(SandboxSession(), "agent"))
    if answer.code is not ErrorCode.NOT_ALLOWED or not (bench.root / "f").exists():
        raise ThroughError("rm worked without being armed")


async def main(base: Path, entries: int, *, careless: bool) -> dict[str, str]:
    """Every check on a bench of its own."""
    found = {}
    for number, (name, work) in enumerate(CHECKS.items()):
        place = base / str(number)
        place.mkdir()
        bench = Bench(place, entries, careless=careless)
        try:
            await work(bench)
            bench.untouched()
            found[name] = "stopped"
        except (ThroughError, TimeoutError, OSError) as error:
            found[name] = str(error)[:300] or "it was not answered"
        finally:
            bench.watch.close()
            bench.tool.close()
            os.chdir("/")
    return found


if __name__ == "__main__":
    os.environ.setdefault("PATH", os.defpath)
    if SimpleCoder(Path(sys.argv[1])).tier not in (Tier.FULL, Tier.KERNEL):
        print(json.dumps({}))
    else:
        made = main(Path(sys.argv[1]), int(sys.argv[2]), careless="careless" in sys.argv)
        print(json.dumps(asyncio.run(made)))
