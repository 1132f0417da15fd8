"""The AgentSpeak(L) reasoner: programs, beliefs, plans, intentions and the cycle that runs them.

What enters: the text of programs, percepts, messages, feedback on actions, and the time. What leaves:
requests for actions, messages, and a trace. Nothing here does I/O or knows a clock, and only the standard
library is imported.
"""
