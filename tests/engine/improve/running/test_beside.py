"""What else looks at the journal takes Mastermind's stream as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running_craft import Craft
from words import plug

from app.cli.main import main
from engine.core import commands as cmd
from engine.core.campaigns import ApplyCandidate, RollBack, StartJob


async def test_verify_replay_search_and_why_go_along_with_the_stream(
    craft: Craft, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plug(craft.mastermind)
    await craft.engine.submit(cmd.CreateAgent(agent="pilot"))
    await craft.job("coord_improve", "texts")
    await craft.do(ApplyCandidate(campaign="k1"))
    await craft.mastermind.wait("j2")
    await craft.do(RollBack())
    record = await craft.engine.record()
    assert record is not None
    await craft.close()
    for line in (["sessions", "verify"], ["sessions", "replay"], ["sessions", "show"], ["search", "texts"]):
        code = await _cli([*line, "--workspace", str(tmp_path)])
        said = capsys.readouterr()
        assert code == 0, (line, said.out, said.err)
        assert "Traceback" not in said.err
        assert "\x1b" not in said.out


async def _cli(words: list[str]) -> int:
    import asyncio

    def run() -> int:
        try:
            return int(main(words) or 0)
        except SystemExit as end:
            return int(end.code or 0)

    return await asyncio.to_thread(run)


async def test_a_preview_says_what_would_happen_and_changes_nothing(craft: Craft) -> None:
    plug(craft.mastermind)
    version = craft.mastermind.state.version
    said = await craft.mastermind.preview(StartJob(verb="evolve", argument="make the texts better"))
    assert said["component"] == "texts"
    assert said["cost"] == "at most 12 candidates, 600 s of processor, no model"
    assert json.dumps(said)
    said = await craft.mastermind.preview(StartJob(verb="evolve", argument="nothing here", component="none"))
    assert "there is no component 'none'" in said["wrong"]
    said = await craft.mastermind.preview(RollBack())
    assert said["wrong"] == "no campaign is applied, so there is nothing to roll back"
    assert craft.mastermind.state.version == version
