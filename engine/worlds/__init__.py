"""Small worlds that agents are measured in, with the answers that models gave there.

In: actions. Out: percepts and feedback. A world is a value; randomness is given to it.
"""
