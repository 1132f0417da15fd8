"""When Python looks for cyclic garbage: not while the cockpit starts, and never again among what that loaded.

A full collection walks every object that lives: here some 300,000 once everything is imported and the panes
stand, which holds the loop for 60 ms and more, and with it the operator's keys. What the start made stays
until the end, so it is set aside (`gc.freeze`), and a full collection walks only what came since. That still
takes 10 to 20 ms, so it is done more rarely than Python would.
"""

from __future__ import annotations

import gc

FULL_EVERY = 50
"""Collections of what has lived for a while to one of everything; Python's own is 10."""


def hold_off() -> None:
    """Collect nothing until `begin_collecting`."""
    gc.disable()


def begin_collecting() -> None:
    """Collect from now on, and leave alone what was made so far; does nothing where collecting goes on."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(*gc.get_threshold()[:2], FULL_EVERY)
        gc.enable()
