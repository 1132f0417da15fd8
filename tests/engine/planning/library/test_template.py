from __future__ import annotations

import ast
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.planning.library.parameters import TemplateError, fill, slots_of

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def test_only_a_lower_case_name_between_single_braces_is_a_slot() -> None:
    plain = """{} {"a": 1} {x!r} { x } {HOME} ${HOME} {x.y} {x:>5} {1} {"""
    assert fill(plain, {"x": "no"}) == plain


def test_a_literal_slot_is_written_with_two_braces() -> None:
    assert fill("{x} {{x}}", {"x": "value"}) == "value {x}"


def test_values_are_never_looked_into_again() -> None:
    assert fill("{x}{y}", {"x": "{y}", "y": "{{x}}"}) == "{y}{{x}}"


def test_a_list_is_joined_by_commas_and_for_a_command_by_blanks() -> None:
    values = {"x": ("a b", "c")}
    assert fill("{x}", values) == "a b, c"
    assert fill("{x|shell}", values) == "'a b' c"


def test_filters_follow_one_another() -> None:
    assert fill("{x|stem|camel}", {"x": "src/my_light-house.py"}) == "MyLightHouse"


def test_an_unknown_filter_is_refused() -> None:
    with pytest.raises(TemplateError, match="unknown filter"):
        list(slots_of("{x|shelf}"))


@given(ANY)
def test_shell_makes_exactly_one_argument_of_any_text(text: str) -> None:
    assert shlex.split(fill("git commit -m {x|shell} --", {"x": text})) == ["git", "commit", "-m", text, "--"]


@given(ANY)
def test_py_makes_exactly_that_string_of_any_text(text: str) -> None:
    module = ast.parse(fill("value = {x|py}", {"x": text}))
    (statement,) = module.body
    assert isinstance(statement, ast.Assign)
    assert ast.literal_eval(statement.value) == text


@given(ANY)
def test_names_made_of_any_text_are_python_names_or_safe_words(text: str) -> None:
    for name in ("slug", "snake", "camel"):
        made = fill("{x|" + name + "}", {"x": text})
        assert shlex.split(made, comments=False) == [made]
