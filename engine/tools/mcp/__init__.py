"""MCP servers: started, watched and reconnected; their tools as tools of the engine."""
