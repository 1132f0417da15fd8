"""The emulator against an independent one, and what it adds: scrollback, numbering, floods, answers."""

from __future__ import annotations

import random
from unicodedata import normalize

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from widgets.terminal.ansi_stream import Span
from widgets.terminal.screen import ANSWERS_LIMIT, LINES_KEPT, SIZE_LIMITS, BitttyEmulator, TerminalRow

COLUMNS, ROWS = 40, 10

CORPUS = {
    "lines": b"one\r\ntwo\r\n\r\nfour",
    "long lines wrap": b"x" * 95 + b"\r\n" + b"y" * 40 + b"z\r\n" + b"w" * 40 + b"\r\nend",
    "more lines than rows": b"".join(b"line %d\r\n" % number for number in range(35)),
    "a progress bar": b"".join(b"\r%3d%% [%-20s]" % (at * 5, b"#" * at) for at in range(21)) + b"\r\n.",
    "backspaces rub out": b"typo\b \b\b \bin\x07g",
    "tabs": b"a\tb\tc\r\n1234567\t8\r\n" + b"\t" * 9 + b"end",
    "wide characters": "日本語のテキスト\r\n".encode() + "日".encode() * 25 + b"\r\na" + "本".encode() * 19,
    "accents join": "e\u0301a\u0308o\r\nn\u0303".encode(),
    "an editor draws itself": (
        b"\x1b[?1049h\x1b[22;0;0t\x1b[?1h\x1b=\x1b[1;10r\x1b[?12h\x1b[?12l\x1b[22;2t\x1b[27m\x1b[23m\x1b[29m"
        b'\x1b[m\x1b[H\x1b[2J\x1b[?25l\x1b[10;1H"notes" 3L, 20B\x1b[1;1Hfirst\r\nsecond\r\nthird\r\n'
        b"\x1b[1m\x1b[34m~                  \x1b[5;1H~\x1b[6;1H~\x1b[7;1H~\x1b[8;1H~\x1b[9;1H~\x1b[m"
        b"\x1b[10;23H1,1\x1b[11CAll\x1b[1;1H\x1b[?25h\x1b[2;1H\x1b[L\x1b[1;9r\x1b[2;1Hinserted\x1b[1;10r\x1b[3;3H\x1b[K"
        b"\x1b[?25l\x1b[10;1H\x1b[K:q\x1b[10;1H"
    ),
    "a pager scrolls both ways": (
        b"\x1b[?1049h\x1b[H\x1b[2J" + b"".join(b"row %d\r\n" % n for n in range(9)) + b"\x1b[7m(END)\x1b[27m"
        b"\x1b[H\x1bM\x1b[Kabove\x1b[10;1H\r\x1b[K\x1b[H\x1bMtop\x1b[10;1H\r\x1b[Krow 9\r\n:\x1b[K"
    ),
    "back from the alternate screen": b"$ less\r\n\x1b[?1049h\x1b[2J\x1b[Hpage\x1b[?1049l$ ",
    "a scroll region": (
        b"top\r\n" * 3 + b"\x1b[3;7r\x1b[7;1H" + b"".join(b"\n\rr%d" % n for n in range(9)) + b"\x1b[1;10rout"
    ),
    "reverse index in a region": b"\x1b[2;5r\x1b[2;1Ha\x1bMb\x1bMc\x1b[5;1Hd\x1bDe",
    "lines put in and taken out": b"1\r\n2\r\n3\r\n4\r\n5\x1b[2;1H\x1b[2Lnew\x1b[5;1H\x1b[1M",
    "characters put in and taken out": b"abcdefgh\x1b[1;3H\x1b[2@XY\x1b[1;6H\x1b[3P\x1b[1;8H\x1b[1X",
    "insert mode": b"world\r\x1b[4hhello \x1b[4l!",
    "erasing": b"aaa\r\nbbbb\r\ncccc\r\nddd\x1b[2;3H\x1b[1K\x1b[3;2H\x1b[K\x1b[1;2H\x1b[1J\x1b[4;3H\x1b[J",
    "cursor moves": (
        b"\x1b[5;5Ha\x1b[2Ab\x1b[3Bc\x1b[4Cd\x1b[9De\x1b[Ef\x1b[2Fg\x1b[20Gh\x1b[8di\x1b[99;99Hj\x1b[0;0Hk"
    ),
    "cursor saved and restored": b"ab\x1b7\x1b[5;5Hxy\x1b8cd",
    "wrapping off": b"\x1b[?7l" + b"x" * 60 + b"END\x1b[?7h\r\nnext",
    "origin mode": b"\x1b[3;6r\x1b[?6h\x1b[1;1Hin\x1b[4;1Hlast\x1b[?6l\x1b[1;1Hout",
    "a full reset": b"text\x1b[31m\x1b[2;5r\x1bcnew",
    "colours of every kind": (
        b"\x1b[31;44mbasic\x1b[92;105mbright\x1b[38;5;208mindexed\x1b[48;2;1;2;3mtrue\x1b[0m\r\n\x1b[1;3;4;7mlooks\x1b[m"
    ),
}


def emulator(data: bytes = b"", columns: int = COLUMNS, rows: int = ROWS) -> BitttyEmulator:
    made = BitttyEmulator(columns, rows)
    made.feed(data)
    return made


def shown(made: BitttyEmulator) -> list[str]:
    return [row.text.rstrip() for row in made.rows(made.screen_top, made.end)]


def kept(made: BitttyEmulator) -> list[TerminalRow]:
    return made.rows(made.first, made.end)


class Oracle(pyte.Screen):
    """pyte, with the alternate screen that it does not have."""

    def set_mode(self, *modes: int, **kwargs: bool) -> None:
        if modes == (1049,) and kwargs.get("private"):
            self.save_cursor()
            self.saved_screen = {row: dict(cells) for row, cells in self.buffer.items()}
            self.erase_in_display(2)
        else:
            super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: bool) -> None:
        if modes == (1049,) and kwargs.get("private"):
            self.erase_in_display(2)
            for row, cells in self.saved_screen.items():
                self.buffer[row].update(cells)
            self.restore_cursor()
        else:
            super().reset_mode(*modes, **kwargs)


def by_oracle(data: bytes) -> tuple[list[str], tuple[int, int]]:
    screen = Oracle(COLUMNS, ROWS)
    # pyte prints what it does not know of window reports.
    pyte.ByteStream(screen).feed(data.replace(b"\x1b[22;0;0t", b"").replace(b"\x1b[22;2t", b""))
    lines = [
        "".join(screen.buffer[row][column].data for column in range(COLUMNS)).rstrip() for row in range(ROWS)
    ]
    return lines, (screen.cursor.y, min(screen.cursor.x, COLUMNS - 1))


@pytest.mark.parametrize("data", CORPUS.values(), ids=CORPUS.keys())
def test_the_screen_is_what_an_independent_emulator_makes_of_it(data: bytes) -> None:
    made = emulator(data)
    # The oracle joins a letter and its accent into one character where there is one.
    lines = [normalize("NFC", line) for line in shown(made)]
    assert (lines, (made.cursor.row, made.cursor.column)) == by_oracle(data)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"\x1b(0lqqk\x1b(B\r\n\x1b(0x  x\x1b(B\r\n", ["┌──┐", "│  │"]),
        (b"\x1b)0a\x0eq\x0fb", ["a─b"]),
        ("日本語\x1b[1;4Hx".encode(), ["日 x語"]),
        ("日本語\x1b[1;3Hx".encode(), ["日x 語"]),
        (b"a" + "本".encode() * 20, ["a" + "本" * 19, "本"]),
        (b"a\x1b[3bz", ["aaaaz"]),
        (b"1\r\n2\r\n3\x1b[rx", ["x", "2", "3"]),
        (b"\x1b[3;6r\x1b[?6h\x1b[9;1Hclamped", ["", "", "", "", "", "clamped"]),
        (b"1\r\n2\r\n3\x1b[1S", ["2", "3"]),
        (b"1\r\n2\x1b[1T", ["", "1", "2"]),
        (b"\x1b[3g\x1b[1;5H\x1bH\r\tx", ["    x"]),
        (b"ab\x1b[?1049hxy\x1b[?1049lcd", ["abcd"]),
    ],
)
def test_what_the_oracle_does_not_do_is_done_as_xterm_does(data: bytes, lines: list[str]) -> None:
    assert shown(emulator(data)) == lines + [""] * (ROWS - len(lines))


def test_colours_and_looks_become_spans() -> None:
    row, looks = emulator(CORPUS["colours of every kind"]).rows(0, 2)
    assert row.spans == (
        Span(0, 5, Style.parse("color(1) on color(4)")),
        Span(5, 11, Style.parse("color(10) on color(13)")),
        Span(11, 18, Style.parse("color(208) on color(13)")),
        Span(18, 22, Style.parse("color(208) on #010203")),
    )
    assert looks.spans == (Span(0, 5, Style.parse("bold italic underline reverse")),)


def test_colours_beyond_the_palette_are_bounded() -> None:
    (row,) = emulator(
        b"\x1b[38;5;999mA\x1b[48;2;999;0;999mB\x1b[38:5:300mC\x1b[38;5;255;48;2;255;0;255mD"
    ).rows(0, 1)
    assert row == TerminalRow("ABCD", (Span(3, 4, Style.parse("color(255) on #ff00ff")),))


def test_blanks_with_a_background_are_kept_and_others_dropped() -> None:
    (row,) = emulator(b"a\x1b[44m  \x1b[0m   ").rows(0, 1)
    assert row == TerminalRow("a  ", (Span(1, 3, Style.parse("on color(4)")),))


@pytest.mark.parametrize(
    "text",
    [
        "日本語",
        "👩‍👩‍👧‍👦 family",
        "🇩🇪🇫🇷",
        "1\ufe0f\u20e3 key",
        "☺\ufe0f smile",
        "ﷺ",
        "\u1100\u1161\u11a8",
        "z" + "\u0301" * 40,
        "\u0600\u0661",
        "🇩x🇪",
        "\x1b[1;3H👩\x1b[1;1H👩\u200d",
        "\u200d\u200d",
    ],
)
def test_a_row_is_as_wide_on_the_real_screen_as_in_the_emulator(text: str) -> None:
    made = emulator(f"{text}\x1b[1;21H|".encode())
    (row,) = made.rows(0, 1)
    assert cell_len(row.text.partition("|")[0]) == 20


def test_the_cursor_is_told_with_its_shape() -> None:
    made = emulator(b"abc\x1b[?25l\x1b[5 q")
    assert (made.cursor.row, made.cursor.column, made.cursor.visible, made.cursor.shape) == (
        0,
        3,
        False,
        "bar",
    )
    made.feed(b"\x1b[?25h\x1b[4 q")
    assert (made.cursor.visible, made.cursor.shape) == (True, "underline")


def test_only_rows_that_changed_are_dirty() -> None:
    made = emulator(b"a\r\nb\r\nc")
    made.take_dirty()
    assert made.take_dirty() == []
    made.feed(b"\x1b[2;1Hx")
    assert made.take_dirty() == [1]
    made.feed(b"\x1b[?1049h")
    assert made.take_dirty() == list(range(ROWS))


def test_an_alternate_screen_begins_empty_and_leaves_no_scrollback() -> None:
    made = emulator(b"\x1b[?1049hold\x1b[?1049l$ \x1b[?1049h")
    assert made.alternate_screen
    assert shown(made) == [""] * ROWS
    made.feed(b"many\r\n" * 50)
    assert made.screen_top == 0
    made.feed(b"\x1b[?1049l")
    assert shown(made)[0] == "$"


def test_scrollback_keeps_its_lines_and_their_numbers() -> None:
    made = emulator(b"".join(b"line %d\r\n" % number for number in range(LINES_KEPT + 500)))
    assert made.end - made.first == LINES_KEPT + ROWS
    assert [row.text for row in made.rows(4_000, 4_002)] == ["line 4000", "line 4001"]
    assert made.rows(0, 5) == []
    assert made.rows(made.end, made.end + 5) == []


def test_a_child_may_clear_its_scrollback_and_numbers_go_on() -> None:
    made = emulator(b"".join(b"line %d\r\n" % number for number in range(50)))
    top = made.screen_top
    made.feed(b"\x1b[3J")
    assert (made.first, made.screen_top) == (top, top)


def test_wrapped_rows_say_so_and_wrap_anew() -> None:
    made = emulator(b"x" * 60 + b"\r\n")
    assert [row.wrapped for row in made.rows(0, 3)] == [True, False, False]
    made.resize(80, ROWS)
    assert shown(made)[0] == "x" * 60


def test_new_columns_have_tab_stops() -> None:
    made = emulator()
    made.resize(80, ROWS)
    made.feed(b"\x1b[1;42H\tx")
    assert shown(made)[0].index("x") == 48


def test_the_size_is_kept_within_its_limits() -> None:
    made = emulator()
    for asked, given_size in (((0, 0), (2, 1)), ((10**6, 10**6), (SIZE_LIMITS[0][1], SIZE_LIMITS[1][1]))):
        made.resize(*asked)
        assert made.size == given_size
    made.feed(b"\x1b[8;3;3t\x1b[132$|\x1b[?40h\x1b[?3h")
    assert made.size == (SIZE_LIMITS[0][1], SIZE_LIMITS[1][1])


# Answers


def test_questions_are_answered_in_fixed_words() -> None:
    made = emulator(b"ab\x1b[6n\x1b[c\x1b[>c\x1b[5n")
    assert made.take_answers() == b"\x1b[1;3R\x1b[?62;22c\x1b[>0;277;0c\x1b[0n"
    assert made.take_answers() == b""


def test_no_answer_holds_the_childs_words() -> None:
    made = emulator(
        b"\x1b]2;rm -rf\x07\x1b[21t\x1b[20t\x1bP$qrm -rf\x1b\\\x1bP+q726d\x1b\\"
        b"\x1b]52;c;?\x07\x1b]11;?\x07\x05\x1b[>q\x1b[?1$p\x1b[18t\x1b[1;1;1;1;1;1*y\x1b[1$w\x1b[1$u"
    )
    assert made.take_answers() == b""


def test_a_flood_of_questions_gets_few_answers() -> None:
    made = emulator(b"\x1b[6n" * 100_000)
    assert made.take_answers().count(b"R") == ANSWERS_LIMIT


# Floods


LINES = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=50).map(str.encode),
        st.sampled_from([b"\x1b[31mred", b"\x1b[0m", b"\x1b[44m", b"lone\rreturn", b"lone\nfeed", b"\t\tx"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([b"", b"\x1b[5;5H", b"\x1b[?1049h", b"old\r\n" * 9 + b"\x1b[H", b"\xe6\x97"]),
    LINES,
    st.integers(3, 9),
    st.sampled_from([b"", b"prompt $ ", b"\x1b[2;3Hx", b"half \xe6\x97"]),
)
def test_a_skimmed_flood_ends_the_same(before: bytes, lines: list[bytes], times: int, after: bytes) -> None:
    flood = b"\r\n".join(lines * times) + b"\r\n" + after
    whole, skimmed = (BitttyEmulator(20, 4, lines_kept=6) for _ in range(2))
    for made in (whole, skimmed):
        made.feed(before)
    whole.feed(flood)
    skimmed.feed(skimmed.skim(flood))
    assert kept(skimmed)[-10:] == kept(whole)[-10:]
    assert skimmed.cursor == whole.cursor


def test_ten_megabytes_of_yes_become_a_few_thousand_lines() -> None:
    made = emulator()
    flood = b"y\r\n" * (10_000_000 // 3)
    rest = made.skim(flood)
    assert len(rest) < 20_000
    made.feed(rest)
    assert {row.text for row in kept(made)[:-1]} == {"y"}
    assert made.end - made.first == LINES_KEPT + ROWS
    assert made.screen_top > 3_000_000


def test_a_flood_that_does_more_than_print_is_not_skimmed() -> None:
    for flood in (b"\x1b[5;9r" + b"y\r\n" * 9_000, b"y\x1b[Ay\r\n" * 9_000, b"\x1b]0;" + b"y\r\n" * 9_000):
        made = emulator(flood[:6])
        assert made.skim(flood[6:]) == flood[6:]


# Anything at all


WORDS = [
    "a",
    "hello world ",
    "日本",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "\u0600",
    "🇩🇪🇩",
    "☺\ufe0f",
    "1\u20e3",
    "\u200b",
    "ﷺ",
    "\u1100\u1161\u11a8",
    "x" * 90,
    "\r",
    "\n",
    "\r\n",
    "\b",
    "\t",
    "\x0e",
    "\x0f",
    "\x1b7",
    "\x1b8",
    "\x1bD",
    "\x1bM",
    "\x1bH",
    "\x1bc",
    "\x1b(0",
    "\x1b(B",
    "\x1b#8",
    "\x1b[!p",
    "\x1b[?7l",
    "\x1b[?7h",
    "\x1b[?6h",
    "\x1b[4h",
    "\x1b[20h",
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?47h",
    "\x1b[?1048l",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[6n",
]
SEQUENCES = st.builds(
    lambda numbers, final: f"\x1b[{';'.join(numbers)}{final}",
    st.lists(st.sampled_from(["", "0", "1", "2", "5", "24", "80", "999", "99999999999"]), max_size=3),
    st.sampled_from("@ABCDEFGHIJKLMPSTXZ`abdefgrsu"),
)
STREAMS = st.lists(st.one_of(st.sampled_from(WORDS), SEQUENCES, st.text(max_size=4)), max_size=25).map(
    lambda parts: "".join(parts).encode("utf-8", "ignore")
)
SIZES = st.sampled_from([(40, 10), (80, 24), (2, 1), (2, 2), (3, 1), (7, 5)])


@settings(max_examples=250, deadline=None)
@given(SIZES, STREAMS, st.randoms(use_true_random=False))
def test_bytes_in_any_split_give_the_same_screen(
    size: tuple[int, int], data: bytes, chance: random.Random
) -> None:
    whole, split = (BitttyEmulator(*size, lines_kept=20) for _ in range(2))
    whole.feed(data)
    at = 0
    while at < len(data):
        step = chance.randrange(1, 7)
        split.feed(data[at : at + step])
        at += step
    assert kept(split) == kept(whole)
    assert split.cursor == whole.cursor
    assert split.take_answers() == whole.take_answers()


@settings(max_examples=250, deadline=None)
@given(SIZES, st.lists(st.one_of(STREAMS, st.binary(max_size=40)), max_size=4), SIZES)
def test_no_bytes_break_the_emulator_or_widen_a_row(
    size: tuple[int, int], pieces: list[bytes], other: tuple[int, int]
) -> None:
    made = BitttyEmulator(*size, lines_kept=20)
    for piece in pieces:
        made.feed(piece)
        made.resize(*other)
        made.feed(piece)
        made.resize(*size)
        assert all(cell_len(row.text) <= size[0] for row in made.rows(made.screen_top, made.end))
        assert 0 <= made.cursor.row < size[1]
        assert 0 <= made.cursor.column < size[0]
    assert not any("emulator failed" in row.text for row in kept(made))


def test_a_library_that_fails_costs_the_screen_and_not_the_cockpit(monkeypatch: pytest.MonkeyPatch) -> None:
    made = emulator(b"".join(b"line %d\r\n" % number for number in range(30)))
    first, top = made.first, made.screen_top

    def fail(text: str) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(made._board, "print_text", fail)
    made.feed(b"x\r\nand on")

    assert "".join(shown(made)).startswith("[the screen was cleared: its emulator failed]")
    assert "and on" in shown(made)
    assert (made.first, made.screen_top) == (first, top)
