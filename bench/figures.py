"""From rounds to figures: medians with their spread, ratios of rounds that ran side by side, gates.

A round gives one `Sample` per server. The ratio of a row is the median of the ratios of its rounds, not the ratio of two
medians: both halves of a round saw the same neighbours, two medians may not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

API_SERVER = "kube-apiserver + etcd"
Measure = Literal["rate", "p50_us", "p99_us", "cpu_us"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One round of one row on one server: operations per second, latency, CPU of the server per operation."""

    rate: float
    p50_us: float
    p99_us: float
    cpu_us: float


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the least and greatest of the values behind it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value; raises ValueError without any."""
        if not values:
            raise ValueError("there is no median of nothing")
        return cls(median(values), min(values), max(values))


@dataclass(slots=True)
class Row:
    """One line of the table: what was done, and the samples of every round."""

    name: str
    what: str
    ours: list[Sample] = field(default_factory=list)
    peer: list[Sample] = field(default_factory=list)
    against: str = API_SERVER

    def spread(self, whose: Sequence[Sample], measure: Measure) -> Spread:
        """Median and spread of one figure over the rounds."""
        return Spread.of([getattr(sample, measure) for sample in whose])

    def ratio(self, measure: Measure) -> Spread | None:
        """Ours over the peer's, round by round; None when either is missing."""
        pairs = [
            (getattr(ours, measure), getattr(peer, measure)) for ours, peer in zip(self.ours, self.peer, strict=False)
        ]
        ratios = [mine / theirs for mine, theirs in pairs if theirs]
        return Spread.of(ratios) if ratios else None

    def to_json(self) -> dict[str, Any]:
        """The row with all its samples and what follows from them."""
        ratios = {name: self.ratio(name) for name in ("rate", "cpu_us")}
        return {
            "name": self.name,
            "what": self.what,
            "against": self.against,
            "ours": [asdict(sample) for sample in self.ours],
            "peer": [asdict(sample) for sample in self.peer],
            "ratio": {name: asdict(value) for name, value in ratios.items() if value is not None},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Row:
        """The row out of a result file."""
        ours, peer = ([Sample(**sample) for sample in document[side]] for side in ("ours", "peer"))
        return cls(document["name"], document["what"], ours, peer, document.get("against", API_SERVER))


@dataclass(frozen=True, slots=True)
class Single:
    """A figure that stands for itself, with what it should be."""

    name: str
    value: Spread
    unit: str
    target: float | None = None
    at_most: bool = True
    peer: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        if self.target is None:
            return None
        return self.value.median <= self.target if self.at_most else self.value.median >= self.target


@dataclass(frozen=True, slots=True)
class Gate:
    """A bound that the benchmark must keep; `value` is None when it was not measured."""

    name: str
    bound: float
    at_least: bool
    value: Spread | None
    unit: str = "× the peer's"

    @property
    def verdict(self) -> str:
        """pass, fail, or not measured."""
        if self.value is None:
            return "not measured"
        held = self.value.median >= self.bound if self.at_least else self.value.median <= self.bound
        return "pass" if held else "fail"

    @property
    def disputed(self) -> bool:
        """Whether some rounds say otherwise than the median: then the verdict is weak, and a quieter machine must settle it."""
        return self.value is not None and self.value.low < self.bound < self.value.high


TPM_TIMES = "verdict on a TPM quote, P-256, over its signature check: CPU"
SNP_TIMES = "verdict on an SNP report, warm chain, over its signature check: CPU"
EVENT = "event log: CPU per event"
DISK_HEADER = "both copies of a volume's header, read and held to the rules: CPU"
UNLOCKS = "storm of 1,000 unlocks over the same attestations: CPU of doors and machines"
OPENING = "open a volume in a machine under TCG, besides the agent's start: time in the guest"
ROLLOUT = "rollout over 5,000 nodes, control plane: CPU per node"
ENFORCING = "rollout over 500 nodes that enforce, doors included: CPU per node"
AGENT = "agent after 300 files, resident memory"
ATTESTED_AGENT = "agent with an identity after 300 files, resident memory, its modules added up"
STORM = "boot storm of 1,000 machines: CPU of machines and doors together"
ATTESTED = "attested fetch over new TLS connections, over the bare config server: CPU"
RULES = "1,000 feature rules on 5,000 nodes, none like another: CPU"
RULES_TWICE = "feature rules on twice the nodes: times the CPU"
RENDER = "render 20 configs, 300 files, 60 units: CPU"


def gates(rows: Sequence[Row], singles: Sequence[Single] = ()) -> list[Gate]:
    """The bounds: API and doors beside their peers, rendering in 12 ms, verdicts beside the signatures they check, rules."""
    by_name = {row.name: row for row in rows}

    def ratio(name: str, measure: Measure) -> Spread | None:
        return by_name[name].ratio(measure) if name in by_name else None

    alone = {single.name: single.value for single in singles}
    return [
        Gate("create, 64 clients: rate", 1.0, True, ratio("create-64", "rate")),
        Gate("list of 5,000: CPU", 0.5, False, ratio("list-5000", "cpu_us")),
        Gate("serve a config over new TLS connections: CPU", 1.0, False, ratio("serve-new", "cpu_us"), "× nginx's"),
        Gate(RENDER, 12.0, False, alone.get(RENDER), " ms"),
        Gate(TPM_TIMES, 1.5, False, alone.get(TPM_TIMES), "×"),
        Gate(SNP_TIMES, 1.3, False, alone.get(SNP_TIMES), "×"),
        Gate(EVENT, 6.0, False, alone.get(EVENT), " µs"),
        Gate(DISK_HEADER, 2000.0, False, alone.get(DISK_HEADER), " µs"),
        Gate(UNLOCKS, 1.3, False, alone.get(UNLOCKS), "×"),
        Gate(OPENING, 1.0, False, alone.get(OPENING), " s"),
        Gate(ROLLOUT, 15.0, False, alone.get(ROLLOUT), " ms"),
        Gate(ENFORCING, 18.0, False, alone.get(ENFORCING), " ms"),
        Gate(AGENT, 45.0, False, alone.get(AGENT), " MiB"),
        Gate(ATTESTED_AGENT, 45.0, False, alone.get(ATTESTED_AGENT), " MiB"),
        Gate(STORM, 40.0, False, alone.get(STORM), " s"),
        Gate(ATTESTED, 1.5, False, alone.get(ATTESTED), "×"),
        Gate(RULES, 4.0, False, alone.get(RULES), " s"),
        # Twice the nodes cost twice as much, and four times if it were quadratic.
        Gate(RULES_TWICE, 3.0, False, alone.get(RULES_TWICE), "×"),
    ]


def per_operation(outcome_seconds: float, done: int, latency: Sequence[float], cpu_seconds: float) -> Sample:
    """The sample of one job: `latency` has the quantiles 50, 90, 99 and 100 %."""
    return Sample(done / outcome_seconds, latency[0], latency[2], 1e6 * cpu_seconds / done)


Progress = Callable[[str], None]
