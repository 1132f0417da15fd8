"""What a jail costs a command, beside plain `subprocess` running the same one.

Each round runs the command once in every way, one after the other, so that the machine's mood falls on all
alike; medians are compared. Ours is the whole way: policy to rules, supervisor, confinement, output, report.
The command is `true`, whose own time is nothing. Run it with `python -m tests.benchmarks.jail`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.sandbox.jail import Confinement, Launch, Unconfined
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.process import Launcher
from engine.sandbox.programs import child_environment
from engine.sandbox.tier import JailRefusal, best_jail, layers

ROUNDS = 100
"""Some eight seconds, and enough that two runs on a busy machine differ by less than the tiers do."""
PROGRAM = "/bin/true"


def _ways(policy: SandboxPolicy) -> dict[str, Confinement]:
    """The jails of this machine by name; a tier that it lacks has no row."""
    ways: dict[str, Confinement] = {"no jail, supervisor only": Unconfined()}
    for tier in (Tier.KERNEL, Tier.FULL):
        jail = best_jail(policy, layers(), at_most=tier)
        if not isinstance(jail, JailRefusal) and jail.tier is tier:
            ways[f"jail {tier}"] = jail
    return ways


async def _measure(root: Path, policy: SandboxPolicy) -> tuple[dict[str, list[float]], list[float]]:
    """Milliseconds of every run, ours by way and the baseline's."""
    ways = _ways(policy)
    ours: dict[str, list[float]] = {name: [] for name in ways}
    plain: list[float] = []
    launcher, env = Launcher(root, policy), child_environment(root, policy, None)
    cwd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number in range(ROUNDS + 1):
            begin = time.perf_counter()
            subprocess.run([PROGRAM], capture_output=True, check=True, env=env, cwd=root)
            spent = (time.perf_counter() - begin) * 1000
            plain += [spent] if number else []  # the first round only warms up
            for name, jail in ways.items():
                begin = time.perf_counter()
                done = await launcher.run(
                    Launch(PROGRAM, (PROGRAM,), env), cwd, jail=jail, limit_s=30, output=lambda *_: None
                )
                spent = (time.perf_counter() - begin) * 1000
                if done.return_code != 0:
                    raise RuntimeError(f"{name}: {done}")
                ours[name] += [spent] if number else []
    finally:
        os.close(cwd)
    return ours, plain


def rows() -> list[dict[str, Any]]:
    """Milliseconds a command in each tier and plainly; their difference is the jail's price."""
    with tempfile.TemporaryDirectory() as directory:
        policy = SandboxPolicy()
        root = Path(directory).resolve()
        before = os.getloadavg()[0]
        for name in (policy.home, policy.tmp):
            (root / name).mkdir()
        ours, plain = asyncio.run(_measure(root, policy))
    base = statistics.median(plain)
    load = f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    machine = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, {load}"
    return [
        {
            "name": f"one command, {name}",
            "ours": round(statistics.median(times), 2),
            "baseline": round(base, 2),
            "ratio": round(statistics.median(times) / base, 2),
            "unit": "ms",
            "n": ROUNDS,
            "machine": f"{machine}, Python {platform.python_version()}",
        }
        for name, times in ours.items()
    ]


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
