"""Public AgentSpeak programs read and run here and by Jason: how many are read, and whose output is alike.

    JASON=folder python -m tests.benchmarks.jason_programs CHECKOUTS [--run] [--show]

CHECKOUTS holds a folder for each repository. A program counts once, however many copies there are. Jason says
which of them it reads itself. With `--run` every project (`.mas2j`) that needs no Java of its own is run once
here and three times by Jason, for some seconds each (here time jumps while all wait), and what its agents
print is compared line by line, agent by agent. Where Jason's runs differ from each other, only what they have
in common is asked for. A project that differs is run five times by Jason and five times more here, with other
chance and with agents that stand still for some rounds, as Jason's threads do. `--keep FILE` holds what Jason
printed, so that it is run once only.

Projects that need no Java are in jason-lang/jason, VRAIN-Projects/EjemplosAgentSpeak,
nataliakoliou/AgentSpeak-Programming-using-Jason, mfstabile/evaluating-bdi-agents-processing-mechanisms and
unibo-fc-isi-ise/code-jason; copies of Jason's own examples would count twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from app.cli.asl import AgentSpeakOptions, ProgramsError, load_agents
from app.cli.main import main as main_of_pilothouse
from app.cli.mas2j import read_project
from engine.bdi.agent import BdiAgent
from engine.bdi.cycle import WORKED, CycleReport
from engine.bdi.errors import ProgramError
from engine.bdi.parser import read_program
from tests.benchmarks.jason_conformance import LOGGING, classpath

READER = r"""
import jason.asSyntax.parser.as2j;
public class ReadAll {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            String said = "read";
            try (var in = new java.io.FileInputStream(file)) {
                jason.asSemantics.Agent agent = new jason.asSemantics.Agent();
                agent.initAg();
                as2j parser = new as2j(in);
                parser.agent(agent);
            } catch (Throwable error) {
                String text = String.valueOf(error.getMessage());
                // The include is not here; up to there it was read.
                boolean lacks = text.contains("not found") || text.contains("include");
                said = lacks ? "read" : "refused " + text.replace('\n', ' ');
            }
            System.out.println("READ|" + file + "|" + said);
        }
        System.exit(0);
    }
}
"""
HERE = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
SECONDS = float(os.environ.get("SECONDS", "9"))
"""How long a project may run; a busy machine needs more."""
RUNS, MORE_RUNS = 3, 5
"""Of Jason, which says what it does not fix itself; more where a project differs."""
CHANCE = re.compile(r"\d+\.\d+|\b\d+ ms\b")
"""Numbers of chance and durations."""
OF_JASON = ("RunLocalMAS", "LocalRuntimeServices")
VARIABLE = re.compile(r"\b(?:_|V)\d+\b|\bp__\d+\b")
"""What an output may have otherwise each time: how a variable or a plan without a label is called."""
IN_BRACES = re.compile(r"\{ [^\"]*\}")
BRACES = re.compile(r"\{ | \}")
"""Around an event, a body or a plan; Jason prints them or not, by where the term comes from."""
NAMED = re.compile(r"\b[A-Z]\w*\b")
"""A variable of a rule or plan in braces; Jason prints the program's name or one of its own."""
URL = re.compile(r",?url\(\"[^\"]*\"\)")
"""In which file a plan stands, which labels do not say here."""
FILE = re.compile(r"(?:file:)?(?:[^\s\"',()\[\]]*/)?([\w-]+\.asl)\b")
"""A program's file, of which only the name is compared."""
SHAPE = re.compile(r"\[[^\]]*\]|-?\d+(\.\d+)?")
QUOTED = re.compile(r"'([a-z]\w*)'")
"""An atom with quotes that it does not need; Jason prints them as they were written."""
DIFFERENCES = {
    "demos/failure/": "it prints its stack: there the plans of goals that failed stay on it while that is "
    "handled, and a caller's variables have no values before its goal is achieved"
}
"""Why projects differ, by a part of their paths."""
Printed = dict[str, list[str]]
KNOWN = ("jason", "math", "system")
JAVA_ACTION = re.compile(r"(?<![\w.])([a-z]\w*)\.(\w+)\s*\(")
"""An internal action of a library of its own."""


@dataclass(frozen=True)
class Read:
    """A program of a repository."""

    repository: str
    path: Path
    problem: str = ""


def read_all(checkouts: Path) -> list[Read]:
    """Each program once."""
    seen: set[str] = set()
    found = []
    for path in sorted(checkouts.glob("*/**/*.asl")):
        data = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(data).hexdigest()
        if not data.strip() or digest in seen:
            continue
        seen.add(digest)
        _, problems = read_program(data.decode("utf-8", "replace"), path.name)
        repository = path.relative_to(checkouts).parts[0]
        found.append(Read(repository, path, str(problems[0]) if problems else ""))
    return found


def read_by_jason(files: Sequence[Path], jason: Path) -> dict[str, str]:
    """What Jason says of each file: `read`, or why not."""
    said = {}
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "ReadAll.java"
        program.write_text(READER)
        for start in range(0, len(files), 200):
            words = ["java", "-Djava.awt.headless=true", "-cp", classpath(jason), str(program)]
            chunk = list(map(str, files[start : start + 200]))
            done = subprocess.run([*words, *chunk], capture_output=True, text=True, check=False)
            for line in done.stdout.splitlines():
                if line.startswith("READ|"):
                    _, file, text = line.split("|", 2)
                    said[file] = text
    return said


# ------------------------------------------------------------------ running


def lacks(project: Path) -> str:
    """Why a project cannot be run here, or nothing."""
    text = project.read_text("utf-8", "replace")
    if re.search(r"environment\s*:", text):
        return "an environment in Java"
    if re.search(r"agentArchClass|agentClass|beliefBaseClass|ontology|jade|aslSourcePath.*http", text):
        return "classes in Java"
    try:
        load_agents(AgentSpeakOptions([str(project)]))
        files = {agent.file for agent in read_project(text, str(project)).agents}
    except (ProgramsError, ProgramError) as error:
        return f"not read: {str(error).splitlines()[0]}"
    places = [path for path in project.parent.rglob("*.asl") if path.name in files]
    return next((f"the action {name} in Java" for path in places if (name := _foreign(path))), "")


def _foreign(path: Path) -> str:
    """An internal action of a library of its own that a program names."""
    text = re.sub(r"\"[^\"]*\"|//.*|/\*(?s:.*?)\*/", "", path.read_text("utf-8", "replace"))
    names = JAVA_ACTION.findall(text)
    return next((f"{library}.{name}" for library, name in names if library not in KNOWN), "")


def race(project: str, seed: int) -> int:
    """Run a project with other chance, and with agents that stand still for some rounds, as threads do."""
    chance, cycle = Random(seed), BdiAgent.cycle
    still: dict[str, bool] = {}

    def maybe(agent: BdiAgent, now: float | None = None) -> CycleReport:
        still[agent.name] = still.get(agent.name, False) ^ (chance.random() < TURNING)
        return WORKED if still[agent.name] else cycle(agent, now)

    BdiAgent.cycle = maybe  # type: ignore[method-assign]
    return main_of_pilothouse(["asl", project, "--seed", str(seed)])


RACES = 6
TURNING = 0.1
"""Runs here of a project that differs, and how often an agent stops or goes on in a race."""


def run_here(project: Path, seed: int = 0) -> dict[str, list[str]]:
    """What each agent prints here; with a seed in a race."""
    words = [sys.executable, "-m", "app.cli.main", "asl", str(project)]
    if seed:
        words = [sys.executable, "-m", "tests.benchmarks.jason_programs", str(project), "--race", str(seed)]
    return _printed(words, project.parent, re.compile(r"\[(\w+)\] (.*)"), HERE, subprocess.DEVNULL)


def run_jason(project: Path, jason: Path) -> dict[str, list[str]]:
    """What each agent prints under Jason."""
    with tempfile.TemporaryDirectory() as place:
        logging = Path(place) / "logging.properties"
        logging.write_text(LOGGING)
        words = ["java", "-Djava.awt.headless=true", "-cp", f"{classpath(jason)}:{project.parent}"]
        words += ["jason.infra.local.RunLocalMAS", project.name, "--log-conf", str(logging), "--no-net"]
        return _printed(
            words,
            project.parent,
            re.compile(r"INFO\|[\w.]*?\.?(\w+)\|(.*)"),
            dict(os.environ),
            subprocess.STDOUT,
        )


def _printed(
    words: Sequence[str], folder: Path, line: re.Pattern[str], env: dict[str, str], stderr: int
) -> dict[str, list[str]]:
    streams = {"stdout": subprocess.PIPE, "stderr": stderr, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(words, cwd=folder, env=env, **streams)
    try:
        text, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
    printed: dict[str, list[str]] = {}
    for each in text.decode("utf-8", "replace").splitlines():
        if match := line.fullmatch(each):
            printed.setdefault(match[1], []).append(match[2])
    return printed


def comparable(printed: Printed) -> Printed:
    """What was printed without what may be otherwise each time."""
    return {name: [_comparable(line) for line in lines] for name, lines in printed.items()}


def _comparable(line: str) -> str:
    line = FILE.sub(r"\1", VARIABLE.sub("_", URL.sub("", line)))
    line = IN_BRACES.sub(lambda braces: NAMED.sub("_", braces[0]), line)
    return QUOTED.sub(r"\1", BRACES.sub("", line)).strip().removesuffix(".")


NOTHING = "prints nothing under Jason"


def compared(here: Printed, runs: list[Printed]) -> str:
    """How what was printed here compares with what Jason printed in several runs: `alike`, …"""
    runs = [{name: lines for name, lines in run.items() if lines and name not in OF_JASON} for run in runs]
    if not any(runs):
        return NOTHING
    if here in runs:
        return "alike"
    if any(_as_far_as_both(here, run) for run in runs):
        return "alike as far as both went"
    plain, plain_runs = _plain(here), [_plain(run) for run in runs]
    if plain in plain_runs:
        return "alike but for order and chance"
    if any(all(lines <= plain.get(name, Counter()) for name, lines in run.items()) for run in plain_runs):
        return "alike as far as Jason went in its time"
    if _in_common(plain, plain_runs):
        return "alike in what Jason's runs have in common"
    return "differs"


def compared_with_races(races: list[Printed], runs: list[Printed]) -> str:
    """As `compared`, of several runs here with other chance."""
    verdicts = [compared(race, runs) for race in races]
    if (alike := next((verdict for verdict in verdicts if verdict != "differs"), "")) != "":
        return f"{alike}, when agents stand still for some rounds"
    if _but_for_chance(races, runs):
        return "has the shapes of lines that all of Jason's runs have, and the reverse; its runs differ"
    return "differs"


def _as_far_as_both(here: Printed, there: Printed) -> bool:
    return all(_begins(here.get(name, []), there.get(name, [])) for name in here.keys() | there.keys())


def _plain(printed: Printed) -> dict[str, Counter[str]]:
    """Lines in any order, without numbers of chance, and with the elements of lists in any order."""
    return {name: Counter(_plain_line(line) for line in lines) for name, lines in printed.items()}


def _plain_line(line: str) -> str:
    masked = CHANCE.sub("#", line)
    return masked if masked == line and "[" not in line else "".join(sorted(masked))


def _in_common(here: dict[str, Counter[str]], runs: list[dict[str, Counter[str]]]) -> bool:
    """Whether Jason's runs differ from each other, and each line here is in one of them, and the reverse.

    A line that every run of Jason has must be here, and one of here must be in some run.
    """
    names = here.keys() | {name for run in runs for name in run}
    if all(run == runs[0] for run in runs):
        return False
    for name in names:
        own = set(here.get(name, ()))
        others = [set(run.get(name, ())) for run in runs]
        if not set.intersection(*others) <= own <= set.union(*others):
            return False
    return True


def _shapes(printed: Printed) -> dict[str, set[str]]:
    """The lines without numbers and what stands in brackets, of agents a1 and a2 together."""
    shapes: dict[str, set[str]] = {}
    for name, lines in printed.items():
        shapes.setdefault(name.rstrip("0123456789"), set()).update(SHAPE.sub("#", line) for line in lines)
    return shapes


def _but_for_chance(here: list[Printed], there: list[Printed]) -> bool:
    """Whether Jason's runs differ, and what all runs of one side have is in a run of the other."""
    if all(_plain(run) == _plain(there[0]) for run in there):
        return False
    sides = [[_shapes(run) for run in runs] for runs in (here, there)]
    names = {name for runs in sides for run in runs for name in run}
    return all(
        set.intersection(*(run.get(name, set()) for run in one))
        <= set.union(*(run.get(name, set()) for run in other))
        for one, other in (sides, sides[::-1])
        for name in names
    )


def _begins(one: list[str], other: list[str]) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter] and shorter > 0


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--run", action="store_true", help="run the projects, too")
    parser.add_argument("--show", action="store_true", help="name what is not read and what differs")
    parser.add_argument("--race", type=int, help="run the project that is named, with this chance")
    parser.add_argument("--keep", type=Path, help="what Jason printed, read where it is there, else written")
    options = parser.parse_args()
    if options.race:
        return race(str(options.checkouts), options.race)
    jason = Path(os.environ["JASON"]) if os.environ.get("JASON") else None
    reads = read_all(options.checkouts)
    said = read_by_jason([each.path for each in reads], jason) if jason else {}
    print(f"{'repository':<60} programs  read here  by Jason")
    for repository in (*sorted({each.repository for each in reads}), ""):
        its = [each for each in reads if repository in ("", each.repository)]
        here = sum(not each.problem for each in its)
        theirs = sum(said.get(str(each.path)) == "read" for each in its) if jason else "-"
        print(f"{repository or 'all':<60} {len(its):8}  {here:9}  {theirs:>8}")
    if options.show:
        for each in reads:
            if each.problem:
                print(f"{each.path.relative_to(options.checkouts)}: {each.problem}")
                print(f"    Jason: {said.get(str(each.path), '-')[:200]}")
    if options.run and jason:
        _run(options.checkouts, jason, options.keep, show=options.show)
    return 0


def _run(checkouts: Path, jason: Path, keep: Path | None, *, show: bool) -> None:
    projects = sorted(checkouts.glob("*/**/*.mas2j"))
    why = {project: lacks(project) for project in projects}
    able = [project for project in projects if not why[project]]
    kept: dict[str, list[Printed]] = json.loads(keep.read_text()) if keep and keep.is_file() else {}

    def by_jason(project: Path) -> list[Printed]:
        name = str(project.relative_to(checkouts))
        if name not in kept:
            kept[name] = [run_jason(project, jason) for _ in range(RUNS)]
        return kept[name]

    with ThreadPoolExecutor(4) as pool:
        there = dict(zip(able, pool.map(by_jason, able), strict=True))
    with ThreadPoolExecutor(2) as pool:
        here = dict(zip(able, pool.map(run_here, able), strict=True))
    here = {project: comparable(printed) for project, printed in here.items()}
    there = {project: [comparable(run) for run in runs] for project, runs in there.items()}
    found = {project: compared(here[project], there[project]) for project in able}
    for project in [project for project in able if found[project] == "differs"]:
        name = str(project.relative_to(checkouts))
        with ThreadPoolExecutor(2) as pool:
            kept[name] += pool.map(lambda _: run_jason(project, jason), range(len(kept[name]), MORE_RUNS))  # noqa: B023
            races = list(pool.map(lambda seed: comparable(run_here(project, seed)), range(1, RACES)))  # noqa: B023
        there[project] = [comparable(run) for run in kept[name]]
        found[project] = compared_with_races([here[project], *races], there[project])
    if keep:
        keep.write_text(json.dumps(kept))
    left = Counter(re.sub(r"(action|not read).*", r"\1", reason) for reason in why.values() if reason)
    print(f"\n{len(projects)} projects; left out: {dict(left)}; run: {len(able)}")
    count = Counter(found.values())
    print(
        f"{len(able) - count['differs']} of {len(able)}, of which {count[NOTHING]} print nothing under Jason"
    )
    for verdict, number in count.most_common():
        print(f"{verdict:<45} {number}")
    for project, verdict in found.items():
        if show and verdict == "differs":
            name = str(project.relative_to(checkouts))
            reasons = [reason for part, reason in DIFFERENCES.items() if part in name]
            print(f"{name}: {reasons[0] if reasons else 'for no known reason'}")
            for name in sorted(here[project].keys() | there[project][0].keys()):
                lines, others = here[project].get(name, []), there[project][0].get(name, [])
                if lines != others:
                    print(f"  {name}\n    here  {lines}"[:1500])
                    print(f"    Jason {others}"[:1500])
    for project, reason in why.items():
        if show and reason.startswith("not read"):
            print(f"{project.relative_to(checkouts)}: {reason}"[:300])


if __name__ == "__main__":
    sys.exit(main())
