from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from flight import Flight, cockpit
from tmux_terminal import Terminal


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the person who runs the tests, and animations off."""
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    for name in ("PILOTHOUSE_THEME", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def flight(tmp_path: Path) -> AsyncIterator[Flight]:
    """A cockpit on a new workspace with an agent and no goal."""
    async with cockpit(tmp_path / "ws") as flown:
        yield flown


async def _fly_into_the_turn(workspace: Path) -> None:
    async with cockpit(workspace, mission="broken-build") as flown:
        await flown.press("space")
        await flown.until(lambda: flown.state.intervention is not None, "the operator's turn")


@pytest.fixture(scope="session")
def _waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which mission broken-build has come to the operator's turn."""
    workspace = tmp_path_factory.mktemp("waiting") / "ws"
    asyncio.run(_fly_into_the_turn(workspace))
    return workspace


@pytest.fixture
def waiting(_waiting: Path, tmp_path: Path) -> Path:
    """A copy of that workspace for one test."""
    copy = tmp_path / "ws"
    shutil.copytree(_waiting, copy, symlinks=True)
    assert os.listdir(copy)
    return copy


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    home = tmp_path / "home"
    home.mkdir()
    terminal = Terminal(home)
    yield terminal
    terminal.close()
