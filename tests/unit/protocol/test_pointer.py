"""The pointer in an image: what Ignition reads before anything of the platform."""

from __future__ import annotations

import pytest

from fastness.formats import json
from fastness.machineconfig import ignition
from fastness.protocol.pointer import IMAGE_SOURCE, MAX_BYTES, SYSTEM_CONFIG, image_pointer, is_image_pointer


def test_the_pointer_leads_to_the_loopback_and_carries_no_header() -> None:
    assert SYSTEM_CONFIG == "usr/lib/ignition/user.ign"
    config = ignition.upgrade(json.decode(image_pointer()))
    assert config["ignition"]["config"]["merge"] == [{"source": IMAGE_SOURCE}]
    assert IMAGE_SOURCE == "http://127.0.0.1:22625/config"
    assert set(config) == {"ignition"}


def test_the_pointer_is_known_again_however_it_is_laid_out() -> None:
    spread = image_pointer().replace(b",", b" ,\n ").replace(b":{", b" : {")
    assert is_image_pointer(image_pointer())
    assert is_image_pointer(spread)


@pytest.mark.parametrize(
    "other",
    [
        b"", b"[]", b"null", image_pointer()[:-3], image_pointer() + b" " * MAX_BYTES, image_pointer() + image_pointer(),
        image_pointer().replace(b"22625/config", b"22625/config/worker"),
        image_pointer().replace(b"127.0.0.1", b"127.0.0.2"),
        image_pointer().replace(b'"3.0.0"', b'"3.0.0","proxy":{}'),
        image_pointer().replace(b'{"ignition"', b'{"systemd":{},"ignition"'),
        image_pointer().replace(b'{"ignition"', b'{"ignition":{},"ignition"'),
        image_pointer().replace(b'"}]', b'"},{"source":"http://127.0.0.1:22625/config"}]'),
        image_pointer().replace(b'"}]', b'","httpHeaders":[]}]'),
    ],
)  # fmt: skip
def test_a_file_with_anything_more_or_less_is_not_the_pointer(other: bytes) -> None:
    assert not is_image_pointer(other)
