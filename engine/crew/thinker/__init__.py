"""The thinker of a crew's agents: prompts from a specification, answers into steps."""
