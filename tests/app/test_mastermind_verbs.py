"""The verbs about the system itself, and all others: what bad lines lead to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.commands.command import Context, GrammarError, Request
from app.commands.command_runner import run_command_in
from app.commands.registry import (
    built_in_commands,
    complete,
    find_command,
    help_answer,
    hint,
    preview_asked,
    read_line,
)
from app.projection.improve_text import MARKS, RULING_MARKS
from engine.api.engine import Engine
from engine.core import campaigns as mm
from engine.core.improvement import (
    BacklogItem,
    Campaign,
    CampaignStatus,
    Component,
    ComponentKind,
    Concern,
    ItemStatus,
    JobRecord,
    JobStatus,
    MastermindState,
    Ruling,
)

HOSTILE = (
    "../../../etc/passwd",
    "\x1b[2J\x1b]0;owned\x07\u202e",
    "--no-such-option x",
    "--seed",
    "--seed nan",
    "{",
    '{"a": ' * 2_000,
    "'unclosed",
    '"',
    "$(reboot) `id` ; rm -rf / && true",
    "\0",
    "\ud800",
    "[/red] {0} %s $x",
    "9" * 5_000,
    "-1",
    "x " * 3_000,
    "　 ",
)
COMMANDS = built_in_commands()
REQUIRED = [command for command in COMMANDS if re.match(r"\S+ (?:\[--[^]]*\] )*[A-Z]", command.usage)]


def known() -> Context:
    component = Component("sample", ComponentKind.PROJECT, "the project sample")
    state = MastermindState(
        jobs={"j1": JobRecord("j1", "evolve", status=JobStatus.RUNNING), "j2": JobRecord("j2", "evolve")},
        items={
            "i1": BacklogItem("i1", "3fa2", "sample", Concern.IDEA, "be faster"),
            "i2": BacklogItem(
                "i2", "99ab", "sample", Concern.IDEA, "be safe", status=ItemStatus.PENDING_APPROVAL
            ),
        },
        campaigns={
            "k1": Campaign("k1", "first", component, status=CampaignStatus.APPLIED),
            "k2": Campaign("k2", "second", component, status=CampaignStatus.NEEDS_OPERATOR),
        },
    )
    return Context(
        agent="pilot",
        agents=("pilot",),
        mastermind=state,
        components=(("sample", "the project"), ("sample/stats.py", "a module")),
        paths=("sample/", "sample/stats.py"),
    )


@pytest.mark.parametrize("verb", REQUIRED, ids=lambda verb: verb.name)
def test_a_missing_argument_is_answered_by_one_line_of_usage(verb) -> None:
    with pytest.raises(GrammarError) as refusal:
        read_line(f"{verb.name}  ", known())
    said = str(refusal.value)
    assert f"usage: {verb.usage}" in said
    assert "\n" not in said


@pytest.mark.parametrize("verb", COMMANDS, ids=lambda verb: verb.name)
def test_hostile_arguments_are_read_or_refused_in_a_line(verb) -> None:
    """Each verb of the table, also with more than it takes."""
    for words in (*HOSTILE, "one two three four five six"):
        said = ""
        try:
            meant = read_line(f"{verb.name} {words}", known())
        except GrammarError as error:
            said = str(error).replace(words, "")
        assert said or isinstance(meant, Request)
        assert "\n" not in said
        assert len(said) < 1_500


async def test_hostile_lines_change_nothing_of_the_system(tmp_path: Path) -> None:
    """Every verb about the system itself, missing, surplus and malformed, in a live workspace."""
    engine = await Engine.open(tmp_path / "ws")
    try:
        (engine.root / "kept.txt").write_text("kept")
        mastermind = await engine.mastermind()
        for verb in COMMANDS:
            if verb.group != "Mastermind" and not verb.name.startswith("agent_"):
                continue
            if verb.name in ("coord_suggest", "coord_analyze"):
                continue  # whatever is said behind these is a text
            for words in ("", *HOSTILE[:8], *HOSTILE[10:15]):
                code, _, text = await run_command_in(engine, f"{verb.name} {words}", quiet=True)
                assert text.strip(), (verb.name, words)
                if code:
                    assert len(text.splitlines()) <= 1 or code == 3, (verb.name, words, text)
        state = mastermind.state
        assert not engine.agents
        assert not state.campaigns
        assert not state.items
        assert [path.name for path in engine.root.iterdir() if not path.name.startswith(".")] == ["kept.txt"]
        code, _, text = await run_command_in(engine, "mastermind_status")
        assert not code
        assert text
    finally:
        await engine.close()


def test_the_nearest_verbs_are_suggested() -> None:
    for typed, near in (
        ("coord_imrpove x", "coord_improve"),
        ("evovle x", "evolve"),
        ("agent_delte x", "agent_delete"),
    ):
        with pytest.raises(GrammarError, match=near):
            read_line(typed, known())


async def test_help_and_dispatch_come_from_one_table(tmp_path: Path) -> None:
    code, answer, _ = help_answer()
    assert code == 0
    assert [row["verb"] for row in answer["verbs"]] == [command.name for command in COMMANDS]
    engine = await Engine.open(tmp_path / "ws")
    try:
        verbs = (await engine.mastermind()).verbs
        for verb in COMMANDS:
            for words in ("", "x", "k1", "x y", "pilot be better"):
                try:
                    meant = read_line(f"{verb.name} {words}", known())
                except GrammarError:
                    continue
                assert not isinstance(meant.sends, mm.StartJob) or meant.sends.verb in verbs, verb.name
    finally:
        await engine.close()


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("coord_improve sample/", "coord_improve sample/stats.py"),
        ("coord_approve ", "coord_approve i2"),
        ("coord_reject i1", "coord_reject i1"),
        ("coord_apply ", "coord_apply k2"),
        ("rollback ", "coord_rollback k1"),
        ("job_cancel j", "job_cancel j1"),
        ("campaign ", "campaign k2"),
        ("coord_improve --se", "coord_improve --seed "),
        ("coord_improve --seed 7 sample/", "coord_improve --seed 7 sample/stats.py"),
        ("evolve --apply --component sample/", "evolve --apply --component sample/stats.py"),
        ("agent_create bdi_agent clerk th", "agent_create bdi_agent clerk thinker="),
    ],
)
def test_ids_paths_and_components_are_completed(line: str, first: str) -> None:
    assert complete(line, known())[0][0] == first


def test_a_campaign_that_alone_can_be_meant_needs_no_name() -> None:
    assert read_line("coord_apply", known()).sends == mm.ApplyCandidate(campaign="k2")
    with pytest.raises(GrammarError, match="j1, j2"):
        read_line("job_cancel", known())


def test_the_word_at_hand_says_how_it_is_used() -> None:
    assert hint("coord_sug") == ""
    assert hint("Suggest sample").startswith("coord_suggest [!PRIORITY] COMPONENT TEXT — put")
    assert hint("!ls").startswith("! COMMAND")


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("evolve x ?", "evolve x"),
        ("evolve x  ?  ", "evolve x"),
        ("coord_analyze what is it?", None),
        ("? goal", None),
        ("?", None),
        ("help ?", None),
    ],
)
def test_a_question_mark_behind_a_blank_asks_what_a_line_would_do(line: str, bare: str | None) -> None:
    assert preview_asked(line) == bare


def test_no_mark_of_success_stands_where_there_is_none() -> None:
    good = {JobStatus.DONE, ItemStatus.COMPLETED, CampaignStatus.APPLIED, Ruling.BETTER}
    for marks, kinds in ((MARKS, (JobStatus, ItemStatus, CampaignStatus)), (RULING_MARKS, (Ruling,))):
        assert set(marks) == {status for kind in kinds for status in kind}
        assert {status for status, mark in marks.items() if mark == "✓"} <= good


def test_un_prefixed_names_of_old_are_aliases_and_no_verb_lost_its_meaning() -> None:
    for old, now in (
        ("analyze_system", "coord_analyze"),
        ("improve", "coord_improve"),
        ("backlog", "coord_backlog"),
        ("process_backlog", "coord_process_backlog"),
        ("rollback", "coord_rollback"),
    ):
        assert find_command(old).name == now
    assert find_command("approve").group == find_command("reject").group == "Approvals"
    assert find_command("jobs").group == "Sandbox"


@pytest.mark.parametrize(
    "line",
    [
        "coord_improve prompts --usd 5 --tokens 900",
        "coord_improve --usd 5 prompts --tokens=900",
        "coord_improve --tokens 900 --usd 5 prompts",
    ],
)
def test_options_of_a_campaign_stand_on_either_side_of_what_it_is_about(line: str) -> None:
    sent = read_line(line, known()).sends
    assert sent == mm.StartJob(verb="coord_improve", argument="prompts", usd=5.0, tokens=900)
