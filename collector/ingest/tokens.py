"""A token per node, derived from one secret: nothing to keep but the secret and who is shut out."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Collection

from collector.errors import CollectorError

_SHORTEST = 32


class TokenSecretError(CollectorError):
    """The secret is too short to derive tokens from."""


def issue(secret: bytes, node: str) -> str:
    """The token with which the agent of ``node`` speaks."""
    if len(secret) < _SHORTEST:
        raise TokenSecretError(
            f"the secret has {len(secret)} bytes, at least {_SHORTEST} are needed: "
            "make one with `openssl rand -hex 32`"
        )
    mac = hmac.new(secret, b"unstrand-agent\0" + node.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).decode().rstrip("=")


def may_speak(secret: bytes, node: str, token: str, revoked: Collection[str] = ()) -> bool:
    """Whether ``token`` is that of ``node`` and the node is not shut out; in constant time."""
    good = hmac.compare_digest(issue(secret, node).encode(), token.encode())
    return good and node not in revoked
