"""The words of events: each line of the file is of a known kind, and names fields that it has."""

from __future__ import annotations

import re

from app.projection import event_lines
from engine.core import events as ev
from engine.core.reasons import TEMPLATE


def test_each_line_of_the_file_is_of_a_kind_and_names_its_fields() -> None:
    for kind, cases in event_lines._LINES.items():
        fields = ev.kinds()[kind].model_fields
        for field, words in cases:
            assert set(re.findall(r"\{p\.(\w+)", words)) | {field} <= {*fields, ""}, kind
            assert len(words.split(" ", 2)) == 3, kind


def test_the_first_line_whose_field_is_set_says_what_happened() -> None:
    told = [ev.ControlGiven(before="ann", holder=holder) for holder in ("bob", "")]
    words = [event_lines.table_words({}, payload) for payload in told]
    assert words == [
        ("»", "operator", "ann gives the controls to bob"),
        ("»", "operator", "ann gives the controls up"),
    ]


def test_templates_count_join_choose_and_leave_out() -> None:
    assert TEMPLATE.format("{n:# step}, {m:# step}", n=1, m=("a", "b")) == "1 step, 2 steps"
    assert TEMPLATE.format("{a:|so|not}, {b:|so|not}, {c:||none}", a=1, b=0, c=("x", "y")) == "so, not, x, y"
    assert TEMPLATE.format("{a:?: }{b:?: }", a="", b="why") == ": why"
    assert TEMPLATE.format("{a:ms}", a=1_250) == "1.2 s"
