"""Values that were computed from the bytes of an image, as they stand on its ReferenceValueSet.

    computed = computed_of(values_set)          what was read, total
    computed.manifest                           as an approval carries it; None where there is none
    computed.pools                              of a build: the pool that it was made for, and no other

A loop (`attestation/loops/image_values.py`) reads the image and writes these notes; another (`attestation/loops/images.py`)
makes the spec of them. So the spec of a set has one writer, and what was computed survives a restart. Nothing of it counts
before an ApprovedImage says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from fastness.attestation.values.pushed_here import PUSHED_HERE
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.images.transition import LoaderMark, read_mark
from fastness.images.whole_image import METHOD, Expected
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition, is_being_deleted, labels_of, object_name

MANIFEST: Final = "fastness.dev/computed"
WITH: Final = "fastness.dev/computed-with"
SOURCES: Final = "fastness.dev/computed-from"
MISSING: Final = "fastness.dev/not-computed"
PROBLEM: Final = "fastness.dev/compute-problem"
BUILT_FOR: Final = "fastness.dev/built-for"
SIGNED_BY: Final = "fastness.dev/signed-by"
BUILT_BY: Final = "fastness.dev/built-by"
MAX_MANIFEST: Final = 160 * 1024
SIMULATED: Final = "what simulated machines measure that boot this digest"
LABELLED: Final = "the label org.coreos.pcrs of the image"
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Computed:
    """What is known of an image from its bytes. `made_with` says by which method and for which evidence, empty for nothing."""

    manifest: Object | None = None
    made_with: str = ""
    sources: Sequence[Object] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    pools: frozenset[str] = frozenset()
    signed_by: frozenset[str] = frozenset()
    built_by: str = ""

    @property
    def root(self) -> str:
        """The root that a machine has proved with the image, in hex; empty where its line names none, or several do."""
        roots = {str(source["root"]) for source in self.sources if source.get("root")}
        return roots.pop() if len(roots) == 1 else ""

    @property
    def built(self) -> bool:
        """Whether the image was built here."""
        return bool(self.pools)


NOTHING: Final = Computed()


def computed_of(values: Object | None) -> Computed:
    """What stands on a set; total."""
    notes = annotations_of(values or {})
    manifest, sources, missing = (_read(notes.get(key)) for key in (MANIFEST, SOURCES, MISSING))
    return Computed(
        manifest if isinstance(manifest, dict) else None,
        notes.get(WITH, ""),
        [each for each in sources if isinstance(each, dict)] if isinstance(sources, list) else [],
        {str(key): str(text) for key, text in missing.items()} if isinstance(missing, dict) else {},
        notes.get(PROBLEM, ""),
        _words(notes.get(BUILT_FOR)),
        _words(notes.get(SIGNED_BY)),
        notes.get(BUILT_BY, ""),
    )


def notes_of(computed: Computed) -> dict[str, str | None]:
    """As annotations of a set, for a merge patch."""
    manifest = json.canonical(dict(computed.manifest)).decode() if computed.manifest is not None else None
    return {
        MANIFEST: manifest,
        WITH: computed.made_with or None,
        SOURCES: json.canonical([dict(each) for each in computed.sources]).decode() if computed.sources else None,
        MISSING: json.canonical(dict(computed.missing)).decode() if computed.missing else None,
        PROBLEM: computed.problem[:1024] or None,
        BUILT_FOR: ",".join(sorted(computed.pools)) or None,
        SIGNED_BY: ",".join(sorted(computed.signed_by)) or None,
        BUILT_BY: computed.built_by[:1024] or None,
    }


def method(
    evidence: Iterable[str], *, simulated: bool, built: bool, loaders: Iterable[LoaderMark] = (), platforms: str = ""
) -> str:
    """By what an image is computed: whatever would lead to other values leads to another text here."""
    words: dict[str, Any] = {"method": METHOD, "evidence": sorted(evidence), "simulated": simulated, "built": built}
    marks = sorted(mark.digest for mark in loaders)
    words |= ({"loaders": marks} if marks else {}) | ({"platforms": platforms} if platforms else {})
    return f"{METHOD}-{sha256(json.canonical(words)).hexdigest()[:12]}"


def loaders_of(computed: Computed) -> frozenset[LoaderMark]:
    """The boot loaders that an image brings: machines that were installed from it have one of them, whatever they boot later."""
    marks = (read_mark(source.get("loader")) for source in computed.sources)
    return frozenset(mark for mark in marks if mark is not None)


def from_files(expected: Expected) -> Computed:
    """What a prediction from files gives."""
    sources = tuple(origin.to_json() for origin in expected.sources)
    return Computed(expected.manifest, sources=sources, missing=expected.missing)


def in_words(computed: Computed) -> str:
    """Where values come from and what is missing, in words for a condition."""
    files = ", ".join(str(each.get("file")) for each in computed.sources)
    gaps = "; ".join(f"{kind}: {why}" for kind, why in sorted(computed.missing.items()))
    return (f", computed from {files}" if files else "") + (f". Not computed: {gaps}" if gaps else "")


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image that was built here: by which build, of which MachineOSConfig and rendered config, for which pool.

    All of it is what objects say; `vouched` is the word that the controllers gave for it (`pushed_here`).
    """

    image: str
    build: str
    described_by: str
    config: str
    pool: str
    secret: str = ""
    vouched: str = ""
    made_of: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        """Which build it is, and what it was made of."""
        return f"{self.build} of {self.config}" + (f" ({', '.join(self.made_of)})" if self.made_of else "")


def built_images(builds: Iterable[Object], configs: Iterable[Object]) -> list[BuiltImage]:
    """The images of builds that stand, in order of the builds; a build is for the pool of its MachineOSConfig."""
    pools = {object_name(each).name: _pool_of(each) for each in configs if not is_being_deleted(each)}
    images = []
    for build in sorted(builds, key=object_name):
        spec = build.get("spec") or {}
        described_by = str((spec.get("machineOSConfig") or {}).get("name") or "")
        image, pool = image_of_build(build), pools.get(described_by, "")
        # A label is easily changed, and who may change one need not be who may describe the images of that pool.
        if image and pool and labels_of(build).get(names.BUILD_POOL_LABEL) == pool and not is_being_deleted(build):
            config = str((spec.get("machineConfig") or {}).get("name") or "")
            secret = annotations_of(build).get(names.PUSH_SECRET, "")
            vouched = annotations_of(build).get(PUSHED_HERE, "")
            made_of = tuple(word for word in annotations_of(build).get(names.MADE_OF, "").split(",") if word)
            images.append(
                BuiltImage(image, object_name(build).name, described_by, config, pool, secret, vouched, made_of)
            )
    return images


def _pool_of(config: Object) -> str:
    return str(((config.get("spec") or {}).get("machineConfigPool") or {}).get("name") or "")


def image_of_build(build: Object) -> str:
    """The image that a build made, by digest; empty for one that did not succeed."""
    done = (condition(build, "Succeeded") or {}).get("status") == "True"
    return str((build.get("status") or {}).get("digestedImagePushSpec") or "") if done else ""


def _words(text: str | None) -> frozenset[str]:
    return frozenset(word for word in (text or "").split(",") if word)


def _read(text: str | None) -> Any:
    try:
        return json.decode(text.encode()) if text else None
    except JsonError:
        return None
