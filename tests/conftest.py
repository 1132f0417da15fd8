"""What holds for every test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks the model of the person who runs the tests."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "PILOTHOUSE_MODEL"):
        monkeypatch.delenv(name, raising=False)
