from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.planning.library.plan_library import PlanLibrary
from engine.planning.thinkers.clauses import split_clauses

LIBRARY = PlanLibrary.load()


def clauses(goal: str) -> list[str]:
    return [clause.text for clause in split_clauses(goal, LIBRARY)]


def test_the_seed_goal_has_four_clauses() -> None:
    goal = (
        "Create a Python project named 'api_client', set up a virtual environment, "
        "install 'httpx', and create a script to ping the GitHub API"
    )
    assert clauses(goal) == [
        "Create a Python project named 'api_client'",
        "set up a virtual environment",
        "install 'httpx'",
        "create a script to ping the GitHub API",
    ]


@pytest.mark.parametrize(
    "goal",
    [
        "install httpx, rich and pytest",
        "replace 'a' with 'b' and 'c'",
        "write 'go home, then run away; list it. Delete it' to notes.txt",
        "write `a\n\nlist b` to notes.txt",
        "write “a, list b” to notes.txt",
        "rename notes.txt to v1.2",
        "create directories src, test and docs",
        "read e.g. notes",
        'run python -c "a; b, and list c"',
        "remember that salt and pepper are out",
    ],
)
def test_what_names_one_thing_to_do_stays_one_clause(goal: str) -> None:
    assert clauses(goal) == [goal]


@pytest.mark.parametrize(
    "joint",
    [
        ", ",
        " and ",
        ", and ",
        " then ",
        " and then ",
        ", then ",
        "; ",
        ". ",
        ".\n",
        "\n",
        "\n- ",
        "\n2. ",
        "\n* ",
        "\n3) ",
        ". Then, ",
        ", after that ",
        ". Finally, ",
        " and also ",
        ". Now please ",
        "!\n\n",
        " & ",
    ],
)
def test_each_joint_before_a_verb_starts_a_clause(joint: str) -> None:
    assert clauses(f"create a file a.txt{joint}read b.txt") == ["create a file a.txt", "read b.txt"]


@pytest.mark.parametrize(
    "polite",
    [
        "please {}",
        "Could you {}",
        "I want you to {}",
        "Now, {}, please!",
        "Hi, can you please {}?",
        "Let's {}.",
        "I'd like you to {}, thank you",
        "Do the following: {}",
        "- {}",
        "1. {}",
    ],
)
def test_politeness_is_dropped(polite: str) -> None:
    assert clauses(polite.format("list the files")) == ["list the files"]


def test_a_new_sentence_starts_a_clause_even_when_its_verb_is_unknown() -> None:
    assert clauses("Read a.txt. Frobnicate the widgets.") == ["Read a.txt", "Frobnicate the widgets"]


def test_nothing_after_a_quote_that_is_not_closed_is_a_clause_of_its_own() -> None:
    assert clauses("read a.txt, write 'b, delete c.txt") == ["read a.txt", "write 'b, delete c.txt"]


@pytest.mark.parametrize("nothing", ["", "  \n ", ", , ;", "please", "and then", "!?"])
def test_a_goal_that_says_nothing_has_no_clauses(nothing: str) -> None:
    assert clauses(nothing) == []


@given(
    st.lists(
        st.sampled_from(
            ["create", "list", "the", "files", ",", "and", "then", ".", ";", "'a, b'", "\n", "1.", "x"]
        )
    )
)
def test_clauses_are_in_order_and_do_not_overlap(words: list[str]) -> None:
    at = 0
    for clause in split_clauses(" ".join(words), LIBRARY):
        assert clause.words[0].start >= at
        at = clause.words[-1].end
