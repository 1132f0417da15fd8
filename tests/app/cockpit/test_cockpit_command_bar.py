"""Typing: words, completion, history, refusals, agents."""

from __future__ import annotations

from pathlib import Path

from flight import Flight, cockpit
from textual import events

from widgets.dialogs.help import HelpDialog
from widgets.dialogs.turn import InterventionDialog
from widgets.panes.command_bar import CommandBar


def bar(flight: Flight) -> CommandBar:
    return flight.app.query_one("#command", CommandBar)


async def test_colon_goes_to_the_bar_and_escape_back_to_the_plan(flight: Flight) -> None:
    await flight.press("colon")
    await flight.until(lambda: bar(flight).input.has_focus)
    await flight.press("escape")
    await flight.until(lambda: flight.app.focused is flight.plan.steps)

    # Keys right behind the colon are the bar's, whatever was asked for before.
    flight.app.controllers.layout.action_pane("mind")
    for key, character in (("colon", ":"), ("e", "e"), ("b", "b")):
        flight.app.post_message(events.Key(key, character))
    await flight.until(lambda: bar(flight).input.value == "eb")
    await flight.pilot.pause()
    assert bar(flight).input.has_focus


async def test_a_goal_is_adopted_and_planned_without_running(flight: Flight) -> None:
    await flight.type("goal create a directory 'made'")
    await flight.says("goal g1 adopted")
    await flight.shows("mkdir made", "held next")
    assert not (flight.engine.root / "made").exists()


async def test_plain_words_are_a_goal_which_is_said_before_enter(flight: Flight) -> None:
    await flight.press("colon", *"create a directory 'made'")
    await flight.shows("enter: a goal for pilot-1")
    await flight.press("enter")
    await flight.says("goal g1 adopted")


async def test_a_notification_leaves_the_message_and_the_bar_to_be_read(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", size=(80, 24), notifications=True) as flight:
        flight.app.post_message(events.Paste("a\nb"))
        await flight.shows("3 characters were pasted", "❯ a command, or a goal")
        await flight.until(lambda: flight.app.screen.query("Toast"), "the notification")
        assert flight.app.screen.query_one("Toast").region.bottom <= bar(flight).region.y


async def test_the_agent_that_is_shown_already_is_said_to_be(flight: Flight) -> None:
    await flight.type("agent pilot-1")
    await flight.says("pilot-1 is shown already")


async def test_tab_completes_and_goes_through_what_is_offered(flight: Flight) -> None:
    await flight.press("colon", *"agent_de", "tab")
    await flight.until(lambda: bar(flight).input.value == "agent_delete ")
    await flight.press("tab")
    await flight.until(lambda: bar(flight).input.value == "agent_delete pilot-1")


async def test_completion_offers_goals_that_agents_understand(flight: Flight) -> None:
    await flight.press("colon", *"goal run")
    await flight.until(lambda: any("run the tests" in each.text for each in bar(flight).completions))


async def test_history_comes_back_with_the_up_key_and_after_a_restart(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.type("believe colour green")
        await flight.says("colour believed")
        await flight.type("status")
    async with cockpit(tmp_path / "ws") as flight:
        await flight.press("colon", "up", "up")
        await flight.until(lambda: bar(flight).input.value == "believe colour green")


async def test_a_line_is_answered_with_what_came_of_it_or_why_not(flight: Flight) -> None:
    for line, words in {
        "gaol build it": ("'gaol' is no command here", "goal"),
        "step": ("nothing to step: the agent has no open goal",),
        "believe": ("missing", "usage: believe KEY VALUE"),
        "agent nobody": ("there is no", "nobody"),
        "mission nothing": ("there is no", "nothing"),
        "theme nocolour": ("there is no", "nocolour"),
        "help goal": ("goal [!PRIORITY] TEXT",),
        ":believe colour green": ("colour believed",),
    }.items():
        await flight.type(line)
        await flight.says(*words)
    names = [name for name in flight.app.available_themes if name.startswith("pilothouse")]
    other = next(name for name in names if name != flight.app.theme)
    await flight.type(f"theme {other}")
    await flight.until(lambda: flight.app.theme == other)
    await flight.type("help")
    await flight.dialog(HelpDialog)


async def test_a_goal_that_is_not_understood_asks_the_operator_and_names_the_nearest(flight: Flight) -> None:
    await flight.type("goal defrangulate the whatsit")
    await flight.shows("Manual intervention", "GOAL_PARSE_ERROR", "nearest")


async def test_calling_the_sandbox_shows_command_and_output(flight: Flight) -> None:
    (flight.engine.root / "notes.txt").write_text("remember the milk\n")
    await flight.type("! read notes.txt")
    await flight.until(lambda: "remember the milk" in flight.session_text, "the file")
    await flight.type("! run echo hello")
    await flight.until(lambda: "hello" in flight.session_text.splitlines(), "the output")


async def test_agents_are_made_listed_shown_and_deleted(flight: Flight) -> None:
    await flight.type("agent_create bdi_agent builder-2 an agent, builds things")
    await flight.says("agent builder-2 created")
    await flight.shows("builder-2")
    await flight.type("agent_list")
    await flight.shows("pilot-1", "builder-2")
    await flight.press("escape")
    await flight.type("agent builder-2")
    await flight.until(lambda: flight.state.agent_id == "builder-2")
    await flight.type("agent_delete builder-2")
    await flight.until(lambda: flight.state.agent_id == "pilot-1", "back to the other agent")
    assert [state.agent_id for state in flight.app.context.projector.states] == ["pilot-1"]


async def test_switching_shows_the_other_agents_panes(flight: Flight) -> None:
    await flight.type("! run echo of-pilot-one")
    await flight.until(lambda: "of-pilot-one" in flight.session_text.splitlines())
    await flight.type("agent_create bdi_agent builder-2")
    await flight.shows("builder-2")
    await flight.press("escape", "1", "end", "enter")
    await flight.until(lambda: flight.state.agent_id == "builder-2", "the other agent")
    await flight.goal("create a directory 'of_builder'")
    await flight.shows("builder-2", "mkdir of_builder")
    await flight.until(lambda: "of-pilot-one" not in flight.session_text, "an empty session pane")
    await flight.type("agent pilot-1")
    await flight.until(lambda: "of-pilot-one" in flight.session_text, "the first one's session")
    await flight.until(lambda: not flight.steps, "no plan of the first one")


async def test_deleting_the_shown_agent_leaves_nothing_of_it_in_the_session_pane(flight: Flight) -> None:
    await flight.type("agent_create bdi_agent builder-2")
    await flight.says("agent builder-2 created")
    await flight.type("agent builder-2")
    await flight.until(lambda: flight.state.agent_id == "builder-2")
    await flight.type("! run echo of-builder")
    await flight.until(lambda: "of-builder" in flight.session_text.splitlines())
    await flight.at_rest()
    await flight.type("agent_delete builder-2")
    await flight.until(lambda: flight.state.agent_id == "pilot-1" and "of-builder" not in flight.session_text)


async def test_another_agent_that_needs_the_operator_says_so_and_n_goes_to_it(flight: Flight) -> None:
    await flight.type("agent_create bdi_agent builder-2")
    await flight.says("agent builder-2 created")
    await flight.type("agent builder-2")
    await flight.until(lambda: flight.state.agent_id == "builder-2")
    flight.script("fails.py", "import time; time.sleep(0.5); raise SystemExit('no')")
    await flight.goal("run 'python fails.py'")
    await flight.press("space")
    await flight.type("agent pilot-1")
    await flight.until(lambda: flight.state.agent_id == "pilot-1")
    await flight.press("escape")
    await flight.says("builder-2 needs you: press n")
    await flight.shows("? builder-2", "asks you")
    await flight.press("n")
    await flight.dialog(InterventionDialog)
    assert flight.state.agent_id == "builder-2"


async def test_quit_leaves(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.type("quit")
        await flight.until(lambda: flight.app.return_code == 0 and not flight.app.is_running, "the end")


async def test_a_long_goal_and_odd_characters_are_taken_as_they_are(flight: Flight) -> None:
    text = "write '日本 👩‍👩‍👧 [/b] $x {0}' to note.txt"
    await flight.type(f"goal {text}")
    await flight.until(lambda: flight.state.goals)
    assert flight.state.goals["g1"].text == text
