"""Metacognition: what an agent does about its own thinking, in the background.

What may enter: an agent's state, its memory, and who may be asked for words. What leaves: what is due and
why, and what came of it. Nothing here acts or changes a state: the loop records what begins and ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.metacognition.asking import Asking, AskingError, asking_of
    from engine.metacognition.result import Result
    from engine.metacognition.retrospect import Retrospect, look_back
    from engine.metacognition.runner import BackgroundRunner, BacklogFull, Ending
    from engine.metacognition.schedule import Due, adaptation, due, replannable, root_goal, waits
    from engine.metacognition.settings import MetaSettingsError, read_metacognition
    from engine.metacognition.stuck import StuckSettingError, notice_of, read_stuck, signs_of
    from engine.metacognition.work import Inputs, NoWorkflowError, WorkflowOf, perform
    from engine.metacognition.workflows import workflow_of
else:
    __getattr__ = late(
        __name__,
        {
            "asking": ("Asking", "AskingError", "asking_of"),
            "result": ("Result",),
            "retrospect": ("Retrospect", "look_back"),
            "runner": ("BackgroundRunner", "BacklogFull", "Ending"),
            "schedule": ("Due", "adaptation", "due", "replannable", "root_goal", "waits"),
            "settings": ("MetaSettingsError", "read_metacognition"),
            "stuck": ("StuckSettingError", "notice_of", "read_stuck", "signs_of"),
            "work": ("Inputs", "NoWorkflowError", "WorkflowOf", "perform"),
            "workflows": ("workflow_of",),
        },
    )

__all__ = [
    "Asking",
    "AskingError",
    "BackgroundRunner",
    "BacklogFull",
    "Due",
    "Ending",
    "Inputs",
    "MetaSettingsError",
    "NoWorkflowError",
    "Result",
    "Retrospect",
    "StuckSettingError",
    "WorkflowOf",
    "adaptation",
    "asking_of",
    "due",
    "look_back",
    "notice_of",
    "perform",
    "read_metacognition",
    "read_stuck",
    "replannable",
    "root_goal",
    "signs_of",
    "waits",
    "workflow_of",
]
