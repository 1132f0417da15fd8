"""Where the standard internal actions are registered."""

from __future__ import annotations

from engine.bdi.actions import InternalActions

STANDARD = InternalActions()
internal = STANDARD.register
