"""The guide and `pilothouse help`: every page opens, and what it shows can be typed."""

from __future__ import annotations

import io
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import guide
from app.cli.help import draw
from app.cli.main import SUBCOMMANDS, main, parser
from app.cockpit.keymap import KEYS, shown_keys
from app.commands.command import Command, Context, Submit
from app.commands.registry import built_in_commands
from app.commands.settings import Settings
from engine.core.goals import AdoptGoal
from engine.planning.library.recipe import parse_recipes
from tests.trusting import write_trusted

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "app" / "guide"
DOCUMENTS = (
    *sorted(PAGES.glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "screenshots/README.md")),
    *sorted((ROOT / "engine").glob("*/README.md")),
)
TOPICS = tuple(guide.topics())
FENCE = re.compile(r"^ *```(\w*)(?: needs [^\n]+)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(path: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of each code block."""
    yield from FENCE.findall(path.read_text(encoding="utf-8"))


def _lines(path: Path, start: str) -> Iterator[str]:
    """The lines of code blocks that begin with some words, without their comments."""
    for _language, text in _blocks(path):
        yield from (line for line in map(str.lstrip, text.splitlines()) if line.startswith(start))


def _prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def _anchors(path: Path) -> set[str]:
    """The anchors that a repository's web page makes of the headings."""
    titles = re.findall(r"^#+ (.+)$", _prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


# ------------------------------------------------------------------ the pages


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_opens_with_a_title_and_one_sentence(topic: str) -> None:
    title, sentence, _rest = guide.page(topic).split("\n\n", 2)
    assert title.startswith("# ")
    assert "\n" not in title
    assert guide.topics()[topic] == title.removeprefix("# ")
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert guide.summary(topic) == " ".join(sentence.split())


def test_the_topics_are_the_pages_that_there_are() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(TOPICS)


def test_a_topic_is_found_in_either_case_and_with_its_ending() -> None:
    assert guide.page("KEYS") == guide.page("keys") == guide.page("keys.md")


def test_an_unknown_topic_names_those_that_are_near() -> None:
    with pytest.raises(guide.UnknownTopicError, match="did you mean budgets") as caught:
        guide.page("budget")
    assert isinstance(caught.value, KeyError)
    assert caught.value.nearest[0] == "budgets"


@pytest.mark.parametrize("topic", ["../cli", "__init__", "", "no such\ntopic"])
def test_what_is_no_topic_opens_no_file(topic: str) -> None:
    with pytest.raises(guide.UnknownTopicError):
        guide.page(topic)


# ------------------------------------------------------------------ what they show can be typed


@pytest.mark.parametrize("path", DOCUMENTS, ids=_named)
def test_every_command_line_in_a_code_block_parses(path: Path) -> None:
    for line in _lines(path, "pilothouse"):
        words = shlex.split(line, comments=True)
        assert words[0] == "pilothouse"
        assert parser().parse_args(words[1:]).command in {*SUBCOMMANDS, "cockpit"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=_named)
def test_every_line_of_the_command_bar_begins_with_a_command(path: Path) -> None:
    known = {word.split()[0] for verb in built_in_commands() for word in (verb.name, *verb.aliases)}
    plain = re.compile(r": make ")  # a request for an improvement in plain words
    for line in _lines(path, ": "):
        assert plain.match(line) or line.split()[1] in known, line


@pytest.mark.parametrize("path", DOCUMENTS, ids=_named)
def test_every_link_resolves(path: Path) -> None:
    for target in LINK.findall(_prose(path)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        assert other.exists(), f"{_named(path)} links to {target}"
        assert not anchor or anchor in _anchors(other), f"{_named(path)} links to {target}"


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=_named)
def test_a_page_links_to_pages_only_so_that_it_can_be_followed_where_it_is_installed(path: Path) -> None:
    local = [target for target in LINK.findall(_prose(path)) if "://" not in target]
    assert {target.partition("#")[0] for target in local} <= {f"{topic}.md" for topic in TOPICS}


@pytest.mark.parametrize("path", DOCUMENTS, ids=_named)
def test_every_settings_file_that_is_shown_can_be_used(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    for language, text in _blocks(path):
        if language == "toml":
            tomllib.loads(text)
        if language == "json":
            json.loads(text)
        if text.startswith("# pilothouse.toml"):
            write_trusted(tmp_path / "pilothouse.toml", text)
            assert Settings.load(tmp_path).problems == ()
        if text.startswith("# recipes/"):
            recipes, errors = parse_recipes(text.encode(), path.name)
            assert recipes
            assert not errors


def test_the_plug_in_that_is_shown_works() -> None:
    (code,) = (text for language, text in _blocks(PAGES / "plugins.md") if language == "py")
    names: dict[str, Any] = {}
    exec(compile(code, "plugins.md", "exec"), names)
    shout = names["shout"]
    assert isinstance(shout, Command)
    assert isinstance(shout.run, Submit)
    expected = AdoptGoal(agent="pilot-1", text="HELLO")
    assert shout.run.command(Context(agent="pilot-1"), {"text": "hello"}) == expected


def test_the_page_on_keys_has_every_key() -> None:
    text = guide.page("keys")
    for key in KEYS:
        for name in shown_keys(key.keys).split():
            assert f"`{name}`" in text, f"{key.does}: {name}"


def test_the_page_on_commands_has_every_command() -> None:
    text = guide.page("commands")
    for verb in built_in_commands():
        assert re.search(
            rf"`{re.escape(verb.name)}\b|, {re.escape(verb.name)}\b|`{re.escape(verb.name)} ", text
        ), verb.name


# ------------------------------------------------------------------ the command


def test_help_lists_the_topics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    printed = capsys.readouterr().out
    assert all(re.search(rf"^  {topic} ", printed, re.MULTILINE) for topic in TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_help_prints_a_page_as_it_is_where_there_is_no_terminal(
    topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", topic]) == 0
    assert capsys.readouterr().out == guide.page(topic).rstrip("\n") + "\n"


def test_a_page_is_drawn_on_a_terminal_with_links_as_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    draw("# Keys\n\nSee [The sandbox](sandbox.md).", terminal)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert "# Keys" not in drawn
    assert "See The sandbox (help sandbox)." in drawn


def test_help_on_what_there_is_not_is_one_line_and_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "budgts"]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert caught.err.count("\n") == 1
    assert "did you mean budgets?" in caught.err


def test_help_on_a_command_without_a_page_is_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "run"])
    assert ended.value.code == 0
    assert "usage: pilothouse run" in capsys.readouterr().out


def test_help_answers_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["topics"]
    assert [each["topic"] for each in listed] == list(TOPICS)
    assert main(["help", "Time", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["topic"], shown["title"], shown["text"]) == (
        "time",
        guide.topics()["time"],
        guide.page("time"),
    )


def test_each_feature_of_steering_has_keys_lines_and_a_flight_that_there_are() -> None:
    rows = re.findall(r"^\| (\d+) \| .+? \| (.+?) \| (.+?) \| (.+) \|$", guide.page("steering"), re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, 58))
    keys = {name for key in KEYS for name in shown_keys(key.keys).split()}
    known = {word.split()[0] for each in built_in_commands() for word in (each.name, *each.aliases)}
    in_code = re.compile(r"`([^`]+)`")
    for _, pressed, lines, flown in rows:
        # Behind a key that opens a dialog stands the dialog's own.
        assert {in_code.findall(part)[0] for part in pressed.split(", ")} <= keys, pressed
        assert {line.split()[0] for line in in_code.findall(lines)} <= known | {"pilothouse"}, lines
        (path,) = in_code.findall(flown)
        text = (ROOT / path).read_text(encoding="utf-8")
        assert "partly" in flown or "NEEDS_TMUX" in text or "pseudo_terminal" in text, flown
