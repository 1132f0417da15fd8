"""An AgentSpeak(L) reasoner as an agent's mind; its actions are tool calls."""
