"""Texts that give orders: how they are marked, and what of a request stands outside of all fences."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from tests.engine.agent.model_flight import told
from tests.messages_server import Seen

FENCED = re.compile(r"\[material ([0-9a-f]{16}): [^\n]*\]\n.*?\n\[end of material \1\]", re.DOTALL)
MARK = "heliotrope"
"""Stands in every injected text, so that it is found wherever it went."""


def standing(workspace: Path) -> dict[str, str]:
    """Everything around the sandbox but the journal, by its content."""
    return {
        str(path.relative_to(workspace.parent)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(workspace.parent.rglob("*"))
        if path.is_file() and not path.is_relative_to(workspace / "sandbox")
        if not path.is_relative_to(workspace / ".pilothouse")
    }


def loose(seen: Seen) -> str:
    """The words of a request outside of all fences, without what the model itself said."""
    turns = [turn for turn in seen.body["messages"] if turn["role"] == "user"]
    texts = [told(Seen("", {}, {"messages": [turn]})) for turn in turns]
    return FENCED.sub("", "\n".join(texts)) + json.dumps(seen.body["system"])
