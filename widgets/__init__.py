"""The panes: what the operator sees and touches, each with its own frozen view model beside it.

In come view models through `show`, for the session batches of output through `append`, and for the
operator's shell bytes through `put`.
Out go intents as Textual messages, nested in the pane that posts them, and `CopyRequested`.
A pane knows no engine object; of the engine it uses only the cleaning of untrusted text,
which every pane applies once more to whatever it is given. Markup is never parsed.
"""

from __future__ import annotations

from widgets.beliefs import BeliefLine, BeliefsModel, BeliefsPane
from widgets.command_bar import CommandBar, CommandBarModel, Completion
from widgets.errors import ErrorLine, ErrorPanel, ErrorsModel
from widgets.goal_stack import AgentLine, GoalLine, GoalStack, GoalStackModel
from widgets.guard import GUARD, ControlCharacterFilter
from widgets.intentions import (
    FrameLine,
    IntentionLine,
    IntentionsModel,
    IntentionTree,
    intention_of,
    intention_rows,
)
from widgets.line_pane import CopyRequested, Notice
from widgets.mind import MindLine, MindModel, MindStream
from widgets.plan import PlanModel, PlanPane, StepLine
from widgets.session import SandboxPane, SessionChunk, SessionModel
from widgets.status_bar import StatusBar, StatusModel
from widgets.terminal import TerminalPane
from widgets.working_memory import MemoryLine, RememberedLine, WorkingMemory, WorkingMemoryModel
from widgets.world import WorldModel, WorldPane, WorldSign

__all__ = [
    "GUARD",
    "AgentLine",
    "BeliefLine",
    "BeliefsModel",
    "BeliefsPane",
    "CommandBar",
    "CommandBarModel",
    "Completion",
    "ControlCharacterFilter",
    "CopyRequested",
    "ErrorLine",
    "ErrorPanel",
    "ErrorsModel",
    "FrameLine",
    "GoalLine",
    "GoalStack",
    "GoalStackModel",
    "IntentionLine",
    "IntentionTree",
    "IntentionsModel",
    "MemoryLine",
    "MindLine",
    "MindModel",
    "MindStream",
    "Notice",
    "PlanModel",
    "PlanPane",
    "RememberedLine",
    "SandboxPane",
    "SessionChunk",
    "SessionModel",
    "StatusBar",
    "StatusModel",
    "StepLine",
    "TerminalPane",
    "WorkingMemory",
    "WorkingMemoryModel",
    "WorldModel",
    "WorldPane",
    "WorldSign",
    "intention_of",
    "intention_rows",
]
