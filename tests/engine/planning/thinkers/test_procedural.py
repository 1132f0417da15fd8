from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.actions import SandboxSession
from engine.core.goals import Goal
from engine.core.plan import Op, PlanStep, Provenance
from engine.core.thinking import PlanProposal, PlanRequest, Thinker
from engine.planning.library.plan_library import PlanLibrary
from engine.planning.thinkers.procedural import ProceduralThinker
from tests.rounds import rounds

LIBRARY = PlanLibrary.load()
SEED = (
    "Create a Python project named 'api_client', set up a virtual environment, "
    "install 'httpx', and create a script to ping the GitHub API"
)


async def propose(goal: str, library: PlanLibrary = LIBRARY, **session: str) -> PlanProposal:
    thinker: Thinker = ProceduralThinker(library)
    return await thinker.plan(PlanRequest(Goal("g1", goal), SandboxSession(**session)))  # type: ignore[arg-type]


def did(proposal: PlanProposal) -> list[tuple[str, dict[str, str]]]:
    assert proposal.uncovered == ()
    return [(step.command, step.args) for step in proposal.steps]


def test_the_thinker_is_free_and_says_its_name() -> None:
    thinker: Thinker = ProceduralThinker(LIBRARY)
    assert (thinker.name, thinker.free) == ("procedural", True)


async def test_the_seed_goal_gives_exactly_the_seven_steps_of_the_seed() -> None:
    proposal = await propose(SEED)
    assert proposal.thinker == "procedural"
    assert {(step.op, step.tool) for step in proposal.steps} == {(Op.ACT, "simple_coder")}
    assert [step.id for step in proposal.steps] == list("1234567")
    content = "import httpx; print(httpx.get('https://api.github.com').status_code)"
    assert did(proposal) == [
        ("mkdir", {"path": "api_client"}),
        ("cd", {"path": "api_client"}),
        ("create_venv", {"venv_name": ".venv"}),
        ("activate_venv", {"venv_name": ".venv"}),
        ("run", {"command": "pip install httpx"}),
        ("write", {"path": "main.py", "content": content}),
        ("run", {"command": "python main.py"}),
    ]


async def test_each_step_says_which_recipe_and_clause_it_is_from() -> None:
    steps = (await propose(SEED)).steps
    assert steps[4].provenance == Provenance(
        "procedural", "environment.toml:install-packages", "install 'httpx'", 3
    )
    assert [step.provenance.clause_index for step in steps] == [1, 1, 2, 2, 3, 4, 4]


async def test_steps_depend_on_steps_of_their_own_clause() -> None:
    steps = (await propose(SEED)).steps
    assert [step.depends_on for step in steps] == [(), ("1",), (), ("3",), (), (), ("6",)]


@pytest.mark.parametrize(
    ("goal", "last"),
    [
        ("create a file named notes.txt, read it", ("read", {"path": "notes.txt"})),
        ("write 'a' to notes.txt. Append b to the file", ("append", {"path": "notes.txt", "content": "b\n"})),
        ("create a hello world script; run that script", ("run", {"command": "python hello.py"})),
        ("create a Python project named x, list the project", ("ls", {"path": "."})),
        ("create a file a.txt, create a directory b, read the file", ("read", {"path": "a.txt"})),
        ("create a file b/a.txt, cd to b, read it", ("read", {"path": "a.txt"})),
        ("create a file a.txt, cd to b, read it", ("read", {"path": "../a.txt"})),
        ("create a directory named b, go to it", ("cd", {"path": "b"})),
        ("create files a.txt and b.txt, delete it", ("rm", {"path": "b.txt"})),
        ("set up a virtual environment named env, activate it", ("activate_venv", {"venv_name": "env"})),
        ("rename a.txt to b.txt, read it", ("read", {"path": "b.txt"})),
    ],
)
async def test_a_later_clause_may_point_back(goal: str, last: tuple[str, dict[str, str]]) -> None:
    assert did(await propose(goal))[-1] == last


@pytest.mark.parametrize(
    ("goal", "command"),
    [
        ("run 'python x.py'", "python x.py"),
        ("execute `python -m pytest test_x.py`", "python -m pytest test_x.py"),
        ("run the script 'my script.py'", "python 'my script.py'"),
        ("run 'python.py'", "python python.py"),
    ],
)
async def test_a_quoted_command_is_a_command_and_a_quoted_script_a_script(goal: str, command: str) -> None:
    assert did(await propose(goal)) == [("run", {"command": command})]


async def test_the_project_the_agent_is_in_is_known_from_the_session() -> None:
    assert did(await propose("write a README", cwd="sea_tides"))[0][1]["content"].startswith("# Sea Tides\n")


async def test_pointing_back_at_nothing_is_not_covered() -> None:
    (uncovered,) = (await propose("run it")).uncovered
    assert uncovered.why == "nothing named before is what “it” can mean: say the name"


async def test_what_no_recipe_says_is_uncovered_and_the_rest_is_proposed() -> None:
    proposal = await propose("create a Python project named x, frobnicate the widgets, and install rich")
    assert [step.args for step in proposal.steps] == [
        {"path": "x"},
        {"path": "x"},
        {"command": "pip install rich"},
    ]
    (uncovered,) = proposal.uncovered
    assert (uncovered.clause, uncovered.index) == ("frobnicate the widgets", 2)
    assert [step.provenance.clause_index for step in proposal.steps] == [1, 1, 3]
    assert len(uncovered.nearest) == 3


async def test_the_nearest_example_comes_first() -> None:
    (uncovered,) = (await propose("crate a Python project called 'api_client'")).uncovered
    assert uncovered.nearest[0] == "create a Python project named 'api_client'"


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        ("install", "what to install is missing"),
        ("install the", "what to install is missing"),
        ("create a python project", "the project's name is missing"),
        ("write 'hello'", "the file to write to is missing"),
        ("rename a.txt", "where to move it is missing"),
        ("replace 'a' with 'b' and 'c'", "the file to change is missing"),
        ("create", "what to create is missing"),
        ("create a python project named 'a/b'", "“'a/b'” cannot be the project's name (letters"),
        ("write 'hello to notes.txt", "is not closed"),
        ("run `ls | wc`", "the command needs a shell ('|')"),
    ],
)
async def test_the_missing_or_unfit_parameter_is_named(goal: str, why: str) -> None:
    proposal = await propose(goal)
    assert proposal.steps == ()
    (uncovered,) = proposal.uncovered
    assert why in uncovered.why


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        ("", "holds no words"),
        (" \n\t", "holds no words"),
        ("?!... ,;", "holds no words"),
        ("please", "names nothing to do"),
        ("x" * 20_000, "20000 characters and at most 8000"),
        ("list files\x00", "control character (U+0000) at 11"),
        ("list files\x1b[2J", "control character (U+001B)"),
        ("list \ud800", "control character (U+D800)"),
        ("ls. " * 500, "at most 100 are read"),
    ],
)
async def test_a_goal_that_cannot_be_read_is_one_uncovered_clause(goal: str, why: str) -> None:
    proposal = await propose(goal)
    assert proposal.steps == ()
    (uncovered,) = proposal.uncovered
    assert why in uncovered.why
    assert len(uncovered.clause) <= 200


@pytest.mark.parametrize(
    "piece",
    [
        "and ",
        "create, ",
        "' ",
        '"',
        "a, to ",
        "install a1, ",
        "'x ",
        "the ",
        "1. ",
        "-\n",
        "[(|{",
        "it ",
        "find 'a' in the code, find, ",
    ],
)
async def test_nasty_goals_are_answered(piece: str) -> None:
    for start in ("", "x ", "write ", "replace 'a' with ", "remember ", "run python "):
        size = 2_000 if start else 8_000
        proposal = await propose((start + piece * size)[:size])
        assert proposal.steps or proposal.uncovered


@settings(max_examples=rounds(100, full=300), deadline=None)
@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from([*LIBRARY.verbs, "'", '"', "the", "it", "a.txt", ",", "to", "and", "{x}", "\n"])
    ).map(" ".join)
)
async def test_no_text_raises_and_none_is_passed_over(goal: str) -> None:
    proposal = await propose(goal)
    assert proposal.steps or proposal.uncovered
    assert all(entry.why and entry.index >= 1 for entry in proposal.uncovered)


def put(directory: Path, text: str) -> PlanLibrary:
    (directory / "mine.toml").write_text(text, encoding="utf-8")
    library = PlanLibrary.load(user_dir=directory)
    assert library.errors == ()
    return library


def recipe(says: str, step: str) -> str:
    return f"""
[[recipe]]
name = "mine"
summary = "Mine."
example = "mine"
says = ["{says}"]

[[recipe.steps]]
{step}
description = "Mine"
"""


async def test_a_recipe_of_the_workspace_beats_a_shipped_one_that_is_as_specific(tmp_path: Path) -> None:
    library = put(tmp_path, recipe("run the tests", 'command = "run"\nargs = { command = "make test" }'))
    proposal = await propose("run the tests", library)
    assert did(proposal) == [("run", {"command": "make test"})]
    assert proposal.steps[0].provenance.recipe == "recipes/mine.toml:mine"


async def test_a_more_specific_shipped_recipe_beats_one_of_the_workspace(tmp_path: Path) -> None:
    library = put(tmp_path, recipe("run {x:rest}", 'command = "ls"\nargs = { path = "{x}" }'))
    assert did(await propose("run the tests", library)) == [("run", {"command": "python -m unittest -v"})]


async def test_a_recipe_may_ask_for_a_sub_goal(tmp_path: Path) -> None:
    step = 'op = "achieve"\nargs = { goal = "install {x}" }'
    library = put(tmp_path, recipe("prepare {x:name}", step))
    (made,) = (await propose("prepare rich", library)).steps
    assert (made.op, made.tool, made.command, made.args) == (Op.ACHIEVE, "", "", {"goal": "install rich"})


async def test_remembering_adds_a_belief_and_calls_no_tool() -> None:
    (made,) = (await propose("remember that The tests need Python 3.11")).steps
    assert isinstance(made, PlanStep)
    assert (made.op, made.tool) == (Op.ADD, "")
    assert made.args == {"key": "note.the_tests_need_python_3_11", "value": "The tests need Python 3.11"}


async def test_a_parameter_keeps_its_exact_text() -> None:
    ((_, args),) = did(await propose("WRITE 'He said: {path} {{x}}  \"Hi\", and left.' TO My_Notes.TXT"))
    assert args == {"path": "My_Notes.TXT", "content": 'He said: {path} {{x}}  "Hi", and left.\n'}
