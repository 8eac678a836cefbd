"""Bootstrap tokens at the broker: `machine/<uid>/bootstrap-token?key=sha256:<hex>`, sealed to the machine that asks.

The machine makes the key of its kubelet first and names it when it asks, inside of its attested session. So the token that it
gets is of use with that key only, and whoever copies it has nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastness.crypto.digests import Algorithm, parse_digest
from fastness.crypto.errors import BadDigest
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.live.bootstrap_tokens import BootstrapTokens
from fastness.http.refusals import Refusal
from fastness.keys.errors import TokenContended
from fastness.kinds.trusted_execution.subject import Basis, Grant


class BootstrapTokenSource:
    """Delivers bootstrap tokens."""

    def __init__(self, tokens: BootstrapTokens) -> None:
        self._tokens = tokens

    async def deliver(self, grant: Grant, query: Mapping[str, str]) -> tuple[SecretBytes, dict[str, str]]:
        """The token, and what the record shall say of it; raises Refusal, ApiError."""
        if grant.basis is not Basis.VERDICT:
            raise Refusal(403, "not-attested", "a bootstrap token rests on a verdict", grant.verdict)
        try:
            key = parse_digest(query.get("key", ""))
        except BadDigest as error:
            raise Refusal(
                400, "bad-join-key", "name the key of the kubelet: ?key=sha256:<hex of its public key>"
            ) from error
        if key.algorithm is not Algorithm.SHA256:
            raise Refusal(400, "bad-join-key", "the key of the kubelet is named by its SHA-256")
        try:
            token = await self._tokens.release(grant, key)
        except TokenContended as error:
            raise Refusal(503, error.code, error.message, grant.verdict) from error
        return token, {"key": str(key), "token": token.reveal().decode().partition(".")[0]}
