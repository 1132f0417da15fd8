"""What goes on in agents' sandbox sessions beside their calls; see `engine.domain.ports.SessionControl`."""

from __future__ import annotations

from engine.sandbox.jobs import Jobs


class Sessions:
    """The background jobs of all agents of one sandbox, as the agents' lives reach them."""

    def __init__(self) -> None:
        self.jobs = Jobs()

    def return_shell(self, agent: str) -> None:
        """Nothing to be done: no shell is opened yet."""

    def stop_job(self, agent: str, job: str) -> None:
        """End a background job; its end is observed soon after."""
        self.jobs.stop(agent, job)

    def stop_jobs(self, agent: str) -> None:
        """End all of the agent's background jobs."""
        self.jobs.stop_all(agent)

    async def close(self, agent: str) -> None:
        """End everything of the agent, and return when all ends were observed."""
        await self.jobs.close(agent)
