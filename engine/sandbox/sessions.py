"""What goes on in agents' sandbox sessions beside their calls; see `engine.domain.ports.SessionControl`."""

from __future__ import annotations

from collections.abc import Sequence

from engine.sandbox.jobs import Jobs
from engine.sandbox.shell import OperatorShell
from engine.sandbox.terminal import Terminal
from engine.sandbox.trees import ProcessTree, Trees


class Sessions:
    """The jobs and the operator's shells of all agents of one sandbox, as the agents' lives reach them."""

    def __init__(self) -> None:
        self.trees = Trees()
        """The processes of all of these, and of commands."""
        self.jobs = Jobs(self.trees)
        self.shells: dict[str, OperatorShell] = {}
        """Shells that are open, by agent."""

    def terminal(self, agent: str) -> Terminal | None:
        """The operator's terminal in the agent's sandbox, or None when it has no shell open."""
        shell = self.shells.get(agent)
        return shell.terminal if shell is not None and shell.terminal.open else None

    def return_shell(self, agent: str, note: str) -> None:
        """Let the operator's shell end in good order; its action finishes soon after."""
        shell = self.shells.get(agent)
        if shell is not None:
            shell.hand_back(note)

    def stop_job(self, agent: str, job: str) -> None:
        """End a background job; its end is observed soon after."""
        self.jobs.stop(agent, job)

    def stop_jobs(self, agent: str) -> None:
        """End all of the agent's background jobs; nothing of it is frozen any more."""
        self.trees.give_up(agent)
        self.jobs.stop_all(agent)

    def freeze(self, agent: str) -> None:
        """Stop all of the agent's processes where they are."""
        self.trees.freeze(agent)

    def thaw(self, agent: str) -> None:
        """Let all of the agent's processes go on."""
        self.trees.thaw(agent)

    def processes(self, agent: str) -> Sequence[ProcessTree]:
        """The agent's process trees that are not over."""
        return self.trees.of(agent)

    async def close(self, agent: str) -> None:
        """End everything of the agent, and return when all ends were observed; its shell ended before."""
        await self.jobs.close(agent)
