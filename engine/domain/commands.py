"""Deprecated: the commands of the engine as plug-ins of 0.1 import them; see `app/guide/plugins.md`."""

import warnings

from engine.core.commands import *  # noqa: F403 - whatever plug-ins of 0.1 imported

warnings.warn(
    "engine.domain.commands is deprecated: import engine.core.commands", DeprecationWarning, stacklevel=2
)
