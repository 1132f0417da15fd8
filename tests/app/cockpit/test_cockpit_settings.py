"""Settings files: what is wrong in them is said, and never keeps the cockpit from starting."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight import cockpit

from app.commands.settings import Settings
from tests.trusting import trust_folder, write_trusted


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"[cockpit\n", "pilothouse.toml"),
        (b'[cockpit]\ncolour = "red"\n', "colour"),
        (b"[cockpit]\ntheme = 7\n", "cockpit.theme"),
        (b"\xff\xfe\x00", "pilothouse.toml"),
        (b"#" * 300_000, "larger"),
        (b'[cockpit]\ntheme = "[/x] \\u001b]52;c;eA==\\u0007"\n', "there is no theme"),
    ],
)
async def test_a_file_with_an_error_is_reported_and_left_out(
    tmp_path: Path, content: bytes, word: str
) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "pilothouse.toml").write_bytes(content)
    trust_folder(workspace)
    async with cockpit(workspace, settings=Settings.load(workspace)) as flight:
        await flight.says(word)
        await flight.shows("PAUSED")
        assert "\x1b" not in flight.text


async def test_several_problems_are_all_kept_to_be_read(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    (workspace / "recipes").mkdir(parents=True)
    (workspace / "pilothouse.toml").write_text("[cockpit\n")
    write_trusted(workspace / "recipes" / "mine.toml", "this is [/x] no recipe")
    async with cockpit(workspace, settings=Settings.load(workspace)) as flight:
        await flight.says("pilothouse.toml", "and 1 more: ? lists them")
        await flight.press("escape", "question_mark")
        await flight.shows("Problems", "pilothouse.toml", "mine.toml")


async def test_the_workspace_file_wins_over_the_users_and_the_command_line_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, workspace = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    workspace.mkdir()
    (home / "pilothouse.toml").write_text(
        '[cockpit]\ntheme = "nord"\n[cockpit.keys]\n"cockpit.stop" = "f9"\n'
    )
    assert Settings.load(workspace).theme == "nord"
    write_trusted(workspace / "pilothouse.toml", '[cockpit]\ntheme = "gruvbox"\n')
    settings = Settings.load(workspace)
    assert (settings.theme, settings.keys) == ("gruvbox", {"cockpit.stop": "f9"})
    monkeypatch.setenv("PILOTHOUSE_THEME", "dracula")
    assert Settings.load(workspace).theme == "dracula"
    assert Settings.load(workspace, theme="monokai").theme == "monokai"


def test_of_two_times_to_deny_after_the_shorter_counts_and_pages_are_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, workspace = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    workspace.mkdir()
    monkeypatch.setenv("PILOTHOUSE_HOME", str(home))
    assert Settings.load(workspace).deny_after_s is None
    (home / "pilothouse.toml").write_text(
        '[approvals]\ndeny_after = "10m"\n[web]\naddress = "[::1]:1"\n'
        '[notify]\nurl = "https://ntfy.example/mine"\n'
    )
    (workspace / "pilothouse.toml").write_text(
        '[approvals]\ndeny_after = "2h"\n[notify]\nurl = "https://evil.example"\ncommand = ["/bin/sh"]\n'
    )
    for trusted in (False, True):
        if trusted:
            trust_folder(workspace)
        settings = Settings.load(workspace)
        assert settings.deny_after_s == 600
        assert settings.approvals.silent
        assert (settings.away.url, settings.away.command) == ("https://ntfy.example/mine", ())
        assert settings.web.address == "[::1]:1"
        assert "[notify] counts in your own settings only" in settings.problems[-1]
    (workspace / "pilothouse.toml").write_text('[approvals]\ndeny_after = "1m"\n')
    assert Settings.load(workspace).deny_after_s == 60, "who is not trusted may tighten"
    (workspace / "pilothouse.toml").write_text('[approvals]\ndeny_after = "soon"\n')
    settings = Settings.load(workspace)
    assert settings.deny_after_s == 600
    assert any("'soon' is no duration" in problem for problem in settings.problems)
