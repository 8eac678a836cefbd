"""Rules about machine configuration that hold before anything is rendered.

* A pool's selector must take in the configuration of a built-in role: `worker` for custom pools. Without it a pool would render
  nothing that a machine can boot with.
* There is one MachineConfiguration, `cluster`. Rules that look at other objects besides are in `policies`.
* A MachineConfig that changes the kernel, its arguments, FIPS mode or extensions is accepted, and a warning says what follows
  where the pool's trust model does not allow it or cannot vouch for it: nothing is rendered for a confidential pool, and the
  host of pod VMs is not attested.
* A MachineConfig that declares files of other operators says whose and which, in words that agents read.
* A NodeOverlay that cannot be merged is accepted too, and a warning says what is wrong and that its machines will wait. So is a
  mode of control groups that no pool follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.objects import labels_of, object_name
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Denied, forbidden, invalid
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.overlay import overlay
from fastness.machineconfig.render.errors import fatal
from fastness.machineconfig.render.settings.cluster import CGROUP_MODES, cgroup_refusal
from fastness.machineconfig.render.validate import OTHERS_EXAMPLE, examine, host_fields, side_doors
from fastness.protocol.files_of_others import is_declaration, read_declaration

OPERATOR_GROUP: Final = "operator.openshift.io"
ROLE_LABEL: Final = "machineconfiguration.openshift.io/role"
BUILT_IN_ROLES: Final = ("master", "worker", "arbiter")
MOST_WARNINGS: Final = 3

Object = Mapping[str, Any]


def pool_selects_a_role(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a pool whose selector leaves out the worker role; an unchanged selector is not judged again."""
    selector = _spec(request.new).get("machineConfigSelector")
    if request.old is not None and _spec(request.old).get("machineConfigSelector") == selector:
        return None
    if _includes_worker(selector):
        return None
    why = (
        "All custom MachineConfigPools must inherit from the worker pool and must have a machineConfigSelector that matches for "
        f"a '{ROLE_LABEL}: worker' label"
    )
    return forbidden(request, f"{why}; {ROLE_LABEL} In [worker, {request.name}] is what this one needs")


def configuration_is_singleton(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a MachineConfiguration of another name."""
    if request.name == "cluster":
        return None
    why = "Only a single object of MachineConfiguration is allowed and it must be named cluster."
    return invalid(request, "metadata.name", f"{request.name!r}: {why}")


def declared_files_are_readable(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a MachineConfig that declares files of other operators in words that no agent could read."""
    storage = _spec(_spec(_spec(request.new), "config"), "storage")
    files = storage.get("files")
    for index, entry in enumerate(files if isinstance(files, list) else ()):
        if not isinstance(entry, dict) or not is_declaration(str(entry.get("path"))):
            continue
        try:
            read_declaration(file_bytes(entry) or b"")
        except ValueError as error:
            return invalid(request, f"spec.config.storage.files[{index}].contents", f"{error} ({OTHERS_EXAMPLE})")
    return None


def warn_about_trust_model(request: AdmissionRequest, lookups: AdmissionLookups) -> Allowed | None:
    """Warn about what a selected pool's trust model refuses or cannot vouch for, the side doors included."""
    cluster, labels = lookups.confidential_cluster(), labels_of(request.new)
    names = [object_name(pool).name for pool in lookups.pools() if _selects(pool, labels)]
    models = {name: model for name in names if (model := trust_model(cluster, name)) is not TrustModel.NONE}
    # Reading the document costs milliseconds, so it waits until a pool wants to know.
    touched = _touched(request.new) if models else []
    if not touched:
        return None
    warnings = tuple(_warning(name, model, ", ".join(touched)) for name, model in models.items())
    return Allowed(warnings)


def warn_about_overlay(request: AdmissionRequest, lookups: AdmissionLookups) -> Allowed | None:
    """Warn about an overlay that cannot be merged; one that is not changed is not read again."""
    if request.old is not None and _spec(request.old) == _spec(request.new):
        return None
    wrong = fatal(overlay.examine(request.new).problems)
    warnings = tuple(f"machines that match will wait: {problem.short}" for problem in wrong[:MOST_WARNINGS])
    return Allowed(warnings) if warnings else None


def warn_about_cgroup_mode(request: AdmissionRequest, lookups: AdmissionLookups) -> Allowed | None:
    """Warn about control groups that no pool follows: pools are degraded while it stands."""
    mode = _spec(request.new).get("cgroupMode") or ""
    if mode in CGROUP_MODES or mode == _spec(request.old or {}).get("cgroupMode"):
        return None
    return Allowed((f"{cgroup_refusal(str(mode))}; nothing will be rendered until then",))


def _touched(config: Object) -> list[str]:
    """The fields of a config that change what a machine boots."""
    examined = examine(config)
    problems = [*host_fields(examined.spec), *side_doors(examined.document or {})]
    return [place.removeprefix("spec.") for place, _ in problems]


def _warning(pool: str, model: TrustModel, named: str) -> str:
    if model is TrustModel.CONFIDENTIAL_CLUSTER:
        return f"pool {pool} is confidential: {named} are refused there; nothing will be rendered until they are gone"
    return f"pool {pool} hosts pod VMs and is not attested: nobody vouches for {named} on its machines"


def _selects(pool: Object, labels: Mapping[str, str]) -> bool:
    try:
        return label_selector_from_object(_spec(pool).get("machineConfigSelector")).matches(labels)
    except SelectorError:
        return False


def _includes_worker(selector: Any) -> bool:
    if not isinstance(selector, dict):
        return False
    labels = selector.get("matchLabels")
    if isinstance(labels, dict) and labels.get(ROLE_LABEL) in BUILT_IN_ROLES:
        return True
    expressions = selector.get("matchExpressions")
    return any(_admits_worker(entry) for entry in (expressions if isinstance(expressions, list) else ()))


def _admits_worker(expression: Any) -> bool:
    if not isinstance(expression, dict) or expression.get("key") != ROLE_LABEL:
        return False
    values = expression.get("values")
    contains = "worker" in values if isinstance(values, list) else False
    return contains if expression.get("operator") == "In" else expression.get("operator") == "NotIn" and not contains


def _spec(obj: Object, name: str = "spec") -> Object:
    spec = obj.get(name)
    return spec if isinstance(spec, dict) else {}
