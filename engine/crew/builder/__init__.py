"""From a folder with a SKILL.md to a registered and tested agent, in seven phases."""
