"""CoreOS stream metadata: what is read of it, and what is not stream metadata."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastness.formats.coreos_stream import MAX_BYTES, MAX_ENTRIES, CloudImage, parse_stream
from fastness.formats.errors import StreamError
from tests.unit.machineconfig.boot_images.sets import RELEASE, ami, stream_document


def test_the_images_of_every_architecture_are_read() -> None:
    stream = parse_stream(json.dumps(stream_document()).encode())
    assert set(stream.architectures) == {"x86_64", "aarch64"}
    arch = stream.architectures["x86_64"]
    assert arch.amis["eu-west-1"] == CloudImage(ami(), RELEASE)
    assert arch.gcp_project == "rhcos-cloud"
    assert arch.releases["qemu"] == RELEASE
    assert {disk.location.rpartition("-")[2] for disk in arch.disks} == {
        "qemu.x86_64.qcow2.gz",
        "openstack.x86_64.qcow2.gz",
    }
    assert arch.marketplace["no-purchase-plan", "hyperVGen2"].sku == "419-v2"
    assert stream.release_of_ami(ami(arch="aarch64")) == RELEASE
    assert stream.release_of_ami("ami-other") == ""


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "stream-json"),
        (b"{", "stream-json"),
        (b" " * (MAX_BYTES + 1), "stream-json"),
        (b"[]", "stream-shape"),
        (b'{"architectures": 7}', "stream-shape"),
        (json.dumps({"architectures": {f"a{n}": {} for n in range(MAX_ENTRIES + 1)}}).encode(), "stream-too-large"),
    ],
)
def test_what_is_no_stream_metadata_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(StreamError) as caught:
        parse_stream(data)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"images": 7}, {"artifacts": {"qemu": {"formats": [1]}}}])
def test_a_member_of_another_shape_is_as_good_as_missing(value: Any) -> None:
    stream = parse_stream(json.dumps({"architectures": {"x86_64": value}}).encode())
    assert stream.release_of_ami("x") == ""


def test_a_text_longer_than_any_name_is_not_kept() -> None:
    regions = {"r": {"image": "a" * 513, "release": "1"}}
    document = {"architectures": {"x86_64": {"images": {"aws": {"regions": regions}}}}}
    assert parse_stream(json.dumps(document).encode()).architectures["x86_64"].amis["r"].image == ""
