"""Recovery: what kind of failure it was, and what to do about it.

In: an error code, a status, an exception or a model's error, and what was tried and learned before. Out:
one failure kind; one strategy, with its reason; another call where one does the same.
"""

from engine.recovery.alternatives import Alternative, alternative
from engine.recovery.classify import classify, code_of, kind_of_model_error, kind_of_status
from engine.recovery.repeating import lost_on_the_way, may_repeat
from engine.recovery.settings import RecoverySettings, RecoverySettingsError, read_recovery
from engine.recovery.strategy import Choice, Learned, choose
from engine.recovery.taxonomy import TAXONOMY, KindOfFailure, tries_of

__all__ = [
    "TAXONOMY",
    "Alternative",
    "Choice",
    "KindOfFailure",
    "Learned",
    "RecoverySettings",
    "RecoverySettingsError",
    "alternative",
    "choose",
    "classify",
    "code_of",
    "kind_of_model_error",
    "kind_of_status",
    "lost_on_the_way",
    "may_repeat",
    "read_recovery",
    "tries_of",
]
