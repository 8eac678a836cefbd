"""Acting as somebody else: `kubectl --as`.

The Impersonate-* headers name a user, groups, a uid and extra values. `impersonation` reads them and returns the user that the
request acts as, together with everything that the real user must be allowed to `impersonate`; the caller asks its authorizer for
each, and only then uses the result.

* Header names arrive lower-cased, as ASGI gives them; `impersonate-extra-<key>` has its key percent-encoded.
* A service account that is impersonated without groups gets the groups of its namespace.
* `system:authenticated` is added for everybody but the anonymous user.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import unquote

from fastness.kube.access.errors import BadImpersonation
from fastness.kube.access.user import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    User,
    service_account_groups,
    split_service_account,
)

_AUTHENTICATION: Final = "authentication.k8s.io"
_USER: Final = "impersonate-user"
_GROUP: Final = "impersonate-group"
_UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"


class Impersonation(NamedTuple):
    """Who the request acts as, and what the real user must be allowed."""

    user: User
    needs: tuple[Attributes, ...]


def impersonation(real: User, headers: Iterable[tuple[str, str]]) -> Impersonation | None:
    """Read the headers; None when there are none; raises BadImpersonation."""
    given = [(key, value) for key, value in headers if key.startswith("impersonate-")]
    if not given:
        return None
    names = [value for key, value in given if key == _USER]
    groups = tuple(value for key, value in given if key == _GROUP)
    uids = [value for key, value in given if key == _UID]
    extra = _extra(given)
    # Groups without a user would be added to the caller's own name; two users would leave it to the reader which one counts.
    if len(names) != 1 or not names[0]:
        raise BadImpersonation("impersonation needs exactly one user", "Impersonate-User")
    if len(uids) > 1:
        raise BadImpersonation("impersonation takes at most one uid", "Impersonate-Uid")
    uid = uids[0] if uids else ""
    user = User(names[0], _effective_groups(names[0], groups), uid, extra)
    return Impersonation(user, tuple(_needs(real, names[0], groups, uid, extra)))


def _extra(headers: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in headers:
        if key.startswith(_EXTRA):
            # Header names have no case (RFC 9110, 5.1), so keys that differ in case are one, as in kube-apiserver.
            name = unquote(key.removeprefix(_EXTRA)).lower()
            extra[name] = (*extra.get(name, ()), value)
    return extra


def _effective_groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    account = split_service_account(name)
    if account is not None and not groups:
        groups = service_account_groups(account[0])
    if name == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)


def _needs(
    real: User, name: str, groups: tuple[str, ...], uid: str, extra: dict[str, tuple[str, ...]]
) -> Iterable[Attributes]:
    account = split_service_account(name)
    if account is not None:
        yield Attributes(real, "impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes(real, "impersonate", resource="users", name=name)
    for group in groups:
        yield Attributes(real, "impersonate", resource="groups", name=group)
    for key, values in extra.items():
        for value in values:
            yield Attributes(real, "impersonate", _AUTHENTICATION, "v1", "userextras", key, name=value)
    if uid:
        yield Attributes(real, "impersonate", _AUTHENTICATION, "v1", "uids", name=uid)
