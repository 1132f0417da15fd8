"""Web pages over HTTP: who may come in and do what, hostile requests, answers, and what is recorded of it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import aiohttp
import pytest
from web_serving import PILOT, Served, asking, commands, journal, page, serving, until

from app.cli.main import main
from app.cli.ps import engine_row
from app.cli.tokens import run as run_tokens
from app.gateways.addresses import record_of
from app.gateways.engine_client import EngineClient
from app.gateways.web.tokens import Kind, Scope, TokenError, TokenStore
from engine.core import events as ev
from engine.core.secrets import plain_environment, without_secrets
from tests.patience import PATIENCE_S

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e\x1b[31m & ' \" 'demo'"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One program that serves, for all tests that do not end it."""
    place = tmp_path_factory.mktemp("web")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PILOTHOUSE_HOME", str(place / "home"))
        patch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
        with serving(place) as program:
            yield program


@pytest.fixture(autouse=True)
def surroundings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test that has no program of all has a home of its own."""
    if "served" not in request.fixturenames:
        monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def uses(events: list[Any]) -> list[ev.AccessUsed]:
    """What was recorded of uses."""
    return [said for event in events if isinstance(said := ev.payload_of(event), ev.AccessUsed)]


async def recorded(served: Served, **fields: object) -> ev.AccessUsed:
    """The record of a use, once it is there."""

    async def look() -> list[ev.AccessUsed]:
        found = uses(await journal(served.workspace))
        return [use for use in found if all(getattr(use, name) == value for name, value in fields.items())]

    return (await until(look, bool))[-1]


# ------------------------------------------------------------------ tokens


def test_a_token_is_kept_as_its_hash_expires_and_is_revoked(tmp_path: Path) -> None:
    now = [1_000.0]
    store = TokenStore(tmp_path / "w", tmp_path / "home", lambda: now[0])
    secret = store.add("phone", Scope.ANSWER, seconds=60)
    (file,) = (tmp_path / "home/tokens").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert secret not in file.read_text()
    found = store.find(secret)
    assert found is not None
    assert (found.name, found.scope) == ("phone", Scope.ANSWER)
    assert store.find(secret + "x") is None
    with pytest.raises(TokenError, match="already"):
        store.add("phone", Scope.WATCH)
    for wrong in ("", "a b", "x" * 33, "../x"):
        with pytest.raises(TokenError, match="is no name"):
            store.add(wrong, Scope.WATCH)
    now[0] += 61
    assert store.find(secret) is None
    assert TokenStore(tmp_path / "another", tmp_path / "home").all() == []
    again = store.add("phone", Scope.WATCH)
    assert store.revoke("phone") == 1
    assert store.find(again) is None

    link = store.add("me", Scope.CONTROL, kind=Kind.LINK, seconds=60)
    swapped = store.swap(link)
    assert swapped is not None
    assert (store.swap(link), store.find(link)) == (None, None)
    assert store.find(swapped[1]) == swapped[0]

    file.chmod(0o644)
    with pytest.raises(TokenError, match="chmod 600"):
        store.all()
    file.chmod(0o600)
    file.write_text("[[1]]")
    with pytest.raises(TokenError, match="is damaged"):
        store.find(again)


def test_scopes_cover_what_is_less() -> None:
    allowed = [[one.covers(other) for other in Scope] for one in Scope]
    assert allowed == [[True, False, False], [True, True, False], [True, True, True]]


# ------------------------------------------------------------------ who may come in


async def test_a_link_works_once_and_without_a_token_nothing_is_said(served: Served) -> None:
    async with page(served) as stranger:
        assert (await stranger.get("/", Accept="text/html"))[0] == 303
        for path in ("/state", "/events", "/ws", "/cockpit", "/nothing", "/answer"):
            status, text = await stranger.get(path, Origin=served.origin)
            assert (status, json.loads(text)["code"]) == (401, "token.missing"), path
        assert (await stranger.post("/answer", {}))[0] == 401
        assert (await stranger.post("/stop", {}))[0] == 401
        assert (await stranger.get("/login"))[0] == 200
    async with page(served, served.link) as own:
        assert (await own.state())["you"]["scope"] == "control"
        async with page(served) as second:
            assert (await second.post("/login", {"token": served.link}))[0] == 401
        (cookie,) = own.session.cookie_jar
        assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
        await own.post("/logout", {})
        assert (await own.get("/state"))[0] == 401
    await recorded(served, use="login", scope="control")
    await recorded(served, use="logout", scope="control")


async def test_who_watches_answers_nothing_and_that_is_recorded(served: Served) -> None:
    async with page(served, served.token("eyes", Scope.WATCH)) as eyes:
        assert (await eyes.state())["you"] == {"name": "eyes", "scope": "watch", "answers": False}
        for path in ("/answer", "/stop"):
            status, answer = await eyes.post(path, {"agent": PILOT})
            assert (status, answer["code"]) == (403, "scope")
    use = await recorded(served, use="refused", code="scope")
    assert (use.token, use.scope, use.address) == ("eyes", "watch", "127.0.0.1")


async def test_a_token_that_has_expired_is_wrong(served: Served) -> None:
    secret = TokenStore(served.workspace, now=lambda: 1_000.0).add("old", Scope.CONTROL, seconds=60)
    async with page(served) as old:
        status, answer = await old.post("/login", {"token": secret})
        assert (status, answer["code"]) == (401, "token.wrong")


async def test_another_name_or_another_sites_page_is_refused(served: Served) -> None:
    async with page(served, served.token("origins", Scope.CONTROL)) as own:
        port = served.origin.rpartition(":")[2]
        status, text = await own.get("/state", Host=f"rebound.example:{port}")
        assert (status, json.loads(text)["code"]) == (421, "host")
        assert (await own.get("/state", Host=f"localhost:{port}"))[0] in (200, 401)  # its cookies are others
        for host in ('localhost:1"a', "localhost:x", "evil@localhost", "localhost/evil", "localhost:99999"):
            assert (await own.get("/login", Host=host))[0] in (400, 421), host
        for origin in ("http://evil.example", "null", f"http://evil.example:{port}", "http://127.0.0.1:1"):
            status, answer = await own.post("/stop", {"agent": ""}, Origin=origin)
            assert (status, answer["code"]) == (403, "origin"), origin
            assert (await own.get("/state", Origin=origin))[0] == 403
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await own.session.ws_connect(served.origin + "/ws", headers={"Origin": origin})
            assert refused.value.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await own.session.ws_connect(served.origin + "/ws")  # which says no origin
        assert (await own.get("/state", **{"Sec-Fetch-Site": "cross-site"}))[0] == 403
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await own.post("/stop", b"agent=", **form))[0] == 415
    await recorded(served, use="refused", code="origin")
    await recorded(served, use="refused", code="host")


async def test_wrong_tokens_are_slowed_down_and_do_not_lock_out_who_is_in(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        async with page(served, served.token("in", Scope.WATCH)) as inside, page(served) as outside:
            answers = [await outside.post("/login", {"token": f"ph_{number}"}) for number in range(10)]
            assert [status for status, _ in answers] == [401] * 8 + [429] * 2
            assert (await outside.post("/login", {"token": 7}))[0] == 429
            right = served.token("right", Scope.WATCH)
            assert (await outside.post("/login", {"token": right}))[0] == 200
            kept = [cookie.value for cookie in outside.session.cookie_jar]
            assert right not in kept  # the browser has one of its own, which ends
            assert (await inside.state())["you"]["name"] == "in"


async def test_garbage_is_refused_and_a_killed_web_server_is_started_again(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        # Garbage, too much, and too slow.
        async with page(served, served.token("garbage")) as own:
            assert (await own.post("/answer", b"{"))[0] == 400
            assert (await own.post("/answer", [1]))[0] == 400
            assert (await own.post("/answer", {"agent": 1, "kind": "approval", "thing": "a1"}))[0] == 400
            async with own.session.post(
                served.origin + "/answer", data=b"x" * 200_000, headers={"Origin": served.origin}
            ) as answer:
                assert answer.status in (413, 415)
            assert (await own.get("/page/../server.py"))[0] in (403, 404)
            assert (await own.get("/page/%2e%2e/server.py"))[0] in (403, 404)
            host, _, port = served.origin.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n")
            assert b" 400 " in await reader.readline()
            writer.close()
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\nHo")
            async with asyncio.timeout(PATIENCE_S):
                assert await reader.read() == b"", "who does not get to the end of a request is let go"
            writer.close()

        # The web server is killed: the engine works on, says so, and has another one.
        client = await EngineClient.open(served.workspace, watch=True)
        assert client is not None
        try:
            pid = (await client.ask("health"))["web"]["pid"]
            os.kill(pid, signal.SIGKILL)

            async def health() -> Any:
                return (await client.ask("health"))["web"]

            web = await until(health, lambda web: web["starts"] == 2 and not web["trouble"])
            assert (web["ended"], web["pid"] == pid) == ("the web server ended by signal 9", False)
        finally:
            await client.close()
        record = record_of(served.workspace)
        assert record is not None
        assert (await engine_row(record))["web"]["starts"] == 2
        async with page(served) as again:
            assert (await again.get("/login"))[0] == 200


# ------------------------------------------------------------------ answers


async def test_an_approval_is_answered_once_in_the_name_of_the_token(served: Served) -> None:
    await asking(served.workspace, "first", f"write hello to {'a.txt'}")
    async with page(served, served.token("phone")) as phone, page(served, served.token("tablet")) as tablet:
        shown = await until(phone.state, lambda s: any(n["agent"] == "first" for n in s.get("needs", ())))
        need = next(each for each in shown["needs"] if each["agent"] == "first")
        assert "a.txt" in need["text"]
        assert any("snapshot" in note for note in need["notes"])
        assert need["cut"] is False
        status, answer = await phone.answer({**need, "event": "first:1"}, allow=True)
        assert (status, answer["code"]) == (409, "answer.late"), "what is asked is not what was shown"
        status, answer = await phone.answer(need, allow=True)
        assert (status, answer["message"]) == (200, f"{need['thing']} allowed once")
        status, answer = await tablet.answer(need, allow=False, text="no")
        assert status == 409
        assert answer["message"] == f"{need['thing']} is answered already: allowed by phone"
        await until(tablet.state, lambda s: all(n["event"] != need["event"] for n in s["needs"]))
        assert (await phone.answer({**need, "kind": "your turn"}, allow=True))[0] == 400
    answered = [event for event in await journal(served.workspace) if event.kind == "approval.answered"]
    assert answered[-1].actor == "operator:phone"
    assert (await recorded(served, use="answer", token="tablet")).scope == "answer"


async def test_a_question_is_answered_by_text_or_by_an_option(served: Served) -> None:
    client = await EngineClient.open(served.workspace, "ann")
    assert client is not None
    await client.ask("line", line="guided start bmc-wizard", agent="")
    await client.close()
    async with page(served, served.token("guide")) as phone:

        async def question(other: str = "") -> dict[str, Any]:
            needs = (await phone.state()).get("needs", ())
            return next((each for each in needs if each["kind"] == "request" and each["thing"] != other), {})

        first = await until(question, bool)
        assert first["what"].startswith("Customer segments: ")
        assert "back" in first["options"]
        assert (await phone.answer(first, text=" "))[0] == 400
        assert (await phone.answer(first, text="sailors"))[0] == 200
        second = await until(lambda: question(first["thing"]), bool)
        status, answer = await phone.answer(first, text="again")
        assert status == 409
        assert "answered already" in answer["message"]
        assert (await phone.answer(second, option=6))[0] == 200, "save and leave"


async def test_agents_are_stopped_from_a_phone_one_or_all(served: Served) -> None:
    await asking(served.workspace, "second")
    await asking(served.workspace, "third")
    async with page(served, served.token("stopper")) as phone:
        assert (await phone.post("/stop", {"agent": "second"}))[0] == 200
        assert (await phone.post("/stop", {"agent": "nobody"}))[0] == 409

        def stopped(shown: dict[str, Any], *names: str) -> bool:
            rows = {row["agent"]: row["stops"] for row in shown["agents"]}
            return not any(rows.get(name, True) for name in names)

        shown = await until(phone.state, lambda shown: stopped(shown, "second"))
        assert not stopped(shown, "third")
        assert (await phone.post("/stop", {"agent": ""}))[0] == 200
        await until(phone.state, lambda shown: stopped(shown, "second", "third"))


async def test_pages_are_live_and_end_when_their_token_is_revoked(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    async with page(served, served.token("gone", Scope.CONTROL)) as own:
        url, headers = served.origin, {"Origin": served.origin}
        events = await own.session.get(url + "/events", headers=headers)
        first = json.loads((await events.content.readline()).removeprefix(b"data: "))
        assert first["you"]["name"] == "gone"
        await commands(served.workspace, {"do": "create_agent", "agent": "lively"})
        async with asyncio.timeout(PATIENCE_S):
            while b'"lively"' not in await events.content.readline():
                pass
        socket = await own.session.ws_connect(url + "/ws?width=90&height=28", headers=headers)
        assert b"\x1b[" in (await socket.receive(PATIENCE_S)).data
        TokenStore(served.workspace).revoke("gone")
        async with asyncio.timeout(PATIENCE_S):
            while await events.content.readline():
                pass
            while not socket.closed:
                await socket.receive()
        assert (await own.get("/state"))[0] == 401
    assert run_tokens(argparse.Namespace(what="list", workspace=served.workspace)) == 0
    assert "gone" not in capsys.readouterr().out


async def test_what_is_no_message_ends_a_cockpit_and_nothing_else(served: Served) -> None:
    async with page(served, served.token("odd", Scope.WATCH)) as own:
        url, headers = served.origin, {"Origin": served.origin}
        for message in ("{", '["stdin", 7]', '["boom", 1]'):
            socket = await own.session.ws_connect(url + "/ws", headers=headers)
            await socket.send_str(message)
            async with asyncio.timeout(PATIENCE_S):
                while not socket.closed:
                    await socket.receive()
        assert (await own.state())["you"]["name"] == "odd"


async def test_hostile_text_stays_text(served: Served) -> None:
    about = {"agent": "hostile"}
    goal_given = {"do": "adopt_goal", "text": f"look at {HOSTILE}", **about}
    await commands(served.workspace, {"do": "create_agent", **about}, goal_given)
    async with page(served, served.token("reader", Scope.WATCH)) as own:

        async def goal() -> str:
            return next(
                (row["goal"] for row in (await own.state())["agents"] if row["agent"] == "hostile"), ""
            )

        assert "<img src=x" in await until(goal, bool), "text is sent as it is, and put in as text"
        _, text = await own.get("/state")
        assert not {"\x1b", "\u202e"} & set(text)
        for path in ("/", "/login"):
            async with own.session.get(served.origin + path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'; script-src 'self';" in policy
                assert "unsafe" not in policy
        async with own.session.get(served.origin + "/cockpit") as answer:
            assert "script-src 'self';" in answer.headers["Content-Security-Policy"]
            assert "https://" not in await answer.text()
        scripts = [await own.get(f"/page/{name}.js") for name in ("page", "login")]
        assert all("innerHTML" not in script and "http" not in script for _, script in scripts)


# ------------------------------------------------------------------ where there is nobody


class Topic(BaseHTTPRequestHandler):
    """Takes notifications as ntfy does."""

    got: list[tuple[dict[str, str], str]]
    code = 200

    def do_POST(self) -> None:
        """Keep what came."""
        length = int(self.headers["Content-Length"])
        self.got.append((dict(self.headers), self.rfile.read(length).decode()))
        self.send_response(self.code)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


async def test_who_is_away_is_told_and_what_nobody_answers_is_denied(tmp_path: Path) -> None:
    got: list[tuple[dict[str, str], str]] = []
    topic = HTTPServer(("127.0.0.1", 0), type("Taking", (Topic,), {"got": got}))
    Thread(target=topic.serve_forever, daemon=True).start()
    told = tmp_path / "told"
    told_program = tmp_path / "tell.sh"
    told_program.write_text(f"#!/bin/sh\n(cat; env) > {told}.part && mv {told}.part {told}\n")
    told_program.chmod(0o755)
    settings = f"""
[notify]
url = "http://127.0.0.1:{topic.server_port}/topic"
command = ["{told_program}"]
after = "1s"
[approvals]
deny_after = "5s"
"""
    environ = {"PILOTHOUSE_NOTIFY_TOKEN": "tk_secret_of_the_topic", "SOME_API_KEY": "hush-hush-hush"}
    try:
        with serving(tmp_path, settings, environ=environ) as served:
            await asking(served.workspace, PILOT, "write hush-hush-hush to a.txt")
            async with page(served, served.token("away")) as own:
                need = await own.need()
                assert need["until"] > need["since"][:19]

                async def tellings() -> list[Any]:
                    return got

                await until(tellings, bool)
                headers, text = got[0]
                assert (headers["Title"], headers["Priority"]) == (f"{PILOT}: approval", "3")
                assert headers["Click"] == served.url
                assert headers["Authorization"] == "Bearer tk_secret_of_the_topic"
                assert "a.txt" in text
                assert "hush-hush" not in text

                async def told_text() -> str:
                    return told.read_text() if told.exists() else ""

                heard = await until(told_text, bool)
                assert heard.startswith(f"{PILOT}: approval\n")
                assert f"PILOTHOUSE_NOTIFY_TITLE={PILOT}: approval" in heard
                assert not {"hush-hush-hush", "tk_secret_of_the_topic"} & set(
                    heard.replace("=", "\n").split()
                )

                await until(own.state, lambda shown: all(n["kind"] != "approval" for n in shown["needs"]))
                late = await own.answer(need, allow=True)
                assert late == (
                    409,
                    {"code": "engine", "message": f"{need['thing']} is answered already: denied by system"},
                )
            answered = [
                event for event in await journal(served.workspace) if event.kind == "approval.answered"
            ]
            assert [event.actor for event in answered] == ["system"]
            record = record_of(served.workspace)
            assert record is not None
            row = await engine_row(record)
            assert row["notifier"]["sent"] >= 2
    finally:
        topic.shutdown()
        topic.server_close()


async def test_a_notification_that_fails_is_counted_and_holds_nothing(tmp_path: Path) -> None:
    settings = '[notify]\nurl = "http://127.0.0.1:1/topic"\ncommand = ["/nonexistent"]\nafter = "1s"\n'
    with serving(tmp_path, settings) as served:
        await asking(served.workspace)
        record = record_of(served.workspace)
        assert record is not None

        async def notifier() -> Any:
            return (await engine_row(record))["notifier"]

        status = await until(notifier, lambda status: status["failed"] == 2)
        assert status["trouble"].startswith("a notification was not sent: ")


def test_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_PASSWORD", "correct horse")
    given = "x correct horse, sk-abcdefghijklmnop1234 at https://me:pw@host/ password=abc&x=1 ph_" + "a" * 43
    monkeypatch.setenv("DATABASE", "postgres://u:pw@h/db")
    monkeypatch.setenv("MYPASS", "x")
    assert not {"THE_PASSWORD", "DATABASE", "MYPASS"} & plain_environment().keys()
    shown = without_secrets(given)
    assert shown == "x [THE_PASSWORD], ••• at https://•••@host/ password=•••&x=1 •••"


# ------------------------------------------------------------------ addresses


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--web", "0.0.0.0:0"), "there is no token yet"),
        (("--web", "127.0.0.1"), "is no address"),
        (("--web", "127.0.0.1:99999"), "is no address"),
        (("--web", "127.0.0.1:0", "--tls-cert", "x.pem"), "HTTPS needs both files"),
        (("--web", "127.0.0.1:0", "--tls-cert", "x.pem", "--tls-key", "y.pem"), "give no HTTPS"),
    ],
)
def test_an_address_that_cannot_be_served_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    (tmp_path / "home").mkdir()
    assert main(["serve", *words, "--workspace", str(tmp_path / "w")]) == 2
    assert why in capsys.readouterr().err


def test_without_the_library_it_is_said_what_installs_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    assert main(["serve", "--web", "127.0.0.1:0", "--workspace", str(tmp_path / "w")]) == 2
    assert "pip install 'pilothouse[web]'" in capsys.readouterr().err
