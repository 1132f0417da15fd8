"""Programs of several files (spec §1.4), read from a real folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.bdi.including import DEEPEST, load_program
from engine.bdi.printer import text_of
from engine.bdi.syntax import Program
from tests.engine.bdi.running import Run


def loaded(folder: Path, **files: str) -> tuple[Program, list[str]]:
    """`main.asl` of a folder with these files, and the problems without the folder's path."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.asl"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    program, problems = load_program(
        str(folder / "main.asl"), lambda path: Path(path).read_text(), os.path.realpath
    )
    return program, [str(one).replace(f"{folder}/", "") for one in problems]


def test_an_included_file_stands_where_it_is_named(tmp_path: Path) -> None:
    program, problems = loaded(
        tmp_path,
        main='b(1). @a +!g. { include("one.asl") } b(2). @z +!g. { include("lib/two.asl") } !last.',
        one="b(11). r(X) :- b(X). @one +!g. !first.",
        lib__two='b(22). { include("three.asl") } @two +!g.',
        lib__three="//@ meaning b(X): \"a number\"\nb(33).",
    )  # fmt: skip
    assert problems == []
    assert [text_of(one.literal) for one in program.beliefs] == ["b(1)", "b(11)", "b(2)", "b(22)", "b(33)"]
    assert [plan.name for plan in program.plans] == ["a", "one", "z", "two"]
    assert [text_of(one.literal) for one in program.goals] == ["first", "last"]
    assert (len(program.rules), len(program.docs)) == (1, 1)
    assert program.plans[3].source == str(tmp_path / "lib" / "two.asl")


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    program, problems = loaded(
        tmp_path,
        main='{ include("one.asl") } { include("two.asl") } { include("./one.asl") }',
        one='{ include("base.asl") }',
        two='{ include("base.asl") }',
        base="b.",
    )
    assert (len(program.beliefs), problems) == (1, [])


def test_a_loop_of_includes_is_an_error_where_it_closes(tmp_path: Path) -> None:
    one, two = 'a.\n{ include("two.asl") }', 'b.\n{include("main.asl")}'
    _, problems = loaded(tmp_path, main='{ include("one.asl") }', one=one, two=two)
    assert problems == ["two.asl:2:1: expected a file that does not include this one, found 'main.asl'"]
    assert loaded(tmp_path, main='{ include("main.asl") }')[1] == [
        "main.asl:1:1: expected a file that does not include this one, found 'main.asl'"
    ]


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("../outside.asl", "a file beneath the folder of this one"),
        ("lib/../../outside.asl", "a file beneath the folder of this one"),
        ("/etc/passwd", "a file beneath the folder of this one"),
        ("link.asl", "a file beneath the folder of this one"),
        ("missing.asl", "a file that exists"),
        ("lib", "a file that can be read (Is a directory)"),
        ("latin.asl", "a file that can be read ('utf-8' codec can't decode byte 0xff in position 0: "),
        ("a\\0b", "a file that exists"),
    ],
)
def test_only_readable_files_beneath_the_folder_are_included(
    tmp_path: Path, named: str, problem: str
) -> None:
    folder = tmp_path / "agents"
    (folder / "lib").mkdir(parents=True)
    (tmp_path / "outside.asl").write_text("secret.")
    (folder / "link.asl").symlink_to(tmp_path / "outside.asl")
    (folder / "latin.asl").write_bytes(b"\xff")
    program, problems = loaded(folder, main=f'ok.\n{{ include("{named}") }}')
    assert len(problems) == 1
    assert problems[0].startswith(f"main.asl:2:1: expected {problem}")
    assert len(program.beliefs) == 1


def test_a_file_in_a_folder_includes_beneath_that_folder_only(tmp_path: Path) -> None:
    _, problems = loaded(
        tmp_path, main='{ include("lib/one.asl") }', lib__one='{ include("../two.asl") }', two="b."
    )
    assert problems == ["lib/one.asl:1:1: expected a file beneath the folder of this one, found '../two.asl'"]


def test_problems_of_every_file_are_named(tmp_path: Path) -> None:
    _, problems = loaded(tmp_path, main='{ include("one.asl") }\n+!', one="b(;.")
    assert [one.split(":")[0] for one in problems] == ["main.asl", "one.asl"]


def test_a_long_row_of_files_comes_to_an_end(tmp_path: Path) -> None:
    files = {f"f{number}": f'{{ include("f{number + 1}.asl") }}' for number in range(DEEPEST + 5)}
    _, problems = loaded(tmp_path, main='{ include("f0.asl") }', **files)
    assert problems == [
        f"f{DEEPEST - 2}.asl:1:1: expected at most {DEEPEST} files that include each other, "
        f"found 'f{DEEPEST - 1}.asl'"
    ]


def test_an_agent_that_is_created_has_what_its_file_includes() -> None:
    files = {
        "kids/kid.asl": '{ include("facts.asl") } !s. +!s : b(X) <- .print(X).',
        "kids/facts.asl": "b(7).",
    }
    run = Run('!s. +!s <- .create_agent(kid, "kids/kid.asl").')
    run.system.read = files.__getitem__
    assert run.end().said == ["7"]
