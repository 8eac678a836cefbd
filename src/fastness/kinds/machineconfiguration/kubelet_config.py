"""KubeletConfig and ContainerRuntimeConfig: the two settings that generate MachineConfigs.

Both select pools and carry the settings of one program. Fields that the cluster owns are refused by their controllers and show
as a condition, as users of these kinds expect.
"""

from __future__ import annotations

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

_KUBELET_SPEC = s.obj(
    {
        "autoSizingReserved": s.boolean("Whether resources reserved for the system follow the size of the machine."),
        "logLevel": s.integer("Verbosity of the kubelet's log.", format="int32", minimum=0, maximum=10),
        "machineConfigPoolSelector": s.label_selector("The pools that get these settings."),
        "kubeletConfig": s.anything("The kubelet's own configuration document.", nullable=True),
        "tlsSecurityProfile": s.anything("Ciphers and versions of the kubelet's listener.", nullable=True),
        "systemGomaxprocsBehavior": s.string("How many processors system services written in Go use."),
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


def _stores(what: str) -> s.Fragment:
    return s.array(
        s.obj({"path": s.string("Directory on the host.", minLength=1, maxLength=256)}, required=("path",)),
        f"Directories that hold {what} besides the usual one.",
        maxItems=10,
        **s.ATOMIC,
    )


_RUNTIME = s.obj(
    {
        "pidsLimit": s.integer("Most processes in one container.", format="int64"),
        "logLevel": s.enum(*LOG_LEVELS, description="Verbosity of the runtime's log."),
        "logSizeMax": s.quantity("Largest log of a container; at least 8192 bytes, negative for no limit."),
        "overlaySize": s.quantity("Largest writable layer of a container."),
        "defaultRuntime": s.enum(
            "", "crun", "runc", description="Program that runs containers; empty for the default."
        ),
        "additionalLayerStores": _stores("image layers"),
        "additionalImageStores": _stores("images"),
        "additionalArtifactStores": _stores("artifacts"),
        "containerGomaxprocsBehavior": s.string("How many processors programs written in Go see in a container."),
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
