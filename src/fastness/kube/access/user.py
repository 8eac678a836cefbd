"""The nouns of authorization: who asks, for what, and the answer.

`Attributes` and `Decision` are tuples because they are made for every request; `User` is made once per credential and kept by
the authenticator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = "system:anonymous"
NODES: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    """Who asks: a name, the groups they are in, and what the authenticator knows besides."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def node(self) -> str:
        """The name of the node whose credential this is, or empty."""
        # Name and group together, as NodeIdentifier has it: a user who merely is called so is no node.
        if self.name.startswith(NODE_PREFIX) and NODES in self.groups:
            return self.name.removeprefix(NODE_PREFIX)
        return ""

    @property
    def is_master(self) -> bool:
        """Whether every request is allowed without asking a policy."""
        return MASTERS in self.groups


class Attributes(NamedTuple):
    """One request as the authorizer sees it; `path` is for requests that address no resource."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    is_resource_request: bool = True
    field_selector: str = ""


class Decision(NamedTuple):
    """Allowed or not, and why; `denied` says that no other authorizer may allow it."""

    allowed: bool
    reason: str = ""
    denied: bool = False


NO_OPINION: Final = Decision(False)


def service_account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups that every service account of a namespace is in."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def split_service_account(user_name: str) -> tuple[str, str] | None:
    """Namespace and name of a service account's user name, or None for anybody else."""
    if not user_name.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, separator, name = user_name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    # Neither part can hold a colon; one in the name would make one text of two different pairs.
    return (namespace, name) if separator and namespace and name and ":" not in name else None


def refusal(attrs: Attributes, reason: str = "") -> str:
    """The message of a 403, in the words that kube-apiserver uses."""
    message = _cannot(attrs) + (f": {reason}" if reason else "")
    if not attrs.is_resource_request:
        return f"forbidden: {message}"
    target = f"{attrs.resource}.{attrs.group}" if attrs.group else attrs.resource
    return f'{target} "{attrs.name}" is forbidden: {message}' if attrs.name else f"{target} is forbidden: {message}"


def _cannot(attrs: Attributes) -> str:
    who = f'User "{attrs.user.name}" cannot {attrs.verb}'
    if not attrs.is_resource_request:
        return f'{who} path "{attrs.path}"'
    resource = f"{attrs.resource}/{attrs.subresource}" if attrs.subresource else attrs.resource
    where = f'in the namespace "{attrs.namespace}"' if attrs.namespace else "at the cluster scope"
    return f'{who} resource "{resource}" in API group "{attrs.group}" {where}'
