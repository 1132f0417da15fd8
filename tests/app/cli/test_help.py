"""What the command says of itself: help of every option, examples, completion, the manual page."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from app.cli.main import SUBCOMMANDS, main, parser
from app.cli.options import parsers

SHELLS = ("bash", "zsh", "fish")


def lines_of(said: str, *words: str) -> list[str]:
    return [line for line in said.splitlines() if all(word in line for word in words)]


def test_every_option_and_argument_of_every_subcommand_has_help() -> None:
    bare = [
        f"{each.prog}: {action.dest}"
        for each in parsers(parser(whole=True))
        for action in each._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert bare == []


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_each_subcommand_has_examples_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert examples
    for line in examples:
        words = shlex.split(line.partition(" > ")[0].partition(" | ")[0])
        assert parser().parse_args(words[1:]).command == name


@pytest.fixture(scope="module")
def completion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("completion")
    with pytest.MonkeyPatch.context() as patch:
        for shell in SHELLS:
            printed: list[str] = []
            patch.setattr("builtins.print", printed.append)
            assert main(["completion", shell]) == 0
            (place / shell).write_text("\n".join(printed))
    return place


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_sound_for_its_shell(completion: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its completion was NOT tried")
    subprocess.run([shell, "-n", str(completion / shell)], check=True)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("se",), "sessions search serve"),
        (("do", "fork"), "fork"),
        (("run", "--mission", "fi"), "first-flight"),
        (("sessions", "ver"), "verify"),
        (("help", "ke"), "keys"),
    ],
)
def test_bash_completes_commands_options_and_what_they_take(
    completion: Path, typed: tuple[str, ...], offered: str
) -> None:
    words = shlex.join(["pilothouse", *typed])
    script = f"""source {completion / "bash"}
COMP_WORDS=({words}); COMP_CWORD={len(typed)}
$(complete -p pilothouse | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo "${{COMPREPLY[*]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == offered


def test_the_manual_names_every_subcommand_and_roff_has_nothing_to_complain_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["man"]) == 0
    page = capsys.readouterr().out
    for name in SUBCOMMANDS:
        assert f".SH {name.upper()}" in page
    assert lines_of(page, "mission", "NAME")
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: the page was NOT formatted")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
