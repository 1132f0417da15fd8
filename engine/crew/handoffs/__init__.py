"""Handoffs between agents: admission, queue, deadlines, ends and requests to the operator."""
