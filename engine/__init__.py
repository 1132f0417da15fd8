"""The engine: agents that think and act, with every happening an event in one journal.

It knows nothing of screens. Commands enter through `engine.engine.Engine.submit`,
events leave through `engine.engine.Engine.events`; there is no other door.
"""

__version__ = "0.1.0"
