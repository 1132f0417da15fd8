"""Running programs in jails for the tests: in every tier, as root and as an ordinary user."""

from __future__ import annotations

import itertools
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pydantic
import pytest

from engine.sandbox.policy import Tier
from engine.sandbox.tier import layers
from tests.patience import PATIENCE_S

REPOSITORY = Path(__file__).resolve().parents[3]
TIERS = [Tier.KERNEL, Tier.FULL]
USERS = ["this user", "ordinary user"]
ORDINARY = "ordinary user"


def takes_seconds(*, full: bool) -> pytest.MarkDecorator:
    """Each user once and each jail once; in full, every user in every jail."""
    pairs = list(itertools.product(USERS, TIERS) if full else zip(USERS, TIERS, strict=True))
    return pytest.mark.parametrize(("place", "tier"), pairs, indirect=True)


def need(tier: Tier) -> None:
    """Skip, saying why, where this machine does not give the tier."""
    needed = ["landlock", "seccomp", *(["namespaces"] if tier is Tier.FULL else [])]
    lacking = [layers()[name] for name in needed if not layers()[name].ok]
    if lacking:
        pytest.skip("; ".join(f"{layer.name}: {layer.reason} ({layer.fix})" for layer in lacking))


@cache
def free_uid() -> int:
    """A user id that nobody has."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in range(54_321, 60_000) if uid not in taken)


@cache
def python_of(user: str) -> str:
    """A Python that the user can run, with this repository readable; skips where there is none."""
    if user != ORDINARY:
        return sys.executable
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        code = "import sys, engine.sandbox.process; sys.exit(sys.version_info < (3, 11))"
        try:
            done = subprocess.run(
                [candidate, "-c", code], env=environment(), cwd="/", capture_output=True, **ids(user)
            )
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    pytest.skip("no Python here that an ordinary user could run with this repository")


def ids(user: str) -> dict[str, Any]:
    """Arguments of Popen that become the user."""
    if user != ORDINARY:
        return {}
    if os.getuid() != 0:
        pytest.skip("only root can become another user; this user is tested as it is")
    return {"user": free_uid(), "group": free_uid(), "extra_groups": []}


def environment() -> dict[str, str]:
    libraries = Path(pydantic.__file__).parents[1]  # another user's Python has none of its own
    return {"PYTHONPATH": f"{REPOSITORY}:{libraries}", "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath}


class Room:
    """A directory of a user's own, with a sandbox root in it."""

    def __init__(self, base: Path, user: str, others: dict[str, str]) -> None:
        self.base, self.user, self.others = base, user, others
        self.root = base / "root"

    def run(
        self,
        *argv: str,
        tier: Tier,
        limit_s: float = PATIENCE_S,
        cwd: str = ".",
        front: str = "",
        cancel: str = "",
        **policy: Any,
    ) -> dict[str, Any]:
        """What came of a program; the words OUTSIDE, COCKPIT, ABSTRACT, PORT, ROOT stand for these.

        FACTS stands for all that a program is told of what lies outside, as JSON.

        Args:
            front: Python that the cockpit's process runs first, such as a filter that takes a layer away.
            cancel: a file at the root; once it is there the run is cancelled.
        """
        for made in ("outside", "operator", "state"):
            shutil.rmtree(self.base / made, ignore_errors=True)
        asked = {
            "base": str(self.base),
            "others": self.others,
            "tier": tier,
            "argv": argv,
            "cwd": cwd,
            "limit_s": limit_s,
            "cancel": cancel,
            "policy": policy,
        }
        driver = str(Path(__file__).with_name("jail_driver.py"))
        code = f"{front}\nimport runpy; runpy.run_path({driver!r}, run_name='__main__')"
        done = subprocess.run(
            [python_of(self.user), "-c", code],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            env=environment(),
            cwd="/",
            timeout=2 * PATIENCE_S,
            check=False,
            **ids(self.user),
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def python(self, script: str, *args: str, **more: Any) -> dict[str, Any]:
        return self.run("python", "-c", script, *args, **more)


@contextmanager
def of_another_program(directory: str) -> Iterator[str]:
    """A file that another program keeps there, or elsewhere where that cannot be; everybody may read it."""
    where = directory if os.access(directory, os.W_OK) else None
    with tempfile.NamedTemporaryFile(prefix="jail-test-", dir=where) as file:
        file.write(b"the secret")
        file.flush()
        os.chmod(file.name, 0o644)
        yield file.name


@contextmanager
def room(user: str, where: str = "/var/tmp") -> Iterator[Room]:
    """A room that is taken away afterwards."""
    # Not below /tmp, where FULL has a file system of its own and writing beside the root would succeed.
    base = Path(tempfile.mkdtemp(prefix="jail-test-", dir=where))
    try:
        (base / "root").mkdir()
        if ids(user):
            for made in (base, base / "root"):
                os.chown(made, free_uid(), free_uid())
        python_of(user)
        with of_another_program(tempfile.gettempdir()) as tmp, of_another_program("/dev/shm") as shm:
            yield Room(base, user, {"tmp": tmp, "shm": shm})
    finally:
        shutil.rmtree(base, ignore_errors=True)
