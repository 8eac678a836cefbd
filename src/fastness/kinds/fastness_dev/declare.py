"""How our kinds are declared, and the fields that several of them have.

A thumbprint, a UID, a kind of evidence or a set of security versions means the same wherever it stands, so each is described
once here. Lists that are used in rules or may grow have an upper bound: an API server refuses rules whose cost it cannot bound.
"""

from __future__ import annotations

from typing import Any

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev import CATEGORIES, EVIDENCE_TYPES, GROUP, LABELS, VERSION
from fastness.kinds.kind import Kind, Scope


def declare(kind: str, plural: str, description: str, schema: s.Fragment, **more: Any) -> Kind:
    """A kind of our group, cluster scoped unless `scope` says otherwise; `more` are fields of `Kind`."""
    settings: dict[str, Any] = {"scope": Scope.CLUSTER, "categories": CATEGORIES, "labels": LABELS, **more}
    return Kind(
        group=GROUP, version=VERSION, kind=kind, plural=plural, description=description, schema=schema, **settings
    )


def evidence_type(description: str, **rules: Any) -> s.Fragment:
    """A kind of evidence that machines can bring."""
    return s.enum(*EVIDENCE_TYPES, description=description, **rules)


def thumbprint(description: str, **rules: Any) -> s.Fragment:
    """The thumbprint of a key: `sha256:<hex>` over its SubjectPublicKeyInfo, or RFC 7638 in base64url or hex."""
    return s.string(description, **{"pattern": r"^(sha256:)?[A-Za-z0-9_-]{43,128}$", "maxLength": 135, **rules})


def uid(description: str, **rules: Any) -> s.Fragment:
    """The UID of an object."""
    return s.string(description, **{"pattern": s.UUID, "maxLength": 36, **rules})


def tcb(description: str) -> s.Fragment:
    """Security versions of platforms, by TEE; what is not named does not count."""

    def level(what: str) -> s.Fragment:
        return s.integer(f"Security version of the {what}.", minimum=0, maximum=255)

    return s.obj(
        {
            "snp": s.obj(
                {
                    "bootloader": level("boot loader"),
                    "tee": level("secure processor's operating system"),
                    "snp": level("SNP firmware"),
                    "microcode": level("microcode"),
                    "fmc": level("first mutable code"),
                },
                "Versions of an AMD SEV-SNP platform.",
            ),
            "tdx": s.obj(
                {
                    "evaluationDataNumber": s.integer("Number of the TCB evaluation data.", minimum=0, format="int64"),
                    "tcbDate": s.timestamp("Date of the TCB level that the platform reached."),
                },
                "Versions of an Intel TDX platform.",
            ),
            "nvidia": s.obj(
                {
                    "driver": s.string("Version of the driver.", maxLength=64),
                    "vbios": s.string("Version of the VBIOS.", maxLength=64),
                },
                "Versions of an NVIDIA GPU.",
            ),
        },
        description,
    )
