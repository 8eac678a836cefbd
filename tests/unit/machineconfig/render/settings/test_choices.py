"""What a pool chooses by annotation, and from whom it takes over what it does not choose."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.machineconfig.render.settings.choices import container_runtime, is_openshift, with_choices


def annotated(**notes: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "a",
            "annotations": {f"fastness.dev/{key.replace('_', '-')}": value for key, value in notes.items()},
        }
    }


@pytest.mark.parametrize(
    ("pool", "workers", "controller", "expected"),
    [
        (annotated(), None, None, "crio"),
        (annotated(container_runtime="containerd"), None, annotated(container_runtime="crio"), "containerd"),
        (annotated(), annotated(container_runtime="containerd"), annotated(container_runtime="crio"), "containerd"),
        (annotated(), annotated(), annotated(container_runtime="containerd"), "containerd"),
    ],
)
def test_the_nearest_choice_counts(pool: Any, workers: Any, controller: Any, expected: str) -> None:
    assert container_runtime(with_choices(pool, workers, controller)) == expected


def test_other_annotations_stay_and_are_not_taken_over() -> None:
    chosen = with_choices(annotated(mine="1"), annotated(theirs="2"), annotated(distribution="openshift"))
    assert chosen["metadata"]["annotations"] == {"fastness.dev/mine": "1", "fastness.dev/distribution": "openshift"}
    assert is_openshift(chosen)
    assert not is_openshift(annotated(distribution="kubernetes"))
