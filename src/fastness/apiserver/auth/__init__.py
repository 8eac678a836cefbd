"""Who is asking, and may they: authentication and authorization of the embedded API.

    authenticator.py  From what a connection shows to a `User`
    certificates.py   Client certificates: CN is the user, O are the groups
    tokens.py         Tokens of service accounts: who they name, and whether they still count
    joining.py        Bootstrap tokens of joining machines, as kubeadm makes them
    issuing.py        TokenRequest: a new token for a service account
    reviews.py        The review kinds of the API: questions that are answered and not stored
    authorizer.py     May they: the node authorizer, then RBAC over the current policy
    errors.py         Why a credential is not accepted: for the log, never for the caller

* Nobody is anonymous: no credential is None, and the route table of the HTTP layer says where that is enough. A credential that
  does not verify is a 401, whatever else was sent without one that does.
* The answer of a 401 says nothing but `Unauthorized`; the reason is the `__cause__` of the error, for the log.
* Caches are bounded, hold hashes of secrets instead of secrets, and never answer beyond the expiry of a credential.
"""

from fastness.apiserver.auth.authenticator import Authenticator
from fastness.apiserver.auth.authorizer import Authorizer, PolicySource
from fastness.apiserver.auth.certificates import ClientCertificates
from fastness.apiserver.auth.issuing import issue_token
from fastness.apiserver.auth.reviews import Reviews
from fastness.apiserver.auth.tokens import ServiceAccountTokens, TokenLookups

__all__ = [
    "Authenticator",
    "Authorizer",
    "ClientCertificates",
    "PolicySource",
    "Reviews",
    "ServiceAccountTokens",
    "TokenLookups",
    "issue_token",
]
