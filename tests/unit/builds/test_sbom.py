"""A bill of materials: the same bytes for the same image, package URLs as scanners write them, and no package twice."""

from __future__ import annotations

import json

import pytest

from fastness.builds.sbom import RPM, Component, bill_of_materials

IMAGE = f"registry.example/os/worker@sha256:{'1' * 64}"
BASH = Component("bash", "5.2.15-2+b7", "amd64", distribution="debian")
KERNEL = Component("kernel", "1:5.14.0-503.el9", "x86_64", RPM, "rhel")


@pytest.mark.parametrize(
    ("component", "purl"),
    [
        (BASH, "pkg:deb/debian/bash@5.2.15-2%2Bb7?arch=amd64"),
        (Component("libstdc++6", "12.2.0-14", "amd64"), "pkg:deb/libstdc%2B%2B6@12.2.0-14?arch=amd64"),
        (Component("dbus", "1:1.14~rc1"), "pkg:deb/dbus@1%3A1.14~rc1"),
        (KERNEL, "pkg:rpm/rhel/kernel@5.14.0-503.el9?arch=x86_64&epoch=1"),
    ],
)
def test_a_package_has_the_url_that_scanners_look_for(component: Component, purl: str) -> None:
    assert component.purl == purl


def test_order_and_repetition_change_nothing() -> None:
    first = bill_of_materials(IMAGE, [BASH, KERNEL])
    assert first == bill_of_materials(IMAGE, [KERNEL, BASH, KERNEL])
    assert first != bill_of_materials(IMAGE.replace("1", "2"), [BASH, KERNEL])


def test_the_document_names_the_image_by_digest_and_every_package() -> None:
    document = json.loads(bill_of_materials(IMAGE, [BASH, KERNEL]))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert document["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "1" * 64}]
    assert [each["name"] for each in document["components"]] == ["bash", "kernel"]
    assert document["components"][1]["version"] == "1:5.14.0-503.el9"
    assert document["serialNumber"].startswith("urn:uuid:")
