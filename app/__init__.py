"""How a person uses the engine: command line, headless runs, and the cockpit.

In: keys, clicks, command lines. Out: commands to the engine, and what its events look like to a person.
"""
