"""The timeline: marks on a track, the place, and words; at any width."""

from __future__ import annotations

import pytest

from widgets.base.text_layout import plain, width_of
from widgets.panes.timeline import TimelineMark, TimelineModel, line_of, track_cells

MODEL = TimelineModel(
    marks=(
        TimelineMark(0.0, "goal"),
        TimelineMark(0.25, "plan"),
        TimelineMark(0.5, "action"),
        TimelineMark(0.5, "failure"),
        TimelineMark(1.0, "decision"),
    ),
    place=0.25,
    label="10:31:02 pilot-1:12 ✓ mkdir x",
    count="2/5",
)


def test_marks_stand_where_they_happened_and_the_place_is_shown_without_colour_too() -> None:
    line = plain(line_of(MODEL, 80))
    assert line.startswith("[●")
    assert "✗" in line
    assert line.index("◆") < line.index("✗") < line.index("◇")
    assert "2/5" in line
    assert "pilot-1:12" in line


def test_where_several_marks_share_a_cell_a_failure_is_seen() -> None:
    assert plain(line_of(MODEL, 80)).count("✗") == 1
    assert "·" not in plain(line_of(MODEL, 80)).partition("]")[0]


@pytest.mark.parametrize("width", range(121))
def test_no_width_is_exceeded(width: int) -> None:
    assert width_of(line_of(MODEL, width)) <= width
    assert track_cells(MODEL, max(width, 3)) >= 1


def test_the_place_is_marked_between_marks() -> None:
    styles = [piece.style for piece in line_of(TimelineModel(MODEL.marks, 0.4, "", "1/5"), 60)]
    assert styles.count("place") == 1


def test_what_an_agent_said_brings_no_control_characters_into_the_line() -> None:
    assert "\x1b" not in plain(line_of(TimelineModel((), 0.5, "\x1b[2Jgone\x07", "0/0"), 60))
