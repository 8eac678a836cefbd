"""The runtime classes that follow from a KataConfig, as one table.

| class | handler | charged to every pod | labels that its nodes have | made when |
| --- | --- | --- | --- | --- |
| kata | kata | 250m, 350Mi | runtime.kata | always; with the check, where a node has the labels |
| kata-nvidia-gpu | kata-nvidia-gpu | 1, 4096Mi | GPU, confidential mode off | the same |
| kata-cc | kata-tdx, kata-snp, kata-se | 250m, 350Mi, one key | the TEE's | `confidential`, one kind of TEE |
| kata-cc-nvidia-gpu | kata-tdx-nvidia-gpu, kata-snp-nvidia-gpu | as kata-cc | GPU in confidential mode, TEE | the same |
| kata-cc-tdx, kata-cc-snp | as kata-cc of that TEE | as kata-cc | the TEE's | `confidential`, several kinds |
| kata-remote | kata-remote | 250m, 120Mi | none | `enablePeerPods` |

* One key of the TEE is charged through the overhead: the number that a host has is the number of confidential VMs that fit.
* The TEE's label is in the node selector in any case: a confidential pod must never land on a host that has no TEE.
* Two kinds of TEE: `kata-cc` would be ambiguous and is refused in the words of the manual's operator; each kind gets its own
  class.
* A class goes when no node has its labels any more and no pod uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.kata.names import TRUE, Tee
from fastness.kinds.objects import labels_of
from fastness.workloads.kata.eligibility import NodeRequirements, pool_nodes, tees
from fastness.workloads.kata.mode import FeatureGates
from fastness.workloads.nvidia.ccmode import STATE, mode_of

Object = Mapping[str, Any]
KATA: Final = "kata"
KATA_CC: Final = "kata-cc"
NO_TEE: Final = f"no TEE platform labels found (expected {', '.join(f'{tee.label}={TRUE}' for tee in Tee)})"
SEVERAL_TEES: Final = "multiple TEE platforms detected; only one per cluster supported"
_SMALL: Final = {"cpu": "250m", "memory": "350Mi"}
_BASE: Final = {names.BASE_LABEL: TRUE}
_GPU: Final = {
    "nvidia.com/gpu.present": TRUE, "nvidia.com/gpu.deploy.vfio-manager": TRUE,
    "nvidia.com/gpu.deploy.kata-sandbox-device-plugin": TRUE,
}  # fmt: skip
# A GPU in its confidential mode cannot serve an ordinary guest.
_GPU_OPEN: Final = {**_GPU, "nvidia.com/cc.mode.state": "off", "nvidia.com/cc.ready.state": "false"}
_GPU_CONFIDENTIAL: Final = {
    **_GPU, "nvidia.com/cc.mode.state": "on", "nvidia.com/cc.ready.state": "true", "nvidia.com/gpu.deploy.cc-manager": TRUE,
    **_BASE,
}  # fmt: skip
_KEYS: Final = {Tee.TDX: "tdx.intel.com/keys", Tee.SNP: "sev-snp.amd.com/esids"}
_WITH_GPU: Final = (Tee.TDX, Tee.SNP)


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """One runtime class: `identity` labels say what it is and always select; the others only with the eligibility check."""

    name: str
    handler: str
    overhead: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)

    def fits(self, node: Object, *, check: bool) -> bool:
        """Whether a node has the labels that the class needs, and its GPUs are not on their way to another mode."""
        needed = {**(self.labels if check else {}), **self.identity}
        return needed.items() <= labels_of(node).items() and not (check and self._unsettled(node) is not None)

    def _unsettled(self, node: Object) -> str | None:
        """Why GPUs that have the right labels cannot be used now; None when they can, or the class needs none."""
        if STATE not in self.labels:
            return None
        mode = mode_of(node)
        return None if mode.confidential or mode.ordinary else mode.reason

    def lacks(self, node: Object) -> list[str]:
        """What keeps a node from the class, labels first."""
        needed = {**self.labels, **self.identity}
        lacking = sorted(f"{name}={value}" for name, value in needed.items() if labels_of(node).get(name) != value)
        unsettled = self._unsettled(node)
        return lacking or ([] if unsettled is None else [unsettled])

    def selector(self, requirements: NodeRequirements) -> dict[str, str]:
        """What its pods select nodes by."""
        return {requirements.role_label: "", **(self.labels if requirements.check else {}), **self.identity}


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """The classes that should be there; which are not, and why; what is wrong with the confidential ones."""

    classes: tuple[ClassSpec, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    problem: str | None = None


def plan_classes(
    gates: FeatureGates, requirements: NodeRequirements, nodes: Iterable[Object], *, peer_pods: bool = False
) -> ClassPlan:
    """The classes that nodes and gates call for."""
    members = pool_nodes(requirements, nodes)
    confidential, reason, problem = _confidential(gates, members, peer_pods=peer_pods)
    candidates = [_plain(), _plain_gpu(), *confidential]
    fitting = [
        spec
        for spec in candidates
        if not _must_fit(spec, requirements) or any(spec.fits(n, check=requirements.check) for n in members)
    ]
    left_out = {spec.name: _missing(spec, members) for spec in candidates if spec not in fitting}
    remote = (
        [ClassSpec(names.REMOTE_CLASS, names.REMOTE_CLASS, {"cpu": "250m", "memory": "120Mi"})] if peer_pods else []
    )
    return ClassPlan((*fitting, *remote), left_out, reason, problem)


def _must_fit(spec: ClassSpec, requirements: NodeRequirements) -> bool:
    return requirements.check or bool(spec.identity)


def _missing(spec: ClassSpec, nodes: Sequence[Object]) -> str:
    """What the node that comes closest lacks."""
    closest = min(
        (spec.lacks(node) for node in nodes), key=lambda lacking: (len(lacking), lacking), default=spec.lacks({})
    )
    return f"no node has all of its labels; the closest lacks {', '.join(closest)}"


def _confidential(
    gates: FeatureGates, nodes: Sequence[Object], *, peer_pods: bool
) -> tuple[list[ClassSpec], str, str | None]:
    """The confidential classes, and why there are fewer than asked for."""
    if not gates.confidential:
        return [], "", None
    kinds = tees(nodes)
    # The manual's operator stops the whole installation here; plain classes need no TEE, so only the confidential ones lack.
    if not kinds:
        return [], *(("", None) if peer_pods else ("NoTeePlatform", NO_TEE))
    if len(kinds) == 1:
        return _of_tee(kinds[0], KATA_CC), "", None
    own = [spec for tee in kinds for spec in _of_tee(tee, f"{KATA_CC}-{tee}")]
    return own, "MultipleTeePlatforms", SEVERAL_TEES


def _of_tee(tee: Tee, name: str) -> list[ClassSpec]:
    """The class of one kind of TEE, and the one with a GPU where there is such a handler."""
    overhead = {**_SMALL, **({_KEYS[tee]: "1"} if tee in _KEYS else {})}
    # In any case, unlike the manual's operator, which selects by the role alone where the check is off: in a pool of several
    # kinds a confidential pod could then land on a host without its TEE.
    identity, handler = {tee.label: TRUE}, f"kata-{tee}"
    plain = ClassSpec(name, handler, overhead, {}, identity)
    if tee not in _WITH_GPU:
        return [plain]
    return [plain, ClassSpec(f"{name}-nvidia-gpu", f"{handler}-nvidia-gpu", overhead, _GPU_CONFIDENTIAL, identity)]


def _plain() -> ClassSpec:
    return ClassSpec(KATA, KATA, _SMALL, _BASE)


def _plain_gpu() -> ClassSpec:
    return ClassSpec("kata-nvidia-gpu", "kata-nvidia-gpu", {"cpu": "1", "memory": "4096Mi"}, _GPU_OPEN)
