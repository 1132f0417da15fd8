"""The engine's public face: open a workspace, submit commands, read events, ask and replay."""
