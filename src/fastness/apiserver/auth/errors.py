"""Why a credential is not accepted: for the log, never for the caller.

    CredentialRefused        code, hint
    ├── MalformedCredential  an Authorization header that is no bearer token
    ├── NamelessCertificate  a certificate without a common name
    ├── TokenExpired         also: not valid yet
    ├── WrongAudience        issued for somebody else's API
    └── TokenRevoked         the account, pod, secret or node that it is bound to is gone

Certificates and signatures that do not verify are `fastness.crypto.errors`. The authenticator turns all of them into one
`Unauthorized`.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class CredentialRefused(FastnessError):
    """Base of the package."""

    code = "credential-refused"
    hint = "Use the kubeconfig that `fastness kubeconfig` prints, or a fresh token."


class MalformedCredential(CredentialRefused):
    """An Authorization header that is no bearer token, or a token that matches nothing."""

    code = "malformed-credential"


class NamelessCertificate(CredentialRefused):
    """A certificate without a common name has no user."""

    code = "nameless-certificate"
    hint = "Issue the certificate with the user name as its common name."


class TokenExpired(CredentialRefused):
    """The token is not valid any more, or not yet."""

    code = "token-expired"
    hint = "Ask for a new token: `kubectl create token`."


class WrongAudience(CredentialRefused):
    """The token was issued for somebody else."""

    code = "wrong-audience"
    hint = "Ask for a token without `--audience`, or with the audience of this API."


class TokenRevoked(CredentialRefused):
    """What the token is bound to does not exist any more."""

    code = "token-revoked"
    hint = "The service account, or the object that the token is bound to, was deleted: ask for a new token."
