"""Which of our representations a client wants: the `Accept` header as Kubernetes clients write it.

A Kubernetes media range carries its transformation in parameters: `application/json;as=Table;v=v1;g=meta.k8s.io`. A server
answers with the first range, in the order of quality, that it can serve.

* `parse` is total: ranges that cannot be understood are left out, and at most `MAX_RANGES` are read.
* An empty header means `*/*`. A wildcard range takes the first offer.
* YAML and protobuf are not offered here; a client that lists them with JSON behind them gets JSON.

`discovery`, `tables` and the REST engine choose among their own `Media` with `negotiate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

# Each range is matched with each offer: a header that is all commas must not buy more work than a request is worth.
MAX_RANGES: Final = 32
_TRANSFORM: Final = ("as", "g", "v")


@dataclass(frozen=True, slots=True)
class Media:
    """One representation that can be served: a type and, for a transformation, kind, group and version."""

    type: str = "application/json"
    as_kind: str = ""
    group: str = ""
    version: str = ""

    @property
    def qualified(self) -> str:
        """The type with its parameters, in the order in which discovery repeats them in `Content-Type`."""
        return f"{self.type};g={self.group};v={self.version};as={self.as_kind}" if self.as_kind else self.type


@dataclass(frozen=True, slots=True)
class MediaRange:
    """One element of an `Accept` header."""

    type: str
    parameters: dict[str, str] = field(default_factory=dict)
    quality: float = 1.0

    def admits(self, media: Media) -> bool:
        """Whether `media` satisfies this range."""
        transformation = tuple(self.parameters.get(name, "") for name in _TRANSFORM)
        if transformation != (media.as_kind, media.group, media.version):
            return False
        main, _, sub = self.type.partition("/")
        offered_main, _, offered_sub = media.type.partition("/")
        return main in ("*", offered_main) and sub in ("*", offered_sub)


JSON: Final = Media()
ANY: Final = (MediaRange("*/*"),)


def parse(header: str) -> tuple[MediaRange, ...]:
    """The ranges of an `Accept` header, best first; `*/*` for an empty one."""
    if not header.strip():
        return ANY
    ranges = [range_ for text in header.split(",")[:MAX_RANGES] if (range_ := _range(text)) is not None]
    return tuple(sorted(ranges, key=lambda range_: -range_.quality))


def negotiate(header: str, offers: Sequence[Media]) -> Media | None:
    """The offer that the client likes best, or None when it accepts none of them."""
    for media_range in parse(header):
        for offer in offers:
            if media_range.quality > 0 and media_range.admits(offer):
                return offer
    return None


def _range(text: str) -> MediaRange | None:
    kind, *rest = (part.strip() for part in text.split(";"))
    main, slash, sub = kind.lower().partition("/")
    if not (main and slash and sub):
        return None
    parameters = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return MediaRange(f"{main}/{sub}", parameters, _quality(parameters.pop("q", "1")))


def _quality(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return min(max(value, 0.0), 1.0) if value == value else 0.0  # NaN is not a preference
