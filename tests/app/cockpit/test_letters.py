"""A letter that accepts, destroys or undoes means so in all panes and dialogs, and never confirms itself."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from textual.binding import Binding

import widgets.dialogs
import widgets.panes
from app.cockpit import keymap
from widgets.base.dialog import BoxDialog
from widgets.base.line_pane import LinePane
from widgets.dialogs.turn import OFFERS

MEANINGS = {
    "a": "approve once apply accept",
    "g": "always",
    "d": "deny decline reject dismiss(False)",
    "y": "agree accept approve choose('trust') dismiss(True) copy_row",
    "D": "delete remove drop forget retract lift give_up abort",
    "x": "skip cancel end stop toggle",
    "X": "stop_panel close",
    "full_stop": "stop again",
    "u": "undo roll_back",
    "R": "rewind",
    "r": "retry resume restore ask_again again bring_back",
    "V": "accept_plan",
    "E": "evict",
}
"""What each such letter may do: words of which its action holds one."""


def declared() -> Iterator[tuple[str, str, str]]:
    """Where, the key, and its action: of the cockpit, the panes and the dialogs."""
    for package in (widgets.dialogs, widgets.panes):
        for module in pkgutil.iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
    for key in keymap.KEYS:
        yield from (("cockpit", each, key.action) for each in key.keys.split(","))
    for kind in _below(BoxDialog):
        for key in kind.KEYS:
            yield from ((kind.__name__, each, key.action) for each in key.keys.split(","))
    for pane in _below(LinePane):
        for binding in pane.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding):
                yield from ((pane.__name__, each, binding.action) for each in binding.key.split(","))
    yield from (("InterventionDialog", letter, offer.value) for offer, (letter, _, _) in OFFERS.items())


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def test_each_letter_means_one_thing_everywhere() -> None:
    keys = list(declared())
    assert {key for _, key, _ in keys} >= set(MEANINGS)
    wrong = [
        (where, key, action)
        for where, key, action in keys
        if key in MEANINGS and not any(word in action for word in MEANINGS[key].split())
    ]
    assert not wrong


def test_what_ends_work_for_good_has_a_letter_of_the_scheme() -> None:
    ends = (
        "delete",
        "remove",
        "forget",
        "drop",
        "abort",
        "give_up",
        "retract",
        "reject",
        "deny",
        "decline",
        "cancel",
    )
    kept = {*MEANINGS, "delete", "ctrl+s", ""}
    assert not [each for each in declared() if any(word in each[2] for word in ends) and each[1] not in kept]


def test_no_key_that_asks_is_the_one_that_agrees() -> None:
    agreeing = {(where, key) for where, key, action in declared() if key == "y"}
    assert ("ConfirmDialog", "y") in agreeing
    assert ("PlanApprovalDialog", "y") in agreeing
    assert not [each for each in declared() if each[1] == "y" and each[0] == "cockpit"]


def test_the_guide_writes_the_scheme_down() -> None:
    from app.guide import page

    keys = page("keys")
    for letter in ("a", "g", "d", "y", "D", "x", "X", ".", "u", "R", "r", "V", "E"):
        assert f"| `{letter}` |" in keys, letter
