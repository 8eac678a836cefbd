"""Which Ignition spec a boot image reads, by what it is called."""

from __future__ import annotations

import pytest

from fastness.machineconfig.boot_images.releases import newest_spec, release_in


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("42.80.20190725.1", "2.2.0"),
        ("45.82.202008101249-0", "2.2.0"),
        ("46.82.202011260640-0", "3.1.0"),
        ("47.83.202103251640-0", "3.2.0"),
        ("410.84.202201251210-0", "3.2.0"),
        ("413.92.202305021736-0", "3.2.0"),
        ("414.92.202310210434-0", "3.4.0"),
        ("418.94.202501221327-0", "3.4.0"),
        ("419.6.20250523", "3.5.0"),
        ("9.6.20250513-0", "3.5.0"),
        ("10.0.20260110-0", "3.5.0"),
        ("32.20200629.3.0", "3.0.0"),
        ("33.20201201.3.0", "3.1.0"),
        ("34.20210611.3.0", "3.2.0"),
        ("39.20231101.3.0", "3.4.0"),
        ("42.20250410.3.1", "3.5.0"),
        ("", None),
        ("8.4.20210101-0", None),
        ("mine", None),
    ],
)
def test_a_release_reads_what_every_image_of_it_reads(release: str, version: str | None) -> None:
    assert newest_spec(release) == version


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("projects/rhcos-cloud/global/images/rhcos-418-94-202501221327-0-gcp-x86-64", "418.94.202501221327-0"),
        ("rhcos-9-8-20260428-0-gcp-aarch64", "9.8.20260428-0"),
        ("https://mirror/rhcos-9.8.20260428-0-openstack.x86_64.qcow2.gz", "9.8.20260428-0"),
        ("azureopenshift:aro4:aro_413:413.92.2023101700", "413.92.2023101700"),
        ("fedora-coreos-39-20231101-3-0-gcp-x86-64", "39.20231101.3.0"),
        ("ami-0d4a956f16e671c23", ""),
        ("golden-image-7", ""),
        ("9" * 100_000, ""),
    ],
)
def test_the_name_of_an_image_tells_its_release(image: str, release: str) -> None:
    assert release_in(image) == release
