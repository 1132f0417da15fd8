"""A model summarises what is too long for a prompt; where it cannot, entries are counted."""

from __future__ import annotations

import pytest

from engine.memory.compression import SummaryUnavailable, compress
from engine.memory.package import Part
from engine.models import Retries
from engine.thinkers.summariser import ModelSummariser
from tests.memory.context_pieces import FULL, package
from tests.messages_server import MessagesServer, Reply, failure
from tests.models.model_talk import CLAUDE, talking

LONG = package({Part.ACTIONS: FULL[Part.ACTIONS]}, size=4_000)
BUDGET = 2_000


async def test_a_model_is_given_the_entries_as_material_and_its_words_stand_in_their_place() -> None:
    script = [Reply(text="Ten holes were dug.")]
    async with MessagesServer(script) as server, talking(server) as talk:
        records: list[object] = []
        summariser = ModelSummariser(
            talk.client, CLAUDE, record=lambda request, outcome: records.append(request)
        )
        shorter = await compress(LONG, BUDGET, summarise=summariser)
    digest = shorter.section(Part.ACTIONS).digest
    assert digest is not None
    assert (digest.text, digest.computed, digest.of) == ("Ten holes were dug.", False, 10)
    ((seen),) = server.requests
    (question,) = seen.body["messages"][0]["content"]
    assert question["text"].startswith("[material ")
    assert question["text"].endswith("Shorten this record to at most 2000 tokens.")
    assert seen.body["max_tokens"] == 4_000
    assert len(records) == 1


@pytest.mark.parametrize(
    "reply", [failure(500), failure(401), Reply(text="cut o", stop_reason="max_tokens")], ids=str
)
async def test_where_the_model_gives_no_summary_the_entries_are_counted(reply: Reply) -> None:
    async with (
        MessagesServer([reply], repeat=True) as server,
        talking(server, retries=Retries(attempts=1)) as talk,
    ):
        summariser = ModelSummariser(talk.client, CLAUDE)
        with pytest.raises(SummaryUnavailable, match=CLAUDE):
            await summariser("[]", 100)
        shorter = await compress(LONG, BUDGET, summarise=summariser)
    digest = shorter.section(Part.ACTIONS).digest
    assert digest is not None
    assert digest.computed
    assert digest.text.startswith("10 entries")
