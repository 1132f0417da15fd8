"""The AgentSpeak(L) reasoner: programs, beliefs, plans, intentions and the cycle that runs them.

What enters: the text of programs, percepts, messages, feedback on actions, and the time. What leaves:
requests for actions, messages, and a trace. Nothing here does I/O or knows a clock, and only the standard
library is imported.

A program is read (`parser`), loaded once (`loading`) and run by any number of agents (`agent`), alone or
together (`system`). Formulas are compiled to nodes that a query walks (`compiler`, `nodes`, `held`,
`queries`), bodies to flat code (`bodies`, `instructions`). What an operator sees and does is in `views`,
`viewing` and `control`, where one wants an agent held in `breakpoints`, an agent's state as data in `saving`.
"""
