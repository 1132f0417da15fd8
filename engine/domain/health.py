"""What does not work in a workspace just now, as told to the operator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """What does not work, in words; empty when all is well."""

    journal: str = ""
    library: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    """Parts of prompts that were left out when they were read last, with what is wrong with them."""
    agents: tuple[str, ...] = ()
    """Agents that ended by a fault of the program or could not be taken up, with the reason."""
    sandbox: str = ""
    """Why no program may run here, when the jail that the policy requires cannot be had."""
    snapshots: str = ""
    """Why old snapshots could not be cleared away; new ones are taken all the same."""
    states: tuple[str, ...] = ()
    """What opening found damaged, and how it went on: a torn end, kept states that were built again."""
    memory: str = ""
    """Why memory is not to be had, or holds not all that it should; agents go on without."""
    memory_behind: int = 0
    """Events of the journal that memory has not been written from yet."""
    servers: tuple[str, ...] = ()
    """What is wrong with MCP servers or their settings, a line each."""
