"""The first boot of a virtual machine: what Ignition and the first-boot service of a real one do, in process.

    fetch      follow the pointer in the machine's user-data: over TLS with the authority that stands there, with its headers
    lay_down   write directories, files, links, units, keys and the password; the system of the config is booted

* Answers are read as Ignition reads them: 5xx and a server that is not there mean "again", any other failure is final and
  leaves the machine where a person has to look.
* Nothing is asked of the cluster: what a machine knows after its first boot is what the config server sent, the annotations
  of its node included.
* A machine of a confidential pool has the pointer in its image: its user-data goes to the agent (`forward`), which reads it
  strictly and proves the machine first, in process and without a socket. Nothing else of user-data is followed.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final

import httpx

from fastness.agent.apply import disk
from fastness.agent.apply.accounts import with_password_hash
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.host.states import ABSENT, File
from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.formats.errors import DataUrlError, JsonError
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.machineconfig import ignition
from fastness.protocol.pointer import FORWARDER
from fastness.runtime.errors import FastnessError

ACCEPT: Final = f"application/vnd.coreos.ignition+json;version={ignition.CURRENT}, */*;q=0.1"
MAX_BYTES: Final = 32 * 1024 * 1024
TIMEOUT: Final = 10.0
SHADOW: Final = "/etc/shadow"
Pause = Callable[[int], Awaitable[None]]
Forward = Callable[[bytes], Awaitable[bytes]]
"""User-data as the agent reads it, and the config that comes of it."""


class BootFailure(FastnessError):
    """The first boot came to its end without a config; somebody has to look."""

    code = "boot-failure"
    hint = "Look at the user-data of the pool and at what the config server answered."


async def carries_pointer(cluster: Cluster, pool: str) -> bool:
    """Whether machines of a pool are installed with an image that carries the pointer: those of confidential pools are."""
    try:
        confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return False
    return trust_model(confidential, pool) is TrustModel.CONFIDENTIAL_CLUSTER


async def fetch(user_data: bytes, pause: Pause, forward: Forward | None = None) -> JsonObject:
    """The whole config that user-data leads to, in the current version; waits while the server asks to; raises BootFailure.

    With `forward` the machine's image carries the pointer, and user-data is for the agent alone; raises what that raises.
    """
    try:
        if forward is not None:
            return ignition.upgrade(json.decode(await forward(user_data)))
        pointer = ignition.upgrade(json.decode(user_data))
        head: JsonObject = pointer.get("ignition") or {}
        children = [
            (str(entry.get("source")), await _child(entry, head, pause))
            for entry in (head.get("config") or {}).get("merge") or ()
        ]
        own = {**pointer, "ignition": {name: value for name, value in head.items() if name == "version"}}
        return ignition.merge_all([("user-data", own), *children])
    except (ignition.IgnitionError, JsonError, DataUrlError) as error:
        raise BootFailure(f"the config cannot be read: {error}") from error


def _tls(head: JsonObject) -> ssl.SSLContext:
    """What a server must show: a certificate of the authorities in the pointer."""
    authorities = ((head.get("security") or {}).get("tls") or {}).get("certificateAuthorities") or ()
    return believing(tuple(dataurl.contents(authority) for authority in authorities))


@lru_cache(maxsize=8)
def believing(authorities: tuple[bytes, ...]) -> ssl.SSLContext:
    """TLS with these authorities and those of the system, which take long to read; machines of a pool have the same."""
    context = ssl.create_default_context()
    for authority in authorities:
        try:
            context.load_verify_locations(cadata=authority.decode())
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise BootFailure("the pointer names an authority that is no certificate") from error
    return context


async def _child(entry: JsonObject, head: JsonObject, pause: Pause) -> JsonObject:
    source = str(entry.get("source") or "")
    headers = {str(header["name"]): str(header.get("value") or "") for header in entry.get("httpHeaders") or ()}
    if source.startswith(FORWARDER):
        raise BootFailure(f"{source} wants the machine to attest, and this one cannot")
    async with httpx.AsyncClient(verify=_tls(head), trust_env=False, timeout=TIMEOUT) as http:
        attempt = 0
        while True:
            body = await _once(http, source, {**headers, "accept": ACCEPT})
            if body is not None:
                return ignition.upgrade(json.decode(body))
            await pause(attempt)
            attempt += 1


async def _once(http: httpx.AsyncClient, source: str, headers: dict[str, str]) -> bytes | None:
    """The body, or None when asking again may help; raises BootFailure when it will not."""
    try:
        async with http.stream("GET", source, headers=headers) as answer:
            if answer.status_code >= 500:
                return None
            if not answer.is_success:
                raise BootFailure(f"{source} answered {answer.status_code}, which is final")
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MAX_BYTES:
                    raise BootFailure(f"{source} sends more than {MAX_BYTES} bytes")
            return bytes(body)
    except httpx.InvalidURL as error:
        raise BootFailure(f"{source} is not a URL") from error
    except httpx.HTTPError:
        return None


def lay_down(machine: DirectoryMachine, document: JsonObject) -> None:
    """Bring an installed machine to the config that was fetched, and boot the system that it names; raises BadConfig."""
    root = machine.host.root
    # The document has its overlays in it already; what an earlier life left on the disk does not count.
    served = {"metadata": {"name": ""}, "spec": {**_encapsulated(document), "config": document}}
    goal = disk.goal(root, served).desired
    for entry in (document.get("storage") or {}).get("directories") or ():
        for directory in root.missing_directories(f"{entry['path']}/x"):
            (machine.root / directory.lstrip("/")).mkdir(mode=entry.get("mode") or 0o755)
    last = goal.paths.get(names.NODE_ANNOTATIONS_FILE)
    for path, target in goal.paths.items():
        if target is not last:
            root.put(path, target.state, directory_mode=target.directory_mode, own_directories=target.own_directories)
    machine.units.enable([unit for unit, unit_state in goal.units.items() if unit_state.enabled and unit_state.written])
    shadow = root.look(SHADOW)
    if goal.password and isinstance(shadow, File):
        root.put(SHADOW, with_password_hash(shadow, names.CORE_USER, goal.password))
    disk.record_base_image(root, machine.system, {})
    machine.system.stage(goal.deployment, extensions_image=goal.extensions_image)
    machine.system.reboot()
    # As the first-boot service does when the booted system is the one that was asked for.
    root.put(names.ENCAPSULATED_FILE, ABSENT)
    if last is not None:  # a machine that has its annotations is one whose first boot came to its end
        root.put(names.NODE_ANNOTATIONS_FILE, last.state)


def _encapsulated(document: JsonObject) -> dict[str, Any]:
    """The part of the config that is not Ignition, which the server sends as a file: image, kernel, arguments."""
    for entry in (document.get("storage") or {}).get("files") or ():
        if entry.get("path") == names.ENCAPSULATED_FILE:
            try:
                return dict(json.decode(dataurl.contents(entry["contents"]))["spec"])
            except (JsonError, DataUrlError, KeyError, TypeError, ValueError) as error:
                raise BootFailure(f"{names.ENCAPSULATED_FILE} cannot be read: {error}") from error
    return {}
