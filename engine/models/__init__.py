"""Models: asking one that speaks the Messages API, and knowing what it takes, costs and may not do.

What may enter: requests as values, an endpoint, tables of models. What leaves: answers as values, pieces
while they come, and `ModelError`. Nothing here acts, plans or writes to a journal: who asks records.
The client is imported when there is a model, the SDK when it is first asked, never before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late
from engine.domain.fence import fence

if TYPE_CHECKING:
    from engine.models.answer import ModelAnswer, StopReason, TokenCount, Usage
    from engine.models.asking import ask, complete
    from engine.models.blocks import Message, Text, Thinking, ToolResult, ToolUse, said
    from engine.models.capabilities import Capabilities, ModelTable, ModelTableError, load_models
    from engine.models.client import MessagesClient
    from engine.models.cost import Budget, Cost, cost_of, dearest, worst_case
    from engine.models.endpoint import Endpoint, Retries, Timeouts
    from engine.models.errors import ModelError, ModelErrorKind
    from engine.models.port import ModelClient, PieceSink, Recorder
    from engine.models.request import ModelRequest, ToolSpec
    from engine.models.structured import NotOfFormError, ask_for, ask_until
else:
    __getattr__ = late(
        __name__,
        {
            "answer": (
                "ModelAnswer",
                "StopReason",
                "TokenCount",
                "Usage",
            ),
            "asking": (
                "ask",
                "complete",
            ),
            "blocks": (
                "Message",
                "Text",
                "Thinking",
                "ToolResult",
                "ToolUse",
                "said",
            ),
            "capabilities": (
                "Capabilities",
                "ModelTable",
                "ModelTableError",
                "load_models",
            ),
            "client": ("MessagesClient",),
            "cost": (
                "Budget",
                "Cost",
                "cost_of",
                "dearest",
                "worst_case",
            ),
            "endpoint": (
                "Endpoint",
                "Retries",
                "Timeouts",
            ),
            "errors": (
                "ModelError",
                "ModelErrorKind",
            ),
            "port": (
                "ModelClient",
                "PieceSink",
                "Recorder",
            ),
            "request": (
                "ModelRequest",
                "ToolSpec",
            ),
            "structured": (
                "NotOfFormError",
                "ask_for",
                "ask_until",
            ),
        },
    )

__all__ = [
    "Budget",
    "Capabilities",
    "Cost",
    "Endpoint",
    "Message",
    "MessagesClient",
    "ModelAnswer",
    "ModelClient",
    "ModelError",
    "ModelErrorKind",
    "ModelRequest",
    "ModelTable",
    "ModelTableError",
    "NotOfFormError",
    "PieceSink",
    "Recorder",
    "Retries",
    "StopReason",
    "Text",
    "Thinking",
    "Timeouts",
    "TokenCount",
    "ToolResult",
    "ToolSpec",
    "ToolUse",
    "Usage",
    "ask",
    "ask_for",
    "ask_until",
    "complete",
    "cost_of",
    "dearest",
    "fence",
    "load_models",
    "said",
    "worst_case",
]
