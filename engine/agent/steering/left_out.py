"""What an agent's prompts leave out of what it did and believes, and the whole of it from the journal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from engine.core import events as ev
from engine.core.journal import BlobError, canonical
from engine.core.restored import RESTORED_LIMIT, RestoredText
from engine.core.state import AgentState
from engine.core.store.blobs import BlobStore
from engine.core.store.port import JournalStore
from engine.core.text import clean_line
from engine.core.thinking import BELIEF_LIMIT, RecentAction
from engine.value import dataclass

LOOKED_AT = 5_000
"""The newest actions among which one is looked for."""
_CUT = re.compile(r"… \(([\d,]+ (?:characters|items)(?: more)?)\)")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of which a prompt has a part, or nothing."""

    what: str
    """What `restore_context` takes; empty where it stands for several."""
    about: str


def left_out(state: AgentState) -> Iterator[LeftOut]:
    """What the next prompt leaves out, the newest first, without what the operator brought back."""
    back = {each.what for each in state.restored}
    for action in reversed(state.recent):
        cut = _CUT.search(action.answer)
        if action.action not in back and (cut or not state.config.decides):
            how = f"its answer is cut ({cut[1]})" if cut and state.config.decides else "its answer"
            yield LeftOut(action.action, f"{_words(action)}: {how}")
    for key, belief in state.beliefs.items():
        if key not in back and (size := len(canonical(belief.value))) > BELIEF_LIMIT:
            yield LeftOut(key, f"belief {key}: {BELIEF_LIMIT} of {size:,} characters")
    if (earlier := state.actions - len(state.recent)) > 0 and state.recent:
        yield LeftOut("", f"{earlier:,} earlier actions with their answers, such as a1")


def _words(action: RecentAction) -> str:
    path = action.args.get("path") or action.args.get("command") or ""
    return clean_line(f"{action.command} {path}".strip(), limit=80)


async def whole_text(
    store: JournalStore, blobs: BlobStore, state: AgentState, what: str
) -> RestoredText | None:
    """What an action answered or a belief holds, whole; None where there is neither.

    Raises:
        JournalError: the journal cannot be read.
    """
    from engine.models.request import estimate_tokens  # late: most sessions ask no model

    if (belief := state.beliefs.get(what)) is not None:
        about, text = f"belief {what}", canonical(belief.value)
    elif re.fullmatch(r"a\d{1,9}", what):
        about, text = await _answer(store, blobs, state.agent_id, what)
    else:
        return None
    if len(text) > RESTORED_LIMIT:
        half = RESTORED_LIMIT // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half:,} characters are left out]\n{text[-half:]}"
    return RestoredText(what, about, text, estimate_tokens(text)) if about else None


async def _answer(store: JournalStore, blobs: BlobStore, agent: str, action: str) -> tuple[str, str]:
    about = ""
    for event in reversed(await store.last(LOOKED_AT, agent, kind=ev.ActionRequested.kind)):
        asked = ev.payload_of(event)
        if isinstance(asked, ev.ActionRequested) and asked.action == action:
            path = asked.args.get("path") or asked.args.get("command") or ""
            about = clean_line(f"the answer to {action} {asked.command} {path}".strip(), limit=160)
            break
    for event in reversed(await store.last(LOOKED_AT, agent, kind=ev.ActionFinished.kind)):
        ended = ev.payload_of(event)
        if about and isinstance(ended, ev.ActionFinished) and ended.action == action:
            result = ended.result
            if ended.blob is not None:
                try:
                    result = json.loads(await blobs.get(ended.blob))
                except (BlobError, ValueError):
                    about += " (cut: its whole text is not kept here)"
            return about, canonical(result)
    return "", ""
