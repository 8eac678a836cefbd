"""ClusterImagePolicy and ImagePolicy of `config.openshift.io/v1`: whose signatures images need.

Both say the same, one for the whole cluster and one for the pods of its namespace: for images of these scopes a signature of this
root of trust is required, over an identity that fits.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.openshift import LABELS
from fastness.kinds.openshift.config import GROUP
from fastness.kinds.openshift.images import LABEL, PATH

VERSION: Final = "v1"
MAX_SCOPES: Final = 256
MAX_KEY: Final = 8192

# Signatures name images in full, so a host has a dot; the one exception is this machine.
_HOST: Final = rf"(?:{LABEL}(?:\.{LABEL})+|localhost)(?::[0-9]+)?"
REPOSITORY: Final = rf"^{_HOST}{PATH}$"
"""A registry by its full name, a namespace in one, or a repository; no tag, no digest."""
SCOPE: Final = (
    rf"^\*(?:\.{LABEL})+$|^{_HOST}{PATH}(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$"
)
"""What a policy is about: `*.domain`, a registry, a part of one, or one image."""


class PolicyType(StrEnum):
    """What a signature is traced back to."""

    PUBLIC_KEY = "PublicKey"
    FULCIO = "FulcioCAWithRekor"
    PKI = "PKI"


class MatchPolicy(StrEnum):
    """How the identity in a signature relates to that of the image."""

    REPO_DIGEST_OR_EXACT = "MatchRepoDigestOrExact"
    REPOSITORY = "MatchRepository"
    EXACT_REPOSITORY = "ExactRepository"
    REMAP_IDENTITY = "RemapIdentity"


def _data(description: str) -> s.Fragment:
    return s.string(f"{description}, PEM in base64.", format="byte", maxLength=MAX_KEY)


def _only_with(member: str, discriminator: str, value: str) -> s.Fragment:
    """The rule of a union: a member belongs to one value of the discriminator, and to no other."""
    chosen = f"has(self.{discriminator}) && self.{discriminator} == '{value}'"
    return s.rule(
        f"({chosen}) == has(self.{member})",
        f"{member} is required when {discriminator} is {value}, and forbidden otherwise",
    )


_EMAIL = r"^\S+@\S+$"
_FULCIO = s.obj(
    {
        "fulcioCAData": _data("Certificate of the Fulcio CA"),
        "rekorKeyData": _data("Public key of Rekor"),
        "fulcioSubject": s.obj(
            {
                "oidcIssuer": s.string("Who vouched for the signer, as a URL.", maxLength=2048, minLength=1),
                "signedEmail": s.string("Whom the certificate was issued for.", maxLength=320, pattern=_EMAIL),
            },
            "Who signed.",
            required=("oidcIssuer", "signedEmail"),
        ),
    },
    "A Fulcio CA and a transparency log.",
    required=("fulcioCAData", "rekorKeyData", "fulcioSubject"),
)
_PKI = s.obj(
    {
        "caRootsData": _data("Root certificates"),
        "caIntermediatesData": _data("Intermediate certificates"),
        "pkiCertificateSubject": s.with_rules(
            s.obj(
                {
                    "email": s.string("An address in the certificate.", maxLength=320, pattern=_EMAIL),
                    "hostname": s.string(
                        "A host name in the certificate.", maxLength=253, pattern=r"^(\*\.)?[a-z0-9.-]+$"
                    ),
                },
                "Who signed.",
            ),
            s.rule(
                "has(self.email) || has(self.hostname)",
                "at least one of email or hostname must be set in pkiCertificateSubject",
            ),
        ),
    },
    "Certificates of an authority of your own.",
    required=("caRootsData", "pkiCertificateSubject"),
)
_ROOT_OF_TRUST = s.with_rules(
    s.obj(
        {
            "policyType": s.enum(*PolicyType, description="What a signature is traced back to."),
            "publicKey": s.obj(
                {"keyData": _data("The key"), "rekorKeyData": _data("Public key of Rekor")},
                "One public key.",
                required=("keyData",),
            ),
            "fulcioCAWithRekor": _FULCIO,
            "pki": _PKI,
        },
        "What a signature is traced back to.",
        required=("policyType",),
    ),
    _only_with("publicKey", "policyType", PolicyType.PUBLIC_KEY),
    _only_with("fulcioCAWithRekor", "policyType", PolicyType.FULCIO),
    _only_with("pki", "policyType", PolicyType.PKI),
)


def _repository(description: str) -> s.Fragment:
    return s.string(description, pattern=REPOSITORY, maxLength=512)


_SIGNED_IDENTITY = s.with_rules(
    s.obj(
        {
            "matchPolicy": s.enum(*MatchPolicy, description="How the signed identity relates to the image."),
            "exactRepository": s.obj(
                {"repository": _repository("The repository that a signature must name.")}, required=("repository",)
            ),
            "remapIdentity": s.obj(
                {
                    "prefix": _repository("Beginning of the image's name."),
                    "signedPrefix": _repository("What stands in its place in signatures."),
                },
                required=("prefix", "signedPrefix"),
            ),
        },
        "Which image a signature must speak of; the same repository with a digest, or exactly the same, by default.",
        required=("matchPolicy",),
    ),
    _only_with("exactRepository", "matchPolicy", MatchPolicy.EXACT_REPOSITORY),
    _only_with("remapIdentity", "matchPolicy", MatchPolicy.REMAP_IDENTITY),
)
_SPEC = s.obj(
    {
        "scopes": s.list_set(
            s.string(pattern=SCOPE, maxLength=512), "Images that the policy is about.", maxItems=MAX_SCOPES
        ),
        "policy": s.obj(
            {"rootOfTrust": _ROOT_OF_TRUST, "signedIdentity": _SIGNED_IDENTITY},
            "What signatures are required.",
            required=("rootOfTrust",),
        ),
    },
    "What is wanted.",
    required=("scopes", "policy"),
)


def _policy(kind: str, plural: str, scope: Scope, description: str) -> Kind:
    status = s.obj({"conditions": s.conditions(maxItems=100)}, "What was observed.")
    return Kind(
        group=GROUP,
        version=VERSION,
        kind=kind,
        plural=plural,
        scope=scope,
        labels=LABELS,
        description=description,
        schema=s.obj({"spec": _SPEC, "status": status}, required=("spec",)),
        subresources=("status",),
    )


CLUSTER_IMAGE_POLICY = _policy(
    "ClusterImagePolicy", "clusterimagepolicies", Scope.CLUSTER, "Signatures that images need everywhere."
)
IMAGE_POLICY = _policy(
    "ImagePolicy", "imagepolicies", Scope.NAMESPACED, "Signatures that images need in the pods of a namespace."
)

KINDS = (CLUSTER_IMAGE_POLICY, IMAGE_POLICY)
