"""The ontology of a crew: what agents are, what they hand to each other and what comes back, as plain values.

Pure: nothing here reads a file, a clock or a journal. Source: agent ontology spec §1.
"""
