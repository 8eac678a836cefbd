"""Values that belong together: an image is a tuple of values, and a machine is compared with whole images.

    tuples = tuples_of("tpm", "image-12ab…", spec, values)  # of one ReferenceValueSet
    candidates(seen, tuples)                                # the images a machine may have booted, nearest first

The boot loader of one approved image under the kernel of another was never built, tried or approved by anybody, and an attacker
who may choose picks the weakest of each. So a policy is asked once for each image, with the values of that image alone.

* A set is one tuple. Values with `variants` belong to named states of it alone: a boot phase, which changes PCR 11, or a step of
  an update, as a new boot loader that still starts the old kernel. Each name makes a tuple with its own values and those
  without a name.
* Within a tuple one register may have alternatives. If two have, nothing says which belong together: such a tuple is `unclear`,
  and nobody is compared with it.
* An image need not say everything: Secure Boot keys belong to the platform. What it leaves out may come from sets of source
  manual or import that name no register of the image, each of which must agree in all that it names. No image completes another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.attestation.values.measured import COMPARED_NAMES, is_measured

IMAGE: Final = "image"
# A machine that is refused costs an evaluation for each image that it shares a value with, and many share the platform's.
MOST_TRIED: Final = 16
Entry = tuple[Any, bool]


@dataclass(frozen=True, slots=True, eq=False)
class ValueTuple:
    """What machines of one kind measure by one set in one of its variants; `entries` are the values as policies get them."""

    tee: str
    set: str
    source: str
    image: str
    variant: str
    texts: Mapping[str, frozenset[str]]
    entries: Mapping[str, tuple[Entry, ...]]

    @property
    def label(self) -> str:
        """The image, and its variant if it has one, as people name it."""
        who = self.image or f"the set {self.set}"
        return f"{who} ({self.variant})" if self.variant else who

    @property
    def compared(self) -> frozenset[str]:
        """The names that machines are compared by."""
        return COMPARED_NAMES[self.tee] & self.texts.keys()

    @property
    def unclear(self) -> tuple[str, ...]:
        """Names with several values of which nothing says which belong together; empty when the tuple is clear."""
        several = sorted(name for name in self.compared if len(self.texts[name]) > 1)
        # One register with alternatives is clear. With two, every combination would be accepted, also those that nobody built.
        return tuple(several) if len(several) > 1 else ()

    def count_agreeing(self, measured: Mapping[str, str]) -> int:
        """How many of its values a machine shows, also of those that only policies of users look at."""
        return sum(measured.get(name, "") in texts for name, texts in self.texts.items())

    def agrees(self, measured: Mapping[str, str]) -> bool:
        """Whether a machine shows all that the tuple names; a tuple without compared names has nothing to say against it."""
        return all(measured.get(name, "") in self.texts[name] for name in self.compared)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An image that a machine may have booted, and the sets that say what the image does not."""

    base: ValueTuple
    completing: tuple[ValueTuple, ...]
    agreeing: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether the machine shows this image and nothing else."""
        return self.agreeing == COMPARED_NAMES[self.base.tee]

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The values of a name; of the image itself where it has any."""
        if name in self.base.entries:
            return self.base.entries[name]
        return tuple(entry for part in self.completing for entry in part.entries.get(name, ()))

    @property
    def names(self) -> frozenset[str]:
        """All names that it has values for."""
        return frozenset(self.base.texts).union(*(part.texts for part in self.completing))


def tuples_of(
    tee: str, name: str, spec: Mapping[str, Any], values: Sequence[tuple[Mapping[str, Any], Any]]
) -> list[ValueTuple]:
    """What a set says about one kind of evidence, given its values each with its typed form."""
    measured = [(value, typed) for value, typed in values if is_measured(tee, str(value["name"]))]
    variants = sorted({variant for value, _ in measured for variant in variants_of(value)}) or [""]
    return [_tuple(tee, name, spec, variant, measured) for variant in variants] if measured else []


def variants_of(value: Mapping[str, Any]) -> tuple[str, ...]:
    """The variants that a value belongs to; empty when it belongs to all."""
    listed = value.get("variants")
    return tuple(str(variant) for variant in listed) if isinstance(listed, list) else ()


def candidates(measured: Mapping[str, str], tuples: Sequence[ValueTuple]) -> tuple[Candidate, ...]:
    """The images to try for a machine, nearest first: all that it shows as a whole, and of the others those that come nearest.

    One of which it shows nothing is there only where there is no other.
    """
    clear = [entry for entry in tuples if not entry.unclear]
    # Only those that agree in full may complete: a set that a machine contradicts in one register is no help in another.
    agreeing = [entry for entry in clear if entry.source != IMAGE and entry.agrees(measured)]
    nearest = [_candidate(measured, base, agreeing) for base in clear if base.compared]
    # Names last, so that two replicas try and explain in the same order.
    nearest.sort(
        key=lambda entry: (
            -len(entry.agreeing),
            -entry.base.count_agreeing(measured),
            entry.base.set,
            entry.base.variant,
        )
    )
    # All whole ones are tried, whatever the bound: cutting one off would refuse a machine that shows an approved image.
    whole = sum(entry.whole for entry in nearest)
    return tuple([entry for entry in nearest[: max(whole, MOST_TRIED)] if entry.agreeing] or nearest[:1])


def uncovered(tee: str, tuples: Sequence[ValueTuple], image: str | None = None) -> frozenset[str]:
    """The names that nobody gives a value for, of the image (any, if none is named) that lacks the fewest."""
    clear = [entry for entry in tuples if not entry.unclear]
    lacking = [
        COMPARED_NAMES[tee] - base.compared - _complement(base, clear)
        for base in clear
        if base.compared and image in (None, base.image)
    ]
    return min(lacking, key=len, default=COMPARED_NAMES[tee])


def _complement(base: ValueTuple, tuples: Sequence[ValueTuple]) -> frozenset[str]:
    return frozenset[str]().union(*(entry.compared for entry in tuples if _completes(entry, base)))


def _completes(part: ValueTuple, base: ValueTuple) -> bool:
    """Whether a tuple may say what another leaves out: it is no image, and both speak of different registers."""
    # An image never completes another: that would be the mix of two images which tuples are there to refuse (decision 26).
    return part.source != IMAGE and not base.texts.keys() & part.texts.keys()


def _candidate(measured: Mapping[str, str], base: ValueTuple, agreeing: Sequence[ValueTuple]) -> Candidate:
    completing = tuple(part for part in agreeing if _completes(part, base))
    agreeing_names = {name for name in base.compared if measured.get(name, "") in base.texts[name]}
    return Candidate(base, completing, frozenset(agreeing_names).union(*(part.compared for part in completing)))


def _tuple(
    tee: str, name: str, spec: Mapping[str, Any], variant: str, values: Sequence[tuple[Mapping[str, Any], Any]]
) -> ValueTuple:
    entries: dict[str, list[Entry]] = {}
    texts: dict[str, set[str]] = {}
    for value, typed in values:
        if variant in (variants_of(value) or (variant,)):
            entries.setdefault(str(value["name"]), []).append((typed, value.get("single") is True))
            texts.setdefault(str(value["name"]), set()).add(str(value["value"]))
    return ValueTuple(
        tee, name, str(spec.get("source", "")), str(spec.get("image") or ""), variant,
        {key: frozenset(members) for key, members in texts.items()}, {key: tuple(members) for key, members in entries.items()},
    )  # fmt: skip
