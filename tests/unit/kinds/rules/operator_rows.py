"""Rows of the MachineConfiguration."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.kinds.rules import messages as m
from tests.unit.kinds.rules.cases import OPERATOR, Case, case, each

_SKEW: Final = "bootImageSkewEnforcementStatus"
_AUTOMATIC: Final = {_SKEW: {"mode": "Automatic", "automatic": {"ocpVersion": "4.20.1"}}}
_WHEN: Final = "when skew enforcement is in Automatic mode, "


def _manager(mode: str, resource: str = "machinesets") -> dict[str, Any]:
    return {"resource": resource, "apiGroup": "machine.openshift.io", "selection": {"mode": mode}}


def _images(*managers: dict[str, Any]) -> dict[str, Any]:
    return {"machineManagers": list(managers)}


def _automatic(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> dict[str, Any]:
    in_spec = {} if spec is None else {"spec": {"managedBootImages": spec}}
    in_status = {} if status is None else {"managedBootImagesStatus": status}
    return {**in_spec, "status": {**in_status, **_AUTOMATIC}}


ROOT_ROWS: Final = [
    Case(OPERATOR, "", f"{_WHEN}a boot image configuration is required", _automatic(status=_images(_manager("All"))),
         _automatic()),
    Case(OPERATOR, "", f"{_WHEN}managedBootImages.machineManagers must not be an empty list",
         _automatic(_images(_manager("All"))), _automatic(_images())),
    Case(OPERATOR, "", f"{_WHEN}any MachineAPI MachineSet MachineManager must use selection mode 'All'",
         _automatic(_images(_manager("None", "controlplanemachinesets"))), _automatic(_images(_manager("None")))),
    Case(OPERATOR, "", f"{_WHEN}managedBootImagesStatus must contain a MachineManager opting in all MachineAPI MachineSets",
         _automatic(status=_images(_manager("All"))), _automatic(status=_images(_manager("None")))),
]  # fmt: skip

_PLACES: Final = ("spec.bootImageSkewEnforcement", f"status.{_SKEW}")
_BY_RELEASE: Final = {"mode": "OCPVersion", "ocpVersion": "4.20.1"}
_MANUAL: Final = {"mode": "Manual", "manual": _BY_RELEASE}


def _union(member: str, value: str) -> str:
    return f"{member} is required when mode is {value}, and forbidden otherwise"


def _skew_rows(place: str) -> list[Case]:
    def manual(**fields: str) -> dict[str, Any]:
        return {"mode": "Manual", "manual": fields}

    def row(below: str, message: str, passes: dict[str, Any], fails: dict[str, Any]) -> Case:
        whole, path = case(OPERATOR, place, message, passes, fails), f"{place}{below}"
        return Case(OPERATOR, path, message, whole.passes, whole.fails)

    by_system = {"mode": "RHCOSVersion", "rhcosVersion": m.RHCOS_VERSION[1]}
    return [
        row("", _union("manual", "Manual"), _MANUAL, {"mode": "Manual"}),
        row(".manual", _union("ocpVersion", "OCPVersion"), _MANUAL, manual(**by_system, ocpVersion="4.20.1")),
        row(".manual", _union("rhcosVersion", "RHCOSVersion"), manual(**by_system), manual(mode="RHCOSVersion")),
        row(".manual.ocpVersion", m.OCP_VERSION[0], _MANUAL, manual(**{**_BY_RELEASE, "ocpVersion": m.OCP_VERSION[2]})),
        row(".manual.rhcosVersion", m.RHCOS_VERSION[0], manual(**by_system),
            manual(**{**by_system, "rhcosVersion": m.RHCOS_VERSION[2]})),
    ]  # fmt: skip


def _observed(**automatic: str) -> dict[str, Any]:
    return {
        **_automatic(status=_images(_manager("All")))["status"],
        _SKEW: {"mode": "Automatic", "automatic": automatic},
    }


_AUTO_PATH: Final = f"status.{_SKEW}.automatic"
SKEW_ROWS: Final = [
    *(row for place in _PLACES for row in _skew_rows(place)),
    Case(OPERATOR, f"status.{_SKEW}", _union("automatic", "Automatic"), {"status": _observed(ocpVersion="4.20.1")},
         {"status": {_SKEW: {"mode": "None", "automatic": {"ocpVersion": "4.20.1"}}}}),
    *(Case(OPERATOR, f"{_AUTO_PATH}.{name}", words, *({"status": _observed(**{name: version})} for version in (right, wrong)))
      for name, (words, right, wrong) in (("ocpVersion", m.OCP_VERSION), ("rhcosVersion", m.RHCOS_VERSION))),
    # An empty one is refused for its size already; the rule shows on the way there.
    Case(OPERATOR, _AUTO_PATH, "at least one of ocpVersion or rhcosVersion is required",
         {"status": _observed(rhcosVersion=m.RHCOS_VERSION[1])}, {"status": _observed()}),
]  # fmt: skip

BOOT_ROWS: Final = [
    row
    for place in ("spec.managedBootImages", "status.managedBootImagesStatus")
    for row in (
        case(OPERATOR, f"{place}.machineManagers[]", "Only All or None selection mode is permitted for ControlPlaneMachineSets",
             _manager("None", "controlplanemachinesets"), {
                 **_manager("All", "controlplanemachinesets"),
                 "selection": {"mode": "Partial", "partial": {"machineResourceSelector": {}}}}),
        case(OPERATOR, f"{place}.machineManagers[].selection",
             "Partial is required when type is partial, and forbidden otherwise",
             {"mode": "Partial", "partial": {"machineResourceSelector": {"matchLabels": {"a": "b"}}}}, {"mode": "Partial"}),
    )
]  # fmt: skip


def _alone(kind: str) -> str:
    return f"{kind} action can only be specified standalone, as it will override any other actions"


def _member(kind: str) -> str:
    return f"{kind.lower()} is required when type is {kind}, and forbidden otherwise"


def _action(kind: str, service: str) -> dict[str, Any]:
    return {"type": kind, kind.lower(): {"serviceName": service}}


def _disruption_rows(actions: str) -> list[Case]:
    rows = [
        case(OPERATOR, actions, _alone(kind), [{"type": kind}], [{"type": kind}, {"type": "Drain"}])
        for kind in ("Reboot", "None")
    ]
    for kind in ("Reload", "Restart"):
        rows.append(case(OPERATOR, f"{actions}[]", _member(kind), _action(kind, "crio.service"), {"type": kind}))
        for words, right, wrong in m.UNIT_ROWS:
            whole = case(OPERATOR, f"{actions}[]", words, _action(kind, right), _action(kind, wrong))
            rows.append(Case(OPERATOR, f"{actions}[].{kind.lower()}.serviceName", words, whole.passes, whole.fails))
    return rows


DISRUPTION_ROWS: Final = [
    row
    for place in ("spec.nodeDisruptionPolicy", "status.nodeDisruptionPolicyStatus.clusterPolicies")
    for row in (
        *_disruption_rows(f"{place}.files[].actions"),
        *_disruption_rows(f"{place}.units[].actions"),
        *_disruption_rows(f"{place}.sshkey.actions"),
        *each(OPERATOR, (f"{place}.units[].name",), *m.UNIT_ROWS),
    )
]

ROWS: Final = [*ROOT_ROWS, *SKEW_ROWS, *BOOT_ROWS, *DISRUPTION_ROWS]
