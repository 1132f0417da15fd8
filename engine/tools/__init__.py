"""The tools of agents: registry, SimpleCoder, the belief tool, MCP servers and worlds."""
