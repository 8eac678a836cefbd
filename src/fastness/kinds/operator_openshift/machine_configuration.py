"""MachineConfiguration: the operator's settings, a singleton called `cluster`.

Three things users set: which changes need a reboot and which need less (`nodeDisruptionPolicy`, see `actions`), whose boot images
are kept current, and which differences to an installed machine are tolerated.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.operator_openshift import GROUP, VERSION
from fastness.kinds.operator_openshift.actions import policies

_LOG_LEVELS = ("", "Normal", "Debug", "Trace", "TraceAll")
_OCP_VERSION = r"^[0-9]+\.[0-9]+\.[0-9]+$"
_RHCOS_VERSION = r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9]+|\.[0-9]+)*$"

_SELECTION = s.with_rules(
    s.obj(
        {
            "mode": s.enum("All", "Partial", "None", description="Which machine resources are managed."),
            "partial": s.obj(
                {"machineResourceSelector": s.label_selector("The resources that are managed.")},
                "The choice for mode Partial.",
                required=("machineResourceSelector",),
            ),
        },
        "Which machine resources are managed.",
        required=("mode",),
    ),
    s.rule("has(self.partial) == (self.mode == 'Partial')", "partial is required for mode Partial, and only there"),
)

_MACHINE_MANAGER = s.with_rules(
    s.obj(
        {
            "resource": s.enum("machinesets", "controlplanemachinesets", description="Resource that makes machines."),
            "apiGroup": s.enum("machine.openshift.io", description="Group of that resource."),
            "selection": _SELECTION,
        },
        required=("resource", "apiGroup", "selection"),
    ),
    s.rule(
        "self.resource != 'controlplanemachinesets' || self.selection.mode in ['All', 'None']",
        "controlplanemachinesets can be managed all or not at all",
    ),
)


def _boot_images(description: str) -> s.Fragment:
    return s.obj(
        {
            "machineManagers": s.list_map(
                _MACHINE_MANAGER, ("resource", "apiGroup"), "Resources whose boot images are kept current.", maxItems=5
            )
        },
        description,
    )


_MANUAL_SKEW = s.with_rules(
    s.obj(
        {
            "mode": s.enum("OCPVersion", "RHCOSVersion", description="How the boot image is named."),
            "ocpVersion": s.string("Release of the boot image.", pattern=_OCP_VERSION, minLength=5, maxLength=10),
            "rhcosVersion": s.string(
                "Operating system version of the boot image.", pattern=_RHCOS_VERSION, minLength=5, maxLength=40
            ),
        },
        "The boot image that is in use.",
        required=("mode",),
    ),
    s.rule(
        "has(self.ocpVersion) == (self.mode == 'OCPVersion')", "ocpVersion is for mode OCPVersion, and required there"
    ),
    s.rule(
        "has(self.rhcosVersion) == (self.mode == 'RHCOSVersion')",
        "rhcosVersion is for mode RHCOSVersion, and required there",
    ),
)


def _skew(*modes: str, **more: s.Fragment) -> s.Fragment:
    return s.with_rules(
        s.obj(
            {"mode": s.enum(*modes, description="Who keeps track of the boot image."), "manual": _MANUAL_SKEW, **more},
            "How far boot images may lag behind.",
            required=("mode",),
        ),
        s.rule("has(self.manual) == (self.mode == 'Manual')", "manual is required for mode Manual, and only there"),
    )


_SPEC = s.obj(
    {
        "managementState": s.string("Whether the operator acts.", pattern="^(Managed|Unmanaged|Force|Removed)$"),
        "logLevel": s.enum(*_LOG_LEVELS, description="Verbosity of what the operator runs.", default="Normal"),
        "operatorLogLevel": s.enum(*_LOG_LEVELS, description="Verbosity of the operator.", default="Normal"),
        "forceRedeploymentReason": s.string("Changed to force a new rollout of what the operator runs."),
        "failedRevisionLimit": s.integer("Kept for readers of older objects.", format="int32"),
        "succeededRevisionLimit": s.integer("Kept for readers of older objects.", format="int32"),
        "observedConfig": s.anything("What the operator observed; not to be edited.", nullable=True),
        "unsupportedConfigOverrides": s.anything("Overrides without support.", nullable=True),
        "managedBootImages": _boot_images("Whose boot images are kept current."),
        "nodeDisruptionPolicy": policies("Which change disturbs a node how much."),
        "irreconcilableValidationOverrides": s.obj(
            {
                "storage": s.list_set(
                    s.enum("Disks", "FileSystems", "Raid"),
                    "Parts of the storage section that may differ from what is installed.",
                    minItems=1,
                    maxItems=3,
                )
            },
            "Differences to an installed machine that are tolerated.",
            minProperties=1,
        ),
        "bootImageSkewEnforcement": _skew("Manual", "None"),
    },
    "What the operator should do.",
)

_AUTOMATIC_SKEW = s.obj(
    {
        "ocpVersion": s.string("Release of the boot image.", maxLength=10),
        "rhcosVersion": s.string("Operating system version of the boot image.", maxLength=40),
    },
    "The boot image that the operator found.",
)

_STATUS = s.obj(
    {
        "observedGeneration": s.integer("Generation that the status speaks of.", format="int64"),
        "conditions": s.conditions("BootImageUpdateProgressing and BootImageUpdateDegraded."),
        "nodeDisruptionPolicyStatus": s.obj(
            {"clusterPolicies": policies("The defaults with the user's policies merged in.", status=True)},
            "The policies in force.",
        ),
        "managedBootImagesStatus": _boot_images("Whose boot images are kept current."),
        "bootImageSkewEnforcementStatus": _skew("Automatic", "Manual", "None", automatic=_AUTOMATIC_SKEW),
    },
    "What was observed.",
)

MACHINE_CONFIGURATION = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineConfiguration",
    plural="machineconfigurations",
    scope=Scope.CLUSTER,
    labels={"openshift.io/operator-managed": ""},
    description="Settings of the operator that looks after machine configuration.",
    schema=s.singleton(s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)), "cluster"),
    subresources=("status",),
)

KINDS = (MACHINE_CONFIGURATION,)
