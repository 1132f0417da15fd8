"""A crew: agents that hand work to each other, under one manager, in one stream of the journal.

`engine.crew.crew.Crew` is opened by the engine when it is first needed. Source: ontology spec §1.8–§1.15.
"""
