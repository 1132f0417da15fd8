"""An answer that was written for a demonstration, and what most of them are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Written:
    """An answer, and the request that it was written for."""

    who: str = ""
    """Words of the system prompt, by which the scripted server knows who asks."""
    when: str = ""
    """A pattern of the question that only the scripted server goes by."""
    after: tuple[str, ...] = ()
    """Words that the recording goes by, too; none that a prompt says of itself."""
    thinking: str = ""
    text: str = ""
    tool: str = ""
    input: dict[str, Any] = field(default_factory=dict)

    @property
    def tool_input(self) -> str:
        return json.dumps(self.input, ensure_ascii=False) if self.tool else "{}"

    def recorded(self, to: str, input_tokens: int, output_tokens: int) -> dict[str, Any]:
        """As it stands in a recording."""
        fields = {
            "to": to,
            "after": list(self.after),
            "thinking": self.thinking,
            "text": self.text,
            "tool": self.tool,
            "input": self.input,
        }
        return {
            **{name: value for name, value in fields.items() if value},
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
        }


def returned(
    who: str, thinking: str, *, when: str = "", after: tuple[str, ...] = (), **result: Any
) -> Written:
    """A result that an agent returns."""
    return Written(f"You are {who}", when, after, thinking, tool="return_result", input=result)


def quote(source: str, words: str) -> list[dict[str, str]]:
    """The evidence of a claim in a debate."""
    return [{"source": source, "quote": words}]


def reply(claim: str, kind: str, text: str) -> dict[str, str]:
    """What a side says about a claim."""
    return {"claim": claim, "kind": kind, "text": text}


def turn(side: str, when: str, thinking: str, output: str, data: dict[str, Any]) -> Written:
    """The turn of a side of a debate."""
    return returned(f"Side {side}:", thinking, when=when, output=output, data=data)
