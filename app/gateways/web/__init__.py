"""The cockpit and a page for a phone over HTTP, in a process of its own beside that of the engine.

`process` starts and watches it; `server` is it, a client of the engine's socket. `tokens` says who may
come in, `guard` holds requests to that.
"""
