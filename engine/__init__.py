"""The engine: agents that think and act, with every happening an event in one journal.

It knows nothing of screens. Commands enter through `engine.api.engine.Engine.submit`, events come out of
`Engine.events`; there is no other way. Packages that many sessions never need (models, the reasoner, MCP
servers) are imported inside the functions that open them, so that a start stays short.
"""

from __future__ import annotations

__version__ = "0.2.0"
