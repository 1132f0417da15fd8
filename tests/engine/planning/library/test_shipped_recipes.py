"""What Pilothouse ships covers what it says, with steps that the tool knows, and code that runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.core.actions import SandboxSession
from engine.core.goals import Goal
from engine.core.plan import Op, PlanStep
from engine.core.thinking import PlanProposal, PlanRequest
from engine.planning.library.parameters import PROGRAMS
from engine.planning.library.pattern import Literal, Parameter, Sequence
from engine.planning.library.plan_library import PlanLibrary
from engine.planning.library.recipe import Recipe
from engine.planning.thinkers.procedural import ProceduralThinker
from tests.patience import PATIENCE_S
from tests.rounds import rounds

COMMANDS = {
    "ls": {"path"},
    "cd": {"path"},
    "mkdir": {"path"},
    "read": {"path"},
    "write": {"path", "content"},
    "append": {"path", "content"},
    "replace": {"path", "old", "new"},
    "find": {"text", "path"},
    "move": {"source", "target"},
    "copy": {"source", "target"},
    "rm": {"path"},
    "create_venv": {"venv_name"},
    "activate_venv": {"venv_name"},
    "deactivate_venv": set(),
    "run": {"command"},
    "start": {"command"},
    "jobs": set(),
    "stop_job": set(),
    "help": set(),
}

VALUES = {
    "name": ["api_client", "'x-1.2'"],
    "identifier": ["tides", "'Light_house'"],
    "path": ["src/a.py", "'my notes'", "data.json"],
    "file": ["notes.txt", "'my notes'"],
    "filename": ["notes.txt", "'my notes.md'"],
    "script": ["main.py", "'src/my script.py'"],
    "directory": ["src", "'my things'"],
    "venv": [".venv", "'env'"],
    "quoted": ["'it is, and then some'", '"$HOME; `ls`"', "`a'b`"],
    "number": ["3", "ten"],
    "url": ["https://example.com/a?b=c", "'http://localhost:8000'"],
    "packages": ["httpx", "httpx, rich and pytest", "'rich>=13' attrs"],
    "paths": ["src", "a.txt, b.txt and 'c d'"],
    "filenames": ["a.txt", "a.txt and b.md"],
    "text": ["hello", "'a, b; and $(c)'"],
    "rest": ["hello world", "'a, b; and $(c)'"],
    "program": ["python -m this", "`make watch`"],
    "command": ["python -m this", "`ls -la`", "git log --oneline"],
}


@cache
def library() -> PlanLibrary:
    return PlanLibrary.load()


@cache
def thinker() -> ProceduralThinker:
    return ProceduralThinker(library())


def propose(goal: str) -> PlanProposal:
    # Without a thread: hypothesis runs this many times.
    return thinker().propose(PlanRequest(Goal("g", goal)))


@st.composite
def phrases(draw: st.DrawFn, sequence: Sequence) -> str:
    """A phrase that a pattern says."""
    said: list[str] = []
    for node in sequence.nodes:
        if isinstance(node, Literal):
            said.append(node.word)
        elif isinstance(node, Parameter):
            said.append(draw(st.sampled_from(VALUES[node.type.name])))
        elif not node.optional or draw(st.booleans()):
            said.append(draw(phrases(draw(st.sampled_from(node.options)))))
    return " ".join(part for part in said if part)


@st.composite
def said(draw: st.DrawFn) -> tuple[Recipe, str]:
    recipe = draw(st.sampled_from(library().recipes))
    matcher = draw(st.sampled_from(recipe.says))
    return recipe, draw(phrases(matcher.pattern.root))


def assert_known(steps: Iterable[PlanStep]) -> None:
    for step in steps:
        assert step.description
        if step.op is not Op.ACT:
            assert set(step.args) <= {"key", "value"}
            continue
        assert step.tool == "simple_coder"
        assert set(step.args) == COMMANDS[step.command]
        assert all(isinstance(value, str) for value in step.args.values())
        if step.command in ("run", "start"):
            assert shlex.split(step.args["command"])[0] in PROGRAMS


def test_there_are_at_least_thirty_recipes_and_no_errors() -> None:
    assert library().errors == ()
    assert len(library().recipes) >= 30
    assert sum(len(recipe.says) for recipe in library().recipes) > 100


@pytest.mark.parametrize("recipe", PlanLibrary.load().recipes, ids=lambda recipe: recipe.id)
def test_each_example_is_covered_by_its_recipe(recipe: Recipe) -> None:
    proposal = propose(recipe.example)
    assert proposal.uncovered == ()
    assert {step.provenance.recipe for step in proposal.steps} == {recipe.id}
    assert_known(proposal.steps)


@settings(max_examples=rounds(200, full=600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(said())
def test_each_phrasing_is_covered_by_its_recipe(case: tuple[Recipe, str]) -> None:
    recipe, phrase = case
    proposal = propose(phrase)
    assert proposal.uncovered == (), phrase
    assert {step.provenance.recipe for step in proposal.steps} == {recipe.id}, phrase
    assert_known(proposal.steps)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=40))
def test_no_text_of_the_operator_breaks_out_of_a_command(text: str) -> None:
    quote = next((mark for mark in "'`\"" if mark not in text), None)
    if quote is None or not any(char.isalnum() for char in text):
        return
    message = f"{quote}{text}{quote}"
    proposal = propose(f"commit everything with the message {message}")
    assert shlex.split(proposal.steps[-1].args["command"]) == ["git", "commit", "-m", text]


class Hands:
    """A stand-in for the tool, small enough to trust: real files and real processes below a root."""

    def __init__(self, root: Path) -> None:
        self.cwd = root

    def do(self, step: PlanStep) -> subprocess.CompletedProcess[str] | None:
        args = step.args
        if step.command == "run":
            argv = shlex.split(args["command"])
            argv[0] = {"python": sys.executable}.get(argv[0], argv[0])
            return subprocess.run(
                argv, cwd=self.cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        if step.command == "mkdir":
            (self.cwd / args["path"]).mkdir(parents=True, exist_ok=True)
        elif step.command == "cd":
            self.cwd = (self.cwd / args["path"]).resolve(strict=True)
        elif step.command in ("write", "append"):
            target = self.cwd / args["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("w" if step.command == "write" else "a", encoding="utf-8") as file:
                file.write(args["content"])
        elif step.command == "copy":
            (self.cwd / args["target"]).write_bytes((self.cwd / args["source"]).read_bytes())
        else:
            raise AssertionError(f"not done here: {step.command}")
        return None

    def achieve(self, goal: str) -> list[str]:
        """What each `run` of the plan for a goal prints; all of them must succeed."""
        proposal = propose(goal)
        assert proposal.uncovered == ()
        done = [ran for step in proposal.steps if (ran := self.do(step)) is not None]
        for ran in done:
            assert ran.returncode == 0, (ran.args, ran.stdout, ran.stderr)
        return [ran.stdout + ran.stderr for ran in done]


@pytest.mark.parametrize(
    ("goal", "printed"),
    [
        ("create a Python package named 'sea_tides', run the tests", r"Ran 1 test\b[\s\S]*OK"),
        ("create a function named 'greet' with a test, run the tests", r"Ran 1 test\b[\s\S]*OK"),
        ("create a class named 'LightHouse' with tests, run the tests", r"Ran 2 tests[\s\S]*OK"),
        ("create a module named tides, create tests for it, run the tests", r"Ran 1 test\b[\s\S]*OK"),
        ("create a module named tides, create tests for it, run the tests in test_tides.py", r"OK"),
        ("create a hello world script called 'it is.py'", r"^Hello, world!\n$"),
        ("create a command-line program named 'say-it'", r"usage: say-it"),
        (
            "write a navigation module, write unit tests for the navigation module, run the tests",
            r"Ran 11 tests",
        ),
        (
            "write a navigation module, create a script that prints a flight plan, run it",
            r"5 legs, \d+ miles",
        ),
        ("write 'a' to x.py, count the lines of code", r"     1  x\.py\n     1  lines in 1 files"),
        ("write 'a' to x.py, list everything", r"^\./x\.py\n$"),
        ("write 'a = 1' to x.py, compile all Python files, tidy up", r"1 directories removed"),
        ("write 'a' to 'the first', write 'b' to c, compare 'the first' with c", r"-a\n\+b"),
        ("write 'a' to a.txt, copy it to b.txt, compare a.txt with b.txt", r"no difference"),
        ("write 'a b' to 'x y', count the words in it", r"^2 x y"),
        ("write '[1]' to 'x.json', check that it is valid JSON", r"\[\n    1\n\]"),
        ("write 'b\na' to x, sort the lines of x", r"^a\nb\n"),
        ("write 'b\na' to x, show the first 1 lines of x", r"^b\n$"),
        ("write 'b\na' to x, show the last 1 lines of x", r"^a\n$"),
        ("write 'a' to x, zip x to x.zip, unzip x.zip to y, find files named 'x*'", r"\./y/x"),
        ("write the requirements file to 'all of it.txt'", r"\d+ requirements written"),
        ("show the Python version", r"Python 3"),
        ("run `python -c 'print(1, 2)'`", r"1 2"),
        (
            "init git, write 'x' to y, commit all changes with the message \"it's $HOME; ok\"",
            r"it's \$HOME; ok",
        ),
        ("init git, create a branch named try-it, show the git status", r"try-it"),
        ("create a directory named 'a b', touch 'a b/c', list everything in 'a b'", r"^a b/c\n$"),
    ],
)
def test_what_a_plan_does_in_a_real_directory(goal: str, printed: str, tmp_path: Path) -> None:
    assert any(re.search(printed, output) for output in Hands(tmp_path).achieve(goal))


def test_a_script_that_fetches_an_address_holds_it_whatever_it_is(tmp_path: Path) -> None:
    (write, _) = propose("create a script that fetches `https://example.com/{url}?a=%27\\`").steps
    compile(write.args["content"], "fetch.py", "exec")
    assert "https://example.com/{url}?a=%27" in write.args["content"]


def test_a_touched_file_keeps_what_it_holds() -> None:
    with tempfile.TemporaryDirectory() as directory:
        hands = Hands(Path(directory))
        hands.achieve("write 'a' to x, touch x")
        assert (hands.cwd / "x").read_text() == "a\n"


def test_the_session_starts_where_the_agent_is() -> None:
    request = PlanRequest(Goal("g", "list the project"), SandboxSession(cwd="api/src"))
    (step,) = thinker().propose(request).steps
    assert step.args == {"path": "."}
