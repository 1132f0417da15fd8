"""The web pages in a real browser: the cockpit steps an agent, the page for a phone answers an approval."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright
from web_serving import PILOT, Served, asking, commands, journal, serving, until

from app.gateways.web.tokens import Scope
from tests.patience import PATIENCE_S

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = os.environ.get("PILOTHOUSE_PICTURES")
"""A directory for pictures of the pages."""
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is here: apt-get install chromium")
HOSTILE = '<b id="hostile">bold</b><script>document.title = "owned"</script>'


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    with serving(tmp_path, '[approvals]\ndeny_after = "2h"\n') as program:
        yield program


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # In a container there is no room for its own sandbox; it opens nothing but our pages.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        one = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield one
        finally:
            await one.close()


async def opened(browser: Browser, url: str, width: int, height: int, scheme: str = "dark") -> Page:
    """A page, which must have no error and ask nobody else."""
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
    )
    context.set_default_timeout(PATIENCE_S * 1000)
    page = await context.new_page()
    page.on("console", lambda said: _noted(page, said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: _noted(page, str(error)))
    page.on("request", lambda request: _noted(page, request.url) if not _ours(request.url, url) else None)
    await page.goto(url)
    return page


_NOTES: dict[Page, list[str]] = {}


def _noted(page: Page, text: str) -> None:
    _NOTES.setdefault(page, []).append(text)


def _ours(asked: str, url: str) -> bool:
    return asked.split("/")[2] == url.split("/")[2] or asked.startswith(("data:", "blob:"))


async def picture(page: Page, name: str) -> None:
    """Keep what the page looks like, where that is asked for."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=Path(PICTURES) / f"{name}.png")


async def test_the_phone_page_answers_an_approval(served: Served, browser: Browser) -> None:
    await asking(served.workspace, PILOT, f"write '{HOSTILE}' to a.txt")
    page = await opened(browser, served.url, 360, 640)
    await page.wait_for_url("**/login")
    await picture(page, "login")
    await page.fill("#token", "ph_wrong")
    await page.click("text=Log in")
    await page.wait_for_selector("text=no such token")
    await page.fill("#token", served.token("phone"))
    await page.click("text=Log in")
    await page.wait_for_selector("text=Approve once")
    await page.wait_for_selector("text=denied in")
    assert await page.evaluate("document.documentElement.scrollWidth") == 360, (
        "nothing is wider than the phone"
    )
    assert await page.query_selector("#hostile") is None
    assert "owned" not in await page.title()
    await picture(page, "phone-dark")
    await page.emulate_media(color_scheme="light")
    await picture(page, "phone-light")
    cards = page.locator("#needs article")
    thing = await cards.first.get_attribute("data-thing")
    await page.click("text=Approve once")
    await page.wait_for_selector(f"text={thing} allowed once")

    async def answers() -> list[str]:
        events = await journal(served.workspace)
        return [event.actor for event in events if event.kind == "approval.answered"]

    assert (await until(answers, bool))[0] == "operator:phone"
    second = "create a Python project named 'demo'"
    await commands(served.workspace, {"do": "adopt_goal", "agent": PILOT, "text": second})
    await page.wait_for_selector(f"article:not([data-thing='{thing}']) >> text=Deny")
    await page.fill("#needs input", "not today")
    await page.click("text=Deny")
    await page.wait_for_selector("text=denied: not today")
    page.on("dialog", lambda dialog: dialog.accept())
    await page.click("text=Stop all agents")
    await page.wait_for_selector("#stop", state="hidden")
    await picture(page, "phone-stopped")
    expected = "Failed to load resource: the server responded with a status of 401"
    assert [note for note in _NOTES.get(page, []) if expected not in note] == []


async def test_the_web_cockpit_steps_an_agent_and_shows_the_result(served: Served, browser: Browser) -> None:
    about = {"agent": PILOT}
    await commands(
        served.workspace,
        {"do": "create_agent", **about},
        {"do": "adopt_goal", "text": "write hello to a.txt", **about},
    )
    page = await opened(browser, f"{served.url}login#{served.link}", 1200, 800)
    await page.click("text=Cockpit")
    await page.wait_for_selector("body.-first-byte")
    await page.wait_for_selector(".xterm-screen")

    async def shown() -> str:
        events = await journal(served.workspace)
        return " ".join(event.kind for event in events)

    async def attached() -> bool:
        return "access.used" in await shown()

    await until(attached, bool)
    await page.wait_for_timeout(3_000)
    await page.keyboard.press("s")
    await until(shown, lambda kinds: "action.finished" in kinds)
    assert (served.workspace / "sandbox/a.txt").read_text().strip() == "hello"
    await page.wait_for_timeout(1_500)
    await picture(page, "cockpit")
    steps = [event for event in await journal(served.workspace) if event.kind == "command.received"]
    assert "step" in steps[-1].body
    await page.close()

    watching = await opened(browser, served.url, 800, 600)
    await watching.wait_for_url("**/login")
    await watching.fill("#token", served.token("eyes", Scope.WATCH))
    await watching.click("text=Log in")
    await watching.click("text=Cockpit")
    await watching.wait_for_selector("body.-first-byte")
    await watching.wait_for_timeout(3_000)
    before = len(await journal(served.workspace))
    await watching.keyboard.press("s")
    await watching.wait_for_timeout(1_500)
    await picture(watching, "cockpit-watching")
    assert len(await journal(served.workspace)) == before, "who watches changes nothing"
