"""A cockpit that works for a day: `python -m tests.soak --minutes 1440 --samples FILE`.

The real program runs on a pseudo-terminal. An operator of dice types goals on and on, and pauses, steps,
undoes and rewinds now and then; three agents plan and act, and an AgentSpeak program never ends. Every few
seconds the program is measured from outside: memory, descriptors and threads from `/proc`, the sizes of the
journal and of all data, the events, and how long a typed word takes to be on the screen. Samples are written
as they come. In the end, or for a file of samples, a table gives each figure's slope per hour with its
standard error, and says whether memory, descriptors and threads stay within their bounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from engine.core.store.schema import read_only_uri
from tests.benchmarks.cockpit import pilothouse
from tests.pseudo_terminal import Cockpit

AGENTS = ("pilot-1", "pilot-2", "pilot-3")
PROGRAM = """!go(0).
+!go(N) <- .concat("turn", N mod 10, P); write(P, N); read(P, X); .wait(3000); !!go(N + 1).
-!go(N) <- .wait(3000); !!go(N + 1).
"""
EVERY_S = 15.0
NOTES = 20
"""Files of each sort, which are written again and again, so that the sandbox does not grow."""
WARM = 0.25
"""The part of the samples that counts as warming up, of which no slope is taken."""
MOST_WARM_S = 1_800.0
BOUNDS = {"memory MB": 6.0, "descriptors": 1.0, "threads": 1.0}
"""What may be gained in an hour, once it is warm; what two standard errors cannot tell from it holds."""
CLAUSES = (
    "write 'note {n}' to notes{m}.txt",
    "read notes{m}.txt",
    "append 'line {n}' to log{m}.txt",
    "run 'python count.py {n}'",
    "list the files",
    "run 'python -c \"print({n})\"'",
    "copy notes{m}.txt to copy{m}.txt",
)
TURNS = {"goal": 60, "skip": 15, "pause": 5, "step": 5, "undo": 4, "rewind": 3, "look": 5, "drop": 3}
"""What an operator does, and how often."""
COUNT = "import sys\nfor n in range(int(sys.argv[1]) % 200):\n    print('counted', n)\n"


class Operator:
    """Types what an operator would, by dice."""

    def __init__(self, cockpit: Cockpit, dice: random.Random) -> None:
        self.cockpit = cockpit
        self.dice = dice
        self.goals = 0

    def turn(self) -> None:
        """One thing for one agent; a goal more often than not."""
        say, dice = self.cockpit.enter, self.dice
        say(f"agent {dice.choice(AGENTS)}")
        match dice.choices(list(TURNS), list(TURNS.values()))[0]:
            case "goal":
                say(f"goal {self.goal()}")
                say("run")
            case "skip":
                say("skip")
                say("run")
            case "pause":
                say("pause")
                say("run")
            case "step":
                say("pause")
                say("step")
                say("run")
            case "undo":
                say("undo")
                self.cockpit.press(b"y")
                time.sleep(0.3)
                say("run")
            case "rewind":
                say("pause")
                say("rewind -2")
                time.sleep(0.5)
                self.cockpit.press(b"y")
                time.sleep(0.5)
                say("run")
            case "look":
                say("status")
                say("agent robot")
                say("run")
            case "drop":
                say("drop")
                say("run")

    def goal(self) -> str:
        """Some clauses that the recipes understand."""
        self.goals += 1
        chosen = self.dice.sample(CLAUSES, self.dice.randint(2, 5))
        return ", ".join(clause.format(n=self.goals, m=self.goals % NOTES) for clause in chosen)


def sample(cockpit: Cockpit, workspace: Path, number: int, began: float) -> dict[str, float]:
    """What the program takes now, as figures by name."""
    process = Path(f"/proc/{cockpit.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    data = workspace / ".pilothouse"
    sizes: dict[Path, int] = {}
    for path in data.rglob("*"):
        with suppress(OSError):
            sizes[path] = path.lstat().st_blocks * 512
    with closing(sqlite3.connect(read_only_uri(data / "journal.db"), uri=True)) as journal:
        events = journal.execute("select max(seq) from events").fetchone()[0]
        ended = journal.execute("select count(*) from events where kind = 'action.finished'").fetchone()[0]
    latencies = [cockpit.latency_s(f"zq{3 * number + each:06}z") for each in range(3)]
    return {
        "hours": (time.monotonic() - began) / 3600,
        "memory MB": int(status["VmRSS"].split()[0]) / 1024,
        "descriptors": len(os.listdir(process / "fd")),
        "threads": int(status["Threads"]),
        "journal MB": sum(size for path, size in sizes.items() if path.name.startswith("journal.db")) / 1e6,
        "data MB": sum(sizes.values()) / 1e6,
        "events": events,
        "actions": ended,
        "key ms": statistics.median(waited * 1000 for waited, _ in latencies),
        "keys lost": sum(lost for _, lost in latencies),
    }


def slope(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """The slope of the line through these points by least squares, and its standard error."""
    middle_x, middle_y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    if len(xs) < 3 or not spread:
        return 0.0, math.inf
    found = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread
    rest = sum((y - middle_y - found * (x - middle_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    return found, math.sqrt(rest / (len(xs) - 2) / spread)


def table(samples: Sequence[dict[str, float]]) -> tuple[str, bool]:
    """The table, and whether what has a bound stays within it."""
    if len(samples) < 4:
        return "too few samples for a table", False
    end = samples[-1]["hours"]
    begin = min(end * WARM, MOST_WARM_S / 3600)
    warm = [each for each in samples if each["hours"] >= begin]
    rows = [f"{'':14}{'warm':>10}{'end':>10}{'per hour':>12}{'± s.e.':>10}{'bound':>8}"]
    sound = True
    for name in samples[0]:
        if name == "hours":
            continue
        per_hour, error = slope([each["hours"] for each in warm], [each[name] for each in warm])
        bound = BOUNDS.get(name)
        within = bound is None or per_hour - 2 * error <= bound
        sound = sound and within
        note = "" if bound is None else f"{bound:8.1f}  {'holds' if within else 'EXCEEDED'}"
        rows.append(
            f"{name:14}{warm[0][name]:10.1f}{warm[-1][name]:10.1f}{per_hour:12.2f}{error:10.2f}{note}"
        )
    head = (
        f"{end * 60:.0f} minutes, {samples[-1]['events']:.0f} events, {samples[-1]['actions']:.0f} actions; "
        f"slopes of the last {(end - begin) * 60:.0f} minutes ({len(warm)} samples)"
    )
    return "\n".join([head, *rows]), sound


def soak(minutes: float, written: Path, workspace: Path, *, seed: int, every_s: float = EVERY_S) -> int:
    """Let a cockpit work so long; its exit code. Samples are appended to the file as they come."""
    (workspace / "sandbox").mkdir(parents=True)
    (workspace / "sandbox" / "count.py").write_text(COUNT)
    for number in range(NOTES):
        (workspace / "sandbox" / f"notes{number}.txt").write_text("notes\n")
        (workspace / "sandbox" / f"log{number}.txt").write_text("log\n")
    (workspace / "robot.asl").write_text(PROGRAM)
    robot = f"asl_agent robot file={workspace / 'robot.asl'}"
    for agent in (*(f"bdi_agent {name}" for name in AGENTS), robot):
        made = pilothouse("do", "--workspace", str(workspace), f"agent_create {agent}")
        subprocess.run(made, check=True, capture_output=True)
    cockpit, began = Cockpit(workspace), time.monotonic()
    cockpit.shows(b"6 Mind", b"PAUSED")
    operator, due, number = Operator(cockpit, random.Random(seed)), began + every_s, 0
    end = began + minutes * 60
    with written.open("a", encoding="utf-8") as file:
        while (now := time.monotonic()) < end and not cockpit.ended:
            operator.turn()
            if now >= due:
                number, due = number + 1, due + every_s
                file.write(json.dumps(sample(cockpit, workspace, number, began)) + "\n")
                file.flush()
    return cockpit.end(signal.SIGTERM)


def read(written: Path) -> list[dict[str, float]]:
    """The samples of a file, as far as they are whole."""
    lines = written.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def main() -> int:
    """Soak, or only print the table of a file of samples (`--minutes 0`)."""
    asked = argparse.ArgumentParser(description="Let a cockpit work for long, and measure it from outside.")
    asked.add_argument("--minutes", type=float, default=1_440)
    asked.add_argument("--samples", type=Path, default=Path("soak.jsonl"), help="where samples are written")
    asked.add_argument("--seed", type=int, default=19)
    options = asked.parse_args()
    if options.minutes:
        options.samples.unlink(missing_ok=True)
        place = Path(tempfile.mkdtemp(prefix="pilothouse-soak-"))
        os.environ["PILOTHOUSE_HOME"] = str(place / "home")
        code = soak(options.minutes, options.samples, place / "workspace", seed=options.seed)
        print(f"the program ended with {code}")
        shutil.rmtree(place, ignore_errors=True)
    text, sound = table(read(options.samples))
    print(text)
    print("memory, descriptors and threads stay within their bounds" if sound else "NOT within the bounds")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
