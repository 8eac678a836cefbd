"""Meters: what is counted, and the text as the parser of Prometheus's own library reads it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fastness.observe.meters import Counter, Gauge, Histogram, Registry

HOSTILE = 'a"b\\c\nd'


def samples(registry: Registry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(registry.exposition().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_meter_without_labels_shows_zero_before_it_is_used() -> None:
    registry = Registry()
    Counter("x_total", "X", registry=registry)
    Gauge("y", "Y", registry=registry)
    assert samples(registry) == {("x_total", ()): 0, ("y", ()): 0}


def test_values_of_labels_come_back_as_they_were_whatever_is_in_them() -> None:
    registry = Registry()
    Gauge("y", HOSTILE, ("door",), registry=registry).labels(HOSTILE).set(1.5)
    assert samples(registry) == {("y", (("door", HOSTILE),)): 1.5}
    assert registry.value("y", {"door": HOSTILE}) == 1.5
    assert registry.value("y", {"door": "other"}) is None


def test_a_duration_counts_in_its_bucket_and_in_all_larger_ones() -> None:
    registry = Registry()
    seconds = Histogram("s", "S", ("c",), registry=registry, buckets=(0.1, 1.0)).labels("a")
    for duration in (0.05, 0.1, 0.5, 3.0):
        seconds.observe(duration)
    exposed = samples(registry)
    buckets = {dict(labels)["le"]: value for (name, labels), value in exposed.items() if name == "s_bucket"}
    assert buckets == {"0.1": 2, "1.0": 3, "+Inf": 4}
    assert exposed["s_count", (("c", "a"),)] == 4
    assert exposed["s_sum", (("c", "a"),)] == pytest.approx(3.65)


def test_threads_lose_no_count() -> None:
    registry = Registry()
    counter = Counter("x_total", "X", ("a",), registry=registry)

    def count(_: int) -> None:
        for _ in range(2000):
            counter.labels("v").inc()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert registry.value("x_total", {"a": "v"}) == 16_000


def test_a_second_meter_of_one_name_and_too_many_labels_are_defects() -> None:
    registry = Registry()
    gauge = Gauge("y", "Y", ("a",), registry=registry)
    with pytest.raises(ValueError, match="already"):
        Counter("y", "Y", registry=registry)
    with pytest.raises(ValueError, match="zip"):
        gauge.labels("1", "2")
