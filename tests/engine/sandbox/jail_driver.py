"""Runs one program in a jail, from a process that stands in for the cockpit; a script for `jail_runs`.

Reads a JSON object from standard input and prints one as its last line. It may run as another user with
another Python, so it imports nothing but the sandbox.
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import json
import os
import resource
import shutil
import signal
import socket
import sys
import sysconfig
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from engine.sandbox.jail import Launch
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.process import Launcher, ProcessResult
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.sandbox.tier import JailRefusal, best_jail

KEY = "the secret key"
PLANTED = {
    "outside/secret": "the secret",
    "outside/inner/file": "the secret",
    **dict.fromkeys(
        (
            *("operator/.ssh/id_ed25519", "operator/.aws/credentials", "operator/.config/gh/hosts.yml"),
            *("operator/.local/share/keyrings/login.keyring", "operator/.bashrc"),
            *("state/journal.db", "state/pilothouse.toml", "state/recipes/x.toml", "state/private"),
        ),
        "the secret",
    ),
}
"""Files of the cockpit's own, by their place beside the sandbox root."""


class Outside:
    """What a command must neither learn nor change, and everything that a command is told of it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.kept = ExitStack()
        self.signals = 0
        self.place = base / "outside"
        self.buffer = ctypes.create_string_buffer(8)
        for name, text in PLANTED.items():
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text(text)
            os.utime(base / name, (1000, 1000))
        (base / "state/private").chmod(0o600)
        (self.place / "link").symlink_to("secret")
        (self.place / "tool").write_text("#!/bin/sh\nexit 0\n")
        shutil.copyfile(shutil.which("cat") or "/bin/cat", self.place / "program")
        for name in ("tool", "program"):
            (self.place / name).chmod(0o755)
        signal.signal(signal.SIGURG, self._signalled)
        self.master, slave = os.openpty()
        os.set_blocking(self.master, False)
        self.facts: dict[str, Any] = {
            "outside": str(self.place),
            "home": str(base / "operator"),
            "state": str(base / "state"),
            "files": {str(base / name): text for name, text in PLANTED.items()},
            "cockpit": os.getpid(),
            "address": ctypes.addressof(self.buffer),
            "terminal": os.ttyname(slave),
            "packages": sysconfig.get_path("purelib"),
            "key": KEY,
            **self._sockets(),
        }

    def _signalled(self, *_: object) -> None:
        self.signals += 1

    def _sockets(self) -> dict[str, Any]:
        abstract = f"jail-test-{os.getpid()}"
        stream, named, hidden = (
            self.kept.enter_context(socket.socket(kind))
            for kind in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX)
        )
        stream.bind(("127.0.0.1", 0))
        named.bind(str(self.place / "socket"))
        hidden.bind(f"\0{abstract}")
        datagrams = self.kept.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(self.place / "datagrams"))
        for listening in (stream, named, hidden):
            listening.listen(16)
        return {"abstract": abstract, "port": stream.getsockname()[1]}

    def look(self) -> dict[str, object]:
        """Everything that a command must not change, by name."""
        seen: dict[str, object] = {}
        for top in ("outside", "operator", "state"):
            for path in sorted((self.base / top, *(self.base / top).rglob("*"))):
                status = path.lstat()
                text = path.read_bytes().hex() if path.is_file() else ""
                own = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_nlink)
                seen[str(path)] = (*own, text, os.listxattr(path, follow_symlinks=False))
        for device in ("/dev/full", "/dev/null", "/dev/zero", "/dev/tty", "/proc/uptime"):
            status = os.stat(device)
            seen[device] = (status.st_mode, status.st_uid, status.st_gid, os.listxattr(device))
        seen["beside the root"] = sorted(path.name for path in self.base.iterdir())
        seen["the cockpit's process"] = (
            os.getpriority(os.PRIO_PROCESS, 0),
            sorted(os.sched_getaffinity(0)),
            resource.getrlimit(resource.RLIMIT_NOFILE),
            Path("/proc/self/oom_score_adj").read_text(),
        )
        seen["signals"] = self.signals
        seen["the cockpit's terminal"] = self._said()
        return seen

    def _said(self) -> str:
        try:
            return os.read(self.master, 4096).hex()
        except BlockingIOError:
            return ""


async def main() -> None:
    """Run what standard input asks for."""
    asked = json.loads(sys.stdin.read())
    os.environ["ANTHROPIC_API_KEY"] = KEY
    base = Path(asked["base"])
    root = base / "root"
    root.mkdir(exist_ok=True)
    policy = SandboxPolicy().changed(asked["policy"])
    jail = best_jail(policy, at_most=Tier(asked["tier"]))
    if isinstance(jail, JailRefusal):
        print(json.dumps({"refused": jail.message}))
        return
    outside = Outside(base)
    for name in (policy.home, policy.tmp):
        (root / name).mkdir(exist_ok=True)

    async def run(argv: list[str]) -> ProcessResult:
        cwd = os.open(root / asked["cwd"], os.O_RDONLY | os.O_DIRECTORY)
        launch = Launch(argv[0], tuple(argv), child_environment(root, policy, None))
        return await Launcher(root, policy).run(
            launch, cwd, jail=jail, limit_s=asked["limit_s"], output=lambda *_: None
        )

    others = [asyncio.create_task(run(["/bin/sleep", "600"]))] if "FACTS" in asked["argv"] else []
    with outside.kept:
        if others:
            control = jail.tier is Tier.PATHS
            outside.facts |= {"other": await sleeper(root), "control": control, **asked["others"]}
        names = {name.upper(): value for name, value in outside.facts.items()}
        facts = {**names, "ROOT": root, "FACTS": json.dumps(outside.facts)}
        words = [str(facts.get(word, word)) for word in asked["argv"]]
        before = outside.look()
        running = asyncio.create_task(run([str(BASE_PYTHON), *words[1:]] if words[0] == "python" else words))
        if asked["cancel"]:
            while not (root / asked["cancel"]).exists() and not running.done():
                await asyncio.sleep(0.01)
            running.cancel()
        await asyncio.wait({running})
        after = outside.look()
    for other in others:
        other.cancel()
        await asyncio.wait({other})
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    done = {"ended": "cancelled"} if running.cancelled() else dataclasses.asdict(running.result())
    answer = (
        {"signals": outside.signals}
        | done
        | {"changed": changed, "untouched": not changed, "alive": alive(root)}
    )
    print(json.dumps(answer))


async def sleeper(root: Path) -> int:
    """The process of another jail on the same root."""
    while True:
        for pid in alive(root):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"/bin/sleep\0"):
                return pid
        await asyncio.sleep(0.01)


def alive(root: Path) -> list[int]:
    """Processes that still work below the root."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if str((entry / "cwd").readlink()).startswith(str(root)):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


asyncio.run(main())
