"""Who may do what: pure decisions of authorization.

    defaults.py          The roles and bindings that every new cluster has
    errors.py            Requests about access that cannot be understood
    escalation.py        Nobody grants more than they have
    impersonation.py     Acting as somebody else: `kubectl --as`
    kubelet_requests.py  Requests of kubelets for certificates, as the API server vouches for them, and what no kubelet asks for
    node.py              What the credential of a node may touch: itself, and what runs on it
    node_restriction.py  What a node may write into the objects that it may touch
    pod_references.py    Which Secrets, ConfigMaps, claims and service accounts a pod refers to
    policy.py            The snapshot of all roles and bindings, indexed for `authorize`
    reviews.py           The questions that kubectl asks about access: body in, body out
    rules.py             One rule of a role: what it allows, and whether it covers another
    user.py              The nouns of authorization: who asks, for what, and the answer

* Deny is the default: no rule, no access.
* The decision depends on its arguments only; lookups into the store are handed in as callables.
* Semantics are those of the Kubernetes RBAC and node authorizers, down to the text of a refusal, because users search for it.

The flow goes on in `apiserver/auth`, which holds the current policy and asks these functions.
"""

from fastness.kube.access.policy import Policy, authorize, rules_for
from fastness.kube.access.user import Attributes, Decision, User, refusal

__all__ = ["Attributes", "Decision", "Policy", "User", "authorize", "refusal", "rules_for"]
