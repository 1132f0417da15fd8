"""The catalogue of attacks of sandbox spec §6 as one suite; `python -m tests.security` prints what came of each.

`cases` says for each of the hundred numbers what is attempted, what must come of it and which checks try it.
`inside` holds the attempts made in a jail, `native` and `race` those on the file commands, which need no jail;
the other checks are tests of this repository, named by their node ids. `measure` runs them, `report` prints.
"""
