"""What people ask of a memory: in many languages, by time and by who, and what bears on what."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.memory import LinkType, MemoryItem, MemoryLevel, MemoryType
from engine.memory.query import parsed
from engine.memory.scoring import contradict, suggested_link
from engine.memory.words import indexed, nearest_words
from tests.engine.memory.memory_desk import DAY, MemoryDesk

LANGUAGES = {
    "english": ("pumps", "the pump at the north gate leaks"),
    "german": ("Straße", "die Prüfung der Straße ist beendet"),
    "french": ("deja", "le rapport est déjà prêt"),
    "russian": ("орбитой", "квантовая связь с орбитой"),
    "greek": ("θάλασσα", "η θάλασσα είναι ήρεμη"),
    "turkish": ("ışık", "kapıdaki ışık bozuk"),
    "arabic": ("كتاب", "هذا كِتَاب جديد"),
    "hebrew": ("שלום", "אמרנו שָׁלוֹם לכולם"),
    "hindi": ("भाषा", "हिन्दी भाषा में लिखा है"),
    "tamil": ("மொழி", "தமிழ் மொழி அழகு"),
    "thai": ("ภาษาไทย", "เอกสารนี้เขียนด้วยภาษาไทยทั้งหมด"),
    "japanese": ("日本語", "これは日本語の文章です"),
    "chinese": ("服务器", "我们的服务器昨天停了"),
    "one letter": ("本", "これは日本語の文章です"),
    "korean": ("서울", "회의는 서울에서 열린다"),
    "khmer": ("ភាសា", "នេះជាភាសាខ្មែរ"),
    "emoji": ("🚀", "launch day 🚀 went well"),
    "mixed": ("GitHub", "GitHubの設定を変更した"),
    "full width": ("ABC", "型番はＡＢＣです"),
}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_language_finds_its_own_words(desk: MemoryDesk, language: str) -> None:
    query, text = LANGUAGES[language]
    stored = await asyncio.gather(*(desk.store_memory(other) for _, other in LANGUAGES.values()))
    found = await desk.ask("hybrid_search_memories", query=query)
    assert found.relevant
    assert text in [one.memory.content for one in found]
    assert len(found) < len(stored) / 2


async def test_identifiers_are_found_whole_and_in_parts(desk: MemoryDesk) -> None:
    camel = await desk.store_memory("call parseHttpResponse before the retry")
    snake = await desk.store_memory("max_retry_count is read from src/config/limits.toml")
    for query in ("parseHttpResponse", "http response", "parse_http_response"):
        assert (await desk.found(query))[0] == camel.id
    for query in ("max_retry_count", "limits.toml", "maxRetryCount", "config/limits"):
        assert (await desk.found(query))[0] == snake.id


async def test_a_word_that_stands_nowhere_is_taken_for_the_nearest(desk: MemoryDesk) -> None:
    wanted = await desk.store_memory("calibration of the seismometer")
    await desk.store_memory("sunrise over the crater rim")
    for query in ("seizmometer", "siesmometer", "esismometer", "seismo"):
        assert await desk.found(query) == [wanted.id]
    assert await desk.found("spectrograph") == []


def test_no_word_is_taken_for_a_short_or_far_one() -> None:
    terms = [("pump", 3), ("pumped", 1), ("harden", 9), ("garden", 2)]
    assert nearest_words("bump", terms) == []
    assert nearest_words("gardem", terms) == ["garden"]
    assert nearest_words("pum", terms) == ["pump", "pumped"]


@given(st.text(max_size=60))
def test_any_text_can_be_indexed_and_asked(text: str) -> None:
    assert isinstance(indexed(text), str)
    assert isinstance(parsed(text, 1.8e9).text, str)


# ------------------------------------------------------------------ the language of queries


async def test_phrases_stand_as_they_are_and_a_dash_leaves_out(desk: MemoryDesk) -> None:
    phrase = await desk.store_memory("the north gate pump leaks")
    apart = await desk.store_memory("the gate north of the pump is shut")
    assert await desk.found('"north gate"') == [phrase.id]
    assert await desk.found("pump -leaks") == [apart.id]
    assert await desk.found('pump -"north gate"') == [apart.id]
    for query in ('"south gate" pump', "pump -gate"):
        nearest = await desk.ask("hybrid_search_memories", query=query, nearest=True)
        assert (len(nearest), nearest.relevant) == (2, False)
        assert (await desk.ask("hybrid_search_memories", query=query)).withheld == 2


async def test_quotes_and_dashes_in_a_long_text_mean_nothing(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("the pump leaks")
    text = 'we saw that "the valve" is shut -leaks and asked ourselves whether all of it has to do'
    assert await desk.found(f"{text} with the pump or with something else") == [memory.id]


FILTERS = {
    "level:semantic pump": "settled",
    "type:insight pump": "insight",
    "pump since:2d": "new",
    "pump until:2d": "old",
    "agent:operator": "operator",
    "type:insight": "insight",
    "LEVEL:x level:y pump -old -new -operator -settled": "insight",
}


@pytest.mark.parametrize("query", FILTERS)
async def test_filters_stand_in_the_query(desk: MemoryDesk, query: str) -> None:
    stored = {"old": await desk.store_memory("pump old", ttl=0)}
    desk.clock.seconds += 5 * DAY
    if "until" not in query and "since" not in query:
        stored["settled"] = await desk.store_memory("pump settled", memory_level="semantic")
        stored["insight"] = await desk.store_memory("pump insight", memory_type="insight")
        stored["operator"] = await desk.store_memory("pump operator", source="operator")
    stored["new"] = await desk.store_memory("pump new")
    assert await desk.found(query) == [stored[FILTERS[query]].id]


async def test_an_agent_s_work_is_found_by_its_name(desk: MemoryDesk) -> None:
    theirs = (await desk.ask("create_workflow", title="Theirs", tags=["agent:ada"])).id
    memory = await desk.store_memory("the pump leaks", workflow_id=theirs)
    await desk.store_memory("the pump is shut")
    assert await desk.found("pump agent:ada") == [memory.id]
    assert await desk.found("pump agent:nobody") == []


OPERATORS = ['"', "*", "NEAR(", '""', "-", "level:", ": ^ ( )", "\x00", "since:2w -", " "]


@pytest.mark.parametrize("query", OPERATORS)
async def test_operators_alone_are_answered(desk: MemoryDesk, query: str) -> None:
    await desk.store_memory("the pump leaks")
    found = await desk.ask("hybrid_search_memories", query=query)
    assert found.withheld == 0


async def test_a_query_of_ten_megabytes_is_answered(desk: MemoryDesk) -> None:
    memory = await desk.store_memory("the pump leaks")
    assert await desk.found("pump " * 2_000_000) == [memory.id]


# ------------------------------------------------------------------ time, links, and nothing at all


@pytest.mark.parametrize(
    ("words", "days"), [("yesterday", 1), ("last week", 7), ("3 days ago", 3), ("two months ago", 60)]
)
async def test_what_was_made_when_the_query_says_comes_first(desk: MemoryDesk, words: str, days: int) -> None:
    stored = {}
    for ago in (90, 60, 30, 14, 7, 3, 1, 0):
        desk.clock.seconds = 1_800_000_000.0 - ago * DAY
        stored[ago] = await desk.store_memory("the pump was checked", ttl=0)
    found = await desk.ask("hybrid_search_memories", query=f"what happened with the pump {words}")
    first = found.items[0]
    assert (first.memory.id, first.timely) == (stored[days].id, True)
    assert len(found) == len(stored), "time is no filter unless since: says so"


async def test_what_is_linked_with_a_strong_match_is_found(desk: MemoryDesk) -> None:
    first = await desk.store_memory("the pump is fed by tank B")
    second = await desk.store_memory("it was last filled in March")
    await desk.store_memory("sunrise over the crater")
    await desk.ask("create_memory_link", source_memory_id=first.id, target_memory_id=second.id)
    found = (await desk.ask("hybrid_search_memories", query="pump")).items
    assert [one.memory.id for one in found] == [first.id, second.id]
    assert found[0].words == ("pump",)
    assert found[1].link is not None
    assert (found[1].words, found[1].link.target) == ((), second.id)
    elsewhere = await desk.found("pump", memory_type="fact", min_importance=9.0)
    assert elsewhere == []


async def test_the_newer_of_two_that_contradict_comes_first(desk: MemoryDesk) -> None:
    old = await desk.store_memory("the staging server is called otter", ttl=0)
    desk.clock.seconds += DAY
    new = await desk.store_memory("the staging server is called badger")
    (link,) = await desk.ask("suggest_links", memory_id=new.id)
    assert link.type is LinkType.CONTRADICTS
    then = await desk.store.head_seq()
    await desk.ask(
        "create_memory_link", source_memory_id=old.id, target_memory_id=new.id, link_type="contradicts"
    )
    for query in ("staging server", "otter"):
        found = (await desk.ask("hybrid_search_memories", query=query)).items
        assert [(one.memory.id, one.superseded) for one in found] == [(new.id, ""), (old.id, new.id)]
    before = (await desk.ask("hybrid_search_memories", query="otter", as_of=then)).items
    assert [(one.memory.id, one.superseded) for one in before] == [(old.id, "")]


CLAIMS = [
    ("The valve opens at 47 bar", "the valve opens at 50 bar now", True),
    ("we deploy on fridays", "we do not deploy on fridays", True),
    ("the api is down", "the api is up", True),
    ("tank 1 opens at 47 bar", "tank 2 opens at 47 bar", False),
    ("pump three leaks at the lower seal", "pump three leaks at the upper seal", False),
    ("the api is down", "the api is down", False),
    ("", "", False),
]


@pytest.mark.parametrize(("one", "other", "expected"), CLAIMS)
def test_another_value_of_the_same_thing_contradicts(one: str, other: str, expected: bool) -> None:
    level, kind = MemoryLevel.SEMANTIC, MemoryType.FACT
    first, second = (MemoryItem("m", "w", text, level, kind) for text in (one, other))
    assert contradict(first, second) is contradict(second, first) is expected
    assert (suggested_link(first, second) is LinkType.CONTRADICTS) is expected


async def test_nothing_is_said_where_nothing_fits(desk: MemoryDesk) -> None:
    texts = [f"reading {n} of the tank at the north gate, all well" for n in range(60)]
    await asyncio.gather(*(desk.store_memory(text) for text in texts))
    query = "which airline flies from Lisbon to the northern islands at night"
    found = await desk.ask("hybrid_search_memories", query=f"{query}, all year")
    assert (found.items, found.relevant, found.withheld) == ((), False, 10)
    nearest = await desk.ask("hybrid_search_memories", query=f"{query}, all year", nearest=True)
    assert (len(nearest), nearest.relevant) == (10, False)
    assert (await desk.ask("hybrid_search_memories", query="north gate tank")).relevant
