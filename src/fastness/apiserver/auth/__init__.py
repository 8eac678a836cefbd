"""Who is asking, and may they: authentication and authorization of the embedded API.

`authenticator.py` turns a peer certificate or an Authorization header into a `User`; `certificates.py`, `tokens.py`,
`bootstrap.py` and `joining.py` are its four ways. `issuing.py` answers TokenRequest, `reviews.py` the review kinds.
`authorizer.py` holds the current policy and asks `kube/access`.

* Nobody is anonymous: no credential is None, and the route table of the HTTP layer says where that is enough. A credential that
  does not verify is a 401, whatever else was sent without one that does.
* The answer of a 401 says nothing but `Unauthorized`; the reason is the `__cause__` of the error, for the log.
* Caches are bounded, hold hashes of secrets instead of secrets, and never answer beyond the expiry of a credential.
"""

from fastness.apiserver.auth.authenticator import Authenticator
from fastness.apiserver.auth.authorizer import Authorizer, PolicySource
from fastness.apiserver.auth.bootstrap import BootstrapTokens
from fastness.apiserver.auth.certificates import ClientCertificates
from fastness.apiserver.auth.issuing import issue_token
from fastness.apiserver.auth.reviews import Reviews
from fastness.apiserver.auth.tokens import ServiceAccountTokens, TokenLookups

__all__ = [
    "Authenticator",
    "Authorizer",
    "BootstrapTokens",
    "ClientCertificates",
    "PolicySource",
    "Reviews",
    "ServiceAccountTokens",
    "TokenLookups",
    "issue_token",
]
