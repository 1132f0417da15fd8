"""Programs are bounded and leave nothing behind: mastermind-and-simple-coder §7 items 52, 54-56, 61, 62."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox.jail import Confined, Launch, Unconfined
from engine.sandbox.policy import MIB, Network, SandboxPolicy, Tier
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.programs import child_environment
from engine.sandbox.tier import JailRefusal, best_jail
from tests.patience import PATIENCE_S

PYTHON = sys.executable


class Bench:
    """A sandbox root to run scripts in, and a way to find what they left alive."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.live: list[tuple[str, str]] = []

    async def run(
        self,
        *argv: str,
        limit_s: float = 30.0,
        policy: SandboxPolicy | None = None,
        parent: dict[str, str] | None = None,
    ) -> ProcessResult:
        policy = policy or SandboxPolicy(grace_s=0.2)
        env = child_environment(self.root, policy, None, parent or {})
        launch = Launch(argv[0], argv, env)
        launcher = Launcher(self.root, policy)
        return await launcher.run(
            launch, self.cwd, jail=Unconfined(), limit_s=limit_s, output=lambda *said: self.live.append(said)
        )

    async def python(self, script: str, *args: str, **options: object) -> ProcessResult:
        return await self.run(PYTHON, "-c", script, *args, **options)  # type: ignore[arg-type]

    def alive(self) -> list[int]:
        """Processes whose working directory is the root: the commands and all they started."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    if os.readlink(f"/proc/{name}/cwd") == str(self.root):
                        found.append(int(name))
                except OSError:
                    continue
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    os.close(made.cwd)


async def reached(path: Path) -> None:
    """Wait until a script has made a file."""
    async with asyncio.timeout(PATIENCE_S):
        while not path.exists():
            await asyncio.sleep(0.01)


async def test_exit_code_and_both_streams_are_reported(bench: Bench) -> None:
    done = await bench.python("import sys; print('a'); print('b', file=sys.stderr); sys.exit(3)")
    assert (done.ended, done.return_code, done.stdout, done.stderr) == (Ended.EXIT, 3, "a", "b")


async def test_an_end_by_signal_is_reported_as_such(bench: Bench) -> None:
    done = await bench.python("import os; os.kill(os.getpid(), 11)")
    assert (done.ended, done.return_code) == (Ended.SIGNAL, -11)


async def test_a_program_that_cannot_start_says_why(bench: Bench) -> None:
    done = await bench.run("/nonexistent/program")
    assert (done.ended, done.return_code, done.problem) == (Ended.LAUNCH, None, "No such file or directory")


TREE = """
import os, signal, sys, time
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(300)
        os._exit(0)
for _ in range(20):
    daemon()
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
open("started", "w").close()
"""


async def test_run_kills_the_whole_tree_after_the_limit(bench: Bench) -> None:
    """Behaviour 54."""
    done = await bench.python(TREE + "time.sleep(300)", limit_s=5.0)
    assert done.ended is Ended.TIMEOUT
    assert (bench.root / "started").exists()
    assert bench.alive() == []


async def test_run_kills_daemons_that_outlive_the_command_and_keeps_its_code(bench: Bench) -> None:
    done = await bench.python(TREE + "sys.exit(4)")
    assert (done.ended, done.return_code) == (Ended.EXIT, 4)
    assert done.leftover >= 20
    assert bench.alive() == []


async def test_cancelling_a_run_ends_the_whole_tree_first(bench: Bench) -> None:
    run = asyncio.create_task(bench.python(TREE + "time.sleep(300)"))
    await reached(bench.root / "started")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert bench.alive() == []


async def test_cancelling_twice_still_waits_for_the_end(bench: Bench) -> None:
    run = asyncio.create_task(bench.python(TREE + "time.sleep(300)"))
    await reached(bench.root / "started")
    run.cancel()
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert bench.alive() == []


async def test_killing_the_supervisor_frees_nobody(bench: Bench) -> None:
    done = await bench.python(TREE + "os.kill(os.getppid(), 9); time.sleep(300)")
    assert done.ended is Ended.LOST
    assert bench.alive() == []


async def test_the_death_of_the_cockpit_ends_its_commands(bench: Bench) -> None:
    script = f"""
import asyncio, os, sys
from pathlib import Path
from engine.sandbox.jail import Launch, Unconfined
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.process import Launcher
cwd = os.open({str(bench.root)!r}, os.O_RDONLY)
argv = ({PYTHON!r}, "-c", {TREE + "time.sleep(300)"!r})
launcher = Launcher(Path({str(bench.root)!r}), SandboxPolicy(grace_s=0.2))
asyncio.run(launcher.run(Launch(argv[0], argv, {{}}), cwd, jail=Unconfined(), limit_s=60, output=print))
"""
    cockpit = await asyncio.create_subprocess_exec(PYTHON, "-c", script)
    await reached(bench.root / "started")
    cockpit.kill()
    await cockpit.wait()
    async with asyncio.timeout(PATIENCE_S):
        while bench.alive():
            await asyncio.sleep(0.02)


async def test_the_time_limit_holds_while_the_cockpit_is_stalled(bench: Bench) -> None:
    run = asyncio.create_task(bench.python(TREE + "time.sleep(300)", limit_s=5.0))
    await reached(bench.root / "started")
    until = time.monotonic() + PATIENCE_S
    while bench.alive() and time.monotonic() < until:
        time.sleep(0.02)  # the loop is blocked on purpose
    assert bench.alive() == []
    assert (await run).ended is Ended.TIMEOUT


async def test_output_keeps_head_and_tail_and_counts_the_rest(bench: Bench) -> None:
    policy = SandboxPolicy(output_head_bytes=100, output_tail_bytes=100)
    done = await bench.python("print('start' + 'x' * 100_000 + 'end')", policy=policy)
    assert done.stdout.startswith("start")
    assert done.stdout.endswith("end")
    assert done.stdout_dropped == 100_009 - 200
    assert "99,809 bytes dropped" in done.stdout
    assert done.truncated


async def test_output_within_the_caps_is_whole(bench: Bench) -> None:
    policy = SandboxPolicy(output_head_bytes=100, output_tail_bytes=100)
    done = await bench.python("print('é' * 99, end='')", policy=policy)
    assert done.stdout == "é" * 99
    assert not done.truncated


async def test_endless_output_is_ended_and_the_loop_stays_responsive(bench: Bench) -> None:
    """Behaviour 55."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    policy = SandboxPolicy(output_bytes=200 * MIB, streamed_bytes=100_000, grace_s=0.2)
    done = await bench.run("/usr/bin/yes", policy=policy)
    ticking.cancel()
    assert done.ended is Ended.OUTPUT
    assert done.stdout_dropped > 199 * MIB
    assert len(done.stdout) < 140_000
    assert sum(len(text) for _, text in bench.live) < 101_000
    assert ticks >= 5


async def test_both_streams_without_end_are_ended(bench: Bench) -> None:
    script = "import os\nwhile True: os.write(1, b'out' * 9999); os.write(2, b'err' * 9999)"
    done = await bench.python(script, policy=SandboxPolicy(output_bytes=8 * MIB, grace_s=0.2))
    assert done.ended is Ended.OUTPUT
    assert (done.stdout[:6], done.stderr[:6]) == ("outout", "errerr")
    assert done.stdout_dropped
    assert done.stderr_dropped
    assert bench.alive() == []


async def test_endless_output_within_the_output_limit_ends_by_time(bench: Bench) -> None:
    script = "import time\nwhile True: print('tick', flush=True); time.sleep(0.01)"
    done = await bench.python(script, limit_s=5.0)
    assert done.ended is Ended.TIMEOUT
    assert done.stdout.startswith("tick\ntick")


async def test_output_comes_live_and_whole_characters(bench: Bench) -> None:
    script = """
import os, sys, time
os.write(1, b"caf\\xc3"); open("half", "w").close()
while not os.path.exists("go"): time.sleep(0.01)
os.write(1, b"\\xa9\\n"); os.write(2, b"bad \\xff byte")
"""
    run = asyncio.create_task(bench.python(script))
    async with asyncio.timeout(PATIENCE_S):
        while not bench.live:
            await asyncio.sleep(0.01)
    (bench.root / "go").touch()
    done = await run
    assert bench.live[0] == ("stdout", "caf")
    assert "".join(text for stream, text in bench.live if stream == "stdout") == "café\n"
    assert done.stderr == "bad \N{REPLACEMENT CHARACTER} byte"


async def test_a_child_that_reads_standard_input_gets_its_end(bench: Bench) -> None:
    """Behaviour 62."""
    done = await bench.python("import sys; print(repr(sys.stdin.read()), sys.stdin.isatty())")
    assert done.stdout == "'' False"


async def test_a_child_has_no_terminal_and_no_inherited_descriptor(bench: Bench) -> None:
    """Behaviour 62."""
    leak = os.open(bench.root, os.O_RDONLY)
    os.set_inheritable(leak, True)
    script = """
import os
try: os.open("/dev/tty", os.O_RDWR); print("terminal")
except OSError: print("none")
listing = os.open("/proc/self/fd", os.O_RDONLY)
print(sorted(int(n) for n in os.listdir(listing) if int(n) not in (listing, listing + 1)))
"""
    try:
        done = await bench.python(script)
    finally:
        os.close(leak)
    assert done.stdout == "none\n[0, 1, 2]"


async def test_a_tree_over_its_memory_is_ended(bench: Bench) -> None:
    """Behaviour 55."""
    script = """
import mmap, time
m = mmap.mmap(-1, 300 << 20)   # shared memory, which RLIMIT_DATA does not count
for page in range(0, 300 << 20, 4096): m[page] = 1
time.sleep(60)
"""
    done = await bench.python(script, policy=SandboxPolicy(memory_bytes=150 * MIB))
    assert done.ended is Ended.MEMORY
    assert bench.alive() == []


async def test_one_process_over_its_memory_gets_a_memory_error(bench: Bench) -> None:
    done = await bench.python("bytearray(10**9)", policy=SandboxPolicy(memory_bytes=300 * MIB))
    assert done.return_code == 1
    assert done.stderr.endswith("MemoryError")


async def test_a_file_over_the_file_limit_is_refused_by_the_kernel(bench: Bench) -> None:
    script = "open('big', 'wb').write(b'x' * (4 << 20))"
    done = await bench.python(script, policy=SandboxPolicy(file_bytes=MIB))
    assert "File too large" in done.stderr
    assert (bench.root / "big").stat().st_size <= MIB


async def test_no_secret_of_the_cockpit_reaches_a_child(bench: Bench) -> None:
    """Behaviour 52."""
    secrets = {
        "ANTHROPIC_API_KEY": "sk-secret",
        "AWS_SECRET_ACCESS_KEY": "sk-secret",
        "PYTHONPATH": "/sk-secret",
        "LD_PRELOAD": "",
        "PIP_INDEX_URL": "https://user:sk-secret@index.example/simple",
        "HTTPS_PROXY": "http://user:sk-secret@proxy.example",
    }
    parent = {**secrets, "TZ": "UTC", "PIP_CERT": "/etc/cert.pem"}
    script = "import os; print(*(f'{k}={v}' for k, v in os.environ.items()), sep='\\n')"
    done = await bench.python(script, parent=parent, policy=SandboxPolicy(network=Network.ON))
    assert done.return_code == 0
    assert "sk-secret" not in done.stdout
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names.isdisjoint(secrets)
    assert {"TZ", "PIP_CERT", "HOME", "PATH"} <= names


async def test_a_child_of_this_very_process_does_not_see_its_environment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 52."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    script = """
import os
seen = b"".join(open(f"/proc/{p}/environ", "rb").read() for p in ("self", os.getppid()))
print(b"sk-secret" in seen)
"""
    launcher = Launcher(bench.root, SandboxPolicy())
    env = child_environment(bench.root, SandboxPolicy(), None)
    done = await launcher.run(
        Launch(PYTHON, (PYTHON, "-c", script), env),
        bench.cwd,
        jail=Unconfined(),
        limit_s=30,
        output=lambda *_: None,
    )
    assert done.stdout == "False"


def test_without_the_network_no_index_setting_is_passed_on(tmp_path: Path) -> None:
    parent = {"PIP_INDEX_URL": "https://index.example/simple", "HTTPS_PROXY": "http://proxy.example"}
    env = child_environment(tmp_path, SandboxPolicy(), None, parent)
    assert env.keys().isdisjoint(parent)
    assert env["PIP_NO_INDEX"] == "1"


def test_the_operators_pip_configuration_is_passed_on_without_credentials(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text(
        "[global]\nfind-links = /wheels\n  /more\nindex-url = https://me:sk-secret@index.example/simple\n"
    )
    policy = SandboxPolicy(network=Network.PORTS)
    env = child_environment(tmp_path, policy, None, {"HOME": str(home)})
    assert env["PIP_FIND_LINKS"] == "/wheels /more"
    assert "PIP_INDEX_URL" not in env
    assert env["HOME"] == str(tmp_path / ".home")


async def test_a_confinement_that_cannot_start_the_supervisor_is_a_failed_jail(bench: Bench) -> None:
    class Broken:
        tier = Tier.FULL

        def confine(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Confined:
            return Confined(outer=("/bin/sh", "-c", "echo no namespaces here >&2; exit 1"))

    launcher = Launcher(bench.root, SandboxPolicy())
    launch = Launch("/bin/touch", ("/bin/touch", "ran"))
    done = await launcher.run(launch, bench.cwd, jail=Broken(), limit_s=30, output=lambda *_: None)
    assert (done.ended, done.return_code) == (Ended.JAIL, 125)
    assert done.problem == "start: no namespaces here"
    assert not (bench.root / "ran").exists()


@pytest.mark.parametrize("tier", [Tier.PATHS, Tier.KERNEL, Tier.FULL])
async def test_a_terminal_becomes_the_programs_own(bench: Bench, tier: Tier) -> None:
    jail = best_jail(SandboxPolicy(accept_paths=True), at_most=tier)
    assert not isinstance(jail, JailRefusal)
    if jail.tier is not tier:
        pytest.skip(f"this machine gives {jail.tier}")
    master, slave = os.openpty()
    script = "read line; test -t 0 && test -t 2 && ps=$(stty size); echo got:$line:$ps; exit 5"
    env = child_environment(bench.root, SandboxPolicy(), None, {})
    run = asyncio.create_task(
        Launcher(bench.root, SandboxPolicy()).run(
            Launch("/bin/sh", ("/bin/sh", "-c", script), env),
            bench.cwd,
            jail=jail,
            limit_s=30,
            output=lambda *said: bench.live.append(said),
            standard=(slave,),
        )
    )
    os.write(master, b"hello\n")
    done = await run
    os.set_blocking(master, False)
    seen = b""
    async with asyncio.timeout(PATIENCE_S):
        while b"got:hello:0 0" not in seen:
            try:
                seen += os.read(master, 4096)
            except BlockingIOError:
                await asyncio.sleep(0.01)
    os.close(slave)
    os.close(master)
    assert (done.return_code, bench.live) == (5, [])


@pytest.mark.parametrize("name", ["wall_clock_s", "read_bytes", "output_bytes"])
def test_a_policy_with_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be more than 0"):
        SandboxPolicy(**{name: 0})  # type: ignore[arg-type]
