"""The builder: from a SKILL.md folder to a registered, tested agent, in seven phases that can fail.

`engine.building.builder.Builder` is the door. Source: ontology spec §2.
"""
