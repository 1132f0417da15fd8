"""The AgentSpeak(L) reasoner: terms, parser, beliefs, plans and cycle; pure, without I/O or a clock."""
