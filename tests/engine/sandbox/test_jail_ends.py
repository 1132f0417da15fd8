"""However a command ends, nothing of it is left: sandbox spec §6 cases 51 to 61, in every tier."""

from __future__ import annotations

import sys

from engine.sandbox.policy import Tier
from tests.engine.sandbox.jail_runs import Room, takes_seconds
from tests.rounds import FULL

pytestmark = takes_seconds(full=FULL)

TREE = """
import os, signal, sys, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                if number not in (9, 19): signal.signal(number, signal.SIG_IGN)
            os.execve("/bin/sleep", ["sleep", "300"], {})
        os._exit(0)
"""
"""Daemons that ignore every signal and hide where they come from."""
BOMB = "import os\nwhile True:\n    try: os.fork() or os.setsid()\n    except OSError: pass"
STALL = f"""
import os, subprocess, sys, threading, time
RESUME = '''
import os, sys, time
from pathlib import Path
def working():
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str((entry / "cwd").readlink()).startswith(sys.argv[2]): return True
        except OSError: pass
until = time.monotonic() + 120
while working() and time.monotonic() < until: time.sleep(0.02)
if working(): Path(sys.argv[2], "late").touch()
os.kill(int(sys.argv[1]), 18)
'''
def stall():
    while not os.path.exists(ROOT + "/started"): time.sleep(0.01)
    subprocess.Popen([{sys.executable!r} if os.access({sys.executable!r}, os.X_OK) else sys.executable,
                      "-c", RESUME, str(os.getpid()), ROOT], cwd="/")
    os.kill(os.getpid(), 19)
threading.Thread(target=stall).start()
"""
"""Stops the cockpit as a whole, until nothing of the command is left."""
HEARD_OF = "open('started', 'w').close()\n"


def test_a_fork_bomb_of_sessions_dies_with_its_command(place: Room, tier: Tier) -> None:
    done = place.python(BOMB, tier=tier, limit_s=3, processes=60, grace_s=0.1)
    # By whichever limit it meets first; that is also a matter of how often its supervisor gets its turn, and
    # where it gets none in time it is "lost": then the cockpit ends it and the tree.
    assert done["ended"] in ("processes", "memory", "timeout", "lost")
    assert done["alive"] == []


def test_a_bomb_of_threads_is_held(place: Room, tier: Tier) -> None:
    script = """
import threading, time
made = 0
try:
    while True: threading.Thread(target=time.sleep, args=[60], daemon=True).start(); made += 1
except RuntimeError: print(made, flush=True)
import os
if made >= 100: time.sleep(60)  # too many for the limit: they are found out
os._exit(0)
"""
    done = place.python(script, tier=tier, processes=60, grace_s=0.1)
    assert done["ended"] == "processes" or int(done["stdout"]) < 100
    assert done["alive"] == []


def test_what_ignores_signals_falls_silent_and_stops_itself_is_ended_by_time(place: Room, tier: Tier) -> None:
    last = "for n in (0, 1, 2): os.close(n)\nos.kill(os.getpid(), 19)"
    done = place.python(f"{TREE}{HEARD_OF}{last}", tier=tier, limit_s=5, grace_s=0.1)
    assert (done["ended"], done["alive"]) == ("timeout", [])
    assert (place.root / "started").exists()


def test_the_time_limit_holds_while_the_cockpit_is_stopped(place: Room, tier: Tier) -> None:
    front = f"ROOT = {str(place.root)!r}\n{STALL}"
    script = f"{TREE}{HEARD_OF}time.sleep(300)"
    done = place.python(script, tier=tier, front=front, limit_s=5, grace_s=0.1)
    assert (done["ended"], done["alive"]) == ("timeout", [])
    assert not (place.root / "late").exists()


def test_a_cancelled_command_leaves_nothing(place: Room, tier: Tier) -> None:
    script = f"{TREE}{HEARD_OF}time.sleep(300)"
    done = place.python(script, tier=tier, cancel="started", grace_s=0.1)
    assert (done["ended"], done["alive"]) == ("cancelled", [])
