"""The images that a node booted: in order, bounded, and read back whatever somebody wrote there."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.rollout.image_queue import MAX_BYTES, MOST, MOST_SOURCES, Boot, ImageQueue, booted, queue_of

A, B = (f"registry.example/os@sha256:{digit * 64}" for digit in "ab")
MIRRORED = A.replace("registry.example", "mirror.example")


def boot(image: str, config: str = "rendered-worker-1", at: str = "2026-01-01T00:00:00Z") -> Boot:
    return Boot(at, image, config)


def held(queue: ImageQueue) -> JsonObject:
    return {"metadata": {"name": "w0", "annotations": {names.IMAGE_QUEUE: queue.text()}}}


def test_boots_stand_in_order_and_the_same_again_is_no_news() -> None:
    queue = ImageQueue()
    for each in (boot(A), boot(MIRRORED), boot(A, "rendered-worker-2"), boot(B, "rendered-worker-2"), boot(A)):
        queue = queue.after(each)
    assert [(each.image, each.config[-1]) for each in queue.boots] == [(A, "1"), (A, "2"), (B, "2"), (A, "1")]
    assert [each.image for each in queue.images] == [A, B, A]
    assert queue_of(held(queue)) == queue


def test_old_boots_fall_out_and_are_counted() -> None:
    queue = ImageQueue()
    for number in range(MOST + 5):
        queue = queue.after(boot(A, f"rendered-worker-{number}"))
    assert (len(queue.boots), queue.dropped) == (MOST, 5)
    assert queue.boots[-1].config == f"rendered-worker-{MOST + 4}"


def test_a_queue_has_a_bound_in_bytes_and_keeps_the_newest() -> None:
    queue, sources = ImageQueue(), tuple(f"{'x' * 200}-{number}" for number in range(MOST_SOURCES + 9))
    for number in range(6):
        queue = queue.after(Boot("", A, f"rendered-worker-{number}", "", sources))
    assert len(queue.text()) <= MAX_BYTES
    assert (queue.boots[-1].config, len(queue.boots[-1].sources)) == ("rendered-worker-5", MOST_SOURCES)
    assert queue.dropped + len(queue.boots) == 6


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"boots": 1}', '{"boots": [{}]}', '{"boots": [[]]}', "null"])
def test_a_queue_that_cannot_be_read_is_empty(text: str) -> None:
    assert queue_of({"metadata": {"annotations": {names.IMAGE_QUEUE: text}}}) == ImageQueue()


@pytest.mark.parametrize(
    ("notes", "counts"),
    [
        ({names.STATE: "Done"}, True),
        ({names.STATE: "Working"}, False),
        ({names.STATE: "Degraded"}, False),
        ({names.STATE: "Done", names.BOOTED_IMAGE: ""}, False),
    ],
)
def test_only_a_node_that_is_well_with_an_image_counts(notes: dict[str, str], counts: bool) -> None:
    annotations = {names.BOOTED_IMAGE: A, names.CURRENT_CONFIG: "rendered-worker-1", **notes}
    node = {"metadata": {"name": "w0", "annotations": annotations}}
    sources = [{"name": "00-worker"}, {"name": "99-mine"}]
    pool = {"status": {"configuration": {"name": "rendered-worker-1", "source": sources}}}
    builds = [
        {"metadata": {"name": name}, "status": {"digestedImagePushSpec": image, "buildEnd": end}}
        for name, image, end in (
            ("older", MIRRORED, "2026-01-01"),
            ("newer", A, "2026-01-02"),
            ("other", B, "2026-01-03"),
        )
    ]
    expected = Boot("now", A, "rendered-worker-1", "newer", ("00-worker", "99-mine"))
    assert booted(node, [pool], builds, "now") == (expected if counts else None)
