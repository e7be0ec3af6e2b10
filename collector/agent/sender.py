"""Sends what the spool holds, oldest first, and forgets a batch only when the service has it."""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import httpx

from collector.agent.spool import Spool

log = logging.getLogger(__name__)

PATH = "/api/v1/ingest"
CONTENT_TYPE = "application/vnd.unstrand.batch"
TIMEOUT_S = 20.0


class Verdict(StrEnum):
    """What the service made of a batch, by its status code."""

    TAKEN = "taken"
    REFUSED = "refused"  # it can never be taken
    CONFLICT = "conflict"  # another agent speaks for the node
    FORBIDDEN = "forbidden"  # the token is not good
    LATER = "later"  # busy, stopping, or not there


_VERDICTS = {
    400: Verdict.REFUSED,
    413: Verdict.REFUSED,
    422: Verdict.REFUSED,
    401: Verdict.FORBIDDEN,
    403: Verdict.FORBIDDEN,
    409: Verdict.CONFLICT,
}


@dataclass(slots=True)
class SenderFigures:
    """What was sent since the start. ``message``: the newest trouble in words, empty when well."""

    taken: int = 0
    failed: Counter[Verdict] = field(default_factory=Counter)
    message: str = ""
    last_taken_mono_s: float | None = None


class Sender:
    """One thread that empties the spool; pauses grow with every failure, up to ``longest_s``."""

    def __init__(
        self,
        spool: Spool,
        client: httpx.Client,
        *,
        monotonic: Callable[[], float],
        idle_s: float = 1.0,
        longest_s: float = 60.0,
        catch_up_s: float = 0.02,
    ) -> None:
        """``catch_up_s``: the least time between two batches, so that a fleet that comes back
        after an outage does not run the service over."""
        self._spool = spool
        self._client = client
        self._monotonic = monotonic
        self._idle_s = idle_s
        self._longest_s = longest_s
        self._catch_up_s = catch_up_s
        self._failures = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="unstrand-sender", daemon=True)
        self.figures = SenderFigures()

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Send no more; what is left stays in the spool."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        self._client.close()

    def send_one(self) -> Verdict | None:
        """Send the oldest batch; None when there is none."""
        waiting = self._spool.oldest()
        if waiting is None:
            return None
        name, raw = waiting
        verdict, message = self._post(raw)
        if verdict is Verdict.TAKEN:
            self._spool.done(name)
            self.figures.taken += 1
            self.figures.message = ""
            self.figures.last_taken_mono_s = self._monotonic()
            return verdict
        self.figures.failed[verdict] += 1
        self.figures.message = message
        if verdict is Verdict.REFUSED:
            log.error("the service refused a batch for good: %s", message)
            self._spool.refuse(name, raw)
        return verdict

    def _post(self, raw: bytes) -> tuple[Verdict, str]:
        try:
            answer = self._client.post(PATH, content=raw, headers={"Content-Type": CONTENT_TYPE})
        except httpx.HTTPError as error:
            return Verdict.LATER, f"{self._client.base_url} cannot be reached: {error}"
        if answer.is_success:
            return Verdict.TAKEN, ""
        said = answer.text[:300]
        return _VERDICTS.get(answer.status_code, Verdict.LATER), f"{answer.status_code}: {said}"

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(self._pause(self.send_one()))

    def _pause(self, verdict: Verdict | None) -> float:
        if verdict is None:
            return self._idle_s
        if verdict in (Verdict.TAKEN, Verdict.REFUSED):
            self._failures = 0
            return self._catch_up_s
        self._failures += 1
        if self._failures == 1:
            log.warning("batches wait in the spool: %s", self.figures.message)
        longest = min(self._longest_s, 2.0 ** min(self._failures, 10))
        return longest * random.uniform(0.5, 1.0)


def make_client(server: str, token: str | None, verify: str | bool = True) -> httpx.Client:
    """A client for the service at ``server``; ``verify``: a CA file, or False for none."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=server, headers=headers, timeout=TIMEOUT_S, verify=verify)
