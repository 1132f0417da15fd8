"""The Unified Memory System: what agents remember over time, and how they find it again.

What may enter: requests, checked at the border. What leaves: frozen values, and events in the journal's
stream `workspace@memory`, from which `memory.db` can be built again at any time.
"""

from engine.memory.embedding import Embedder, EmbedderUnavailable, HashEmbedder, NoEmbedder
from engine.memory.errors import (
    MemoryFault,
    MemoryInputError,
    MemoryNotFound,
    MemoryRefused,
    MemoryUnavailable,
)
from engine.memory.memory import Memory, MemoryStatus

__all__ = [
    "Embedder",
    "EmbedderUnavailable",
    "HashEmbedder",
    "Memory",
    "MemoryFault",
    "MemoryInputError",
    "MemoryNotFound",
    "MemoryRefused",
    "MemoryStatus",
    "MemoryUnavailable",
    "NoEmbedder",
]
