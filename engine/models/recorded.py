"""Answers of a recording in the place of a model: what the agents of the demonstration are told.

A recording is a file of answers that were written for the demonstration, with the tokens that were counted
when the engine asked for them (`make recordings`). A request gets an answer only if it is about what the
recording is about, comes from the agent that the answer is for, offers the tools that the answer calls, and
holds the words that must have come before. Words of prompts count for nothing, so that better ones break no
recording. All other requests fail; nothing is made up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from engine.core.agents import HANDOFF, handoff_metadata
from engine.core.ports import Clock
from engine.models.completion import PieceSink, Recorder, ignore_call, ignore_piece
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import Block, ModelAnswer, Piece, StopReason, Text, Thinking, ToolUse, Usage
from engine.models.messages import ToolResult as Result
from engine.models.model_table import Capabilities, capabilities_of
from engine.models.request import ModelRequest

NAME = "recorded"
"""What the model is called wherever one is named."""
_TURNS_PER_S = 20
RECORDINGS = Path(__file__).with_name("recordings")


class RecordedAnswer(BaseModel, extra="forbid", strict=True, frozen=True):
    """An answer, and which request it is for."""

    to: str
    """Who asks, as `speaker_of` names it."""
    after: list[str] = Field(default_factory=list)
    """Words of the operator, of tools or of agents that the request must hold."""
    thinking: str = ""
    text: str = ""
    tool: str = ""
    """The tool that it calls, if it calls one."""
    input: dict[str, Any] = Field(default_factory=dict)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)


class Recording(BaseModel, extra="forbid", strict=True, frozen=True):
    """The answers for one mission."""

    about: str = Field(min_length=1)
    """Words that every request must hold, such as the motion of a debate."""
    answers: list[RecordedAnswer]
    """Of those that fit, the last one is given."""
    session: list[dict[str, Any]] = Field(default_factory=list)
    """Where another program was recorded: the messages that it sent."""

    def answer(self, request: ModelRequest, speaker: str) -> RecordedAnswer | None:
        """The answer to a request; None where the recording has none."""
        text = "\n".join(_texts(request))
        if self.about not in text:
            return None
        offered = {"", *(tool.name for tool in request.tools)}
        fitting = (
            answer
            for answer in self.answers
            if answer.to == speaker
            and answer.tool in offered
            and all(words in text for words in answer.after)
        )
        return next(iter(list(fitting)[-1:]), None)


def _texts(request: ModelRequest) -> Iterator[str]:
    for message in request.messages:
        for block in message.content:
            if isinstance(block, Text | Result):
                yield block.text


def recordings() -> tuple[str, ...]:
    """The names of the recordings that are shipped."""
    names = (file.name for file in RECORDINGS.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@cache
def load_recording(name: str) -> Recording:
    """The recording of a name; blocking on the first call.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if name not in recordings():
        raise ValueError(f"there is no recording {name[:60]!r}; recordings: {', '.join(recordings())}")
    return Recording.model_validate_json((RECORDINGS / f"{name}.json").read_bytes())


def speaker_of(config: Mapping[str, Any]) -> str:
    """Who asks: the specification of a run, in a debate with its round, or `agent`."""
    handoff = config.get(HANDOFF)
    if not isinstance(handoff, Mapping):
        return "agent"
    debate = handoff_metadata(config).get("debate")
    number = debate.get("round", "") if isinstance(debate, Mapping) else ""
    return f"{handoff.get('to_agent')} {number}".strip()


class RecordedModel:
    """Answers one agent from a recording, at the pace of somebody who reads.

    Args:
        name: the recording.
        speaker: who asks.
        clock: waits between two pieces.
        pace: characters a second; 0 gives each block at once.
    """

    def __init__(self, name: str, speaker: str, clock: Clock, pace: int) -> None:
        self._name, self._speaker, self._clock, self._pace = name, speaker, clock, pace

    def capabilities(self, _model: str) -> Capabilities:
        """See `ModelClient`; whichever model is asked for, the recording answers."""
        return capabilities_of(NAME)

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
    ) -> ModelAnswer:
        """See `ModelClient`.

        Raises:
            ModelError: REFUSED where the recording has no answer.
        """
        fitted, notes = self.capabilities(NAME).fit(replace(request, model=NAME))
        found = load_recording(self._name).answer(fitted, self._speaker)
        if found is None:
            error = ModelError(ModelErrorKind.REFUSED, no_answer(self._name))
            record(fitted, error)
            raise error
        began = self._clock.monotonic()
        usage = Usage(found.input_tokens, found.output_tokens, estimated=True)
        given: list[Block] = []

        def answer(*, partial: bool) -> ModelAnswer:
            stop = StopReason.TOOL_USE if found.tool else StopReason.END_TURN
            took = round((self._clock.monotonic() - began) * 1000)
            return ModelAnswer(
                tuple(given),
                None if partial else stop,
                "" if partial else stop.value,
                usage,
                NAME,
                latency_ms=took,
                first_piece_ms=0,
                partial=partial,
                notes=notes,
            )

        try:
            for number, block in enumerate(_blocks(found)):
                given.append(block)
                await self._say(block, number, sink)
        except asyncio.CancelledError:
            # The block under way was not said to its end.
            del given[-1:]
            record(fitted, answer(partial=True))
            raise
        whole = answer(partial=False)
        record(fitted, whole)
        return whole

    async def _say(self, block: Block, number: int, sink: PieceSink) -> None:
        kind: Literal["text", "thinking", "tool_input"] = "text"
        if isinstance(block, ToolUse):
            sink(Piece("tool", block.name, number))
            kind, text = "tool_input", json.dumps(block.input, ensure_ascii=False)
        else:
            assert isinstance(block, Text | Thinking)
            kind, text = block.type, block.text
        size = self._pace // _TURNS_PER_S or (1 if self._pace else len(text) or 1)
        for at in range(0, len(text), size):
            if self._pace:
                await self._clock.sleep(size / self._pace)
            sink(Piece(kind, text[at : at + size], number))


def no_answer(name: str) -> str:
    """What is said of a request that a recording has no answer to."""
    return (
        f"the recording {name} has no answer to this: it holds only what was written for its demonstration. "
        "For answers of a model set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own"
    )


def _blocks(answer: RecordedAnswer) -> Iterable[Block]:
    if answer.thinking:
        yield Thinking(answer.thinking)
    if answer.text:
        yield Text(answer.text)
    if answer.tool:
        yield ToolUse("toolu_recorded", answer.tool, answer.input)
