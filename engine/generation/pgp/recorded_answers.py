"""Answers that are known beforehand, in the place of a model."""

from __future__ import annotations

from collections.abc import Sequence

from engine.generation.pgp.asking import Prompt, Reply
from engine.generation.pgp.config import EffectiveConfig


class RecordedAnswers:
    """Gives answers in their order, the last one again and again.

    Args:
        answers: at least one.
    """

    model = "recorded"

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = tuple(answers)
        self._given = 0

    async def answer(self, prompt: Prompt, config: EffectiveConfig) -> Reply:
        """The next one."""
        text = self._answers[min(self._given, len(self._answers) - 1)]
        self._given += 1
        return Reply(text, self.model)
