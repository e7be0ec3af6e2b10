"""Questions to the API take turns, and a long one is refused rather than endless."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest
from fastapi import Depends, FastAPI

from unstrand.api import errors
from unstrand.api.limits import limited

ENDLESS = (
    "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3"
)


@pytest.fixture
def app(store):
    """A small application with the limits of the real one, only tighter."""
    made = FastAPI()
    errors.install(made)
    made.state.free = threading.Event()
    turn = [Depends(limited(at_once=2, wait_s=0.3, answer_s=0.3))]

    @made.get("/wait", dependencies=turn)
    def wait() -> str:
        made.state.free.wait(10)
        return "done"

    @made.get("/endless", dependencies=turn)
    def endless() -> int:
        return store.value(ENDLESS)

    return made


def ask(app, *paths, between=lambda: None):
    async def together():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            waiting = [asyncio.ensure_future(client.get(path)) for path in paths]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            between()
            return await asyncio.gather(*waiting)

    return asyncio.run(together())


def test_one_more_than_the_turns_waits_and_is_refused_with_what_to_do(app):
    answers = ask(app, "/wait", "/wait", "/wait", between=app.state.free.set)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503]
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.json()["error"] == {
        "what": "2 other questions are being worked on",
        "where": "service",
        "remedy": "ask again in a moment",
    }


def test_a_turn_is_free_again_after_the_answer(app):
    app.state.free.set()
    for _ in range(3):
        assert [answer.status_code for answer in ask(app, "/wait", "/wait")] == [200, 200]


def test_an_endless_question_is_refused_in_time(app):
    (answer,) = ask(app, "/endless")
    assert answer.status_code == 503
    assert answer.json()["error"]["what"] == "the question takes longer than 0.3 s"


@pytest.mark.parametrize(
    "path", ["/report/cost", "/report/waits", "/cluster/queue", "/health/gaps"]
)
def test_every_question_of_the_api_has_its_limits(api, path, monkeypatch):
    asked = []
    monkeypatch.setattr("collector.store.interrupted_in_time", _noted(asked))
    assert api.get(path).status_code == 200
    assert 60.0 in asked


def _noted(asked):
    from collector import time_limit

    real = time_limit.interrupted_in_time

    def noted(interrupt):
        asked.append(time_limit._LIMIT_S.get())
        return real(interrupt)

    return noted
