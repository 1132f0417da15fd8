"""The journal: events in, events out, and state as a fold of them.

What may enter: payloads from the engine. What leaves: durable, hash-chained events.
"""
