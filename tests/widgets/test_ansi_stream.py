from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from widgets.terminal.ansi_stream import STRING_LIMIT, AnsiStream, Span

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def fed(*pieces: str, **options: int) -> AnsiStream:
    stream = AnsiStream(**options)
    for piece in pieces:
        stream.feed(piece)
    return stream


def texts(stream: AnsiStream) -> list[str]:
    return [stream.line(number).text for number in range(stream.first, stream.end)]


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("one\n\ntwo", ["one", "", "two"]),
        ("12%\r57%\r100%\n", ["100%"]),
        ("long line\rshort\n", ["shortline"]),
        ("long line\rshort\x1b[K\n", ["short"]),
        ("abc\b\bX\n", ["aXc"]),
        ("\b\b\bX\n", ["X"]),
        ("a\tb\n", ["a       b"]),
        ("abcdefgh\ti\n", ["abcdefgh        i"]),
        ("abc\x1b[1Kd\n", ["   d"]),
        ("abc\x1b[2Kd\n", ["   d"]),
        ("日本\r語\n", ["語本"]),
        ("bell\x07 null\x00 del\x7f\n", ["bell null del"]),
    ],
)
def test_control_characters_do_to_the_line_what_a_terminal_does(output: str, lines: list[str]) -> None:
    assert texts(fed(output)) == lines


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[2J",
        "\x1b[10;20H",
        "\x1b[?1049h",
        "\x1b[>0u",
        "\x1b[?2004$p",
        "\x9b2J",
        "\x1b]0;title\x07",
        "\x1b]52;c;aGk=\x1b\\",
        "\x9d52;c;aGk=\x9c",
        "\x1bP1$r0m\x1b\\",
        "\x90q#0;2;0;0;0\nmore\x9c",
        "\x1b_Gpayload\x1b\\",
        "\x1b^private\x1b\\",
        "\x1bXstring\x1b\\",
        "\x1b(B",
        "\x1bc",
        "\x1b7",
        "\u202e",
        "\u2066",
    ],
)
def test_every_other_sequence_is_swallowed_whole(sequence: str) -> None:
    assert texts(fed(f"before{sequence}after\n")) == ["beforeafter"]


@pytest.mark.parametrize("cut", range(1, 30))
def test_sequences_may_be_cut_anywhere(cut: int) -> None:
    output = "\x1b[1;31mred\x1b[0m\x1b]0;title\x1b\\x\x1b[Ky\n"

    stream = fed(output[:cut], output[cut:])

    assert texts(stream) == ["redxy"]
    assert stream.line(0).spans == (Span(0, 3, Style.parse("bold color(1)")),)


@pytest.mark.parametrize(
    ("parameters", "look"),
    [
        ("", ""),
        ("31", "color(1)"),
        ("97;104", "color(15) on color(12)"),
        ("38;5;208", "color(208)"),
        ("48;2;1;2;3", "on #010203"),
        ("38;2;999;0;0", "#ff0000"),
        ("1;2;3;4;7", "bold dim italic underline reverse"),
        ("1;31;22;39", "not bold not dim default"),
        ("38;5", ""),
        ("38", ""),
        ("99999999999999999999", ""),
    ],
)
def test_sgr_parameters_set_colours_and_attributes(parameters: str, look: str) -> None:
    stream = fed(f"\x1b[{parameters}mx\n")
    assert [span.look for span in stream.line(0).spans] == ([Style.parse(look)] if look else [])


def test_no_text_is_hidden_or_blinks() -> None:
    (span,) = fed("\x1b[5;6;8mx\n").line(0).spans
    assert not any((span.look.conceal, span.look.blink, span.look.blink2))


def test_a_look_lasts_over_lines_until_the_command_ends() -> None:
    stream = fed("\x1b[31mone\ntwo\n")
    stream.end_line()
    stream.feed("three\n")

    assert [bool(stream.line(number).spans) for number in range(3)] == [True, True, False]


def test_a_rewritten_line_keeps_the_looks_of_what_was_not_rewritten() -> None:
    stream = fed("\x1b[31maaaa\x1b[0m\rbb\n")

    assert stream.line(0).text == "bbaa"
    assert stream.line(0).spans == (Span(2, 4, Style.parse("color(1)")),)


def test_the_ring_drops_the_oldest_lines_and_numbers_go_on() -> None:
    stream = fed(*(f"line {number}\n" for number in range(10)), lines_kept=4)

    assert (stream.first, stream.end) == (6, 10)
    assert texts(stream) == ["line 6", "line 7", "line 8", "line 9"]
    with pytest.raises(IndexError, match="no longer kept"):
        stream.line(5)


def test_a_line_without_end_is_capped() -> None:
    stream = fed("x" * 50, "y" * 50, "\nnext\n", line_limit=60)

    assert texts(stream) == ["x" * 50 + "y" * 10, "next"]


def test_an_unfinished_string_does_not_hide_the_next_command() -> None:
    stream = fed("\x1b]0;never ended")
    stream.end_line()
    stream.feed("visible\n")

    assert texts(stream) == ["visible"]


def test_an_unfinished_string_hides_only_so_much() -> None:
    stream = fed("\x1b]0;" + "x" * STRING_LIMIT, "visible\n")

    assert texts(stream) == ["visible"]


def test_a_string_is_cut_short_by_the_next_escape_sequence() -> None:
    assert texts(fed("\x1b]0;title\x1b[31mred\x1b[0m\n")) == ["red"]


def test_an_endless_sequence_is_given_up() -> None:
    stream = fed("\x1b[" + "1;" * 400)
    stream.feed("x\n")

    assert len(texts(stream)) == 1


def test_a_change_of_kind_begins_a_new_line() -> None:
    stream = AnsiStream()
    stream.feed("out", "out")
    stream.feed("err\n", "err")

    assert [(stream.line(n).text, stream.line(n).kind) for n in range(2)] == [("out", "out"), ("err", "err")]


def test_clearing_forgets_lines_but_not_the_numbering() -> None:
    stream = fed("a\nb\nc")
    stream.clear()
    stream.feed("d\n")

    assert (stream.first, stream.end) == (3, 4)
    assert texts(stream) == ["d"]


PARTS = st.sampled_from(
    [
        "a",
        "日",
        "\n",
        "\r",
        "\b",
        "\t",
        "\x1b",
        "[",
        "]",
        "0",
        ";",
        "m",
        "K",
        "\\",
        "\x07",
        "\x9b",
        "\x9c",
        "\x18",
    ]
)


@given(st.lists(PARTS, max_size=60), st.integers(0, 60))
def test_any_input_gives_clean_lines_and_spans_inside_them(parts: list[str], cut: int) -> None:
    output = "".join(parts)

    whole, halves = fed(output), fed(output[:cut], output[cut:])

    for number in range(whole.first, whole.end):
        line = whole.line(number)
        assert not UNSAFE.search(line.text)
        assert all(0 <= span.start < span.end <= len(line.text) for span in line.spans)
        assert all(
            before.end <= after.start for before, after in zip(line.spans, line.spans[1:], strict=False)
        )
    assert texts(whole) == texts(halves)
