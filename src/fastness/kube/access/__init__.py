"""Who may do what: pure decisions of authorization.

`user.py` has the nouns (`User`, `Attributes`, `Decision`), `rules.py` one rule and what it covers, `policy.py` the snapshot of
all roles and bindings with `authorize`, `escalation.py` what keeps a user from granting more than they have, `node.py` what the
credential of a node may touch, `impersonation.py` and `reviews.py` the questions that kubectl asks, `kubelet_requests.py` the
certificates that kubelets ask for. The default roles of Kubernetes come from `defaults.py`.

* Deny is the default: no rule, no access.
* The decision depends on its arguments only; lookups into the store are handed in as callables.
* Semantics are those of the Kubernetes RBAC and node authorizers, down to the text of a refusal, because users search for it.

The flow goes on in `apiserver/auth`, which holds the current policy and asks these functions.
"""

from fastness.kube.access.policy import Policy, authorize, rules_for
from fastness.kube.access.user import Attributes, Decision, User, refusal

__all__ = ["Attributes", "Decision", "Policy", "User", "authorize", "refusal", "rules_for"]
