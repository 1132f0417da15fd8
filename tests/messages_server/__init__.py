"""A scripted server that speaks the Messages API, on loopback and over real sockets.

A script is a list of replies, given one a request; each can be slow, break off, fail or talk nonsense.
As a program, for trying the cockpit by hand: `python -m tests.messages_server SCRIPT.json [PORT]`.
"""

from __future__ import annotations

from tests.messages_server.replies import Reply, call, failure, object_call, plan_call
from tests.messages_server.server import MessagesServer, Seen, serving

__all__ = ["MessagesServer", "Reply", "Seen", "call", "failure", "object_call", "plan_call", "serving"]
