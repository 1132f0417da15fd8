"""Building agents in an open workspace: who registers them, how they are proved, and the built-in ones.

In: skills, by `Builds`. Out: events of the crew's stream (`BuildStaged`, `AgentRegistered`).
"""
