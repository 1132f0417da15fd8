"""The nouns of the house as plain values, with no I/O and no clock.

Every other room speaks in these: goals, plan steps, beliefs, actions, failures,
agent states, commands, and the ports through which everything not determined enters.
"""
