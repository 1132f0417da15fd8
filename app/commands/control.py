"""Commands about who holds the controls of an agent, where several operators work with one engine."""

from __future__ import annotations

from app.commands.arguments import Word
from app.commands.command import Answer, CommandHost, Form, Group, Show, Submit, Values, chosen_agent
from engine.core import commands as cmd

command = Group("Steering")


async def show_control(host: CommandHost, _values: Values) -> Answer:
    """Who holds the agent's controls, who asked for them, and who is connected."""
    agent, engine = chosen_agent(host), host.engine
    control = (await engine.view(agent)).control
    asked = [name for name, _event in control.asked]
    connected = {str(row["operator"]): bool(row["watch"]) for row in engine.clients}
    answer = {"agent": agent, "holder": control.holder, "since": control.since, "asked": asked}
    text = f"nobody holds the controls of {agent}"
    if control.holder:
        away = "" if control.holder in connected else ", not connected now"
        since = control.since[:16].replace("T", " ")
        text = f"{control.holder} has held the controls of {agent} since {since} UTC{away}"
    lines = [text, *(f"{name} asks for them: control give {name}" for name in asked)]
    names = [f"{name} watches" if watches else name for name, watches in sorted(connected.items())]
    lines += [f"connected: {', '.join(names)}"] if names else []
    return 0, {**answer, "connected": connected}, "\n".join(lines)


COMMANDS = (
    command(
        "control",
        Show(show_control),
        forms=(
            Form(Submit(cmd.AskControl), word="ask"),
            Form(Submit(cmd.TakeControl), word="take"),
            Form(Submit(cmd.GiveControl), (Word("to", "an operator", shown="OPERATOR"),), word="give"),
            Form(Submit(cmd.FreeControl), word="free"),
        ),
    ),
)
