"""What a ClusterImagePolicy or an ImagePolicy requires of an image, as policy.json writes it (containers-policy.json(5)).

The runtime reads policy.json whole or not at all: one key that it cannot read would stop every pull on every machine. So what the
schema lets through is looked at again here, and an object with such a key is refused by its name and field.

A ClusterImagePolicy that is refused stops everything. An ImagePolicy speaks for its own namespace, so its owner must not be able
to stop others: there the images that it is about are rejected until it is corrected.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import ObjectName, metadata, object_name
from fastness.kinds.openshift.image_policies import REPOSITORY, SCOPE, MatchPolicy, PolicyType
from fastness.machineconfig.render.errors import BadRegistries, Culprit
from fastness.machineconfig.render.registries.objects import Object, by_name, culprit_of

MAX_POLICY_SCOPES: Final = 4_096
REJECT: Final[Mapping[str, str]] = {"type": "reject"}
_SCOPE: Final = re.compile(SCOPE, re.ASCII)
_REPOSITORY: Final = re.compile(REPOSITORY, re.ASCII)
_ROOT: Final = "spec.policy.rootOfTrust"
_IDENTITY: Final = "spec.policy.signedIdentity"


@dataclass(frozen=True, slots=True)
class SignaturePolicy:
    """Scopes, and what images of them need; `culprit` is the object that says so."""

    scopes: tuple[str, ...]
    requirement: JsonObject
    culprit: Culprit


def cluster_policies(objects: Iterable[Object]) -> list[SignaturePolicy]:
    """What ClusterImagePolicies require, by their names; raises BadRegistries."""
    policies = [_policy(obj, culprit_of(obj, "ClusterImagePolicy")) for obj in by_name(objects)]
    count = 0
    for policy in policies:
        count += len(policy.scopes)
        if count > MAX_POLICY_SCOPES:
            raise BadRegistries(
                f"there are more than {MAX_POLICY_SCOPES} scopes in all", "name whole registries", policy.culprit
            )
    return policies


def namespaced_policies(objects: Iterable[Object]) -> tuple[list[SignaturePolicy], dict[ObjectName, str]]:
    """What ImagePolicies require, the oldest first, and what is wrong with those that reject all of their images instead."""
    policies: list[SignaturePolicy] = []
    problems: dict[ObjectName, str] = {}
    for obj in sorted(by_name(objects), key=lambda entry: str(metadata(entry).get("creationTimestamp") or "")):
        culprit = culprit_of(obj, "ImagePolicy")
        try:
            policies.append(_policy(obj, culprit))
        except BadRegistries as error:
            scopes = tuple(dict.fromkeys(scope for scope in _listed(obj) if _is_scope(scope)))
            policies.append(SignaturePolicy(scopes, dict(REJECT), culprit))
            problems[object_name(obj)] = f"{error.message}: {error.hint}; until then its images are rejected"
    return policies, problems


def _policy(obj: Object, culprit: Culprit) -> SignaturePolicy:
    spec = obj.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    for number, scope in enumerate(_listed(obj)):
        if not _is_scope(scope):
            raise BadRegistries(
                f'spec.scopes[{number}]: "{scope}" is not a scope',
                "write *.domain, or a registry with its full name, a path in it or an image",
                culprit,
            )
    policy = spec.get("policy")
    policy = policy if isinstance(policy, Mapping) else {}
    reader = _Reader(culprit)
    required = {
        "type": "sigstoreSigned",
        **reader.root_of_trust(policy.get("rootOfTrust")),
        "signedIdentity": reader.signed_identity(policy.get("signedIdentity")),
    }
    return SignaturePolicy(tuple(dict.fromkeys(_listed(obj))), required, culprit)


def _listed(obj: Object) -> list[Any]:
    spec = obj.get("spec")
    scopes = spec.get("scopes") if isinstance(spec, Mapping) else None
    return scopes if isinstance(scopes, list) else []


def _is_scope(value: Any) -> bool:
    return isinstance(value, str) and _SCOPE.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads parts of one policy; every refusal names its object and field."""

    culprit: Culprit

    def root_of_trust(self, value: Any) -> JsonObject:
        """Keys or certificates."""
        root = self._members(value, _ROOT)
        match root.get("policyType"):
            case PolicyType.PUBLIC_KEY:
                key = self._members(root.get("publicKey"), f"{_ROOT}.publicKey")
                return {
                    "keyData": self._pem(key, f"{_ROOT}.publicKey", "keyData"),
                    **self._optional(key, f"{_ROOT}.publicKey", rekorPublicKeyData="rekorKeyData"),
                }
            case PolicyType.FULCIO:
                return self._fulcio(self._members(root.get("fulcioCAWithRekor"), f"{_ROOT}.fulcioCAWithRekor"))
            case PolicyType.PKI:
                return {"pki": self._pki(self._members(root.get("pki"), f"{_ROOT}.pki"))}
            case other:
                raise self._refusal(f"{_ROOT}.policyType", f"{other!r} is not known", f"use {', '.join(PolicyType)}")

    def signed_identity(self, value: Any) -> JsonObject:
        """How the name in a signature relates to the image's."""
        identity = {} if value is None else self._members(value, _IDENTITY)
        match identity.get("matchPolicy") or MatchPolicy.REPO_DIGEST_OR_EXACT:
            case MatchPolicy.REPO_DIGEST_OR_EXACT:
                return {"type": "matchRepoDigestOrExact"}
            case MatchPolicy.REPOSITORY:
                return {"type": "matchRepository"}
            case MatchPolicy.EXACT_REPOSITORY:
                exact = self._members(identity.get("exactRepository"), f"{_IDENTITY}.exactRepository")
                repository = self._repository(exact, f"{_IDENTITY}.exactRepository", "repository")
                return {"type": "exactRepository", "dockerRepository": repository}
            case MatchPolicy.REMAP_IDENTITY:
                field = f"{_IDENTITY}.remapIdentity"
                remap = self._members(identity.get("remapIdentity"), field)
                prefixes = {name: self._repository(remap, field, name) for name in ("prefix", "signedPrefix")}
                return {"type": "remapIdentity", **prefixes}
            case other:
                raise self._refusal(
                    f"{_IDENTITY}.matchPolicy", f"{other!r} is not known", f"use {', '.join(MatchPolicy)}"
                )

    def _fulcio(self, fulcio: Object) -> JsonObject:
        field = f"{_ROOT}.fulcioCAWithRekor"
        subject = self._members(fulcio.get("fulcioSubject"), f"{field}.fulcioSubject")
        return {
            "fulcio": {
                "caData": self._pem(fulcio, field, "fulcioCAData"),
                "oidcIssuer": self._text(subject, f"{field}.fulcioSubject", "oidcIssuer"),
                "subjectEmail": self._text(subject, f"{field}.fulcioSubject", "signedEmail"),
            },
            "rekorPublicKeyData": self._pem(fulcio, field, "rekorKeyData"),
        }

    def _pki(self, pki: Object) -> JsonObject:
        field = f"{_ROOT}.pki"
        subject = self._members(pki.get("pkiCertificateSubject"), f"{field}.pkiCertificateSubject")
        names = {"subjectEmail": subject.get("email"), "subjectHostname": subject.get("hostname")}
        # Without a name every certificate of the authority would do.
        if not any(names.values()):
            raise self._refusal(f"{field}.pkiCertificateSubject", "has neither email nor hostname", "name the signer")
        return {
            "caRootsData": self._pem(pki, field, "caRootsData"),
            **self._optional(pki, field, caIntermediatesData="caIntermediatesData"),
            **{name: str(value) for name, value in names.items() if value},
        }

    def _members(self, value: Any, field: str) -> Object:
        if not isinstance(value, Mapping):
            raise self._refusal(field, "is missing", "fill it in")
        return value

    def _text(self, holder: Object, field: str, name: str) -> str:
        value = holder.get(name)
        if not isinstance(value, str) or not value:
            raise self._refusal(f"{field}.{name}", "is missing", "fill it in")
        return value

    def _pem(self, holder: Object, field: str, name: str) -> str:
        """Base64 as it stands, if PEM is in it."""
        text = self._text(holder, field, name)
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if b"-----BEGIN " not in data or b"-----END " not in data:
            raise self._refusal(f"{field}.{name}", "is not PEM in base64", "encode the PEM file with base64")
        return text

    def _optional(self, holder: Object, field: str, **names: str) -> JsonObject:
        return {ours: self._pem(holder, field, theirs) for ours, theirs in names.items() if holder.get(theirs)}

    def _repository(self, holder: Object, field: str, name: str) -> str:
        text = self._text(holder, field, name)
        if not _REPOSITORY.fullmatch(text):
            raise self._refusal(
                f"{field}.{name}", f'"{text}" is not a repository', "write its full name, without tag and digest"
            )
        return text

    def _refusal(self, field: str, reason: str, hint: str) -> BadRegistries:
        return BadRegistries(f"{field}: {reason}", hint, self.culprit)
