"""Asks for plans: a prompt goes out, and a text comes back from a model or from recorded answers.

`Answerer` is all that plan generation knows of models. A conversation remembers its answers, so that the same
prompt is asked once and a run can be made again from them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

from engine.bdi.agent import BdiAgent
from engine.bdi.syntax import Trigger
from engine.planning.pgp.documentation import Documentation
from engine.planning.pgp.prompts import (
    GenerationContext,
    PromptVariant,
    shown_context,
    system_prompt,
    user_prompt,
)
from engine.value import dataclass, replace

PROMPT_LIMIT = 100
"""Different prompts of one conversation."""


REMARK_LIMIT = 2_000
"""Characters of one remark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationConfig:
    """What a generation is run with; the defaults are those of the thesis' code.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    model: str = ""
    temperature: float = 0.5
    """From 0 to 2."""
    max_tokens: int = 2_048
    """Tokens of an answer."""
    request_timeout_s: float = 120.0
    """Seconds from asking to the whole answer."""
    hidden: tuple[str, ...] = ()
    """Actions that the model is not told of, such as `print`."""
    user_prompt: PromptVariant = PromptVariant.HINTS_AND_REMARKS
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, "from 0 to 2", 0 <= self.temperature <= 2)
        _check("max_tokens", self.max_tokens, "above 0", self.max_tokens > 0)
        seconds = self.request_timeout_s
        _check("request_timeout_s", seconds, "above 0 and finite", 0 < seconds < float("inf"))
        for remark in self.remarks:
            fits = bool(remark.strip()) and len(remark) <= REMARK_LIMIT
            _check("remark", remark, f"not empty and at most {REMARK_LIMIT} characters", fits)

    def over(self, **given: Any) -> GenerationConfig:
        """This configuration with what is given and not None in the place of its own."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def public(self) -> dict[str, str | float]:
        """The parameters for provenance and logs; prompts by name."""
        return {
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            # As earlier versions recorded it; a model's address is the endpoint's.
            "url": "http://localhost:8080",
            "request_timeout_s": self.request_timeout_s,
            "connect_timeout_s": 10.0,
            "socket_timeout_s": 60.0,
            "filters": f"meta plans, without {', '.join(self.hidden)}" if self.hidden else "meta plans",
            "system_prompt": "system",
            "user_prompt": f"user, {self.user_prompt}",
            "remarks": len(self.remarks),
        }


def _check(name: str, value: object, expected: str, fits: bool) -> None:
    if not fits:
        raise ValueError(f"{name} is {str(value)[:80]!r}: it must be {expected}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model reads: once and for all, and about this agent and goal."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's words and what they cost."""

    text: str
    model: str
    """As the answering side names it."""
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: float = 0.0
    """Milliseconds from asking to the whole answer."""


class AskFailure(StrEnum):
    """Why there is no answer."""

    TIMEOUT = "timeout"
    HTTP = "http"
    """The other side answered with an error."""
    NETWORK = "network"
    """The other side could not be reached, or went away."""
    UNUSABLE = "unusable"
    """The model declined, or what it said is no answer."""
    EMPTY = "empty"
    """The answer has no text."""
    LIMIT = "limit"
    """Too much was asked."""
    BUDGET = "budget"
    """The call was not made, as it could break a budget; asking is resumed when that is settled."""


class AskError(Exception):
    """There is no answer; the message says why in one line."""

    def __init__(self, kind: AskFailure, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.kind}: {self.args[0]}"


class Answerer(Protocol):
    """Answers prompts: a model, or a recording of one."""

    @property
    def model(self) -> str:
        """The model that answers, for logs and provenance."""

    async def answer(self, prompt: Prompt, config: GenerationConfig) -> Reply:
        """The answer to a prompt, with the parameters of a configuration.

        It may be cancelled. Time runs outside: `ask` ends it after the configuration's request time.

        Raises:
            AskError: there is none.
        """


async def request_answer(answerer: Answerer, prompt: Prompt, config: GenerationConfig) -> Reply:
    """The answer to a prompt, which has some text and came in time.

    Raises:
        AskError: there is none.
    """
    try:
        async with asyncio.timeout(config.request_timeout_s):
            reply = await answerer.answer(prompt, config)
    except TimeoutError:
        seconds = f"{config.request_timeout_s:g}"
        raise AskError(AskFailure.TIMEOUT, f"no whole answer within {seconds} seconds") from None
    if not reply.text.strip():
        raise AskError(AskFailure.EMPTY, "the answer is empty")
    return reply


def context_of(agent: BdiAgent, goal: Trigger, known: Documentation) -> GenerationContext:
    """An agent as it is now, for a prompt about a goal."""
    return GenerationContext(
        goal=goal,
        beliefs=tuple(fact.literal for fact in agent.beliefs),
        plans=tuple(plan.plan for plan in agent.plans),
        known=known,
    )


def prompt_of(context: GenerationContext, config: GenerationConfig) -> Prompt:
    """The prompt for what a model may see of a context, the configuration's remarks before the documented."""
    seen = shown_context(context, config.hidden)
    seen = replace(seen, known=replace(seen.known, remarks=(*config.remarks, *seen.known.remarks)))
    return Prompt(system_prompt(), user_prompt(seen, config.user_prompt))


class UnansweredError(Exception):
    """A prompt that was not asked yet."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__("this prompt was not asked yet")
        self.prompt = prompt


class Conversation:
    """What an answerer was asked and what it said; nothing is asked twice.

    Args:
        answerer: who answers.
        config: the parameters of every request.
        limit: different prompts; more are not asked and count as failed.
    """

    def __init__(self, answerer: Answerer, config: GenerationConfig, *, limit: int = PROMPT_LIMIT) -> None:
        self._answerer, self.config, self._limit = answerer, config, limit
        self._said: dict[Prompt, Reply | AskError] = {}
        self._open: dict[Prompt, None] = {}

    @property
    def said(self) -> tuple[Reply | AskError, ...]:
        """The result of the prompts, in their order."""
        return tuple(self._said.values())

    @property
    def open(self) -> bool:
        """Whether something waits to be asked."""
        return bool(self._open)

    def reply(self, prompt: Prompt) -> Reply | AskError:
        """What was said to a prompt.

        Raises:
            UnansweredError: it was not asked yet; `ask_open` will do so.
        """
        known = self._said.get(prompt)
        if known is None:
            self._open[prompt] = None
            raise UnansweredError(prompt)
        return known

    async def say(self, prompt: Prompt) -> Reply | AskError:
        """What is said to a prompt, which is asked now if it was not before."""
        if prompt not in self._said:
            self._said[prompt] = await self._asked(prompt)
        return self._said[prompt]

    async def ask_open(self) -> None:
        """Ask everything that waits."""
        waiting, self._open = self._open, {}
        for prompt in waiting:
            await self.say(prompt)

    async def _asked(self, prompt: Prompt) -> Reply | AskError:
        if len(self._said) >= self._limit:
            return AskError(AskFailure.LIMIT, f"{self._limit} different prompts were asked already")
        try:
            return await request_answer(self._answerer, prompt, self.config)
        except AskError as error:
            return error


class RecordedAnswers:
    """Gives answers in their order, the last one again and again.

    Args:
        answers: at least one.
    """

    model = "recorded"

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = tuple(answers)
        self._given = 0

    async def answer(self, prompt: Prompt, config: GenerationConfig) -> Reply:
        """The next one."""
        text = self._answers[min(self._given, len(self._answers) - 1)]
        self._given += 1
        return Reply(text, self.model)
