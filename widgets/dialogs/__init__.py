"""Dialogs: what asks the operator for a decision or a text, over everything else.

A dialog is a modal screen with a frozen model and one result, given to `push_screen`'s
callback. Escape always closes it without choosing anything. Nothing here knows the engine.
"""

from __future__ import annotations

from widgets.dialogs.confirm import ConfirmDialog, ConfirmModel
from widgets.dialogs.help import HelpDialog, HelpGroup, HelpKey, HelpModel
from widgets.dialogs.intervention import (
    InterventionChoice,
    InterventionDialog,
    InterventionModel,
    Offer,
)
from widgets.dialogs.no_jail import NoJailChoice, NoJailDialog, NoJailModel
from widgets.dialogs.policy import PolicyDialog, PolicyModel, PolicyRow
from widgets.dialogs.step_editor import StepDraft, StepEdit, StepEditor

__all__ = [
    "ConfirmDialog",
    "ConfirmModel",
    "HelpDialog",
    "HelpGroup",
    "HelpKey",
    "HelpModel",
    "InterventionChoice",
    "InterventionDialog",
    "InterventionModel",
    "NoJailChoice",
    "NoJailDialog",
    "NoJailModel",
    "Offer",
    "PolicyDialog",
    "PolicyModel",
    "PolicyRow",
    "StepDraft",
    "StepEdit",
    "StepEditor",
]
