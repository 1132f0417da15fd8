"""The catalogue of attacks of sandbox spec §6 as one suite, run and printed by `python -m tests.security`.

`cases` says for each of the hundred numbers what is attempted, what must come of it and what tries it.
`inside` holds the attempts made in a jail, `native` and `race` those on the file commands, which need no
jail; the other checks are tests of this repository, by node id. `measure` runs them, `report` prints.
"""
