"""What runs in the machine: steps out of /steps.json, one line of JSON about each, then power off.

A step is `[verb, arguments]`. What refuses answers with its code; a step never ends the run, so one boot tells many things.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from fastness.agent.disks.block_device import FileDevice
from fastness.agent.disks.device_mapper import KernelMapper
from fastness.agent.disks.entropy import KernelEntropy
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.opening import open_volume
from fastness.agent.disks.rekeying import rekey_volume
from fastness.agent.disks.volume import DiskKey, HeaderFacts, VolumeSettings
from fastness.crypto.secret import SecretBytes

MARK = "@@STEP "
DONE = "@@DONE"
Answer = dict[str, Any]


def keys_of(pairs: list[list[str]]) -> list[DiskKey]:
    """Keys by id, in base64."""
    return [DiskKey(key_id, SecretBytes(base64.b64decode(key))) for key_id, key in pairs]


def expected(document: Answer | None) -> HeaderFacts | None:
    """What was recorded, if it was."""
    return None if document is None else HeaderFacts.from_json(document)


def make(device: str, key: list[str], integrity: str) -> Answer:
    """Make a volume."""
    (disk_key,) = keys_of([key])
    with FileDevice(device) as disk:
        settings = VolumeSettings(integrity)  # type: ignore[arg-type]
        facts = format_volume(disk, disk_key.key, disk_key.id, settings, KernelEntropy(), KernelMapper())
    return {"facts": facts.to_json()}


def opened(device: str, keys: list[list[str]], expect: Answer | None, name: str) -> Answer:
    """Open a volume."""
    with FileDevice(device) as disk:
        volume = open_volume(disk, keys_of(keys), expected(expect), KernelMapper(), name)
    lines = [f"{line.kind} {line.parameters}" for line in KernelMapper().table(name)]
    return {"path": volume.path, "key": volume.key_id, "facts": volume.facts.to_json(), "table": lines}


def rekeyed(device: str, keys: list[list[str]], expect: Answer | None) -> Answer:
    """Give a volume a new key."""
    with FileDevice(device) as disk:
        return {"key": rekey_volume(disk, keys_of(keys), expected(expect))}


def rekeyed_forever(device: str, keys: list[list[str]]) -> Answer:
    """New keys in turns until the plug is pulled, each one told beforehand."""
    while True:
        say({"rekeying": keys[0][0]})
        rekeyed(device, keys, None)
        keys = keys[::-1]


def removed(name: str) -> Answer:
    """End a mapping."""
    KernelMapper().remove(name)
    return {}


def shell(command: str) -> Answer:
    """Run a command of the machine."""
    done = subprocess.run(["/bin/busybox", "sh", "-c", command], capture_output=True, check=False)
    return {"exit": done.returncode, "output": (done.stdout + done.stderr).decode(errors="replace")[-2000:]}


VERBS: dict[str, Callable[..., Answer]] = {
    "make": make, "open": opened, "rekey": rekeyed, "rekey-forever": rekeyed_forever, "remove": removed, "sh": shell,
}  # fmt: skip


def say(answer: Answer) -> None:
    """One line on the serial port."""
    print(MARK + json.dumps(answer), flush=True)


def main() -> None:
    """All steps, then off."""
    with open("/steps.json", "rb") as file:
        steps = json.load(file)
    for verb, arguments in steps:
        started = time.monotonic()
        try:
            answer = VERBS[verb](**arguments)
        except DiskError as error:
            answer = {"code": error.code, "message": error.message}
        say({**answer, "seconds": round(time.monotonic() - started, 3)})
    print(DONE, flush=True)
    os.sync()
    ctypes.CDLL(None).reboot(0x4321FEDC)


if __name__ == "__main__" and sys.argv[1:] == ["run"]:
    main()
