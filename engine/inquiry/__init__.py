"""Questions about what is recorded, answered from the journal; nothing here changes anything or asks a model.

Events, states and files come in; plain values with references leave. Whoever shows them cleans their text.
"""
