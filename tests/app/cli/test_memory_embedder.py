"""`pilothouse memory embedder`: which one it is, and another one, with and without a running engine."""

from __future__ import annotations

import asyncio
import json
import stat
import tomllib
from pathlib import Path

import pytest

from app.cli.doctor import check_installation
from app.cli.main import main
from app.cli.memory import MemoryOptions, add_memory, query_memory
from app.commands.embedder import settings_with
from app.commands.settings import Settings
from engine.core import commands as cmd
from engine.memory import embedder_choice
from tests.app.gateways.sockets import serving
from tests.engine.memory.embedding_server import embedding
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("PILOTHOUSE_HOME", str(place))
    return place


async def cli(*words: str) -> int:
    return await asyncio.to_thread(main, list(words))


async def test_an_endpoint_is_kept_and_what_is_remembered_is_embedded_at_once(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "ws"
    (home / "pilothouse.toml").write_text('[cockpit] # mine\ntheme = "dusk"\n')
    await add_memory(workspace, MemoryOptions(text="the car is in the garage"))
    async with embedding() as server:
        line = ["memory", "embedder", f"http://127.0.0.1:{server.port}/v1", "--model", "words"]
        assert await cli(*line, "--workspace", str(workspace), "--json") == 0
        answer = json.loads(capsys.readouterr().out)
        assert (answer["vectors"], answer["waiting"]) == (1, 0)
        text = (home / "pilothouse.toml").read_text()
        assert text.startswith('[cockpit] # mine\ntheme = "dusk"\n')
        assert tomllib.loads(text)["memory"] == {"embedder": line[2], "model": "words"}
        await add_memory(workspace, MemoryOptions(text="bananas are yellow"))
        _, found, _ = await query_memory(workspace, "search", MemoryOptions(text="automobile"))
        assert found["results"][0]["content"] == "the car is in the garage"
        _, stats, _ = await query_memory(workspace, "stats", MemoryOptions())
        assert stats["vectors"] == 2
        server.mode = "html"
        _, _, text = await query_memory(workspace, "search", MemoryOptions(text="garage"))
        assert "the car is in the garage" in text
        assert "answered something else than embeddings: check its address; words alone count" in text
    assert await cli("memory", "embedder", "none", "--workspace", str(workspace)) == 0
    assert capsys.readouterr().out == "memories are found by words alone\n"
    assert Settings.load(workspace).embedder is None


async def test_a_running_engine_takes_another_one_and_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "ws"
    await add_memory(workspace, MemoryOptions(text="the car is in the garage"))
    async with embedding() as server, serving(workspace) as (engine, _):
        assert engine.memory is not None
        line = ["memory", "embedder", f"http://127.0.0.1:{server.port}/v1", "--model", "words"]
        assert await cli(*line, "--workspace", str(workspace)) == 0
        assert await engine.memory.embedded(PATIENCE_S)
        capsys.readouterr()
        assert await cli("memory", "embedder", "--workspace", str(workspace)) == 0
        assert capsys.readouterr().out == f"words at 127.0.0.1:{server.port}: 1 texts embedded, 0 wait\n"
        server.mode = "down"
        fact = {"workflow_id": "w1", "content": "new", "memory_type": "fact"}
        assert (await engine.submit(cmd.Remember(verb="store", arguments=fact))).ok
        async with asyncio.timeout(PATIENCE_S):
            while not engine.health.memory:
                await asyncio.sleep(0.01)
        assert engine.health.memory.endswith('answered 503: {"error": "loading"}; words alone count')


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["foo"], "there is no embedder 'foo': use minilm, none or an http address"),
        (["http://127.0.0.1:1"], "which model of http://127.0.0.1:1? name it"),
        (["ftp://x", "--model", "m"], "the embedder's address cannot be used"),
    ],
)
async def test_what_is_no_embedder_changes_nothing(
    words: list[str], problem: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await cli("memory", "embedder", *words, "--workspace", str(tmp_path / "ws")) == 1
    assert problem in capsys.readouterr().out
    assert not (home / "pilothouse.toml").exists()


async def test_without_its_libraries_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(embedder_choice, "NEEDED", ("no_such_library",))
    assert await cli("memory", "embedder", "minilm", "--workspace", str(tmp_path / "ws")) == 1
    assert "pip install 'pilothouse[embed]'" in capsys.readouterr().out
    _, answer, _ = await check_installation(tmp_path / "ws")
    told = "by what they mean: pip install 'pilothouse[embed]', then pilothouse memory embedder minilm"
    assert told in answer["memory"]["reason"]


async def test_doctor_tries_minilm(tmp_path: Path, home: Path) -> None:
    (home / "pilothouse.toml").write_text('[memory]\nembedder = "minilm"\n')
    _, answer, _ = await check_installation(tmp_path / "ws")
    assert answer["memory"] == {"ok": True, "embedder": "minilm", "reason": "answers vectors of 384 numbers"}


def test_a_workspace_cannot_have_memories_sent_away(tmp_path: Path) -> None:
    (tmp_path / "pilothouse.toml").write_text('[memory]\nembedder = "http://127.0.0.1:1/v1"\nmodel = "m"\n')
    settings = Settings.load(tmp_path)
    assert settings.embedder is None
    assert "pilothouse.toml: [memory] counts in your own settings only" in settings.problems


def test_a_faulty_setting_is_named_and_left_out(tmp_path: Path, home: Path) -> None:
    (home / "pilothouse.toml").write_text('[memory]\nembedder = "fast"\n')
    settings = Settings.load(tmp_path)
    assert settings.embedder is None
    assert "there is no embedder 'fast'" in " ".join(settings.problems)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[memory]\nembedder = "none"\n'),
        ("[memory]\n", '[memory]\nembedder = "none"\n'),
        ("a = 1", 'a = 1\n\n[memory]\nembedder = "none"\n'),
        (
            '[memory] # x\nmodel = "m"\nkey_file = "k" # y\n\n[web]\nhosts = []\n',
            '[memory] # x\nembedder = "none"\nkey_file = "k" # y\n\n[web]\nhosts = []\n',
        ),
    ],
)
def test_all_else_in_the_settings_stays(before: str, after: str) -> None:
    assert settings_with(before, {"embedder": "none"}) == after


@pytest.mark.parametrize("text", ["memory.embedder = 'minilm'", "memory = {}", "[["])
def test_settings_that_are_written_in_another_way_are_left_alone(text: str) -> None:
    with pytest.raises(ValueError):
        settings_with(text, {"embedder": "none"})


async def test_a_link_to_the_settings_stays_one_with_its_mode(tmp_path: Path, home: Path) -> None:
    (tmp_path / "dotfiles.toml").write_text("")
    (tmp_path / "dotfiles.toml").chmod(0o600)
    (home / "pilothouse.toml").symlink_to(tmp_path / "dotfiles.toml")
    assert await cli("memory", "embedder", "minilm", "--workspace", str(tmp_path / "ws")) == 0
    assert (home / "pilothouse.toml").is_symlink()
    assert (tmp_path / "dotfiles.toml").read_text() == '[memory]\nembedder = "minilm"\n'
    assert stat.S_IMODE((tmp_path / "dotfiles.toml").stat().st_mode) == 0o600
