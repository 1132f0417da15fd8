from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from engine.planning.library.plan_library import PlanLibrary
from tests.patience import PATIENCE_S

RECIPE = """
[[recipe]]
name = "{name}"
summary = "Say {name}."
example = "{name} it"
says = ["{name} it"]

[[recipe.steps]]
command = "ls"
description = "List"
"""


def put(path: Path, *names: str) -> None:
    path.write_text("".join(RECIPE.replace("{name}", name) for name in names), encoding="utf-8")


def names(library: PlanLibrary) -> set[str]:
    return {recipe.name for recipe in library.recipes}


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    directory = tmp_path / "shipped"
    directory.mkdir()
    put(directory / "a.toml", "wave")
    return directory


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace" / "recipes"
    directory.mkdir(parents=True)
    return directory


def test_recipes_of_the_workspace_follow_the_shipped_ones(shipped: Path, mine: Path) -> None:
    put(mine / "b.toml", "bow")
    library = PlanLibrary.load(shipped, mine)
    assert [(recipe.id, recipe.by_operator) for recipe in library.recipes] == [
        ("a.toml:wave", False),
        ("recipes/b.toml:bow", True),
    ]
    assert library.verbs == {"wave", "bow"}


def test_a_file_with_an_error_alone_is_left_out(shipped: Path, mine: Path) -> None:
    put(mine / "good.toml", "bow")
    (mine / "bad.toml").write_text("[[recipe]", encoding="utf-8")
    library = PlanLibrary.load(shipped, mine)
    assert names(library) == {"wave", "bow"}
    assert [(error.file, error.line) for error in library.errors] == [("recipes/bad.toml", 1)]


def test_a_changed_file_with_an_error_keeps_its_last_good_version(shipped: Path, mine: Path) -> None:
    put(mine / "b.toml", "bow")
    put(mine / "c.toml", "nod")
    library = PlanLibrary.load(shipped, mine)
    (mine / "b.toml").write_text("nonsense", encoding="utf-8")
    put(mine / "c.toml", "smile")
    library.reload()
    assert names(library) == {"wave", "bow", "smile"}
    assert [error.file for error in library.errors] == ["recipes/b.toml"]
    put(mine / "b.toml", "kneel")
    library.reload()
    assert names(library) == {"wave", "kneel", "smile"}
    assert library.errors == ()


def test_what_is_no_regular_file_is_an_error_and_blocks_nothing(shipped: Path, mine: Path) -> None:
    os.mkfifo(mine / "pipe.toml")
    (mine / "directory.toml").mkdir()
    library = PlanLibrary.load(shipped, mine)
    assert {error.file for error in library.errors} == {"recipes/pipe.toml", "recipes/directory.toml"}
    assert names(library) == {"wave"}


def test_the_directory_of_the_workspace_need_not_exist(shipped: Path, tmp_path: Path) -> None:
    library = PlanLibrary.load(shipped, tmp_path / "no" / "where")
    assert names(library) == {"wave"}
    assert library.errors == ()


def test_a_file_in_place_of_the_directory_is_an_error(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "recipes").write_text("", encoding="utf-8")
    library = PlanLibrary.load(shipped, tmp_path / "recipes")
    assert [(error.file, error.what) for error in library.errors] == [
        ("recipes", "cannot be read: Not a directory")
    ]


def test_more_than_200_files_are_not_read(shipped: Path, mine: Path) -> None:
    for number in range(201):
        put(mine / f"{number:03}.toml", f"say{number}")
    library = PlanLibrary.load(shipped, mine)
    assert len(library.recipes) == 201
    assert [error.what for error in library.errors] == [
        "201 files of recipes, of which the first 200 are read"
    ]


def test_description_lists_name_summary_and_example(shipped: Path) -> None:
    (recipe,) = PlanLibrary.load(shipped).recipes
    assert (recipe.name, recipe.summary, recipe.example) == ("wave", "Say wave.", "wave it")


@contextlib.asynccontextmanager
async def watching(library: PlanLibrary) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(library.watch())
        try:
            yield
        finally:
            task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.02)


async def test_files_added_changed_and_removed_are_live(shipped: Path, mine: Path) -> None:
    library = PlanLibrary.load(shipped, mine)
    async with watching(library):
        put(mine / "b.toml", "bow")
        await until(lambda: names(library) == {"wave", "bow"})
        put(mine / "b.toml", "nod", "smile")
        await until(lambda: names(library) == {"wave", "nod", "smile"})
        (mine / "b.toml").write_text("[[recipe]", encoding="utf-8")
        await until(lambda: len(library.errors) == 1)
        assert names(library) == {"wave", "nod", "smile"}
        (mine / "b.toml").unlink()
        await until(lambda: names(library) == {"wave"} and library.errors == ())


async def test_a_directory_that_appears_vanishes_and_appears_again_is_live(
    shipped: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "later" / "recipes"
    library = PlanLibrary.load(shipped, mine)
    async with watching(library):
        for name in ("bow", "nod"):
            mine.mkdir(parents=True)
            put(mine / "b.toml", name)
            await until(lambda name=name: names(library) == {"wave", name})  # type: ignore[misc]
            shutil.rmtree(mine.parent)
            await until(lambda: names(library) == {"wave"})


async def test_watching_ends_when_it_is_cancelled(shipped: Path, mine: Path) -> None:
    library = PlanLibrary.load(shipped, mine)
    task = asyncio.create_task(library.watch())
    put(mine / "b.toml", "bow")
    await until(lambda: names(library) == {"wave", "bow"})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_watching_without_a_directory_returns_at_once(shipped: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await PlanLibrary.load(shipped).watch()
