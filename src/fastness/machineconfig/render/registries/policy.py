"""policy.json: which images may be used at all, and whose signatures they need (containers-policy.json(5)).

* Allowed scopes: everything else is rejected. Blocked scopes: everything else is accepted. Both at once mean nothing.
* A scope with signature policies needs all of them. It takes the place of "accept anything" where that has the same scope.
* The runtime takes the narrowest scope alone, so a policy for a scope outside the allowed ones would open it, and one inside a
  blocked scope would open that: both are refused.
* Pods of a namespace with policies of its own get a file of their own: all that the cluster asks for, and these. A scope inside
  one of the cluster's is left out there: a namespace cannot lower what the cluster asks for. Whatever is wrong with an
  ImagePolicy concerns its own namespace and nobody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import ObjectName
from fastness.machineconfig.render.errors import BadRegistries, Culprit
from fastness.machineconfig.render.registries.payload import Blocked
from fastness.machineconfig.render.registries.requirements import REJECT, SignaturePolicy
from fastness.machineconfig.render.registries.scopes import inside

ACCEPT: Final[Mapping[str, str]] = {"type": "insecureAcceptAnything"}
CONFLICT: Final = "ConflictScopes"
NOT_ADMITTED: Final = "RegistryNotAdmitted"
TOO_LARGE: Final = "TooLarge"
MAX_NAMESPACE_BYTES: Final = 64 * 1024
MAX_NAMESPACES_BYTES: Final = 256 * 1024
Scopes = dict[str, list[JsonObject]]
# The transport `atomic` knows host, namespace and name with a tag; the runtime refuses the whole file for any other scope.
_ATOMIC: Final = re.compile(r"[^/]*(/[^:/]*(/[^:/]*(:[^:/]*)?)?)?")


@dataclass(frozen=True, slots=True)
class Admitted:
    """Scopes that the Image allows or blocks, as policy.json sees them."""

    allowed: tuple[str, ...]
    blocked: Blocked
    _allowed: frozenset[str] = field(init=False)
    _rejected: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", frozenset(self.allowed))
        object.__setattr__(self, "_rejected", frozenset(self.blocked.rejected))

    def objection(self, scope: str) -> str:
        """Why no image of a scope may be used, whoever signed it; empty if there is no reason."""
        if self._allowed and not inside(scope, self._allowed):
            return "not nested inside allowedRegistries"
        return "nested inside blockedRegistries" if inside(scope, self._rejected) else ""


def check_admitted(allowed: Sequence[str], blocked: Sequence[str], payload: str, image: Culprit) -> None:
    """Refuse lists that contradict each other; raises BadRegistries."""
    if allowed and blocked and tuple(allowed) != (payload,):
        raise BadRegistries(
            "invalid images config: only one of AllowedRegistries or BlockedRegistries may be specified",
            "remove one of the two from spec.registrySources",
            image,
        )


def check_scopes(policies: Iterable[SignaturePolicy], admitted: Admitted) -> None:
    """Refuse policies of the cluster for what is not allowed, or blocked; raises BadRegistries."""
    for policy in policies:
        for scope in policy.scopes:
            reason = admitted.objection(scope)
            if reason:
                raise BadRegistries(
                    f"{policy.culprit.kind} configured for the scope {scope} is {reason}",
                    "change the registries of the Image, or take the scope out",
                    policy.culprit,
                )


def cluster_policy(template: str, admitted: Admitted, policies: Sequence[SignaturePolicy]) -> JsonObject:
    """policy.json of every machine."""
    document: JsonObject = json.decode(template.encode())
    scopes: Scopes = {}
    if admitted.allowed:
        document["default"] = [dict(REJECT)]
    # Lists that name both are refused, unless what is allowed is the release itself: then blocking is what somebody asked for.
    if admitted.blocked.registries:
        document["default"] = [dict(ACCEPT)]
    for scope in (*admitted.allowed, *admitted.blocked.accepted):
        scopes[scope] = [dict(ACCEPT)]
    for scope in admitted.blocked.rejected:
        scopes[scope] = [dict(REJECT)]
    return _with(document, _required(scopes, policies))


class Remark(NamedTuple):
    """Why an ImagePolicy is not carried out as it stands: a word for programs, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NamespacePolicies:
    """A policy.json for each namespace that has policies of its own, the scopes in them, and remarks about objects."""

    documents: Mapping[str, JsonObject] = field(default_factory=dict)
    scopes: frozenset[str] = frozenset()
    remarks: Mapping[ObjectName, Remark] = field(default_factory=dict)


def namespace_policies(
    cluster: JsonObject, of_cluster: Iterable[SignaturePolicy], own: Sequence[SignaturePolicy], admitted: Admitted
) -> NamespacePolicies:
    """What namespaces ask for on top of the cluster; raises nothing, because nobody may stop others from here.

    The oldest policies come first: those that no longer fit into a config are the ones that came last, and their namespaces
    may use no image until they ask for less.
    """
    taken = frozenset(scope for policy in of_cluster for scope in policy.scopes)
    remarks: dict[ObjectName, Remark] = {}
    chosen: dict[str, list[SignaturePolicy]] = {}
    for policy in own:
        scopes, remark = _usable(policy, taken, admitted)
        name = ObjectName(policy.culprit.namespace, policy.culprit.name)
        if remark is not None:
            remarks[name] = remark
        if scopes:
            chosen.setdefault(name.namespace, []).append(replace(policy, scopes=scopes))
    documents: dict[str, JsonObject] = {}
    size = 0
    for namespace, policies in chosen.items():
        document = _with(cluster, _required(_scopes_of(cluster), policies))
        bytes_of = len(json.encode(document))
        if bytes_of > MAX_NAMESPACE_BYTES or size + bytes_of > MAX_NAMESPACES_BYTES:
            document = {"default": [dict(REJECT)]}
            for policy in policies:
                name = ObjectName(namespace, policy.culprit.name)
                remarks[name] = Remark(
                    TOO_LARGE, "the policies of this namespace take too much room; no image may be used"
                )
        size += len(json.encode(document))
        documents[namespace] = document
    used = frozenset(scope for policies in chosen.values() for policy in policies for scope in policy.scopes)
    return NamespacePolicies(documents, used, remarks)


def _usable(
    policy: SignaturePolicy, taken: frozenset[str], admitted: Admitted
) -> tuple[tuple[str, ...], Remark | None]:
    """The scopes of an ImagePolicy that count, and why others do not.

    What the cluster's own policies are about is left to them; what is not allowed or blocked is rejected by the cluster anyway.
    """
    conflicts = [scope for scope in policy.scopes if inside(scope, taken)]
    reasons = {scope: reason for scope in policy.scopes if (reason := admitted.objection(scope))}
    remark = None
    if reasons:
        text = "; ".join(
            f"{policy.culprit.kind} configured for the scope {scope} is {reasons[scope]}" for scope in reasons
        )
        remark = Remark(NOT_ADMITTED, text)
    if conflicts:
        remark = Remark(
            CONFLICT, f"left out, because a ClusterImagePolicy is about them already: {', '.join(conflicts)}"
        )
    return tuple(scope for scope in policy.scopes if scope not in conflicts and scope not in reasons), remark


def _scopes_of(document: JsonObject) -> Scopes:
    scopes: Mapping[str, Any] = document["transports"].get("docker") or {}
    return {scope: list(requirements) for scope, requirements in scopes.items()}


def _required(scopes: Scopes, policies: Iterable[SignaturePolicy]) -> Scopes:
    """The scopes with what policies require of them."""
    for policy in policies:
        for scope in policy.scopes:
            requirements = scopes.setdefault(scope, [])
            if dict(ACCEPT) in requirements:
                requirements.remove(dict(ACCEPT))
            if policy.requirement not in requirements:
                requirements.append(policy.requirement)
    return scopes


def _with(document: JsonObject, scopes: Scopes) -> JsonObject:
    """The document with these scopes for images of registries."""
    if not scopes:
        return document
    atomic = {scope: of for scope, of in scopes.items() if _ATOMIC.fullmatch(scope)}
    return {**document, "transports": {**document["transports"], "docker": scopes, "atomic": atomic}}
