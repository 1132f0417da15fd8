"""Two points of an agent's time beside each other, and its state at one of them, without a screen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.commands.command_runner import run_command
from app.commands.comparison import PastError, read_ref, refs_of
from app.commands.headless import open_engine
from engine.core import commands as cmd
from engine.core import events as ev


async def _done(workspace: Path, line: str) -> dict[str, Any]:
    code, answer, text = await run_command(workspace, line)
    assert code == 0, text
    return answer


async def _story(workspace: Path) -> dict[str, int]:
    """An agent that believes, plans, writes a file and is corrected; the newest version after each line."""
    lines = {
        "made": "agent_create bdi_agent pilot-1",
        "believed": "believe sky blue",
        "wrote": "! write a.txt one",
        "planned": "goal create a directory named 'shop'",
        "corrected": "believe sky grey",
        "forgot": "forget sky",
        "remembered": "remember the proxy listens on port 3128",
        "rewrote": "! write a.txt two",
        "more": "! write b.txt three",
        "last": "! write c.txt four",
    }
    reached: dict[str, int] = {}
    for name, line in lines.items():
        await _done(workspace, line)
        async with open_engine(workspace) as engine:
            reached[name] = await engine.past("pilot-1").head()
    return reached


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    workspace = tmp_path_factory.mktemp("told") / "ws"
    return workspace, asyncio.run(_story(workspace))


def lines(answer: dict[str, Any], title: str) -> list[tuple[str, str]]:
    """Sign and words of one part of a comparison."""
    return next(part["lines"] for part in answer["parts"] if part["title"].startswith(title))


def signs(answer: dict[str, Any], title: str) -> dict[str, str]:
    return {words.partition(":")[0]: sign for sign, words in lines(answer, title)}


async def test_everything_that_differs_between_two_points_is_told(told: tuple[Path, dict[str, int]]) -> None:
    """Issue 7, item 6: plan, beliefs, goals, counters, memory and files."""
    workspace, at = told
    answer = await _done(workspace, f"compare {at['believed']} {at['more']}")
    assert signs(answer, "Goals") == {"g1": "+"}
    assert signs(answer, "Beliefs")["sky"] == "-"
    assert signs(answer, "Plan")["plan of g1"] == "+"
    assert signs(answer, "Plan")["s1"] == "+"
    assert "operator_actions" in signs(answer, "Counters")
    assert [sign for sign, words in lines(answer, "Memory") if "the proxy listens on port 3128" in words] == [
        "+"
    ]
    assert signs(answer, "Files") == {"a.txt": "+", "b.txt": "+"}


async def test_a_belief_that_changed_is_told_with_both_values(told: tuple[Path, dict[str, int]]) -> None:
    workspace, at = told
    answer = await _done(workspace, f"compare {at['believed']} {at['corrected']}")
    (sky,) = [line for line in lines(answer, "Beliefs") if line[1].startswith("sky")]
    assert sky[0] == "~"
    assert "blue" in sky[1]
    assert "grey" in sky[1]


async def test_files_are_compared_by_the_snapshots_nearest_to_both_points(
    told: tuple[Path, dict[str, int]],
) -> None:
    workspace, at = told
    answer = await _done(workspace, f"compare {at['wrote']} {at['rewrote']}")
    assert signs(answer, "Files") == {"a.txt": "~"}
    assert "as saved at pilot-1:" in answer["parts"][-1]["note"]


async def test_the_order_of_the_points_does_not_matter_and_one_is_compared_with_now(
    told: tuple[Path, dict[str, int]],
) -> None:
    workspace, at = told
    one = await _done(workspace, f"compare {at['made']} pilot-1:{at['forgot']}")
    other = await _done(workspace, f"compare pilot-1:{at['forgot']} {at['made']}")
    assert one == other
    with_now = await _done(workspace, f"compare {at['made']}")
    assert int(with_now["title"].partition("→ pilot-1:")[2].split()[0]) > at["last"]


async def test_the_same_point_twice_has_no_difference(told: tuple[Path, dict[str, int]]) -> None:
    workspace, at = told
    code, answer, text = await run_command(workspace, f"compare {at['planned']} {at['planned']}")
    assert code == 0
    assert not any(part["lines"] for part in answer["parts"])
    assert text.count("no difference") == 6


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("compare", "both points are now"),
        ("compare 999999 now", "has not happened yet"),
        ("compare soon", "is no point in time"),
        ("compare other:3", "is no event of pilot-1"),
        ("compare 0", "is no point in time"),
        ("compare 1 2 3", "at most two"),
        ("past", "is missing"),
        ("past 999999", "has not happened yet"),
    ],
)
async def test_what_is_no_point_in_time_is_refused_with_what_to_type(
    told: tuple[Path, dict[str, int]], line: str, why: str
) -> None:
    code, _answer, text = await run_command(told[0], line)
    assert code == 2
    assert why in text


async def test_the_state_at_an_event_is_shown_without_a_screen(told: tuple[Path, dict[str, int]]) -> None:
    workspace, at = told
    code, answer, text = await run_command(workspace, f"past {at['corrected']}")
    assert code == 0
    assert answer["at"] == f"pilot-1:{at['corrected']}"
    assert answer["state"]["beliefs"]["sky"]["value"] == "grey"
    assert "sky = grey" in text
    assert "create a directory named 'shop'" in text
    _code, before, text = await run_command(workspace, f"past pilot-1:{at['believed']}")
    assert before["state"]["goals"] == {}
    assert "sky = blue" in text
    assert before["newest"] > at["last"]


async def test_what_an_agent_believes_brings_no_control_characters_into_a_comparison(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        await engine.submit(cmd.Believe(agent="pilot-1", key="k", value="\x1b[2Jgone\n\x07"))
    code, _answer, text = await run_command(tmp_path, "compare 1")
    assert code == 0
    assert "gone" in text
    assert "\x1b" not in text


def test_here_is_what_is_looked_at() -> None:
    assert refs_of("", "a", 7) == (7, None)
    assert refs_of("3", "a", 7) == (3, None)
    assert refs_of("3 here", "a", 7) == (3, 7)
    assert read_ref("a:12", "a") == 12
    with pytest.raises(PastError):
        read_ref("²", "a")


def test_every_mark_has_a_kind_of_event() -> None:
    from engine.core.streams import _KINDS

    assert all(kind in ev.kinds() for kind in _KINDS)
