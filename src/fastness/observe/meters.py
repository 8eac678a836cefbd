"""Meters and the text that Prometheus reads from them: counters, gauges, histograms.

A meter without labels is its own series; one with labels has a series for every combination of values that was used. Who counts
often asks for a series once and keeps it. A `Registry` holds the meters of a process and writes them in the text format,
version 0.0.4.

The usual library brings a web server and parsers of mail along, 1.5 MiB in an agent that serves no metrics at all, and looks a
series up behind a lock whenever a label is named (decision 72).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from threading import Lock
from typing import ClassVar, Final

# One for all: threads that write files count too, and nobody holds it for longer than an addition.
_LOCK: Final = Lock()
Sample = tuple[str, tuple[tuple[str, str], ...], float]


class Series:
    """One value that goes up, or is set."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, by: float = 1) -> None:
        """Count."""
        with _LOCK:
            self.value += by

    def dec(self, by: float = 1) -> None:
        """Count backwards, where it is a gauge."""
        self.inc(-by)

    def set(self, value: float) -> None:
        """How it is now, where it is a gauge."""
        self.value = float(value)


class Distribution:
    """How often which durations were seen."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        with _LOCK:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._sum += value

    def samples(self, name: str, labels: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
        """How many lasted at most how long, how many there were, and their sum."""
        bounds = (*(repr(float(bound)) for bound in self._bounds), "+Inf")
        for bound, count in zip(bounds, accumulate(self._counts), strict=True):
            yield f"{name}_bucket", (*labels, ("le", bound)), count
        yield f"{name}_count", labels, sum(self._counts)
        yield f"{name}_sum", labels, self._sum


class Meter(ABC):
    """What all meters have: a name, a meaning, and a kind that dashboards know."""

    kind: ClassVar[str]

    def __init__(self, name: str, text: str, labels: tuple[str, ...], registry: Registry) -> None:
        self.name = name
        self.text = text
        self.label_names = labels
        registry.add(self)

    @abstractmethod
    def samples(self) -> Iterator[Sample]:
        """Every series as it is now."""

    def _labels(self, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.label_names, values, strict=True))


class _Numbers(Meter):
    """A meter whose series are single numbers; without labels it is one itself."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...] = (), *, registry: Registry) -> None:
        super().__init__(name, text, labels, registry)
        self._series: dict[tuple[str, ...], Series] = {} if labels else {(): Series()}

    def labels(self, *values: str) -> Series:
        """The series of these values, in the order of the names."""
        series = self._series.get(values)
        if series is None:
            self._labels(values)  # too many or too few are a defect, and not a series
            series = self._series.setdefault(values, Series())
        return series

    def inc(self, by: float = 1) -> None:
        """Count, where there are no labels."""
        self._series[()].inc(by)

    def samples(self) -> Iterator[Sample]:
        for values, series in tuple(self._series.items()):
            yield self.name, self._labels(values), series.value


class Counter(_Numbers):
    """What only goes up; its name ends in `_total`."""

    kind = "counter"


class Gauge(_Numbers):
    """What goes up and down."""

    kind = "gauge"

    def set(self, value: float) -> None:
        """How it is now, where there are no labels."""
        self._series[()].set(value)


class Histogram(Meter):
    """Durations by the bounds that they stay under."""

    kind = "histogram"

    def __init__(
        self, name: str, text: str, labels: tuple[str, ...], *, registry: Registry, buckets: Sequence[float]
    ) -> None:
        super().__init__(name, text, labels, registry)
        self._buckets = buckets
        self._series: dict[tuple[str, ...], Distribution] = {}

    def labels(self, *values: str) -> Distribution:
        """The series of these values, in the order of the names."""
        series = self._series.get(values)
        if series is None:
            self._labels(values)
            series = self._series.setdefault(values, Distribution(self._buckets))
        return series

    def samples(self) -> Iterator[Sample]:
        for values, series in tuple(self._series.items()):
            yield from series.samples(self.name, self._labels(values))


class Registry:
    """All meters of a process."""

    def __init__(self) -> None:
        self._meters: dict[str, Meter] = {}

    def __iter__(self) -> Iterator[Meter]:
        return iter(self._meters.values())

    def add(self, meter: Meter) -> None:
        """Take a meter in; two of one name are a defect."""
        if meter.name in self._meters:
            raise ValueError(f"there is a meter {meter.name} already")
        self._meters[meter.name] = meter

    def value(self, name: str, labels: Mapping[str, str] | None = None) -> float | None:
        """One sample as it is now; None if nothing was counted under these labels."""
        for meter in self:
            for sample, names, value in meter.samples():
                if sample == name and dict(names) == (labels or {}):
                    return value
        return None

    def exposition(self) -> bytes:
        """All of it as text."""
        lines = []
        for meter in self:
            lines.append(f"# HELP {meter.name} {_escaped(meter.text)}")
            lines.append(f"# TYPE {meter.name} {meter.kind}")
            lines += [f"{name}{_braces(labels)} {float(value)!r}" for name, labels, value in meter.samples()]
        return "".join(f"{line}\n" for line in lines).encode()


def _braces(labels: tuple[tuple[str, str], ...]) -> str:
    # By name, as the usual library does: queries and tests that compare whole lines go on matching.
    quoted = (f'{name}="{_escaped(value).replace(chr(34), chr(92) + chr(34))}"' for name, value in sorted(labels))
    return "{" + ",".join(quoted) + "}" if labels else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
