"""What calls cost and may cost at most; pure arithmetic in exact decimals."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from engine.core.budgets import Spent
from engine.value import dataclass

if TYPE_CHECKING:
    from engine.models.messages import Usage
    from engine.models.model_table import Capabilities, Price
    from engine.models.request import ModelRequest


_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one or more calls took."""

    usd: Decimal = Decimal(0)
    """US dollars of the calls whose price is known."""
    tokens: int = 0
    calls: int = 0
    unpriced: int = 0
    """Calls of unknown price; then `usd` is only part of the sum."""
    estimated: bool = False
    """True when some tokens were not counted by the endpoint."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.usd + other.usd,
            self.tokens + other.tokens,
            self.calls + other.calls,
            self.unpriced + other.unpriced,
            self.estimated or other.estimated,
        )

    @property
    def spent(self) -> Spent:
        """As what counts for budgets."""
        return Spent(self.calls, self.tokens, float(self.usd), self.unpriced)

    def __str__(self) -> str:
        """`$0.0123`, with what is missing or guessed said in words."""
        if self.calls and self.unpriced == self.calls:
            return "price unknown"
        about = "about " if self.estimated else ""
        rest = f" and {self.unpriced} calls of unknown price" if self.unpriced else ""
        return f"{about}${self.usd:.4f}{rest}"


def cost_of(usage: Usage, capabilities: Capabilities) -> Cost:
    """What a call took, at the price of the band that its prompt falls into."""
    price = capabilities.price(usage.prompt_tokens)
    if price is None:
        return Cost(tokens=usage.total_tokens, calls=1, unpriced=1, estimated=usage.estimated)
    return Cost(_usd(usage, price), usage.total_tokens, 1, 0, usage.estimated)


def _usd(usage: Usage, price: Price) -> Decimal:
    parts = (
        usage.input_tokens * price.input,
        usage.output_tokens * price.output,
        usage.cache_read_tokens * price.cache_read,
        usage.cache_write_tokens * price.cache_write,
        usage.cache_write_1h_tokens * price.cache_write_1h,
    )
    return sum(parts, Decimal(0)) / _MILLION


def maximum_cost(request: ModelRequest, capabilities: Capabilities) -> Cost:
    """The most that a request can take; its prompt is estimated."""
    prompt = sum(tokens for _, tokens in request.shares())
    return worst_case(prompt, request.max_tokens, capabilities)


def worst_case(prompt: int, max_tokens: int, capabilities: Capabilities) -> Cost:
    """The most a call can take: its prompt at the dearest way of reading it, and the longest answer."""
    price, tokens = capabilities.price(prompt), prompt + max_tokens
    if price is None:
        return Cost(tokens=tokens, calls=1, unpriced=1, estimated=True)
    dearest = max(price.input, price.cache_write)
    return Cost((prompt * dearest + max_tokens * price.output) / _MILLION, tokens, 1, 0, True)
