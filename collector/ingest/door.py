"""Who may hand in a batch: the agent of the node that it is about, if the site uses tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from collector.agent.batch import Batch, unpack
from collector.errors import AgentForbiddenError
from collector.ingest.tokens import TokenSecretError, issue, may_speak

_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class AgentDoor:
    """Opens batches. Without a ``secret`` any sender may: for a service on loopback only."""

    secret: bytes | None = None
    revoked: frozenset[str] = frozenset()

    @classmethod
    def from_file(cls, file: Path | None) -> AgentDoor:
        """With the secret in ``file``; raises TokenSecretError if it cannot be used."""
        if file is None:
            return cls()
        try:
            secret = file.read_bytes().strip()
        except OSError as error:
            raise TokenSecretError(
                f"{file}: {error.strerror}; name a file with a secret"
            ) from error
        issue(secret, "any")  # refuses one that is too short
        return cls(secret)

    def admit(self, raw: bytes, authorization: str | None) -> Batch:
        """The batch in ``raw``, from a sender that may speak for its node.

        Raises BatchRefusedError for bytes that are no batch, AgentForbiddenError for a token that
        is missing, of another node, or shut out.
        """
        batch = unpack(raw)
        if self.secret is None:
            return batch
        given = authorization or ""
        token = given[len(_BEARER) :].strip() if given.lower().startswith(_BEARER) else ""
        if not may_speak(self.secret, batch.node, token, self.revoked):
            raise AgentForbiddenError(
                f"the token is not that of node {batch.node}: give its agent the one that this "
                "service issues for it"
            )
        return batch
