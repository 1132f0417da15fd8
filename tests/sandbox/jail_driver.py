"""Runs one program in a jail, from a process that stands in for the cockpit; a script for `jail_runs`.

Reads a JSON object from standard input and prints one as its last line. It may run as another user with
another Python, so it imports nothing but the sandbox.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import socket
import sys
from pathlib import Path

from engine.sandbox import JailRefusal, Launch, Launcher, SandboxPolicy, Tier, best_jail
from engine.sandbox.environment import child_environment
from engine.sandbox.programs import BASE_PYTHON


def outside(base: Path) -> tuple[Path, str, int, list[socket.socket]]:
    """A directory of the cockpit's own, and sockets that listen beside it."""
    place = base / "outside"
    place.mkdir(mode=0o755)
    (place / "secret").write_text("the secret")
    os.utime(place / "secret", (1000, 1000))
    (place / "link").symlink_to("secret")
    (place / "tool").write_text("#!/bin/sh\nexit 0\n")
    (place / "tool").chmod(0o755)
    abstract = f"jail-test-{os.getpid()}"
    stream, named, hidden = (socket.socket(kind) for kind in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX))
    stream.bind(("127.0.0.1", 0))
    named.bind(str(place / "socket"))
    hidden.bind(f"\0{abstract}")
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    datagrams.bind(str(place / "datagrams"))
    for listening in (stream, named, hidden):
        listening.listen(16)
    return place, abstract, stream.getsockname()[1], [stream, named, hidden, datagrams]


def look(place: Path) -> dict[str, object]:
    """Everything about the directory that a command must not change."""
    seen: dict[str, object] = {}
    for path in sorted((place, *place.iterdir())):
        status = path.lstat()
        text = path.read_text() if path.is_file() else ""
        own = [status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, text]
        seen[path.name] = [*own, os.listxattr(path, follow_symlinks=False)]
    return seen


async def main() -> None:
    """Run what standard input asks for."""
    asked = json.loads(sys.stdin.read())
    os.environ["ANTHROPIC_API_KEY"] = "the secret key"
    base = Path(asked["base"])
    root = base / "root"
    root.mkdir(exist_ok=True)
    policy = SandboxPolicy.from_json(asked["policy"])
    jail = best_jail(policy, at_most=Tier(asked["tier"]))
    if isinstance(jail, JailRefusal):
        print(json.dumps({"refused": jail.message}))
        return
    place, abstract, port, kept = outside(base)
    for name in (policy.home, policy.tmp):
        (root / name).mkdir(exist_ok=True)
    facts = {"OUTSIDE": place, "COCKPIT": os.getpid(), "ABSTRACT": abstract, "PORT": port, "ROOT": root}
    words = [str(facts.get(word, word)) for word in asked["argv"]]
    argv = [str(BASE_PYTHON), *words[1:]] if words[0] == "python" else words
    before = look(place)
    cwd = os.open(root / asked["cwd"], os.O_RDONLY | os.O_DIRECTORY)
    done = await Launcher(root, policy).run(
        Launch(argv[0], tuple(argv), child_environment(root, policy, None)),
        cwd,
        jail=jail,
        limit_s=asked["limit_s"],
        output=lambda *_: None,
    )
    answer = dataclasses.asdict(done) | {"untouched": look(place) == before, "alive": alive(root)}
    print(json.dumps(answer))
    for one in kept:
        one.close()


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
