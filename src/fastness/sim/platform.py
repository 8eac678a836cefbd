"""The platform under virtual machines: what all of them share, what an installed disk has, and the user-data of a pool."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.apply.node import FAST, Settings
from fastness.agent.apply.ports import Files
from fastness.agent.boot.attester import Attester
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.host.states import Absent, File
from fastness.crypto.silicon.verify import attestation_key
from fastness.formats.evidence.tpm.public import parse_public
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.subject import KeyKind
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.observe.logs import logger
from fastness.protocol.machine_names import machine_name
from fastness.runtime.clock import Clock, Entropy
from fastness.sim.hardware import Hardware
from fastness.sim.inventory import Spec
from fastness.sim.registry import SimRegistry

REBOOT_SECONDS: Final = 0.3
_PASSWD: Final = b"root:x:0:0:root:/root:/bin/sh\ncore:x:1000:1000:core:/home/core:/bin/sh\n"
_GROUP: Final = b"root:x:0:\ncore:x:1000:\n"
_SHADOW: Final = b"root:*:20000:0:99999:7:::\ncore:*:20000:0:99999:7:::\n"
_OS_RELEASE: Final = b'ID=fastness-virtual\nPRETTY_NAME="Virtual machine of Fastness"\n'
_log = logger("machines")


@dataclass(frozen=True, slots=True)
class Proofs:
    """How machines of a confidential pool prove themselves: by which hardware, believing whom, to which doors."""

    hardware: Callable[[Spec], Hardware]
    trust: Callable[[], ImageTrust]
    broker: Callable[[], str]
    gate: Callable[[], str]
    patience: float = 600.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """What machines share: the control plane's view of the cluster, and each node's own; the doors that user-data leads to.

    `api` is where the API listens, if not where configurations say.
    """

    cluster: Cluster
    as_node: Callable[[str], Cluster]
    directory: Path
    clock: Clock
    entropy: Entropy
    settings: Settings = FAST
    reboot_seconds: float = REBOOT_SECONDS
    proofs: Proofs | None = None
    registry: SimRegistry | None = None
    doors: tuple[str, ...] = ()
    api: str = ""


def install(files: Files, name: str) -> None:
    """What an installed machine has before its first boot; what is there already stays."""
    shipped = {
        "/etc/passwd": File(_PASSWD), "/etc/group": File(_GROUP), "/etc/shadow": File(_SHADOW, 0o600),
        "/etc/hostname": File(f"{name}\n".encode()), "/usr/lib/os-release": File(_OS_RELEASE),
    }  # fmt: skip
    for path, state in shipped.items():
        if isinstance(files.look(path), Absent):
            files.put(path, state)


async def user_data_of(fleet: Fleet, secret_name: str, pause: Callable[[int], Awaitable[None]]) -> bytes:
    """The user-data in a Secret; waits until it is there, and leads to a door of today.

    Doors of an embedded control plane are elsewhere after each start, and a machine follows what it booted with for long.
    """
    attempt = 0
    while True:
        try:
            secret = await fleet.cluster.get(SECRET.resource, secret_name, names.USER_DATA_NAMESPACE)
            user_data = base64.b64decode(secret["data"]["userData"])
            if not fleet.doors or any(door.encode() in user_data for door in fleet.doors):
                return user_data
        except NotFound:
            _log.debug("machine.waiting", secret=secret_name)
        await pause(attempt)
        attempt += 1


async def machine_of(attester: Attester) -> str:
    """The name of a machine's Machine, by its key: one that was refused before it joined has no node to be found by."""
    public = await attester.identity_public()
    kind = KeyKind.AK if attester.tee == "tpm" else KeyKind.GUEST
    spki = parse_public(public).spki if kind is KeyKind.AK else public
    return machine_name(kind, str(attestation_key(spki).thumbprint))
