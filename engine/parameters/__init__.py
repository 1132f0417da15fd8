"""Parameters of an action, made right before it runs where that is certain, and with every change on record.

What may enter: a call as its step has it, the goal's text, and what a survey found in the workspace. What
leaves: the arguments, what is wrong with them, and a record for each stage. The stages are pure: equal
calls and surveys give equal outcomes. `survey` alone looks at the workspace and `ModelAsker` alone asks a
model; what they found goes into the journal with the outcome (seed parameter processing; spec mindX §3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late
from engine.parameters.paths import Enquiry
from engine.parameters.processing import Call, Outcome, enquire, process, unmendable
from engine.parameters.settings import ProcessingSettings, SettingsError, read_settings
from engine.parameters.survey import survey

if TYPE_CHECKING:
    from engine.parameters.extraction import Asker, ModelAsker, Question
else:
    __getattr__ = late(__name__, {"extraction": ("Asker", "ModelAsker", "Question")})

__all__ = [
    "Asker",
    "Call",
    "Enquiry",
    "ModelAsker",
    "Outcome",
    "ProcessingSettings",
    "Question",
    "SettingsError",
    "enquire",
    "process",
    "read_settings",
    "survey",
    "unmendable",
]
