"""A user's settings of the kubelet over the cluster's: what wins, what belongs together, what goes elsewhere.

* A value that is set wins. One that is empty (false, 0, "", []) does not take away what the cluster set, as users of
  KubeletConfig know it; the exceptions are the two that are known to be meant: `protectKernelDefaults: false` and
  `staticPodPath: ""`. Which values had no effect is told.
* Taints that the cluster lets a node register with stay beside the user's: one of them keeps pods away until a machine proved
  itself.
* A reserve that is enforced on a control group needs that group. Whoever enforces something else, or reserves whole processors,
  gives the group up.
* Reserved memory, processors and storage go to the service that sizes the reserve (`sizing_file`), not to the kubelet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.errors import QuantityError
from fastness.formats.quantity import parse_quantity
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.errors import BadSettings

Object = Mapping[str, Any]
PODS: Final = "pods"
TAINTS: Final = "registerWithTaints"
SYSTEM_RESERVED: Final = ("system-reserved", "system-reserved-compressible")
# The variable that the sizing service reads, and its value where nobody says one.
SIZED: Final[Mapping[str, tuple[str, str]]] = {
    "memory": ("SYSTEM_RESERVED_MEMORY", "1Gi"),
    "cpu": ("SYSTEM_RESERVED_CPU", "500m"),
    "ephemeral-storage": ("SYSTEM_RESERVED_ES", "1Gi"),
}
_EMPTY_COUNTS: Final[Mapping[str, object]] = {"protectKernelDefaults": False, "staticPodPath": ""}


@dataclass(frozen=True, slots=True)
class Merged:
    """The settings of a kubelet, and the user's that had no effect, by their paths."""

    settings: JsonObject
    ineffective: tuple[str, ...] = ()


def merge_settings(base: Object, user: Object) -> Merged:
    """The user's settings over the cluster's; doing it twice is doing it once. Raises BadSettings for a value of a wrong kind."""
    ineffective: list[str] = []
    settings = _over(base, user, "", ineffective)
    return Merged(_with_fitting_reserve(settings, user), tuple(ineffective))


def _over(base: Object, user: Object, path: str, ineffective: list[str]) -> JsonObject:
    merged = dict(base)
    for name, value in user.items():
        place, present = (f"{path}.{name}" if path else name), merged.get(name)
        if value is None:
            continue
        if present is not None and isinstance(present, Mapping) != isinstance(value, Mapping):
            kind = "an object" if isinstance(present, Mapping) else "a single value or a list"
            raise BadSettings(f"{place} must be {kind}", "look it up in the kubelet's reference")
        if isinstance(value, Mapping):
            merged[name] = _over(present or {}, value, place, ineffective)
        elif place == TAINTS and isinstance(value, list):
            merged[name] = [*(present or ()), *(taint for taint in value if taint not in (present or ()))]
        elif value or not present or _counts_empty(place, value):
            merged[name] = value
        else:
            ineffective.append(place)
    return merged


def _counts_empty(place: str, value: object) -> bool:
    # 0 is equal to False in Python, and no value of these fields.
    return place in _EMPTY_COUNTS and value == _EMPTY_COUNTS[place] and type(value) is type(_EMPTY_COUNTS[place])


def _with_fitting_reserve(settings: JsonObject, user: Object) -> JsonObject:
    own = user.get("enforceNodeAllocatable")
    if own is not None and not isinstance(own, list):
        raise BadSettings("enforceNodeAllocatable must be a list", "write it as in enforceNodeAllocatable: [pods]")
    if own and not set(own) & set(SYSTEM_RESERVED) and not user.get("systemReservedCgroup"):
        settings.pop("systemReservedCgroup", None)
    if settings.get("reservedSystemCPUs"):
        settings.pop("systemReservedCgroup", None)
        enforced = [entry for entry in settings.get("enforceNodeAllocatable") or () if entry not in SYSTEM_RESERVED]
        settings["enforceNodeAllocatable"] = enforced if PODS in enforced else [PODS, *enforced]
    return settings


def sizing_file(settings: JsonObject, automatic: bool | None) -> tuple[JsonObject, str]:
    """The settings without what the sizing service takes over, and its environment; no text where nobody asked for one.

    Raises BadSettings for a reserve that is no quantity.
    """
    reserved = settings.get("systemReserved") or {}
    own = {name: _quantity(name, reserved[name]) for name in SIZED if reserved.get(name)}
    if not own and automatic is None:
        return settings, ""
    left = {name: value for name, value in reserved.items() if name not in SIZED}
    without = {name: value for name, value in settings.items() if name != "systemReserved"}
    lines = [f"NODE_SIZING_ENABLED={'true' if automatic and not own else 'false'}"]
    lines += [f"{variable}={own.get(name, default)}" for name, (variable, default) in SIZED.items()]
    return {**without, **({"systemReserved": left} if left else {})}, "\n".join(lines) + "\n"


def _quantity(name: str, value: object) -> str:
    """The value as it was written; it becomes a line of an environment file, so nothing but a quantity may pass."""
    try:
        parse_quantity(str(value))
    except QuantityError as error:
        raise BadSettings(f"systemReserved.{name}: {error.message}", error.hint) from error
    return str(value)
