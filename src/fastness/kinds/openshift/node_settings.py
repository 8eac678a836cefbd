"""APIServer, FeatureGate and Node of `config.openshift.io`: what the whole cluster asks of its kubelets.

Each counts under the name `cluster`. Whoever keeps machine configuration turns them into `97-<pool>-generated-kubelet` and
`98-<pool>-generated-kubelet`; other fields than those below are stored as they come. This Node is not the Node of a machine:
clients tell them apart by the group.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.openshift import LABELS
from fastness.kinds.openshift.config import GROUP

CLUSTER = "cluster"
TLS_PROFILES = ("Old", "Intermediate", "Modern", "Custom")
TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
TLS_GROUPS = (
    "X25519", "secp256r1", "secp384r1", "secp521r1", "X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024",
)  # fmt: skip
LATENCY_PROFILES = ("", "Default", "MediumUpdateAverageReaction", "LowUpdateSlowReaction")
FEATURE_SETS = ("", "Default", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade", "OKD")


def _tls_profile(description: str) -> s.Fragment:
    custom = s.obj(
        {
            "ciphers": s.array(s.string(), "Cipher suites, by the names of OpenSSL.", maxItems=64, **s.ATOMIC),
            "minTLSVersion": s.enum(*TLS_VERSIONS, description="Lowest version that is spoken."),
            "groups": s.list_set(
                s.enum(*TLS_GROUPS), "Groups for the exchange of keys.", minItems=1, maxItems=len(TLS_GROUPS)
            ),
        },
        "What the profile Custom is.",
        nullable=True,
    )
    presets = {name.lower(): s.anything(f"Goes with {name}; empty.", nullable=True) for name in TLS_PROFILES[:3]}
    profile = {"type": s.enum(*TLS_PROFILES, description="Which profile."), **presets, "custom": custom}
    return s.obj(profile, description, nullable=True)


API_SERVER = Kind(
    group=GROUP,
    version="v1",
    kind="APIServer",
    plural="apiservers",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Settings of the API server; its TLS profile is also that of kubelets.",
    schema=s.obj(
        {
            "spec": s.obj(
                {"tlsSecurityProfile": _tls_profile("Ciphers and versions of listeners.")}, "What is wanted.", **s.KEEP
            ),
            "status": s.anything("What was observed."),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

_GATE_NAMES = s.array(s.string(), "Names of gates.", nullable=True, maxItems=512, **s.ATOMIC)
_GATES = s.array(s.obj({"name": s.string("Name of the gate.")}, required=("name",)), "Gates.", **s.ATOMIC)

FEATURE_GATE = Kind(
    group=GROUP,
    version="v1",
    kind="FeatureGate",
    plural="featuregates",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Which features of the cluster are on, besides those that are by default.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "featureSet": s.enum(*FEATURE_SETS, description="A set of features, or CustomNoUpgrade."),
                    "customNoUpgrade": s.obj(
                        {"enabled": _GATE_NAMES, "disabled": _GATE_NAMES},
                        "Gates of the set CustomNoUpgrade.",
                        nullable=True,
                    ),
                },
                "What is wanted.",
                **s.KEEP,
            ),
            "status": s.obj(
                {
                    "conditions": s.conditions("Accepted: whether the gates reached the configs of pools."),
                    "featureGates": s.list_map(
                        s.obj(
                            {"version": s.string("Release."), "enabled": _GATES, "disabled": _GATES},
                            "The gates of one release.",
                            required=("version",),
                        ),
                        ("version",),
                        "All gates of the cluster, by release.",
                    ),
                },
                "What was observed.",
                **s.KEEP,
            ),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

NODE_CONFIG = Kind(
    group=GROUP,
    version="v1",
    kind="Node",
    plural="nodes",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="How all nodes of the cluster are set up.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "cgroupMode": s.enum(
                        "",
                        "v1",
                        "v2",
                        description="Version of control groups; with v1 nothing is rendered, and pools say why.",
                    ),
                    "workerLatencyProfile": s.enum(
                        *LATENCY_PROFILES, description="How often workers report, and so how soon one is missed."
                    ),
                },
                "What is wanted.",
                **s.KEEP,
            ),
            "status": s.obj(
                {"conditions": s.conditions("Accepted, KernelArgumentsApplied.")}, "What was observed.", **s.KEEP
            ),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

KINDS = (API_SERVER, FEATURE_GATE, NODE_CONFIG)
