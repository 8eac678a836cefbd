"""What a change would do to the images of pools, before anything happens: built or not, booted or not.

For every pool that has a MachineOSConfig before or after the change, the inputs of its image are made twice, from what there is
and from what there would be, with the functions that the loop of builds uses. Equal inputs are no build and no reboot for it;
inputs that a finished build has already are a reboot and no build. What is in the image now is what its build recorded, where it
did: a disruption policy that came later moves a path to the disk with the next build, and until then it is in the image.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastness.builds import life
from fastness.builds.checks import pool_of, written
from fastness.builds.defaults import base_configs
from fastness.builds.inputs import BuildInputs, StillRendering, inputs
from fastness.builds.placement import Setting, Where, public_configs
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.machineconfig.render.inputs import with_stream
from fastness.machineconfig.render.render import RenderFailure, render, sources_of
from fastness.machineconfig.render.render import Setting as RenderSetting
from fastness.machineconfig.rollout.disruption import policies_of
from fastness.machineconfig.rollout.plan import Proposal, State

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """What happens to the image of one pool; `public` are the paths that a confidential pool would publish with it."""

    pool: str
    builds: bool = False
    reboots: bool = False
    leaves: bool = False
    confidential: bool = False
    public: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    moving: tuple[str, ...] = ()

    @property
    def moving_text(self) -> str:
        """What becomes of paths that a disruption policy takes out of the image."""
        if not self.moving:
            return ""
        when = "this build" if self.builds else "the next build"
        until = (
            ""
            if self.builds
            else ": the next change of the pool's config builds and reboots once more, later ones do not"
        )
        return f"{', '.join(self.moving)} leaves the image with {when}{until}"

    @property
    def build_text(self) -> str:
        """Whether something is built, and why not."""
        if self.problems:
            return "nothing is built"
        if self.leaves:
            return "nothing is built: nodes go back to the image that their config names"
        if self.builds:
            return "a new image is built before any node changes"
        return "nothing is built: " + (
            "the image exists already" if self.reboots else "what is in the image stays as it is"
        )

    @property
    def boot_text(self) -> str:
        """Whether nodes reboot for the image."""
        return (
            "" if self.problems else "every node reboots into it" if self.reboots else "no node reboots for the image"
        )

    @property
    def value_text(self) -> str:
        """What attestation will want."""
        if not (self.confidential and self.reboots):
            return ""
        return "nodes wait until the reference values of that image are approved"

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        return {
            "pool": self.pool, "builds": self.builds, "reboots": self.reboots, "leaves": self.leaves,
            "valuesChange": bool(self.value_text), "public": list(self.public), "problems": list(self.problems),
            "leavesWithBuild": list(self.moving),
        }  # fmt: skip


def plan_images(
    state: State, proposal: Proposal, applied: Sequence[Object], deleted: Collection[str], only: str = "",
    configuration: Object | None = None,
) -> tuple[ImagePlan, ...]:  # fmt: skip
    """What becomes of every image that a change concerns; nothing for pools whose image nobody touches.

    `configuration` is the MachineConfiguration that is applied with the change, for its disruption policies.
    """
    replaced = {*deleted, *(object_name(each).name for each in applied)}
    after = [*(each for each in state.os_configs if object_name(each).name not in replaced), *applied]
    pools = sorted({pool_of(each) for each in (*state.os_configs, *after)})
    touched = {pool_of(each) for each in (*state.os_configs, *after) if object_name(each).name in replaced}
    later = state if configuration is None else replace(state, configuration=configuration)
    plans = [_planned(state, later, proposal, pool, after) for pool in pools if only in ("", pool)]
    return tuple(plan for plan in plans if plan.pool in touched or plan.builds or plan.reboots or plan.moving)


def _planned(
    state: State, later: State, proposal: Proposal, pool: str, described: Sequence[Object]
) -> ImagePlan:  # fmt: skip
    target = next((each for each in state.pools if object_name(each).name == pool), None)
    if target is None:
        existing = ", ".join(sorted(object_name(each).name for each in state.pools))
        return ImagePlan(
            pool, problems=(f"spec.machineConfigPool.name: there is no pool {pool!r} (there are: {existing})",)
        )
    before, after = _of(pool, state.os_configs), _of(pool, described)
    old = _made_of(state, target, before, state.configs)
    if after is None:
        return ImagePlan(pool, reboots=old is not None, leaves=True)
    if problems := written(after):
        return ImagePlan(pool, problems=tuple(map(str, problems)))
    new = _made_of(later, target, after, proposal.onto(state.configs))
    if new is None:
        return ImagePlan(pool, problems=("the pool would not render, or its image is named by a tag",))
    if new.problem[1]:
        return ImagePlan(pool, problems=(new.problem[1],))
    moving = _moving(old, new, _made_of(state, target, after, proposal.onto(state.configs)))
    # A policy alone orders no build: the name of a build follows from configs.
    still = before is not None and before == after and not (proposal.apply or proposal.delete)
    same = still or new.digest == (_recorded(before, state.os_builds) or (old.digest if old is not None else ""))
    exists = life.same_image(state.os_builds, new.digest, "") is not None
    confidential = _is_confidential(state, pool)
    public = tuple(each.path for each in new.placed if each.where is Where.IMAGE) if confidential else ()
    return ImagePlan(
        pool, not same and not exists, not same, confidential=confidential, public=public, moving=moving
    )  # fmt: skip


def _recorded(config: Object | None, builds: Iterable[Object]) -> str:
    """The digest of what the current image of a MachineOSConfig was made of; empty where no build says so."""
    current = str((((config or {}).get("status") or {}).get("machineOSBuild") or {}).get("name") or "")
    build = next((each for each in builds if object_name(each).name == current), None)
    return annotations_of(build).get(names.IMAGE_INPUTS, "") if build is not None else ""


def _moving(old: BuildInputs | None, new: BuildInputs, without_policy: BuildInputs | None) -> tuple[str, ...]:
    """The paths that are in the image, and would not be with the policies that come."""
    if old is None or without_policy is None:
        return ()
    inside = {each.path for each in old.placed if each.where is Where.IMAGE}
    stays = {each.path for each in new.placed if each.where is Where.IMAGE}
    stay_without = {each.path for each in without_policy.placed if each.where is Where.IMAGE}
    return tuple(sorted((inside & stay_without) - stays))


def setting_of(state: State, pool: str, configs: Iterable[Object]) -> Setting:
    """What placing depends on in a cluster."""
    every = list(configs)
    confidential = _is_confidential(state, pool)
    return Setting(policies_of(state.configuration), confidential, public_configs(every), base_configs(every))


def _is_confidential(state: State, pool: str) -> bool:
    return trust_model(state.cluster, pool) is TrustModel.CONFIDENTIAL_CLUSTER


def _of(pool: str, configs: Iterable[Object]) -> Object | None:
    return min(
        (each for each in configs if pool_of(each) == pool), key=lambda each: object_name(each).name, default=None
    )


def _made_of(state: State, pool: Object, config: Object | None, configs: Sequence[Object]) -> BuildInputs | None:
    """What goes into the image of a pool; None without a MachineOSConfig, and where nobody can tell."""
    if config is None:
        return None
    name = object_name(pool).name
    defaults, _, missing = with_stream(state.defaults, pool, state.pools, state.streams)
    trust = trust_model(state.cluster, name)
    result = render(pool, configs, RenderSetting(defaults=defaults, trust=trust, obstacle=missing))
    if isinstance(result, RenderFailure):
        return None
    try:
        return inputs(config, {"spec": result.spec}, sources_of(pool, configs), setting_of(state, name, configs))
    except StillRendering:
        return None
