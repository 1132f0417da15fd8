"""The AgentSpeak(L) mind of an agent: a reasoner that the events of the agent's stream bring forward.

In: events, and how far it may go on. Out: what it did, as the payload of `reasoner.advanced`.
"""
