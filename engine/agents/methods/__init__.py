"""What the types of agents do, as state machines without a clock, a model or a file (ontology spec
§1.11, §1.12).
"""
