"""How goals become plans: recipes, generated plans and thinkers."""
