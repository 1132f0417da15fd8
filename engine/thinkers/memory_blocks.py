"""What memory tells a model: a context package as named blocks of a prompt, all of it material.

Whatever a tool, a file or an earlier model left in memory stands inside a fence (spec sandbox §0): an
instruction that is quoted there is something to know about and never one to follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from engine.journal.event import canonical
from engine.memory.package import ContextPackage, Part
from engine.memory.packing import PackedBlock, pack
from engine.models import Text, fence
from engine.models.blocks import block_body
from engine.models.request import estimate_tokens

TITLES: Mapping[Part, tuple[str, str]] = MappingProxyType(
    {
        Part.SITUATION: ("situation", "where the agent stands"),
        Part.GOALS: ("goals", "the goals that this one serves, nearest first"),
        Part.WORKING: ("memory", "what is in mind, the focus first"),
        Part.CORE: ("workflow", "the work that all this belongs to"),
        Part.ACTIONS: ("actions", "the newest actions and what came of them"),
        Part.IMPORTANT: ("important", "the most important memories"),
        Part.THOUGHTS: ("thoughts", "thoughts that matter, newest first"),
        Part.LINKS: ("links", "memories linked with the one in focus"),
        Part.PROACTIVE: ("recalled", "memories that may help with the next step"),
        Part.PROCEDURES: ("procedures", "settled ways of doing such things"),
    }
)
"""Of each part the block's name, for the context meter, and what the model reads on its fence."""

_LONGEST_TITLE = max((title for _, title in TITLES.values()), key=len)


def memory_blocks(package: ContextPackage, budget_tokens: int) -> tuple[Text, ...]:
    """A package as blocks for a prompt, within a budget with their fences, in the order of the parts.

    Args:
        package: what was gathered.
        budget_tokens: tokens that the blocks may take, as `ModelRequest.shares` estimates them.

    Raises:
        ValueError: the budget is too small for the situation alone.
    """
    return tuple(_block(one) for one in pack(package, budget_tokens, block_tokens))


def block_tokens(text: str) -> int:
    """Tokens of a part's text as a block of a request, with its fence; a little more than it will take."""
    return estimate_tokens(canonical(block_body(Text(_fenced(_LONGEST_TITLE, text)))))


def _block(packed: PackedBlock) -> Text:
    name, title = TITLES[packed.part]
    return Text(_fenced(title, packed.text), name)


def _fenced(title: str, text: str) -> str:
    # Packed to its length already; a cut would make it no JSON any more.
    return fence(title, text, limit=len(text) + 1)
