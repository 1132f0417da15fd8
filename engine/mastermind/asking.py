"""Asking the model a question about what Mastermind did."""

from __future__ import annotations

from typing import Any

from engine.domain.fence import RULE, fence
from engine.mastermind.coordinator import AskModel
from engine.mastermind.parts import JobRefused
from engine.models import Message, ModelError, ModelRequest, Text

MAX_TOKENS = 1_500
MATERIAL = 60_000
"""Characters of the journal's material that a question comes with."""
_ROLE = (
    "You answer an operator's question about a system that improves itself, from the record of what it did. "
    "Say only what the record shows, and say so where it does not show the answer."
)


def asking_of(client: Any, model: str) -> AskModel:
    """A way to ask the model, with the record as material that cannot speak for itself."""

    async def ask(question: str, material: str) -> str:
        request = ModelRequest(
            model,
            (
                Message(
                    "user",
                    (
                        Text(fence("the record", material, limit=MATERIAL), "record"),
                        Text(question, "question"),
                    ),
                ),
            ),
            (Text(f"{_ROLE}\n\n{RULE}", "role", cache=True),),
            max_tokens=min(MAX_TOKENS, client.capabilities(model).max_output),
        )
        try:
            return str((await client.send(request)).text)
        except ModelError as error:
            raise JobRefused(f"the model did not answer: {error.message}") from error

    return ask
