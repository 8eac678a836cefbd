"""The pointer: the small Ignition config that leads a machine to the agent on its own loopback.

    image_pointer()     the bytes of SYSTEM_CONFIG in the image of a ConfidentialCluster pool
    is_image_pointer()  whether a file of an image is that, and nothing more

Whoever runs a machine writes its user-data, so what Ignition reads there is the host's word. Ignition looks into its system
config directory first and asks the platform only when there is no `user.ign` in it (fetchers: command line, system, platform).
With this file in the measured image it never sees user-data; the agent reads that, strictly, for three words.

* No headers: there is no secret in an image, and the forwarder knows pool and ticket by itself.
* Version 3.0.0, the lowest that merges: every Ignition of spec 3 reads it, and what is fetched may be of a higher one.
* In the pools where stock Ignition carries the ticket the pointer is made per pool, by `machineconfig.pointer`.
"""

from __future__ import annotations

from typing import Final

from fastness.formats import json
from fastness.formats.errors import JsonError

FORWARDER: Final = "http://127.0.0.1:22625"
CONFIG: Final = "config"
IMAGE_SOURCE: Final = f"{FORWARDER}/{CONFIG}"
SERVER_HEADER: Final = "X-Fastness-Server"
SYSTEM_CONFIG: Final = "usr/lib/ignition/user.ign"
"""Where the pointer lies, below the root of an image and below that of its initial file system: Ignition runs in the latter."""
OTHER_SYSTEM_CONFIGS: Final = ("run/ignition/user.ign", "etc/ignition/user.ign")
"""Where newer releases of Ignition look first (run, etc, usr/lib): a file of somebody else's there would win over the pointer."""
SYSTEM_CONFIG_MODE: Final = 0o644
MAX_BYTES: Final = 4096
_POINTER: Final = {"ignition": {"version": "3.0.0", "config": {"merge": [{"source": IMAGE_SOURCE}]}}}


def image_pointer() -> bytes:
    """What SYSTEM_CONFIG holds; the same bytes for every image and cluster."""
    return json.encode(_POINTER) + b"\n"


def is_image_pointer(data: bytes) -> bool:
    """Whether a file says what `image_pointer` says and nothing else, however it is laid out."""
    try:
        value, repeated = json.decode_reporting_duplicates(data, json.JsonLimits(max_bytes=MAX_BYTES, max_depth=8))
    except JsonError:
        return False
    # The whole value: a pointer with one member more is an image whose machines do something that nobody looked at.
    return not repeated and value == _POINTER
