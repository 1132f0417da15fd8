"""The panes: what the operator sees and touches, each with its own frozen view model beside it.

In come view models through `show`, for the session batches of output through `append`, and for the
operator's shell bytes through `put`.
Out goes what a pane or dialog cannot do itself, as `Requested` (see `widgets.base.line_pane`), and
`CopyRequested`.
A pane knows no engine object; of the engine it uses only the cleaning of untrusted text,
which every pane applies once more to whatever it is given. Markup is never parsed.
"""
