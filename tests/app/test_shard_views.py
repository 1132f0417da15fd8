"""The rows of the board over all shards."""

from __future__ import annotations

from app.projection.shard_views import ShardBoard, ShardView
from widgets.dialogs.fleet import FleetModel


def agents(*names: str, goal: str = "") -> list[dict[str, str]]:
    return [{"agent": name, "run": "running", "goal": goal} for name in names]


def taken(board: ShardBoard, *shards: ShardView) -> FleetModel:
    for shard in shards:
        board.take(shard)
    return board.model()


def test_who_needs_you_is_first_and_the_others_stand_by_shard_and_number() -> None:
    needs = [
        {"agent": "a-9", "kind": "approval", "what": "may it?"},
        {"agent": "a-1", "kind": "x", "what": "y"},
    ]
    shards = [
        ShardView(1, "shard-1", agents("a-10", "a-2")),
        ShardView(2, "shard-2", agents("a-1", "a-3", "a-9"), needs, "does not answer"),
    ]
    model = taken(ShardBoard(), *shards)
    assert [row.key for row in model.rows] == ["2 a-9", "2 a-1", "1 a-2", "1 a-10", "2 a-3"]
    assert model.standing == "shard-2: does not answer · 5 agents on 2 shards · 3 idle · 2 waiting"


def test_only_rows_of_agents_that_changed_are_made_again_and_labels_stay() -> None:
    board = ShardBoard()
    before = taken(board, ShardView(1, "shard-1", agents("b", "c"))).rows
    now = [*agents("a"), *agents("b", goal="g"), *agents("c")]
    after = taken(board, ShardView(1, "shard-1", now)).rows
    assert [row.name for row in after] == ["a", "b", "c"]
    assert after[2] is before[1]
    assert (after[1].label, after[1].work) == (before[0].label, "g")
    assert [row.name for row in taken(board, ShardView(1, "shard-1", agents("c"))).rows] == ["c"]
