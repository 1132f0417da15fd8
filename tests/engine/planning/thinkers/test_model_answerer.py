"""A model that is asked for AgentSpeak(L) plans: what came is read, and what is no answer is named."""

from __future__ import annotations

import pytest

from engine.planning.pgp.requests import AskError, AskFailure, GenerationConfig, Prompt
from engine.planning.thinkers.model_answerer import ModelAnswerer
from tests.engine.models.test_openai_api import asking
from tests.messages_server import Reply
from tests.openai_server import OpenAiServer

PLAN = "EVENT: achieve reach(home)\nOPERATIONS:\n"
PROMPT, CONFIG = Prompt("You plan.", "How is home reached?"), GenerationConfig()


async def test_an_answer_that_was_cut_is_given_as_far_as_it_came() -> None:
    script = [Reply(text=PLAN + "  - move(north_east)\n" * 5_000)]
    async with OpenAiServer(script) as server, asking(server) as talk:
        reply = await ModelAnswerer(talk.client, "small").answer(PROMPT, CONFIG)
    assert reply.text.startswith(PLAN)
    assert len(reply.text) < 2_000


async def test_an_answer_that_declines_is_called_unusable() -> None:
    script = [Reply(text="No.", stop_reason="refusal")]
    async with OpenAiServer(script) as server, asking(server) as talk:
        with pytest.raises(AskError) as caught:
            await ModelAnswerer(talk.client, "small").answer(PROMPT, CONFIG)
    assert caught.value.kind is AskFailure.UNUSABLE
