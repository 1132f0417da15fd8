"""Deprecated: `Verb` and `Local` as plug-ins of 0.1 import them; see `app/guide/plugins.md`."""

import warnings

from app.commands.verb import GrammarError, Local, Verb

__all__ = ["GrammarError", "Local", "Verb"]

warnings.warn(
    "app.verb is deprecated: declare an app.commands.command.Command", DeprecationWarning, stacklevel=2
)
