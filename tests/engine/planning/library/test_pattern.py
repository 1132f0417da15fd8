from __future__ import annotations

import pytest

from engine.planning.library.matcher import Matcher
from engine.planning.library.parameters import Reference, Value, fault, value_of
from engine.planning.library.pattern import PatternError, parse_pattern
from engine.planning.library.words import words_of


def match(pattern: str, clause: str) -> dict[str, Value | Reference] | None:
    read = parse_pattern(pattern)
    words = words_of(clause)
    found = Matcher(read).run(words).match
    if found is None:
        return None
    return {
        name: value_of(read.parameters[name], words[first : last + 1], clause)
        for name, first, last in found.captures
    }


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("", "empty"),
        ("a (b|c", r"'\(' is not closed"),
        ("a [b", r"'\[' is not closed"),
        ("a b)", "does not belong here"),
        ("a | b", "does not belong here"),
        ("a (b|)", "empty alternative"),
        ("a {Path:path}", "not a parameter"),
        ("a {path}", "not a parameter"),
        ("a {path:pathh}", "unknown type 'pathh'"),
        ("a {x:path} {x:path}", "named twice"),
        ("a ({x:path}|{x:name})", "has two types"),
        ("{x:path} a", "starts with a word"),
        ("[a] [b]", "at least one word"),
        ("a {x:rest} b", "put it last"),
        ("a " + "(" * 10 + "b" + ")" * 10, "nested deeper"),
        ("a" * 401, "longer than 400"),
    ],
)
def test_a_pattern_with_a_mistake_is_refused_with_what_to_do(pattern: str, complaint: str) -> None:
    with pytest.raises(PatternError, match=complaint) as caught:
        parse_pattern(pattern)
    assert ": " in str(caught.value)


def test_words_match_whatever_their_case_and_parameters_keep_theirs() -> None:
    assert match("create [a] project {x:name}", "CREATE Project FooBar") == {"x": "FooBar"}


def test_a_quoted_word_is_never_a_literal() -> None:
    assert match("run tests", "run 'tests'") is None


def test_options_and_alternatives_nest() -> None:
    pattern = "go [(very|quite) [so]] (far|near by)"
    assert match(pattern, "go very so near by") == {}
    assert match(pattern, "go far") == {}
    assert match(pattern, "go so far") is None


def test_text_ends_where_the_rest_of_the_pattern_can_match() -> None:
    found = match("append {text:text} to {path:path}", "append go to bed to notes.txt")
    assert found == {"text": "go to bed", "path": "notes.txt"}


def test_a_list_takes_commas_and_blanks_and_and() -> None:
    assert match("install {x:packages}", "install httpx, rich>=13 and pytest cov") == {
        "x": ("httpx", "rich>=13", "pytest", "cov")
    }


def test_packages_may_be_separated_by_bare_commas() -> None:
    assert match("install {x:packages}", "install httpx,rich") == {"x": ("httpx", "rich")}


@pytest.mark.parametrize("bad", ["--upgrade", "a;b", "$(x)", "git+https://x", "the", "a|b"])
def test_a_package_is_a_plain_requirement(bad: str) -> None:
    assert match("install {x:packages}", f"install {bad}") is None


@pytest.mark.parametrize("bad", ["-rf", "'-rf'", "''", "a|b", "$HOME", "*", "the", "'a\nb'"])
def test_a_path_is_no_option_glob_or_everyday_word(bad: str) -> None:
    assert match("read {x:path}", f"read {bad}") is None


def test_the_rest_keeps_its_exact_text() -> None:
    clause = """run python -c "print( 'a;  b' )"  """.strip()
    assert match("run {x:command}", clause) == {"x": clause[4:]}


def test_what_follows_quoted_text_and_a_joint_is_not_part_of_it() -> None:
    assert match("say {x:rest}", "say 'a', b") is None
    assert match("say {x:rest}", "say 'a' and b") is None
    assert match("say {x:rest}", "say 'a'") == {"x": "a"}


@pytest.mark.parametrize("clause", ["read it", "read the file", "read that script"])
def test_a_path_may_point_back(clause: str) -> None:
    found = match("read {x:path}", clause)
    assert found is not None
    assert isinstance(found["x"], Reference)


def test_a_number_may_be_a_word() -> None:
    assert match("show {n:number} lines", "show ten lines") == {"n": "10"}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ls | wc", "needs a shell"),
        ("ls > a", "needs a shell"),
        ("ls && ls", "needs a shell"),
        ("ls; ls", "needs a shell"),
        ("echo $(ls)", "needs a shell"),
        ("echo 'a", "not closed"),
        ("ls\nls", "line break"),
    ],
)
def test_a_command_that_needs_a_shell_is_refused(command: str, why: str) -> None:
    kind = parse_pattern("run {x:command}").parameters["x"]
    assert why in (fault(kind, command) or "")


@pytest.mark.parametrize("command", ["echo 'a | b'", 'python -c "a; b > c"', "ls -la src"])
def test_a_quoted_operator_is_plain_text(command: str) -> None:
    kind = parse_pattern("run {x:command}").parameters["x"]
    assert fault(kind, command) is None


def test_a_clause_that_ends_before_a_parameter_names_it() -> None:
    attempt = Matcher(parse_pattern("install [the] [package] {x:packages}")).run(words_of("install the"))
    assert attempt.match is None
    assert attempt.missing == "x"


def test_a_word_that_a_parameter_cannot_take_is_named() -> None:
    attempt = Matcher(parse_pattern("create project {x:name}")).run(words_of("create project a/b"))
    assert (attempt.refused, attempt.reached) == ("x", 2)


def test_the_longest_beginning_that_fits_is_found() -> None:
    words = words_of("list all, frobnicate it")
    attempt = Matcher(parse_pattern("list [all]")).run(words, stops={2})
    assert attempt.prefix is not None
    assert attempt.prefix.end == 2
