from __future__ import annotations

import pytest

from engine.core.plan import Op
from engine.planning.library.recipe import MAX_BYTES, RecipeStep, parse_recipes

GOOD = """
[[recipe]]
name = "greet"
summary = "Greet someone."
example = "greet Ada"
says = ["greet {who:name}", "(greet|welcome) everybody [called {who:name}]"]
defaults = { who = "all" }

[[recipe.steps]]
id = "say"
command = "run"
args = { command = "echo {who|shell}" }
description = "Greet {who}"

[[recipe.steps]]
op = "add"
args = { key = "greeted", value = "{who}" }
description = "Remember it"
depends_on = ["say"]
"""


def errors_of(text: str) -> list[tuple[int | None, str]]:
    recipes, errors = parse_recipes(text.encode(), "mine.toml")
    assert recipes == ()
    assert all(error.file == "mine.toml" and error.what and error.todo for error in errors)
    return [(error.line, error.what) for error in errors]


def test_a_good_file_gives_its_recipes() -> None:
    (recipe,), errors = parse_recipes(GOOD.encode(), "mine.toml")
    assert errors == ()
    assert recipe.id == "mine.toml:greet"
    assert [step.tool for step in recipe.steps] == ["simple_coder", ""]


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("summary = ", "sumary = ", 2, "'summary' is missing"),
        ('name = "greet"', 'name = "greet"\ncolour = "red"', 4, "unknown key 'colour'"),
        ('name = "greet"', 'name = "Greet!"', 3, "'name'"),
        ('name = "greet"', "name = greet", 3, "not valid TOML"),
        ("[called {who:name}]", "[called {who:name}", 6, "is not closed"),
        ("{who:name}", "{who:nam}", 6, "unknown type 'nam'"),
        ("{who|shell}", "{whom|shell}", 12, "'{whom}' has no value"),
        ("{who|shell}", "{who}", 12, "stands unquoted in a command"),
        ("{who|shell}", "{who|shelf}", 12, "unknown filter"),
        ('defaults = { who = "all" }', "", 12, "'{who}' has no value"),
        ('defaults = { who = "all" }', 'defaults = { who = "all", x = "y" }', None, "'x' is no parameter"),
        ('depends_on = ["say"]', 'depends_on = ["sya"]', 19, "no id of an earlier step"),
        ('op = "add"', 'op = "addd"', None, "op"),
        ('op = "add"', 'op = "achieve"', None, "achieve has no goal"),
        ('op = "add"', 'op = "add"\ncommand = "ls"', None, "is given a tool or a command"),
        ('command = "run"', "", None, "no command"),
        ('command = "run"', 'command = "run"\neach = "who"', 12, "no list parameter"),
        ('id = "say"', "", 19, "no id of an earlier step"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int | None, what: str) -> None:
    found = errors_of(GOOD.replace(old, new))
    assert any(what in text for _, text in found), found
    if line is not None:
        assert line in [where for where, text in found if what in text], found


def test_two_recipes_of_one_name_are_refused_at_the_second() -> None:
    assert errors_of(GOOD + GOOD)[0] == (
        GOOD.count("\n") + 2,
        "recipe 'greet': its name is used twice in this file",
    )


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    _, (error,) = parse_recipes(b"# ok\n# \xff\n", "mine.toml")
    assert (error.line, error.what) == (2, "byte 7 is not UTF-8")


def test_a_file_of_more_than_256_kib_is_refused() -> None:
    _, (error,) = parse_recipes(b"#" * (MAX_BYTES + 1), "mine.toml")
    assert "larger than 256 KiB" in error.what


@pytest.mark.parametrize("text", ["", "recipe = 3", "recipe = []", "x = 1", "x = " + "[" * 5000 + "]" * 5000])
def test_a_file_of_the_wrong_shape_is_refused(text: str) -> None:
    assert errors_of(text)


def test_the_operations_of_recipes_are_those_of_plans() -> None:
    field = RecipeStep.model_fields["op"].annotation
    assert set(field.__args__) == {op.value for op in Op}  # type: ignore[union-attr]
