"""Every metric there is, declared once.

Names follow Prometheus: `fastness_<noun>_<unit>`, counters end in `_total`. Nothing else makes a meter, so that labels stay
bounded: a label never carries a name that a stranger chooses. Gauges that mirror the state of something (the store) are set when
they are asked for: `refreshed_by`.
"""

from __future__ import annotations

from collections import Counter as CountOf
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from fastness.observe.meters import Counter, Gauge, Histogram, Registry

REGISTRY = Registry()
_SLOW = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Requests:
    """Answers of a door by method and code, with their duration."""

    def __init__(self) -> None:
        self._seconds = Histogram(
            "fastness_api_request_seconds",
            "Duration of API requests",
            ("method", "code"),
            registry=REGISTRY,
            buckets=_FAST,
        )
        self._known: dict[tuple[str, int], Callable[[float], None]] = {}

    def observe(self, method: str, code: int, seconds: float) -> None:
        """Count one answer."""
        key = (method if method in _METHODS else "other", code)
        observe = self._known.get(key)
        if observe is None:
            observe = self._known[key] = self._seconds.labels(key[0], str(code)).observe
        observe(seconds)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


class Labelled:
    """A counter with one label out of a closed set."""

    def __init__(self, name: str, text: str, label: str) -> None:
        self._counter = Counter(name, text, (label,), registry=REGISTRY)
        self._known: dict[str, Callable[[float], None]] = {}

    def inc(self, value: str, by: float = 1) -> None:
        """Count."""
        count = self._known.get(value)
        if count is None:
            count = self._known[value] = self._counter.labels(value).inc
        count(by)


class _Controllers:
    """What controllers do, by controller."""

    def __init__(self) -> None:
        labels = ("controller",)
        self._reconciles = Counter(
            "fastness_controller_reconciles_total", "Reconciles", ("controller", "result"), registry=REGISTRY
        )
        self._seconds = Histogram(
            "fastness_controller_reconcile_seconds", "Duration of reconciles", labels, registry=REGISTRY, buckets=_FAST
        )
        self._depth = Gauge("fastness_controller_queue_depth", "Keys that wait", labels, registry=REGISTRY)
        self._workers = Gauge("fastness_controller_busy_workers", "Workers at work", labels, registry=REGISTRY)

    def done(self, controller: str, result: str, seconds: float) -> None:
        """Count one reconcile: `ok`, `retry` or `failed`."""
        self._reconciles.labels(controller, result).inc()
        self._seconds.labels(controller).observe(seconds)

    def queue(self, controller: str, depth: int, busy: int) -> None:
        """How much waits and works."""
        self._depth.labels(controller).set(depth)
        self._workers.labels(controller).set(busy)


class _Refusals:
    """Refusals of doors, by door and code; codes are those of the doors' table of errors."""

    def __init__(self) -> None:
        self._counter = Counter(
            "fastness_door_refusals_total", "Refusals of doors, by code", ("door", "code"), registry=REGISTRY
        )

    def inc(self, door: str, code: str) -> None:
        """Count one refusal."""
        self._counter.labels(door, code).inc()


class _Standings:
    """How many machines stand how, and how many of them are simulated."""

    def __init__(self) -> None:
        self._gauge = Gauge(
            "fastness_machines", "Machines by how they stand; only Proved proved what they booted",
            ("standing", "simulated"), registry=REGISTRY,
        )  # fmt: skip
        self._shown: set[tuple[str, bool]] = set()

    def show(self, standings: Iterable[tuple[str, bool]]) -> None:
        """Show the machines of now; a standing that nobody has any more goes to 0."""
        counts = CountOf(standings)
        self._shown |= set(counts)
        for standing, simulated in self._shown:
            self._gauge.labels(standing, "true" if simulated else "false").set(counts[standing, simulated])


class _Builds:
    """Builds of operating system images. Names are those that dashboards of on-cluster layering ask for.

    Pools are what administrators make, and only those with a MachineOSConfig are counted.
    """

    STATES = ("prepared", "building", "succeeded", "failed", "interrupted")

    def __init__(self) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=REGISTRY)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=REGISTRY)

        self._state = gauge("ocl_build_state", "1 for the state of a pool's current build", "pool", "state")
        self._total = counter("ocl_build_total", "Builds that ended, by how", "pool", "state")
        self._seconds = Histogram(
            "ocl_build_duration_seconds", "Duration of builds", ("pool",), registry=REGISTRY, buckets=_SLOW
        )
        self._queue = Histogram(
            "ocl_build_queue_duration_seconds", "From the order of a build to its beginning", ("pool",), registry=REGISTRY,
            buckets=_SLOW,
        )  # fmt: skip
        self._start = gauge("ocl_build_start_timestamp_seconds", "Unix time at which the last build began", "pool")
        self._end = gauge("ocl_build_end_timestamp_seconds", "Unix time at which the last build ended", "pool")
        self._retries = counter("ocl_build_retries_total", "Builds that were tried again because a registry failed")
        self._changes = counter("ocl_config_change_total", "Builds that were ordered for a new config", "pool")
        self._pushes = counter("ocl_image_push_total", "Images that were pushed, or not", "pool", "state")
        self._push_state = gauge(
            "ocl_image_push_state", "1 for how the last push of a pool's image ended", "pool", "state"
        )
        self._active = gauge("ocl_active_builds", "Builds that run now")
        self._layered = gauge("ocl_layered_nodes_count", "Nodes that boot an image that was built here", "pool")
        self._updated = gauge(
            "ocl_rollout_updated_nodes", "Nodes of a pool with an image of its own that run it", "pool"
        )
        self._nodes = gauge("ocl_rollout_total_nodes", "Nodes of a pool with an image of its own", "pool")
        self._described = gauge("mco_mosc_count", "MachineOSConfigs that there are")

    def ordered(self, pool: str) -> None:
        """A build was asked for."""
        self._changes.labels(pool).inc()

    def began(self, pool: str, at: float, waited: float) -> None:
        """A build runs from now on."""
        self._active.inc()
        self._start.labels(pool).set(at)
        self._queue.labels(pool).observe(max(waited, 0))

    def left(self) -> None:
        """A build does not run here any more, however it ended."""
        self._active.inc(-1)

    def ended(self, pool: str, state: str, at: float, seconds: float, pushed: bool | None) -> None:
        """A build ended; `pushed` is None where nothing came so far."""
        self._total.labels(pool, state).inc()
        self._end.labels(pool).set(at)
        self._seconds.labels(pool).observe(max(seconds, 0))
        if pushed is not None:
            word = "succeeded" if pushed else "failed"
            self._pushes.labels(pool, word).inc()
            for each in ("succeeded", "failed"):
                self._push_state.labels(pool, each).set(each == word)

    def retried(self) -> None:
        """A registry failed, and is asked again."""
        self._retries.inc()

    def show(self, pool: str, state: str, nodes: tuple[int, int, int], described: int) -> None:
        """How a pool stands: the state of its build, its layered, updated and all nodes; `described` MachineOSConfigs in all."""
        for each in self.STATES:
            self._state.labels(pool, each).set(each == state)
        for meter, count in zip((self._layered, self._updated, self._nodes), nodes, strict=True):
            meter.labels(pool).set(count)
        self._described.set(described)


class _Answers:
    """Answers of a door by route and code; both are out of closed sets."""

    def __init__(self, name: str, text: str) -> None:
        self._counter = Counter(name, text, ("route", "code"), registry=REGISTRY)

    def inc(self, route: str, code: int) -> None:
        """Count one answer."""
        self._counter.labels(route, str(code)).inc()


REQUESTS = _Requests()
CONTROLLERS = _Controllers()
DEFECTS = Labelled("fastness_defects_total", "Unexpected exceptions that a supervisor caught", "where")
AUTHENTICATION = Labelled("fastness_api_authentication_total", "Credentials shown to the API", "result")
AUDIT_LEFT_OUT = Counter(
    "fastness_audit_left_out_total",
    "Refused writes without an audit line, because their caller had left too many of them",
    registry=REGISTRY,
)
AUDIT_LOST = Counter("fastness_audit_lost_total", "Audit lines that could not be written", registry=REGISTRY)
SET_ASIDE = Gauge(
    "fastness_informer_set_aside",
    "Objects that caches left out, because they cannot be read or something fails on them",
    ("resource",),
    registry=REGISTRY,
)
RELISTS = Labelled("fastness_informer_relists_total", "Lists after a watch that could not go on", "resource")
CONFIG_SERVED = Labelled("fastness_config_answers_total", "Answers of the config server", "code")
POOL_TOKENS = Labelled(
    "fastness_pool_tokens_total", "Bootstrap tokens for machines of pools that do not attest, by outcome", "result"
)
RECORD_ENTRIES = Counter("fastness_record_entries_total", "Entries that doors wrote to the record", registry=REGISTRY)
RECORD_SIZE = Gauge("fastness_record_size", "Entries that the record holds, in their final order", registry=REGISTRY)
RECORD_ALARMS = Counter(
    "fastness_record_alarms_total", "Batches of the record that were missing or did not fit", registry=REGISTRY
)
RECORD_STOPPED = Gauge(
    "fastness_record_stopped",
    "1 while nothing is added to the record, because it does not continue what was signed of it before",
    registry=REGISTRY,
)
RECORD_WITNESSES = Gauge(
    "fastness_record_witnesses", "Witnesses that cosigned the newest checkpoint they were shown", registry=REGISTRY
)
WITNESS_ANSWERS = Labelled(
    "fastness_witness_answers_total", "Checkpoints that this witness was asked to cosign, by its answer", "code"
)
RECORD_REFUSED = Labelled(
    "fastness_record_refused_total", "Batches of the record that did not count, by the reason", "reason"
)
POLICIES_EXCEEDED = Labelled(
    "fastness_policies_exceeded_total", "Questions to policies that ended without an answer, by the reason", "reason"
)
ATTESTATIONS = Labelled("fastness_attestations_total", "Appraisals of evidence, by outcome", "result")
LAST_ATTESTED = Gauge(
    "fastness_last_attestation_seconds", "Unix time at which a machine last passed an appraisal", registry=REGISTRY
)
MACHINE_STANDINGS = _Standings()
BUILDS = _Builds()
NODES_NEVER_ATTESTED = Gauge(
    "fastness_nodes_never_attested", "Nodes of confidential pools that never proved anything", registry=REGISTRY
)
ENROLMENTS = Labelled("fastness_enrolment_answers_total", "Answers of the enrolment door", "code")
CONFIG_COPY_AGE = Gauge(
    "fastness_broker_config_age_seconds",
    "Age of the copy of a configuration that the broker last handed out",
    registry=REGISTRY,
)
# The name is the one that dashboards of sandboxed containers ask for.
KATA_INSTALLED = Gauge(
    "kata_config_installation_success",
    "1 when the runtime for confidential containers is on every node that it should be on, else 0",
    registry=REGISTRY,
)
# So are these; a pod counts as failed as it does there: while it is neither running nor finished well.
REMOTE_CLASS = Gauge(
    "kata_remote_runtimeclass_available",
    "1 while the runtime class kata-remote is there, else 0",
    registry=REGISTRY,
)
REMOTE_PODS = Gauge("kata_total_remote_pods", "Pods that use the runtime class kata-remote", registry=REGISTRY)
REMOTE_PODS_FAILED = Gauge(
    "kata_failed_remote_pods",
    "Pods that use the runtime class kata-remote and are neither Running nor Succeeded",
    registry=REGISTRY,
)
REMOTE_FAILURES = Gauge(
    "kata_remote_workload_failure_ratio",
    "Percent of the pods with the runtime class kata-remote that are neither Running nor Succeeded; 0 without pods",
    registry=REGISTRY,
)
GATE_ANSWERS = Labelled("fastness_gate_answers_total", "Answers of the gate", "code")
RELEASES = Labelled(
    "fastness_config_releases_total", "Configurations handed out, by what the release rested on", "basis"
)
REVIEWS = Labelled("fastness_admission_reviews_total", "Reviews that the webhook answered", "result")
BROKER_ANSWERS = _Answers("fastness_broker_answers_total", "Answers of the key broker")
REFUSALS = _Refusals()
EVENTS_LOST = Counter("fastness_door_events_lost_total", "Events of doors that were not written", registry=REGISTRY)
CACHE_AGE = Gauge(
    "fastness_door_cache_age_seconds",
    "Seconds since the oldest cache that a door relies on last heard of the cluster; above 90 the door releases nothing",
    ("door",),
    registry=REGISTRY,
)
TURNED_AWAY = Labelled("fastness_turned_away_total", "Requests refused because a limit was reached, by lane", "lane")
WATCHES = Gauge("fastness_api_watches", "Watches that are open", registry=REGISTRY)
STORE_REVISION = Gauge("fastness_store_revision", "Newest revision that is durable", registry=REGISTRY)
STORE_OBJECTS = Gauge("fastness_store_objects", "Objects in the store", registry=REGISTRY)
STORE_ASIDE = Gauge(
    "fastness_store_set_aside", "Objects in the store that cannot be read and were set aside", registry=REGISTRY
)
STORE_LOG = Gauge("fastness_store_log_entries", "Entries of the log that watches can start from", registry=REGISTRY)
STORE_WAITING = Gauge("fastness_store_waiting_changes", "Changes that wait for the disk", registry=REGISTRY)
STORE_COMMITS = Gauge("fastness_store_commits", "Commits since start", registry=REGISTRY)
STORE_FAILURES = Gauge("fastness_store_failures", "Commits that failed since start", registry=REGISTRY)
LEADER = Gauge("fastness_leader", "1 while this process holds the lease", ("lease",), registry=REGISTRY)
CERTIFICATE_EXPIRY = Gauge(
    "fastness_certificate_expiry_seconds",
    "Unix time at which a certificate expires",
    ("certificate",),
    registry=REGISTRY,
)


_refreshers: list[Callable[[], None]] = []


@contextmanager
def refreshed_by(refresh: Callable[[], None]) -> Iterator[None]:
    """Have `refresh` set its gauges before every exposition, for the time of the block."""
    _refreshers.append(refresh)
    try:
        yield
    finally:
        _refreshers.remove(refresh)


def exposition() -> bytes:
    """All metrics in the text format of Prometheus, as they are now."""
    for refresh in tuple(_refreshers):
        refresh()
    return REGISTRY.exposition()
