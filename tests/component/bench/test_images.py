"""What is measured of images is the real thing: builds that end with an image, and values of a root of files."""

from __future__ import annotations

from bench.images import builds, layers, predicted, unpacked


async def test_each_build_that_is_measured_makes_an_image_of_its_own() -> None:
    assert [spent > 0 for spent in await builds(2)] == [True, True]


def test_a_prediction_reads_all_layers_up_to_the_values() -> None:
    packed = layers(root=3 * 1024**2, uki=1024**2, files=40)
    assert predicted(packed) > 0
    assert unpacked(packed) > 0
