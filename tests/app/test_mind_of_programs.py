"""What another program says is shown a message a line, and each of its calls on a line of its own."""

from __future__ import annotations

from app.projection.projector import Projector
from engine.core import events as ev
from engine.core.agents import ACP, AgentConfig
from engine.core.journal import Event
from engine.core.state import AgentState

SAID = (
    ("text", "I look "),
    ("text", "first.\n\n"),
    ("text", "Now I know.\n\nOne"),
    ("text", " more."),
    ("tool input", "read notes.txt: completed, not asked about\nsearch x: comp"),
    ("tool input", "leted, not asked about\n"),
    ("tool input", "read a.txt: failed, not asked about\n"),
)


def told(thinker: str) -> list[str]:
    """The lines of the mind pane; no two have one key."""
    projector = Projector()
    projector.add("dev", AgentState(agent_id="dev", config=AgentConfig(thinker=thinker)), [])
    for number, (stream, text) in enumerate(SAID, 1):
        payload = ev.ModelSaid(stream=stream, text=text)
        at = "2026-01-01T00:00:00.000Z"
        event = Event("dev", number, at, 0, "thinker", (), payload.kind, payload.body(), str(number))
        projector.take(event)
    rows = projector.mind().rows
    assert len({row.key for row in rows}) == len(rows)
    return [row.copy for row in rows]


def test_messages_and_calls_of_a_program_stand_on_lines_of_their_own() -> None:
    assert told(ACP) == [
        "I look first.",
        "Now I know.",
        "One more.",
        "read notes.txt: completed, not asked about",
        "search x: completed, not asked about",
        "read a.txt: failed, not asked about",
    ]


def test_the_answer_of_a_model_is_one_line_a_stream() -> None:
    assert len(told("claude")) == 2
