"""The Agent Client Protocol: editors and terminals open agents of a workspace as sessions.

In come requests of a client over standard streams, out go session updates made of the agent's events. A
session is an agent; whatever it does passes the engine's gate, and the engine may be another program's.
Imported by `pilothouse acp` alone, as the protocol's library takes a moment.
"""
