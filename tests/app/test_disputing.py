"""Marking results as wrong without a screen."""

from __future__ import annotations

from pathlib import Path

from app.commands.command_runner import run_command


async def test_a_result_is_marked_and_what_it_alone_speaks_for_is_taken_back(tmp_path: Path) -> None:
    await run_command(tmp_path, "agent_create bdi_agent pilot-1")
    await run_command(tmp_path, "! run echo hi")
    code, answer, text = await run_command(tmp_path, "wrong a1 misread")
    assert (code, answer["ok"]) == (0, True)
    assert answer["alone"] == ["run.last.command", "run.last.return_code"]
    assert f"{answer['marked']} is marked as wrong" in text
    assert "MARKED AS WRONG: misread" in text
    assert "nothing else speaks for: run.last.command, run.last.return_code" in text
    _, answer, text = await run_command(tmp_path, "why run.last.command")
    assert "in doubt: depends on pilot-1:" in text
    code, answer, _ = await run_command(tmp_path, "retract a1")
    assert (code, answer["alone"]) == (0, ["run.last.command", "run.last.return_code"])
    code, answer, _ = await run_command(tmp_path, "retract a1 yes")
    assert (code, answer["ok"]) == (0, True)
    code, _, text = await run_command(tmp_path, "retract a1 yes")
    assert (code, text) == (0, f"no belief depends on {answer_ref(text)} alone")
    code, _, text = await run_command(tmp_path, f"right {answer_ref(text)}")
    assert (code, text) == (0, f"{text.split()[0]} is no longer marked as wrong")
    code, _, text = await run_command(tmp_path, "wrong nonsense")
    assert (code, "nothing called 'nonsense'" in text) == (2, True)


def answer_ref(text: str) -> str:
    return next(word for word in text.split() if ":" in word)
