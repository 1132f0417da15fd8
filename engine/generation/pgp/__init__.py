"""The plan generation procedure of a BDI agent, without its embedding: pure functions and values.

In: a goal without plans, the agent as documented, and the words of a model. Out: prompts; plans that may
be installed, each refused one with its reason; what became of them since (spec BDI §2).
"""
