"""When Python looks for cyclic garbage: not while the cockpit starts, and never again among what that loaded.

A full collection walks every object that lives: here some 300,000 once everything is imported and the panes
stand, which holds the loop for 60 ms and more, and with it the operator's keys. What the start made stays
until the end, so it is set aside (`gc.freeze`), and a full collection walks only what came since. That still
takes 10 to 20 ms, so it should be rare.

Drawing makes many objects that live for a frame or two. Looking at each 700 of them, as Python does unless
told otherwise, took a third of the processor of a cockpit that opens; looking at more at once finds the same,
and a full collection comes once in a million.
"""

from __future__ import annotations

import gc

YOUNG_THRESHOLD = 10_000
"""New objects after which garbage is looked for among them: half a millisecond each time."""


def disable_gc() -> None:
    """Collect nothing until `begin_collecting`."""
    gc.disable()


def enable_gc() -> None:
    """Collect from now on, and leave alone what was made so far; does nothing where collecting continues."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(YOUNG_THRESHOLD)
        gc.enable()
