"""What the jail holds, tried from inside: sandbox spec §6, in every tier, as root and as an ordinary user."""

from __future__ import annotations

import shutil
import signal
import socket
import time
from pathlib import Path

import pytest

from engine.sandbox.policy import Tier
from tests.engine.sandbox.jail_runs import Room, need, takes_seconds
from tests.patience import PATIENCE_S
from tests.rounds import FULL

seconds = takes_seconds(full=FULL)

# Work that must go on: issue 3


@seconds
def test_git_commits(place: Room, tier: Tier) -> None:
    if shutil.which("git", path="/usr/bin:/bin") is None:
        pytest.skip("git is not installed")
    script = (
        "set -e; git init -q r; cd r; echo x > f; git add f; "
        "git -c user.name=a -c user.email=a@b.invalid commit -qm first; git log --format=%s"
    )
    done = place.run("/bin/sh", "-c", script, tier=tier)
    assert (done["return_code"], done["stdout"]) == (0, "first"), done


@seconds
def test_a_program_is_compiled_and_run(place: Room, tier: Tier) -> None:
    if shutil.which("gcc", path="/usr/bin:/bin") is None:
        pytest.skip("gcc is not installed")
    script = "echo 'int main(){return 7;}' > p.c && gcc p.c -o p && ./p"
    assert place.run("/bin/sh", "-c", script, tier=tier)["return_code"] == 7


def test_asyncio_subprocesses_threads_and_shell_substitution_work(place: Room, tier: Tier) -> None:
    script = """
import asyncio, subprocess, threading
async def main():
    child = await asyncio.create_subprocess_exec("/bin/echo", "asyncio", stdout=-1)
    return (await child.communicate())[0].decode().strip()
said = [asyncio.run(main())]
one = threading.Thread(target=said.append, args=["thread"]); one.start(); one.join()
said.append(subprocess.run(["/bin/bash", "-c", "cat <(printf bash)"], capture_output=True, text=True).stdout)
said.append(subprocess.run(["cat", "/dev/stdin"], input="stdin", capture_output=True, text=True).stdout)
print(said)
"""
    done = place.python(script, tier=tier)
    assert done["stdout"] == "['asyncio', 'thread', 'bash', 'stdin']", done


@seconds
def test_unittest_runs_and_writes_its_caches(place: Room, tier: Tier) -> None:
    test = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(1, 1)\n"
    script = f"open('test_it.py', 'w').write({test!r})"
    assert place.python(script, tier=tier)["return_code"] == 0
    done = place.run("python", "-m", "unittest", "-q", tier=tier)
    assert done["return_code"] == 0, done
    assert (place.root / "__pycache__").is_dir()


def test_full_has_shared_memory_a_forkserver_and_a_proc_of_its_own(place: Room) -> None:
    need(Tier.FULL)
    script = """
import multiprocessing as m, os
if __name__ == "__main__":
    with m.get_context("forkserver").Pool(2) as pool: print(pool.map(abs, [-1, -2]))
    pids = sorted(int(n) for n in os.listdir("/proc") if n.isdigit())
    print(len(pids) < 10, os.uname().nodename, os.listdir("/sys") if os.path.exists("/sys") else "no sys")
"""
    (place.root / "m.py").write_text(script)
    done = place.run("python", "m.py", tier=Tier.FULL)
    assert done["stdout"] == "[1, 2]\nTrue sandbox no sys", done


def test_full_has_terminals_of_its_own(place: Room) -> None:
    need(Tier.FULL)
    script = "import pty, sys; sys.exit(pty.spawn(['/bin/sh', '-c', 'stty -echo; tty']))"
    done = place.python(script, tier=Tier.FULL)
    assert (done["return_code"], done["stdout"].strip()) == (0, "/dev/pts/0"), done


def test_a_command_starts_in_its_directory(place: Room, tier: Tier) -> None:
    place.run("/bin/mkdir", "-p", "a/b", tier=tier)
    done = place.python("import os; print(os.getcwd())", tier=tier, cwd="a/b")
    assert done["stdout"] == str(place.root / "a/b")


# Processes and limits

BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
DAEMON = """
import os, signal, sys, time
heard, tells = os.pipe()
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(tells, b"x")
            time.sleep(300)
        os._exit(0)
if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)
for _ in range(10): os.read(heard, 1)
"""


@seconds
def test_a_fork_bomb_dies_with_its_command(place: Room, tier: Tier) -> None:
    """Behaviour 55."""
    done = place.python(BOMB, tier=tier, limit_s=3, processes=60, grace_s=0.1)
    assert done["ended"] in ("processes", "timeout", "memory")
    assert done["alive"] == []


@seconds
def test_daemons_and_stopped_processes_die_with_their_command(place: Room, tier: Tier) -> None:
    done = place.python(DAEMON + "sys.exit(3)", tier=tier, grace_s=0.1)
    assert (done["ended"], done["return_code"], done["alive"]) == ("exit", 3, [])
    assert done["leftover"] >= 10


def test_killing_everything_kills_only_the_jail(place: Room, tier: Tier) -> None:
    done = place.python("import os\nos.kill(-1, 9)", tier=tier)
    assert done["ended"] in ("exit", "signal")
    assert done["alive"] == []


@seconds
@pytest.mark.parametrize(
    ("script", "policy", "ended"),
    [
        (
            "import mmap\nm = mmap.mmap(-1, 300 << 20)\nfor p in range(0, 300 << 20, 4096): m[p] = 1",
            {},
            "memory",
        ),
        ("for n in range(40): open(f'f{n}', 'wb').write(b'x' * (1 << 20))", {"disk_bytes": 8 << 20}, "disk"),
        ("for n in range(3000): open(f'f{n}', 'w')", {"disk_entries": 1000}, "disk"),
        ("import os\nfor n in range(30): os.mkdir('d'); os.chdir('d')", {"disk_depth": 20}, "disk"),
    ],
)
def test_what_no_rlimit_counts_is_watched(
    place: Room, tier: Tier, script: str, policy: dict[str, int], ended: str
) -> None:
    policy = {"memory_bytes": 150 << 20, **policy}
    done = place.python(f"{script}\nimport time; time.sleep(60)", tier=tier, **policy)
    assert (done["ended"], done["alive"]) == (ended, [])
    assert done["problem"]


@seconds
def test_processor_time_is_limited(place: Room, tier: Tier) -> None:
    done = place.python("while True: pass", tier=tier, cpu_s=2)
    assert (done["ended"], done["return_code"]) == ("signal", -signal.SIGXCPU)


# The network


@seconds
def test_with_ports_only_these_are_reached(place: Room, tier: Tier) -> None:
    script = """
import socket, sys
def tried(work):
    try: work(); return "ok"
    except OSError as error: return error.errno
def made(port, *kind):
    s = socket.socket(*kind); s.settimeout(5); s.connect(("127.0.0.1", port))
port = int(sys.argv[1])
print(tried(lambda: made(port)), tried(lambda: made(port, 2, 1, 262)), tried(lambda: made(port, 2, 2)),
      tried(lambda: socket.socket().bind(("127.0.0.1", 0))), tried(lambda: socket.socket().listen()))
"""
    refused = place.python(script, "PORT", tier=tier, network="ports", ports=[443])
    assert refused["stdout"] == "13 13 ok 13 13", refused
    on = place.python(script, "PORT", tier=tier, network="on")
    assert on["stdout"] == "ok 13 ok ok ok", on


def test_a_port_of_the_policy_is_reached(place: Room, tier: Tier) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('reached')"
        done = place.python(script, tier=tier, network="ports", ports=[port])
    assert done["stdout"] == "reached", done


# The broker, and the end of the cockpit


def test_a_link_swapped_meanwhile_changes_nothing_outside(place: Room) -> None:
    need(Tier.KERNEL)
    script = """
import ctypes, os, sys, time
libc, secret = ctypes.CDLL(None), sys.argv[1] + "/secret"
open("file", "w").close(); os.symlink(secret, "link")
os.makedirs("dir"); open("dir/secret", "w").close(); os.symlink(sys.argv[1], "dirlink")
if os.fork() == 0:
    while True:
        for one, other in ((b"file", b"link"), (b"dir", b"dirlink")):
            libc.renameat2(-100, one, -100, other, 2)
began, done = time.monotonic(), 0
while time.monotonic() < began + 1.5 or (done <= 100 and time.monotonic() < began + 60):
    for name in ("file", "dir/secret", os.getcwd() + "/dir/secret"):
        for change in (os.chmod, 0o777), (os.utime, (7, 7)), (os.chown, -1, -1):
            try: change[0](name, *change[1:]); done += 1
            except OSError: pass
print(done > 100)
"""
    done = place.python(script, "OUTSIDE", tier=Tier.KERNEL, grace_s=0.1)
    assert (done["stdout"], done["untouched"]) == ("True", True), done


@seconds
def test_the_death_of_the_cockpit_ends_the_jail(place: Room, tier: Tier) -> None:
    script = DAEMON + "import os\nos.close(1); os.close(2)\nopen('started', 'w').close(); time.sleep(300)"
    code = f"""
import os, sys, threading, time
def die():
    while not os.path.exists({str(place.root / "started")!r}): time.sleep(0.01)
    os.kill(os.getpid(), 9)
threading.Thread(target=die).start()
"""
    with pytest.raises(AssertionError):
        place.python(script, tier=tier, front=code, grace_s=0.1)
    until = time.monotonic() + PATIENCE_S
    while living(place) and time.monotonic() < until:
        time.sleep(0.02)
    assert (place.root / "started").exists()
    assert living(place) == []


KILL_THE_SUPERVISOR = """
import os, threading, time
from pathlib import Path
def words(pid, name):
    try: return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError: return b""
def ours(pid):
    while pid > 1 and pid != os.getpid():
        pid = int(words(pid, "stat").rpartition(b")")[2].split()[1] or 0) if words(pid, "stat") else 0
    return pid > 1
def die():
    while not os.path.exists(STARTED): time.sleep(0.01)
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        said = words(pid, "cmdline")
        if b"boot.py\\0supervisor" in said and b"bwrap" not in said and ours(pid): os.kill(pid, 9)
threading.Thread(target=die).start()
"""


def test_the_death_of_the_supervisor_ends_even_what_hid_its_origin(place: Room, tier: Tier) -> None:
    script = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execve("/bin/sleep", ["sleep", "300"], {})
    os._exit(0)
os.wait()
open("started", "w").close(); time.sleep(300)
"""
    front = f"STARTED = {str(place.root / 'started')!r}\n{KILL_THE_SUPERVISOR}"
    done = place.python(script, tier=tier, front=front, grace_s=0.1)
    assert done["ended"] == "lost"
    until = time.monotonic() + PATIENCE_S
    while living(place) and time.monotonic() < until:
        time.sleep(0.02)
    assert living(place) == []


def test_wild_pointers_and_times_are_refused_and_end_nothing(place: Room, tier: Tier) -> None:
    script = """
import ctypes, mmap, os, platform, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(None, ctypes.c_size_t(8192), 3, 0x22, -1, 0)
libc.munmap(ctypes.c_void_p(page + 4096), ctypes.c_size_t(4096))
wild = [ctypes.c_void_p(at) for at in (8, page + 4088, page + 4096, 2**47, 2**63 - 1, 2**64 - 8)]
ctypes.memset(ctypes.c_void_p(page), 120, 4096)
open("f", "w").close()
def utimes(at): return libc.syscall(235, b"f", at) if platform.machine() == "x86_64" else -1
for at in wild:
    for call in (lambda: libc.chmod(at, 0o4755), lambda: libc.utimensat(-100, b"f", at, 0),
                 lambda: utimes(at), lambda: libc.lchown(at, -1, -1)):
        assert call() == -1, at
for word in (2**62, -(2**62), 2**63 - 1):
    times = struct.pack("=4q", word, word, word, word)
    assert libc.utimensat(-100, b"f", times, 0) == utimes(times) == -1
os.utime("f", (7, 7))
print(os.stat("f").st_mtime)
"""
    done = place.python(script, tier=tier)
    assert (done["ended"], done["stdout"]) == ("exit", "7.0"), done


def living(place: Room) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str((entry / "cwd").readlink()).startswith(str(place.root)):
                found.append(entry.name)
        except OSError:
            continue
    return found
