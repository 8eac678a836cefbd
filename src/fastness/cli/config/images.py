"""What `fastness plan`, `fastness validate` and `fastness blame` say about MachineOSConfigs and the images that they describe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fastness.builds.checks import pool_of, written
from fastness.builds.defaults import Default, defaults_of
from fastness.builds.placement import path_of
from fastness.builds.plan import ImagePlan, setting_of
from fastness.cli.config.offline import split_deletions
from fastness.kinds.machineconfiguration.os_config import RENAMED
from fastness.kinds.objects import object_name
from fastness.machineconfig.render.blame import Origin
from fastness.machineconfig.render.errors import Problem
from fastness.machineconfig.render.merge import Source
from fastness.machineconfig.rollout.plan import State

KIND: Final = "MachineOSConfig"
_WORDS: Final = ("machineosconfig", "machineosconfigs")
MOST_PATHS: Final = 20


def deleted(state: State, delete: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of names to delete those of MachineOSConfigs, and the others; raises CliError for one that is not there."""
    return split_deletions(KIND, _WORDS, [object_name(each).name for each in state.os_configs], delete)


def problems_of(config: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with a MachineOSConfig in a file, whatever else the cluster has."""
    name, pool = object_name(config).name, pool_of(config)
    for path, today in RENAMED.items():
        if path.removeprefix("spec.") in (config.get("spec") or {}):
            yield Problem(name, path, "renamed-field", "is a name of an earlier time", today, kind=KIND)
    if name != pool:
        why = f"the name is not that of the pool {pool!r}"
        yield Problem(name, "metadata.name", "not-of-pool", why, "a pool has one, which has its name", kind=KIND)
    for problem in written(config):
        yield Problem(name, problem.field, problem.reason, problem.message, problem.hint, kind=KIND)


def defaults_for(
    state: State, pool: str, sources: Sequence[Source], origins: Iterable[Origin]
) -> dict[Origin, Default]:  # fmt: skip
    """The defaults of ours in the image of a pool, of some parts of its config; none without an image of its own."""
    if pool not in map(pool_of, state.os_configs):
        return {}
    ours = setting_of(state, pool, state.configs).defaults_from
    by_path = {each.path: each for each in defaults_of(sources, ours)}
    return {origin: by_path[path_of(origin)] for origin in origins if path_of(origin) in by_path}


def images_text(plans: Sequence[ImagePlan]) -> str:
    """Images for people: built or not, booted or not."""
    lines: list[str] = []
    for plan in plans:
        lines += [f"Image of pool {plan.pool}", *(f"  refused: {problem}" for problem in plan.problems)]
        lines += [f"  {text}" for text in (plan.build_text, plan.boot_text, plan.value_text, plan.moving_text) if text]
        lines += [f"  will be public: {path}" for path in plan.public[:MOST_PATHS]]
        if len(plan.public) > MOST_PATHS:
            lines.append(
                f"  and {len(plan.public) - MOST_PATHS} more; see `fastness image what-goes-where {plan.pool}`"
            )
        lines.append("")
    return "".join(f"{line}\n" for line in lines)
