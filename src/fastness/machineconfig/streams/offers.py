"""From labels of images to streams on offer, and the one that pools get which name none.

An image says by its labels which stream it belongs to and what it is. A stream is on offer when it has both, the system and its
extensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.errors import BadStreams

STREAM: Final = "io.openshift.os.streamclass"
BOOTABLE: Final = "containers.bootc"
EXTENSIONS: Final = "io.openshift.os.extensions"
_CENTOS: Final = "centos-10"
_MOST_TOLD: Final = 5


class LabelledImage(NamedTuple):
    """An image by digest, and the labels that it has."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Default:
    """The stream of pools that name none; `remark` says why it is not the one that somebody asked for."""

    name: str
    remark: str = ""


def offers(sources: Iterable[Sequence[LabelledImage]]) -> list[JsonObject]:
    """What is on offer, by name; a later source wins. Raises BadStreams with everything that is wrong when nothing is."""
    whole: dict[str, JsonObject] = {}
    problems: list[str] = []
    for images in sources:
        halves: dict[str, dict[str, str]] = {}
        for image in images:
            half = _half(image, problems)
            if half:
                halves.setdefault(image.labels[STREAM], {})[half] = image.name
        for name, parts in halves.items():
            lacking = [half for half in ("osImage", "osExtensionsImage") if half not in parts]
            if lacking:
                problems.append(f"the stream {name} has no {lacking[0]}")
            else:
                whole[name] = {"name": name, **parts}
    if not whole:
        text = "; ".join(problems[:_MOST_TOLD]) or "no image of an operating system is named"
        raise BadStreams(f"there is no stream of operating system images: {text}")
    return [whole[name] for name in sorted(whole)]


def _half(image: LabelledImage, problems: list[str]) -> str:
    """Which part of a stream an image is; what is wrong with it is noted."""
    stream = image.labels.get(STREAM, "")
    if not stream:
        problems.append(f"{image.name} has no label {STREAM}")
        return ""
    if not predicates.holds(stream, s.DNS_SUBDOMAIN) or len(stream) > predicates.LONGEST_NAME:
        problems.append(f"{image.name} has a label {STREAM} that is no name: {stream[:63]!r}")
        return ""
    if image.labels.get(EXTENSIONS) == "true":
        return "osExtensionsImage"
    if image.labels.get(BOOTABLE) in ("true", "1"):
        return "osImage"
    problems.append(f"{image.name} is neither a system ({BOOTABLE}) nor its extensions ({EXTENSIONS})")
    return ""


def default_stream(available: Iterable[str], asked: str, before: str, installed: str) -> Default:
    """The default of these streams; raises BadStreams when nobody chose and nothing follows.

    `asked` is what the spec says, `before` what the status said, `installed` the version that the cluster was installed with.
    """
    streams = sorted(available)
    if asked in streams:
        return Default(asked)
    remark = f"spec.defaultStream is {asked}, which is not on offer (there are: {', '.join(streams)})" if asked else ""
    if before in streams:
        return Default(before, remark)
    if len(streams) == 1:
        return Default(streams[0], remark)
    built_in = "rhel-9" if installed.startswith("4.") else "rhel-10"
    # A community release has streams of its own and none of the other's.
    for name in (built_in, _CENTOS):
        if name in streams:
            return Default(name, remark)
    raise BadStreams(
        f"there are several streams, and none is the default: {', '.join(streams)}",
        "Create the OSImageStream `cluster` with spec.defaultStream.",
    )
