"""The standard internal actions (spec §1.8)."""

from engine.bdi.actions import InternalActions

STANDARD = InternalActions()
