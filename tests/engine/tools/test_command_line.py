"""`run` splits its command without a shell and says so where a shell was meant."""

from __future__ import annotations

import pytest

from engine.tools.command_line import CommandLineError, split_command


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python --version", ["python", "--version"]),
        ("""python -c "print('a | b; c > $x * `')" """, ["python", "-c", "print('a | b; c > $x * `')"]),
        (
            "pip install 'httpx>=0.27' uvicorn[standard]",
            ["pip", "install", "httpx>=0.27", "uvicorn[standard]"],
        ),
        ("pip install requests==2.*", ["pip", "install", "requests==2.*"]),
        ("git clone https://host/x?y", ["git", "clone", "https://host/x?y"]),
        ("echo a\\ b \\> c", ["echo", "a b", ">", "c"]),
        (["find", ".", "-name", "*.py"], ["find", ".", "-name", "*.py"]),
        ("  ls\n", ["ls"]),
    ],
)
def test_words_are_split_and_quoting_is_kept(command: str, words: list[str]) -> None:
    assert split_command(command) == words


@pytest.mark.parametrize(
    "command",
    [
        *("ls | wc", "ls > out", "cat < in", "a && b", "a; b", "a &", "echo $(ls)", "echo `ls`", "ls *.py"),
        *("echo $HOME", "echo ${HOME}", "ls a?", "ls\nls", "pip install httpx>=0.27"),
    ],
)
def test_shell_syntax_is_refused_with_what_to_do(command: str) -> None:
    with pytest.raises(CommandLineError, match=r"There is no shell.*[Qq]uote it"):
        split_command(command)


@pytest.mark.parametrize(
    "command",
    ["", "  ", [], [""], "echo 'open", 'echo "open', "echo \\", ["a\0b"], "a\ud800", "echo " + "x" * 70_000],
)
def test_what_cannot_be_run_is_refused(command: str | list[str]) -> None:
    with pytest.raises(CommandLineError):
        split_command(command)


def test_a_quote_that_is_not_closed_is_named_whatever_follows_it() -> None:
    for command in ("echo 'a | b", 'echo "a > b', "echo a 'b' 'c; d"):
        with pytest.raises(CommandLineError, match="a quote is not closed"):
            split_command(command)
