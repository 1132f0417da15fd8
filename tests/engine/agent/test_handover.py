"""Offers after the operator's shell: a function of what is on record, whatever that is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.agent.perception import LISTED, TEXT_LIMIT, offer_changes
from engine.core.actions import SandboxSession
from engine.core.sandbox import ReturnedShell
from engine.core.text import clean_line
from engine.sandbox.snapshots.entry import Changes

texts = st.text(max_size=12)
paths = st.lists(texts, max_size=LISTED + 9).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
names = st.lists(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), max_size=LISTED + 9)
as_told = st.fixed_dictionaries(
    {},
    optional={
        "note": texts,
        "cwd": texts,
        "venv": st.none() | texts,
        "commands": st.lists(texts, max_size=LISTED + 9),
        "processes": st.lists(texts, max_size=LISTED + 9),
        "variables": st.fixed_dictionaries({"added": names, "changed": names, "removed": names}),
    },
)
keys = ["note", "cwd", "venv", "commands", "processes", "variables"]
answers = as_told | st.dictionaries(st.sampled_from(keys), json_values)
changes = texts | st.builds(Changes, paths, paths, paths, paths, st.integers(0, 9))
sessions = st.builds(SandboxSession, texts, st.none() | texts, st.booleans())


@given(answers, changes, sessions)
def test_offers_are_bounded_plain_and_said_once(
    answer: dict[str, Any], changed: Changes | str, session: SandboxSession
) -> None:
    offered = offer_changes(ReturnedShell("a1", "", answer), changed, session)
    if offered is None:
        return
    assert offered.offers or offered.session not in (None, session)
    assert len({offer.key for offer in offered.offers}) == len(offered.offers)
    for offer in offered.offers:
        assert json.loads(json.dumps(offer.value)) == offer.value
        assert len(offer.text) <= TEXT_LIMIT
        assert offer.text == clean_line(offer.text)
        lists = offer.value.values() if isinstance(offer.value, dict) else [offer.value]
        assert all(len(one) <= LISTED + 1 for one in lists if isinstance(one, list))
    assert offered.session is None or offered.session.autonomous is session.autonomous


@given(as_told, paths, paths, paths, paths)
def test_every_change_is_in_an_offer_or_counted(
    answer: dict[str, Any],
    added: tuple[str, ...],
    removed: tuple[str, ...],
    changed: tuple[str, ...],
    modes: tuple[str, ...],
) -> None:
    session = SandboxSession(str(answer.get("cwd", ".")), answer.get("venv"))
    offered = offer_changes(ReturnedShell("a1", "", answer), Changes(added, removed, changed, modes), session)
    values = {offer.key: offer.value for offer in offered.offers} if offered else {}
    expected = {
        "files.added": len(added),
        "files.changed": len({*changed, *modes}),
        "files.removed": len(removed),
        "operator.processes": len(answer.get("processes", [])),
    }
    for key, count in expected.items():
        value = values.get(key, [])
        told = len(value) if count <= LISTED else LISTED + int(value[-1].split()[1])
        assert told == count, key
    variables = offered_names(answer)
    assert values.get("operator.variables", {}) == variables
    assert values.get("operator.note", "") == answer.get("note", "")
    nothing = not any((*expected.values(), variables, answer.get("note")))
    assert (offered is None) == nothing


def offered_names(answer: dict[str, Any]) -> dict[str, list[str]]:
    """The names of variables as they are offered."""
    return {kind: found[:LISTED] for kind, found in answer.get("variables", {}).items() if found}
