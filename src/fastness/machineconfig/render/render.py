"""One config for a pool: validated, merged, named.

The name is made of the content, so the same sources give the same name on every machine, and taking a change back leads to the
config that was there before. Nothing is rendered when

* no config is selected, or one that is has a fatal problem (`validate`);
* the pool's machines could not follow the change while running (`reconcile`);
* nobody names an image, and a machine of the pool does not know which one it would go back to;
* the image is named by a tag that nobody resolved: machines would boot what the tag means when each of them asks;
* the result is larger than an API server stores.

A failure is data: the message of `RenderDegraded`, and the configs to blame. `Rendered.manifest` is the object that the render
controller stores; `plan` compares what two sets of sources render to.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import SelectorError
from fastness.formats.image_reference import digest_of, same_image
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, metadata, object_name
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.render import reconcile
from fastness.machineconfig.render.blame import Blame
from fastness.machineconfig.render.container_runtime import DIRECTORY
from fastness.machineconfig.render.errors import Problem, Severity
from fastness.machineconfig.render.inputs import Defaults, merge_order, selected, selects_everything
from fastness.machineconfig.render.merge import DEFAULT_KERNEL, Source, current_document, merge_specs
from fastness.machineconfig.render.validate import Examined, examine

Object = Mapping[str, Any]
Examine = Callable[[Object, TrustModel], Examined]
# etcd's --max-request-bytes: 1.5 MiB. A config that a real API server cannot store must not render on ours either.
MAX_SIZE: Final = 1_572_864
WARN_SIZE: Final = MAX_SIZE * 8 // 10
MAX_TOLD: Final = 10
FIRST_WITHOUT_RUNC: Final = 10
PERHAPS_NO_RUNC: Final = "perhaps-no-runc"


@dataclass(frozen=True, slots=True)
class Setting:
    """What rendering a pool depends on besides the configs.

    `current` is the rendered MachineConfig that the pool's machines run, None for a new pool; `examine` lets a caller keep what
    it examined before; `obstacle` is a reason, found outside, why nothing can be rendered. `digests` are images by tag that were
    resolved, None where nobody resolves any (a plan); `without_base` are nodes that do not know their base image.
    """

    defaults: Defaults = field(default_factory=Defaults)
    trust: TrustModel = TrustModel.NONE
    current: Object | None = None
    overrides: frozenset[str] = frozenset()
    examine: Examine = examine
    obstacle: str = ""
    digests: Mapping[str, str] | None = None
    without_base: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """What the machines of a pool should be; `source` are the names of the configs, sorted, `resolved_from` a tag."""

    pool: str
    name: str
    spec: JsonObject
    source: tuple[str, ...]
    blame: Blame
    size: int
    warnings: tuple[Problem, ...] = ()
    os_image_overridden: bool = False
    tolerated: tuple[reconcile.Irreconcilable, ...] = ()
    resolved_from: str = ""

    def manifest(self, pool: Object, defaults: Defaults) -> JsonObject:
        """The MachineConfig to store: owned by the pool, so that it goes when the pool does."""
        notes = {names.GENERATED_BY: defaults.controller_version}
        if defaults.release_version:
            notes[names.RELEASE_IMAGE_VERSION] = defaults.release_version
        if self.os_image_overridden:
            notes[names.OS_IMAGE_OVERRIDDEN] = "true"
        if self.resolved_from:
            notes[names.RESOLVED_FROM] = self.resolved_from
        owner = {
            "apiVersion": names.API_VERSION,
            "kind": "MachineConfigPool",
            "name": self.pool,
            "uid": metadata(pool).get("uid") or "",
            "controller": True,
            "blockOwnerDeletion": True,
        }
        meta = {"name": self.name, "annotations": notes, "ownerReferences": [owner]}
        return {"apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": meta, "spec": self.spec}

    def configuration(self) -> JsonObject:
        """What `spec.configuration` of the pool says."""
        kind = {"apiVersion": names.API_VERSION, "kind": "MachineConfig"}
        return {"name": self.name, "source": [{**kind, "name": name} for name in self.source]}


@dataclass(frozen=True, slots=True)
class RenderFailure:
    """Why nothing was rendered: the message of the pool's condition, and the configs that are the reason.

    `unresolved` is the image whose digest would have to be known.
    """

    pool: str
    message: str
    guilty: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    unresolved: str = ""


def render(pool: Object, configs: Iterable[Object], setting: Setting = Setting()) -> Rendered | RenderFailure:  # noqa: B008
    """Render a pool from all configs of the cluster; those that it does not select are ignored."""
    name = object_name(pool).name
    if setting.obstacle:
        return _failure(name, setting.obstacle)
    try:
        chosen = selected(pool, configs)
    except SelectorError as error:
        return _failure(name, f"spec.machineConfigSelector cannot be understood: {error}")
    # Rendering nothing would give every machine of the pool an empty config, which takes everything away.
    if not chosen:
        why = "is empty, which is taken for a mistake" if selects_everything(pool) else "matches no MachineConfig"
        return _failure(name, f"spec.machineConfigSelector {why}; label a MachineConfig with {names.ROLE_LABEL}={name}")
    examined = [setting.examine(config, setting.trust) for config in merge_order(chosen)]
    problems = tuple(problem for each in examined for problem in each.problems)
    if any(problem.fatal for problem in problems):
        return _refused(name, problems)
    generated = {object_name(each).name for each in chosen if names.GENERATED_BY in annotations_of(each)}
    sources = [Source(each.name, each.spec, each.document, each.name in generated) for each in examined]
    return _finished(pool, sources, problems, setting)


def sources_of(pool: Object, configs: Iterable[Object]) -> list[Source]:
    """The sources of a pool in merge order, whatever their problems; for blame of a pool that does not render."""
    examined = [examine(config) for config in merge_order(selected(pool, configs))]
    return [Source(each.name, each.spec, each.document) for each in examined]


def _named(pool: str, content: bytes) -> str:
    # By content, so that taking a change back leads to the name that machines already have, and nothing happens to them.
    return f"{names.RENDERED_PREFIX}{pool}-{hashlib.sha256(content).hexdigest()[:32]}"


def _finished(
    pool_object: Object, sources: Sequence[Source], problems: tuple[Problem, ...], setting: Setting
) -> Rendered | RenderFailure:
    pool, defaults = object_name(pool_object).name, setting.defaults
    spec = merge_specs(sources, defaults.os_image, defaults.extensions_image)
    blame, named = Blame(sources), spec["osImageURL"]
    if (missing := _image_missing(pool, named, setting, blame)) is not None:
        return missing
    spec["osImageURL"] = (setting.digests or {}).get(named, named)
    problems = (
        *problems,
        *_merged_problems(spec, sources, blame),
        *_image_problems(pool_object, spec, defaults, blame),
    )
    if any(problem.fatal for problem in problems):
        return _refused(pool, problems)
    stuck: list[reconcile.Irreconcilable] = []
    # Compared with what machines run and not with what was rendered last: configs in between may never have reached one.
    if setting.current is not None:
        running = setting.current.get("spec") or {}
        stuck = reconcile.irreconcilable(running, spec, setting.overrides)
        if reconcile.blocking(stuck):
            return _stuck(pool, object_name(setting.current).name, running, reconcile.blocking(stuck), sources)
    content = json.canonical(spec)
    if len(content) > MAX_SIZE:
        return _too_large(pool, len(content), sources)
    return Rendered(
        pool=pool,
        name=_named(pool, content),
        spec=spec,
        source=tuple(sorted((source.name for source in sources), key=str.encode)),
        blame=blame,
        size=len(content),
        warnings=(*problems, *_warnings(spec, len(content), defaults, blame)),
        os_image_overridden=bool(defaults.os_image) and named != defaults.os_image,
        tolerated=tuple(stuck),
        resolved_from=named if spec["osImageURL"] != named else "",
    )


def _image_missing(pool: str, image: str, setting: Setting, blame: Blame) -> RenderFailure | None:
    """Why nobody can say which image the machines of a pool should boot."""
    if not image and setting.without_base:
        nodes = ", ".join(setting.without_base[:MAX_TOLD])
        why = (
            f"no base image known: no config names an image, and {nodes} recorded none before one did; name it in "
            "baseOSContainerImage of the ControllerConfig, in an OSImageStream or in osImageURL of a MachineConfig"
        )
        return _failure(pool, why)
    if setting.digests is None or not image or digest_of(image) or image in setting.digests:
        return None
    guilty = tuple(origin.source for origin in blame.of("osImageURL"))
    why = f"osImageURL {image} has no digest, and nobody here can ask its registry which image it is; name it by digest"
    return replace(_failure(pool, why, guilty), unresolved=image)


def _merged_problems(spec: JsonObject, sources: Sequence[Source], blame: Blame) -> list[Problem]:
    """What only shows when configs come together."""
    problems: list[Problem] = []
    if "kernel-devel" in spec["extensions"] and spec["kernelType"] != DEFAULT_KERNEL:
        guilty = next(
            (source.name for source in reversed(sources) if "kernel-devel" in (source.spec.get("extensions") or ())), ""
        )
        why = f"kernel-devel does not fit the kernel {spec['kernelType']} that another config asks for"
        problems.append(Problem(guilty, "spec.extensions", "kernel-devel", why, "drop one of the two"))
    if _has_links(spec):
        problems += _through_links(spec["config"], blame)
    return problems


def _image_problems(pool: Object, spec: JsonObject, defaults: Defaults, blame: Blame) -> list[Problem]:
    """What does not go together with the operating system that the pool would run."""
    problems: list[Problem] = []
    stream = ((pool.get("spec") or {}).get("osImageStream") or {}).get("name")
    overridden = spec["osImageURL"] and not same_image(spec["osImageURL"], defaults.os_image)
    if stream and overridden:
        guilty = next((origin.source for origin in blame.of("osImageURL")), "")
        why = f"names an image, and the pool follows the stream {stream}"
        problems.append(Problem(guilty, "spec.osImageURL", "image-stream", why, "drop one of the two"))
    major = defaults.major_of(spec["osImageURL"]) if overridden else defaults.os_major
    if major >= FIRST_WITHOUT_RUNC:
        path, runtime = default_runtime(spec["config"])
        if runtime == "runc":
            guilty = next((origin.source for origin in blame.of(path)), "")
            why = f"{path} makes runc the default, which this operating system does not have"
            problems.append(Problem(guilty, "spec.config.storage.files", "no-runc", why, "use crun"))
    return problems


def default_runtime(document: Object) -> tuple[str, str]:
    """The drop-in that decides the container runtime and what it says: the last in order of names; empty without one."""
    decided = ("", "")
    entries = (document.get("storage") or {}).get("files") or ()
    # crio.conf.d(5): drop-ins are read in the order of their names, and the last one decides.
    for entry in sorted(entries, key=lambda candidate: str(candidate.get("path"))):
        if not str(entry.get("path")).startswith(f"{DIRECTORY}/"):
            continue
        try:
            table = tomllib.loads((file_bytes(entry) or b"").decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
            continue
        runtime = ((table.get("crio") or {}).get("runtime") or {}).get("default_runtime")
        decided = (str(entry["path"]), str(runtime)) if runtime else decided
    return decided


def _through_links(document: JsonObject, blame: Blame) -> list[Problem]:
    """What Ignition refuses about the whole although it accepts each part: above all a file below another config's link."""
    _, problems = current_document("", document)
    link_problems: list[Problem] = []
    for problem in problems:
        path = _entry_path(document, problem.field)
        guilty = next((origin.source for origin in blame.of(path)), "")
        why = f"{path}: {problem.reason}; the configs are good alone but not together"
        if problem.fatal:
            link_problems.append(Problem(guilty, problem.field, problem.code, why, "remove the link or the file"))
    return link_problems


def _entry_path(document: JsonObject, place: str) -> str:
    """The path of the entry that a field path points into, as in spec.config.storage.files[3].mode."""
    kind, _, rest = place.removeprefix("spec.config.storage.").partition("[")
    number = rest.partition("]")[0]
    entries = (document.get("storage") or {}).get(kind)
    if not isinstance(entries, list) or not number.isdigit() or int(number) >= len(entries):
        return ""
    return str(entries[int(number)].get("path") or "")


def _has_links(spec: Object) -> bool:
    return bool((spec["config"].get("storage") or {}).get("links"))


def _warnings(spec: Object, size: int, defaults: Defaults, blame: Blame) -> list[Problem]:
    problems: list[Problem] = []
    if size > WARN_SIZE:
        why = f"the rendered config has {size} bytes; {MAX_SIZE} is the most that can be stored"
        problems.append(Problem("", "spec", "size", why, "move large files into the image", Severity.WARNING))
    image = spec["osImageURL"]
    if image and image != defaults.os_image and "sha256:" not in image:
        guilty = next((origin.source for origin in blame.of("osImageURL")), "")
        why = f"{image} has no digest, so machines may boot different images"
        problems.append(Problem(guilty, "spec.osImageURL", "image-tag", why, "name it by digest", Severity.WARNING))
    if image and image != defaults.os_image and not defaults.major_of(image):
        problems += _perhaps_without_runc(spec, image, blame)
    return problems


def _perhaps_without_runc(spec: Object, image: str, blame: Blame) -> Iterator[Problem]:
    """What cannot be refused, because only a registry knows which system an image holds."""
    path, runtime = default_runtime(spec["config"])
    if runtime == "runc":
        guilty = next((origin.source for origin in blame.of(path)), "")
        why = (
            f"{path} makes runc the default; whether {image} has it is not known: its digest is none of those of the "
            "streams on offer, and nothing else was compared"
        )
        yield Problem(guilty, "spec.config.storage.files", PERHAPS_NO_RUNC, why, "use crun", Severity.WARNING)


def _refused(pool: str, problems: tuple[Problem, ...]) -> RenderFailure:
    fatal = [problem for problem in problems if problem.fatal]
    reasons = "; ".join(map(str, fatal[:MAX_TOLD]))
    more = f"; and {len(fatal) - MAX_TOLD} more" if len(fatal) > MAX_TOLD else ""
    guilty = tuple(dict.fromkeys(problem.config for problem in fatal))
    return _failure(pool, f"{reasons}{more}", guilty, problems)


def _stuck(
    pool: str,
    current: str,
    running: Object,
    stuck: Sequence[reconcile.Irreconcilable],
    sources: Sequence[Source],
) -> RenderFailure:
    pairs = [(source.name, {**source.spec, "config": source.document}) for source in sources]
    guilty = reconcile.guilty(stuck, running, pairs)
    by = f" (brought by {', '.join(guilty)})" if guilty else " (something was taken away)"
    reasons = "; ".join(map(str, stuck))
    return _failure(
        pool,
        f"reconciliation failed between current config {current} and the new one{by}: {reasons}",
        guilty,
        tuple(
            Problem(
                guilty[0] if guilty else "", difference.field, "irreconcilable", difference.reason, difference.way_out
            )
            for difference in stuck
        ),
    )


def _too_large(pool: str, size: int, sources: Sequence[Source]) -> RenderFailure:
    largest = max(sources, key=lambda source: len(json.encode(dict(source.spec)))).name
    why = f"the rendered config has {size} bytes, the most that can be stored are {MAX_SIZE}"
    problem = Problem(largest, "spec", "size", why, "move large files into the image")
    return _failure(pool, f"{why}; the largest MachineConfig is {largest} ({problem.way_out})", (largest,), (problem,))


def _failure(pool: str, reason: str, guilty: tuple[str, ...] = (), problems: tuple[Problem, ...] = ()) -> RenderFailure:
    return RenderFailure(pool, f"Failed to render configuration for pool {pool}: {reason}", guilty, problems)
