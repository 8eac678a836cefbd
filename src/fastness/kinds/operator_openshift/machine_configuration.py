"""MachineConfiguration: the operator's settings, a singleton called `cluster`.

Three things users set: which changes need a reboot and which need less (`nodeDisruptionPolicy`, see `actions`), whose boot images
are kept current, and which differences to an installed machine are tolerated. That the name is `cluster` is a rule of admission.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.operator_openshift import GROUP, VERSION
from fastness.kinds.operator_openshift.actions import policies

_LOG_LEVELS = ("", "Normal", "Debug", "Trace", "TraceAll")


def _required_when(member: str, word: str, value: str) -> s.Fragment:
    return predicates.member_iff(
        member, word, value, f"{member} is required when {word} is {value}, and forbidden otherwise"
    )


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
    predicates.member_iff(
        "partial", "mode", "Partial", "Partial is required when type is partial, and forbidden otherwise"
    ),
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
        "Only All or None selection mode is permitted for ControlPlaneMachineSets",
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


_VERSIONS = {
    "ocpVersion": s.with_rules(
        s.string("Release of the boot image.", minLength=5, maxLength=10), predicates.OCP_VERSION
    ),
    "rhcosVersion": s.with_rules(
        s.string("Operating system version of the boot image.", minLength=14, maxLength=21), predicates.RHCOS_VERSION
    ),
}

_MANUAL_SKEW = s.with_rules(
    s.obj(
        {"mode": s.enum("OCPVersion", "RHCOSVersion", description="How the boot image is named."), **_VERSIONS},
        "The boot image that is in use.",
        required=("mode",),
    ),
    _required_when("ocpVersion", "mode", "OCPVersion"),
    _required_when("rhcosVersion", "mode", "RHCOSVersion"),
)


def _skew(*modes: str, **more: s.Fragment) -> s.Fragment:
    return s.with_rules(
        s.obj(
            {"mode": s.enum(*modes, description="Who keeps track of the boot image."), "manual": _MANUAL_SKEW, **more},
            "How far boot images may lag behind.",
            required=("mode",),
        ),
        _required_when("manual", "mode", "Manual"),
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

_AUTOMATIC_SKEW = s.with_rules(
    s.obj(_VERSIONS, "The boot image that the operator found.", minProperties=1),
    s.rule("has(self.ocpVersion) || has(self.rhcosVersion)", "at least one of ocpVersion or rhcosVersion is required"),
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
        "bootImageSkewEnforcementStatus": s.with_rules(
            _skew("Automatic", "Manual", "None", automatic=_AUTOMATIC_SKEW),
            _required_when("automatic", "mode", "Automatic"),
        ),
    },
    "What was observed.",
)

_MANAGERS = "self.spec.managedBootImages.machineManagers"
_OBSERVED_MANAGERS = "self.status.managedBootImagesStatus.machineManagers"
_MACHINE_SETS = "manager.resource == 'machinesets' && manager.apiGroup == 'machine.openshift.io'"
_ALL_MACHINE_SETS = f"{_MACHINE_SETS} && manager.selection.mode == 'All'"


def _present(path: str) -> str:
    """CEL: the field is there, and so is all above it; a field of an object that is absent cannot be asked for."""
    steps = path.split(".")
    return " && ".join(f"has({'.'.join(steps[: end + 1])})" for end in range(1, len(steps)))


_SKEW = "self.status.bootImageSkewEnforcementStatus"


def _when_automatic(condition: str, message: str) -> s.Fragment:
    return s.rule(
        f"!({_present(_SKEW)} && {_SKEW}.mode == 'Automatic') || ({condition})",
        f"when skew enforcement is in Automatic mode, {message}",
    )


_ROOT = (
    _when_automatic(
        f"({_present('self.spec.managedBootImages')}) || ({_present('self.status.managedBootImagesStatus')})",
        "a boot image configuration is required",
    ),
    _when_automatic(
        f"!({_present(_MANAGERS)}) || {_MANAGERS}.size() > 0",
        "managedBootImages.machineManagers must not be an empty list",
    ),
    _when_automatic(
        f"!({_present(_MANAGERS)}) || !{_MANAGERS}.exists(manager, {_MACHINE_SETS}) || "
        f"{_MANAGERS}.exists(manager, {_ALL_MACHINE_SETS})",
        "any MachineAPI MachineSet MachineManager must use selection mode 'All'",
    ),
    _when_automatic(
        f"!({_present(_OBSERVED_MANAGERS)}) || {_OBSERVED_MANAGERS}.exists(manager, {_ALL_MACHINE_SETS})",
        "managedBootImagesStatus must contain a MachineManager opting in all MachineAPI MachineSets",
    ),
)

MACHINE_CONFIGURATION = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineConfiguration",
    plural="machineconfigurations",
    scope=Scope.CLUSTER,
    labels={"openshift.io/operator-managed": ""},
    description="Settings of the operator that looks after machine configuration.",
    schema=s.with_rules(s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)), *_ROOT),
    subresources=("status",),
)

KINDS = (MACHINE_CONFIGURATION,)
