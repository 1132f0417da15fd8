"""The cockpit and a page for a phone over HTTP, in a process of its own that is a client of the engine's socket.

`process` starts and watches it, `server` is it; `tokens` says who may come in, `guard` holds requests to that.
"""
