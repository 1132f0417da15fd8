from __future__ import annotations

from dataclasses import replace

import pytest
from cockpit_samples import GOALS, MEMORY, MIND, PLAN, Cockpit, requests
from test_rows import shown
from textual.message import Message

from widgets.base.facts import ListModel
from widgets.base.line_pane import Notice, Requested, RowMessage
from widgets.base.text_layout import plain
from widgets.panes.beliefs import entry_row, memory_rows
from widgets.panes.errors import error_rows
from widgets.panes.goals import agent_row, stacked
from widgets.panes.mind_stream import mind_row
from widgets.panes.plan import PlanModel, StepLine, detail_lines

SIZE = (160, 45)


def text(pane: object) -> str:
    return "\n".join(shown(pane))  # type: ignore[arg-type]


async def test_goals_show_status_as_glyph_and_word_and_clauses_done() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.fill()
        await pilot.pause()
        lines = shown(app.goals)

        assert any("● g1 build a project" in line and line.endswith("3/7") for line in lines)
        assert any("├ ● g2 write main.py" in line for line in lines)
        assert any("└ ○ g3 list the" in line and line.endswith("pending") for line in lines)
        for glyph, word in (("✓", "achieved"), ("✗", "failed"), ("–", "dropped")):
            assert any(glyph in line and line.endswith(word) for line in lines)


async def test_agents_show_their_mode_and_the_selected_one_is_marked() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.fill()
        await pilot.pause()
        lines = shown(app.goals)

        assert any(line.startswith("› ▶ explorer-1") for line in lines)
        assert any("? builder-2" in line and "asks" in line for line in lines)
        assert any("‖ reviewer-3" in line for line in lines)
        assert any("■ scribe-4" in line for line in lines)


async def test_goals_and_agents_tell_what_the_operator_picked() -> None:
    messages: list[Message] = []
    app = Cockpit()
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        app.fill()
        app.goals.focus()
        await pilot.press("down")
        await pilot.press("end")
        assert requests(messages) == []
        await pilot.press("enter")
        await pilot.pause()

    assert requests(messages) == [("agent", "scribe-4")]


async def test_one_click_shows_an_agent() -> None:
    messages: list[Message] = []
    app = Cockpit()
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        app.goals.show(ListModel(rows=stacked((), agents=(agent_row("a"), agent_row("b")))))
        await pilot.pause()
        await pilot.click(app.goals, offset=(8, 3))

    assert requests(messages) == [("agent", "b")]


async def test_updates_post_no_messages() -> None:
    messages: list[Message] = []
    app = Cockpit()
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        app.fill()
        await pilot.pause()
        app.goals.show(ListModel(rows=GOALS[2:]))
        app.plan.show(replace(PLAN, steps=PLAN.steps[1:]))
        await pilot.pause()

    assert not [each for each in messages if isinstance(each, Requested | RowMessage)]


async def test_plan_steps_show_status_breakpoint_clause_and_hold() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.fill()
        await pilot.pause()
        lines = shown(app.plan.steps)

        assert lines[0].startswith("✓ s1 mkdir api_client")
        assert lines[0].endswith("§1")
        assert lines[2].startswith("▶ s3 run pip install httpx")
        assert lines[2].endswith("● break running")
        assert lines[3].endswith("held §4")
        assert lines[5].startswith("» s6 list_files")
        assert lines[6].startswith("! s7 delete old.txt")
        assert lines[6].endswith("outcome unknown")
        assert lines[7].startswith("✗ s8 read notes.md")


async def test_moving_in_the_plan_shows_the_step_in_detail_and_enter_asks_to_edit_it() -> None:
    messages: list[Message] = []
    app = Cockpit()
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        app.fill()
        app.plan.focus()
        await pilot.press("home", "j", "j", "enter")
        await pilot.pause()
        detail = text(app.plan.detail)

        assert app.plan.selected == "s3"
        for part in ("simple_coder.run", "pip install httpx", '"PIP_NO_INPUT": "1"'):
            assert part in detail
    assert requests(messages) == [("edit",)]


def test_the_detail_tells_provenance_attempts_and_outcome() -> None:
    lines = [plain(line).rstrip() for line in detail_lines(PLAN.steps[2], 80)]

    for line in (
        "clause   §3 install the httpx library",
        "from     procedural python_project.toml:install",
        "after    s2",
        "attempts 2",
        "error    NETWORK_ERROR could not reach the package index",
    ):
        assert line in lines


def test_long_arguments_are_folded_and_say_how_to_see_all() -> None:
    step = StepLine("s", "write", args={"content": "\n".join(f"line {n}" for n in range(40))})

    lines = [plain(line) for line in detail_lines(step, 60)]

    assert any("content 40 lines" in line for line in lines)
    assert "    line 11" in lines
    assert "    line 12" not in lines
    assert any("28 more lines; e shows them all" in line for line in lines)


async def test_the_detail_can_be_scrolled_and_stays_in_place_while_the_step_runs() -> None:
    app = Cockpit()
    async with app.run_test(size=(100, 24)) as pilot:
        step = replace(PLAN.steps[2], args={"content": "\n".join(f"line {n}" for n in range(40))})
        app.plan.show(PlanModel(steps=(step,)))
        await pilot.pause()
        app.plan.detail.focus()
        await pilot.press("down", "down", "down")
        app.plan.show(PlanModel(steps=(replace(step, attempts=3),)))
        await pilot.pause()

        assert app.plan.detail.top == 3


async def test_the_selected_step_is_kept_when_the_plan_is_revised() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.fill()
        app.plan.focus()
        await pilot.press("j")
        new = StepLine("new", "inserted by the operator")
        app.plan.show(replace(PLAN, steps=(new, *PLAN.steps), revision=4))
        await pilot.pause()

        assert app.plan.selected == "s4"
        assert "revision 4" in str(app.plan.border_subtitle)


async def test_the_cursor_goes_back_to_the_first_step_of_a_body_that_begins_anew() -> None:
    steps = tuple(StepLine(str(n), f"step {n}") for n in range(3))
    app = Cockpit()
    async with app.run_test(size=SIZE):
        for next_step in (2, 0):
            statuses = ("next" if n == next_step else "planned" for n in range(3))
            rows = (replace(step, status=status) for step, status in zip(steps, statuses, strict=True))
            app.plan.show(PlanModel(tuple(rows)))
        assert app.plan.selected == "0"


async def test_the_cursor_goes_to_a_step_that_the_agent_puts_before_the_next_one() -> None:
    last = StepLine("s1", "decide what to do next", "next")
    refused = StepLine("s2", "write a.txt", "failed", given_up=True)
    app = Cockpit()
    async with app.run_test(size=SIZE):
        app.plan.show(PlanModel((last,)))
        for before in ((), (refused,)):
            asked = StepLine("s3", "write b.txt", "next", held=True)
            app.plan.show(PlanModel((*before, asked, replace(last, status="planned"))))
            assert app.plan.selected == "s3"


async def test_the_cursor_goes_along_with_the_running_step_until_the_operator_moves_it() -> None:
    steps = tuple(StepLine(str(n), f"step {n}") for n in range(4))

    def at(n: int) -> PlanModel:
        return PlanModel(
            tuple(replace(step, status="running") if step.id == str(n) else step for step in steps)
        )

    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.plan.show(at(0))
        app.plan.show(at(1))
        assert app.plan.selected == "1"

        app.plan.focus()
        await pilot.press("G")
        app.plan.show(at(2))
        assert app.plan.selected == "3"


async def test_errors_show_kind_subject_and_recovery() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.fill()
        await pilot.pause()
        lines = shown(app.errors)

        assert lines[0] == "✗ NETWORK_ERROR run pip install httpx"
        assert "RETRY_WITH_DELAY 2/3 4s" in lines[2]
        assert lines[3].startswith("? PERMISSION_ERROR")
        assert "waits for you (i)" in lines[5]
        assert lines[6].startswith("✓ TOOL_EXECUTION_ERROR")
        assert "SIMPLIFIED_APPROACH · resolved" in lines[7]
        assert app.errors.border_subtitle == "2 open"


async def test_a_failure_can_be_chosen() -> None:
    messages: list[Message] = []
    app = Cockpit()
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        app.fill()
        app.errors.focus()
        await pilot.press("down", "enter")
        await pilot.pause()

    assert requests(messages) == [("error_chosen", "e2")]


async def test_an_open_failure_shows_the_next_try_what_was_tried_and_rates() -> None:
    app = Cockpit()
    messages: list[Message] = []
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        said = ("NETWORK_ERROR", "run pip", "", ("RETRY_WITH_DELAY", "2/3", "4s", "· next try 14:03:09"))
        past = "tried RETRY_WITH_DELAY ✗ · rates RETRY_WITH_DELAY 35%"
        rows = error_rows("e1", *said, history=past), error_rows("e2", *said, resolved=True, history=past)
        app.errors.show(ListModel(rows=[*rows[0], *rows[1]]))
        app.errors.focus()
        await pilot.press("r", "D")
        await pilot.pause()
        text = " ".join(" ".join(shown(app.errors)).split())

    assert "RETRY_WITH_DELAY 2/3 4s · next try 14:03:09" in text
    assert "tried RETRY_WITH_DELAY ✗ · rates RETRY_WITH_DELAY 35%" in text
    assert text.count("rates") == 1
    assert requests(messages) == [("retry", "e1"), ("give_up", "e1")]


async def test_working_memory_marks_focus_news_and_confidence() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.memory.show(MEMORY)
        await pilot.pause()
        lines = shown(app.memory)

        assert lines[0] == "★ goal: build api_client"
        assert [line for line in lines if line in ("in mind", "beliefs")] == ["in mind", "beliefs"]
        (belief,) = (line for line in lines if line.startswith("+ belief: pip is available"))
        assert belief.endswith("90%")
        assert app.memory.border_subtitle == "3/20"


async def test_memories_in_mind_show_focus_pin_relevance_and_age() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.memory.show(MEMORY)
        await pilot.pause()
        lines = shown(app.memory)

        (focal,) = (line for line in lines if line.startswith("★ m7 fact: the index"))
        assert focal.endswith("▓▓▓▓░  3h")
        (pinned,) = (line for line in lines if line.startswith("◆ m5 action log: create_venv"))
        assert pinned.endswith("▓▓▓░░  4m")
        assert any(line.startswith("m6 question: is there") and line.endswith("▓░░░░ now") for line in lines)


async def test_keys_pin_evict_focus_and_open_the_memory_under_the_cursor() -> None:
    messages: list[Message] = []
    app = Cockpit()
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        app.memory.show(MEMORY)
        app.memory.focus()
        await pilot.press("p", "E", "f", "enter")  # the goal is no memory
        app.memory.move_cursor("memory:m5")
        await pilot.press("p", "E", "f", "enter")
        app.memory.move_cursor("memory:m7")
        await pilot.press("p")
        await pilot.pause()
    assert requests(messages) == [
        ("pin", "m5"),
        ("evict", "m5"),
        ("focus", "m5"),
        ("open", "m5"),
        ("pin", "m7"),
    ]


async def test_where_no_memory_is_in_mind_the_pane_says_how_one_comes_there() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.memory.show(
            memory_rows([entry_row("m1", "goal", "build")], (), 20, "press M to look for memories")
        )
        await pilot.pause()
        assert "press M to look for memories" in shown(app.memory)
        assert app.memory.border_subtitle == "0/20"


async def test_the_mind_shows_time_sign_and_text() -> None:
    app = Cockpit()
    async with app.run_test(size=(200, 60)) as pilot:
        app.mind.show(MIND)
        await pilot.pause()

        assert "14:03:03 ◆ retry run pip install" in text(app.mind)


async def test_a_thought_that_is_still_being_said_grows_in_place() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.mind.show(ListModel(rows=(mind_row("d", "thought", "I"),)))
        app.mind.show(ListModel(rows=(mind_row("d", "thought", "I think"),)))
        await pilot.pause()

        assert shown(app.mind)[0].endswith("I think")
        assert app.mind.unseen == 0


async def test_enter_on_a_thought_asks_why() -> None:
    messages: list[Message] = []
    app = Cockpit()
    async with app.run_test(size=SIZE, message_hook=messages.append) as pilot:
        app.fill()
        app.mind.focus()
        await pilot.press("up", "up", "enter")
        await pilot.pause()

    assert requests(messages) == [("why", "d4")]


async def test_every_empty_pane_says_what_will_appear_and_every_pane_has_title_and_help() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for given in (app.goals, app.plan.steps, app.memory, app.errors, app.session, app.mind):
            given.loaded()
        panes = (app.goals, app.plan.steps, app.memory, app.errors, app.session, app.mind)

        for pane in panes:
            assert "appear here" in " ".join(shown(pane))
        for titled in (app.goals, app.plan, app.memory, app.errors, app.session, app.mind):
            assert str(titled.border_title)[0] in "123456"
            assert titled.HELP


async def test_a_notice_replaces_an_empty_pane() -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.goals.show(ListModel(notice=Notice("Opening the workspace", "loading")))
        await pilot.pause()

        assert "… Opening the workspace" in text(app.goals)


@pytest.mark.parametrize("name", ["goals", "memory", "errors", "session", "mind", "plan"])
async def test_focus_is_visible_without_colour(name: str) -> None:
    app = Cockpit()
    async with app.run_test(size=SIZE) as pilot:
        app.fill()
        pane = getattr(app, name)
        app.bar.focus()
        await pilot.pause()
        assert pane.styles.border_top[0] == "round"
        pane.focus()
        await pilot.pause()
        assert pane.styles.border_top[0] == "heavy"
