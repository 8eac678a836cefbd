"""KubeletConfig and ContainerRuntimeConfig: the two settings that generate MachineConfigs.

Both select pools and carry the settings of one program. Fields that the cluster owns are refused by their controllers and show
as a condition, as users of these kinds expect.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION

LOG_LEVELS = ("fatal", "panic", "error", "warn", "info", "debug", "trace")

_STATUS = s.obj(
    {
        "observedGeneration": s.integer("Generation that the status speaks of.", format="int64"),
        "conditions": s.array(
            s.obj(
                {
                    "type": s.string("Accepted; older readers know Success and Failure."),
                    "status": s.enum("True", "False", "Unknown", description="Whether it holds."),
                    "reason": s.string("Why, as one word."),
                    "message": s.string("Why, as a sentence."),
                    "lastTransitionTime": s.timestamp("When the status last changed.", nullable=True),
                },
                required=("type", "status"),
            ),
            "The outcomes of the last changes, oldest first.",
            **s.ATOMIC,
        ),
    },
    "What was observed.",
)

_GOMAXPROCS = ("Autosize", "Disabled")
_GROUPS = (
    "X25519", "secp256r1", "secp384r1", "secp521r1", "X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024",
)  # fmt: skip


def _preset(description: str) -> s.Fragment:
    return s.anything(description, nullable=True)


_TLS = s.obj(
    {
        "type": s.enum("Old", "Intermediate", "Modern", "Custom", description="Which profile."),
        "old": _preset("Settings for very old clients; holds nothing."),
        "intermediate": _preset("Settings for most clients; holds nothing."),
        "modern": _preset("Settings for clients with TLS 1.3; holds nothing."),
        "custom": s.obj(
            {
                "ciphers": s.array(s.string(), "Ciphers, in the names of OpenSSL.", **s.ATOMIC),
                "minTLSVersion": s.enum(
                    "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13", description="Lowest version of TLS."
                ),
                "groups": s.list_set(
                    s.enum(*_GROUPS), "Groups for the exchange of keys, the first preferred.", minItems=1, maxItems=7
                ),
            },
            "Settings of the profile Custom.",
            nullable=True,
            **s.KEEP,
        ),
    },
    "Ciphers and versions of the kubelet's listener.",
    nullable=True,
    **s.KEEP,
)

_KUBELET_SPEC = s.obj(
    {
        "autoSizingReserved": s.boolean("Whether resources reserved for the system follow the size of the machine."),
        "logLevel": s.integer("Verbosity of the kubelet's log.", format="int32", minimum=0, maximum=10),
        "machineConfigPoolSelector": s.label_selector("The pools that get these settings."),
        "kubeletConfig": s.anything("The kubelet's own configuration document.", nullable=True),
        "tlsSecurityProfile": _TLS,
        "systemGomaxprocsBehavior": s.enum(
            *_GOMAXPROCS, description="How many processors system services written in Go use."
        ),
    },
    "Settings of the kubelet.",
)

KUBELET_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="KubeletConfig",
    plural="kubeletconfigs",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Settings of the kubelet for the machines of some pools.",
    schema=s.obj({"spec": _KUBELET_SPEC, "status": _STATUS}, required=("spec",)),
    subresources=("status",),
)


def _stores(name: str, what: str, most: int) -> tuple[str, s.Fragment]:
    path = s.with_rules(s.string("Directory on the host.", minLength=1, maxLength=256), *predicates.HOST_PATH)
    stores = s.array(
        s.obj({"path": path}, required=("path",)),
        f"Directories that hold {what} besides the usual one.",
        minItems=1,
        maxItems=most,
        **s.ATOMIC,
    )
    alone = s.rule(
        "self.all(store, self.exists_one(other, other.path == store.path))", f"{name} must not contain duplicate paths"
    )
    return name, s.with_rules(stores, alone)


_RUNTIME = s.obj(
    {
        "pidsLimit": s.integer("Most processes in one container.", format="int64"),
        "logLevel": s.string("Verbosity of the runtime's log; a level that it does not have shows as a condition."),
        "logSizeMax": s.quantity("Largest log of a container; at least 8192 bytes, negative for no limit."),
        "overlaySize": s.quantity("Largest writable layer of a container."),
        "defaultRuntime": s.enum(
            "crun", "runc", "", description="Program that runs containers; empty for the default."
        ),
        **dict(
            (
                _stores("additionalLayerStores", "image layers", 5),
                _stores("additionalImageStores", "images", 10),
                _stores("additionalArtifactStores", "artifacts", 10),
            )
        ),
        "containerGomaxprocsBehavior": s.enum(
            *_GOMAXPROCS, description="How many processors programs written in Go see in a container."
        ),
    },
    "Settings of the container runtime.",
)

CONTAINER_RUNTIME_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="ContainerRuntimeConfig",
    plural="containerruntimeconfigs",
    short_names=("ctrcfg",),
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Settings of the container runtime for the machines of some pools.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "machineConfigPoolSelector": s.label_selector("The pools that get these settings."),
                    "containerRuntimeConfig": _RUNTIME,
                },
                "What to set, and where.",
                required=("containerRuntimeConfig",),
            ),
            "status": _STATUS,
        },
        required=("spec",),
    ),
    subresources=("status",),
)

KINDS = (KUBELET_CONFIG, CONTAINER_RUNTIME_CONFIG)
