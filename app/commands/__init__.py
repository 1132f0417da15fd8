"""The commands of the bar, a module a noun: what a line means, its preview, and what carries it out."""
