"""The command about what of a workspace's folder its user trusts."""

from __future__ import annotations

import asyncio
import re

from app.commands.arguments import Word
from app.commands.command import Answer, Command, CommandHost, Context, GrammarError, Show, Values, late
from engine.core.text import clean
from engine.core.trust import FolderTrust, TrustError
from engine.value import fields_of

REVOKE = "revoke"
DIGEST = re.compile(r"[0-9a-f]{32}")


def shown(trust: FolderTrust) -> Answer:
    """What is in the folder and whether it counts, as an answer; blocking."""
    items = late("folder_items:items_of")(trust)
    left_out = bool(trust.untrusted) or trust.foreign
    answer = {
        "trusted": not left_out,
        "digest": trust.digest,
        "items": [fields_of(item, "path", "how", "would") for item in items],
    }
    if not items:
        return 0, answer, "nothing in the folder has to be trusted"
    words = (
        f"not trusted: it counts only where it tightens. pilothouse trust --digest {trust.digest} trusts "
        "exactly this"
        if left_out
        else "trusted as it is; pilothouse trust --revoke takes that back"
    )
    text = "\n".join([*(item.text for item in items), words])
    return (3 if left_out else 0), answer, clean(text, limit=len(text))


def change(trust: FolderTrust, word: str) -> Answer:
    """Trust what has this digest, or nothing any more for `revoke`; blocking."""
    try:
        if word == REVOKE:
            text = "the folder is no longer trusted" if trust.revoke() else "it was not trusted"
        else:
            why = trust.trust(word)
            text = f"trusted until this program ends: {why}" if why else "trusted as it is now"
    except TrustError as error:
        return 2, {"ok": False, "message": str(error)}, str(error)
    return 0, {"ok": True, "message": text, "digest": trust.digest}, text


def _digest(text: str, _context: Context) -> str:
    if text != REVOKE and not DIGEST.fullmatch(text):
        raise GrammarError(f"'{text[:40]}' is neither a digest, as trust shows it, nor {REVOKE}")
    return text


async def _trust(host: CommandHost, values: Values) -> Answer:
    """Show what has to be trusted, or change whether it is."""
    trust, word = host.engine.trust, values["digest"]
    if trust is None:
        return 0, {"trusted": True}, "whoever opened this workspace answers for its folder"
    if not word:
        await asyncio.to_thread(trust.look)
        return await asyncio.to_thread(shown, trust)
    if host.engine.watching:
        return 2, {}, "who only watches trusts nothing"
    code, answer, text = await asyncio.to_thread(change, trust, word)
    later = "; settings, servers and agents follow when the workspace is opened again" if not code else ""
    return code, answer, f"{text}{later}"


COMMANDS = (
    Command(
        "trust",
        "what in the workspace's folder counts once you trust it; its digest trusts it, revoke undoes that",
        Show(_trust),
        (Word("digest", "a digest", optional=True, shown="DIGEST|revoke", parse=_digest),),
        "Workspace",
    ),
)
