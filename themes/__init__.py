"""Themes as data: one TOML file each, those of the cockpit in `data`, the operator's own in a folder.

In come TOML files; out go checked `textual.theme.Theme` values for `App.register_theme`.
Colour is never the only sign of anything, so a theme can change every colour.
"""
