"""Dialogs: what asks the operator for a decision or a text, over everything else.

A dialog is a modal screen with a frozen model and one result, given to `push_screen`'s
callback. Escape always closes it without choosing anything. Nothing here knows the engine.
"""

from __future__ import annotations

from widgets.dialogs.breakpoints import (
    BreakpointLine,
    BreakpointsDialog,
    BreakpointsModel,
)
from widgets.dialogs.confirm import ConfirmDialog, ConfirmModel
from widgets.dialogs.generated_plans import (
    GeneratedPlansChoice,
    GeneratedPlansDialog,
    GeneratedPlansModel,
    GeneratedPlansOffer,
    ProposedPlan,
)
from widgets.dialogs.hand_back import HandBack, HandBackDialog
from widgets.dialogs.handover import ChangeLine, HandoverDecision, HandoverDialog, HandoverModel
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
    "BreakpointLine",
    "BreakpointsDialog",
    "BreakpointsModel",
    "ChangeLine",
    "ConfirmDialog",
    "ConfirmModel",
    "GeneratedPlansChoice",
    "GeneratedPlansDialog",
    "GeneratedPlansModel",
    "GeneratedPlansOffer",
    "HandBack",
    "HandBackDialog",
    "HandoverDecision",
    "HandoverDialog",
    "HandoverModel",
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
    "ProposedPlan",
    "StepDraft",
    "StepEdit",
    "StepEditor",
]
