"""What a booting machine is answered: which version it asks for, and the bytes of its config.

* `negotiate` reads the Accept header as Ignition writes it; a client that says nothing gets 2.2, as old ones expect.
* `configuration_of` says which rendered config a pool hands out: the new one once a machine has proved it, else the old.
* `document` is the rendered config with the files that the machine's agent starts from, in the version asked for. It is a pure
  function of its arguments, so a server makes the bytes once and keeps them.
* `rendered_object` is the same for an agent that runs already and asks for a rendered config by name.

The encapsulated config is always the last file. Nothing that was rendered is changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from fastness.formats import data_url, json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.machineconfig import ignition
from fastness.machineconfig.render.errors import MachineConfigError
from fastness.machineconfig.render.merge import EMPTY
from fastness.machineconfig.trust.files import first_files
from fastness.protocol.node_trust import NodeTrust

Object = Mapping[str, Any]
MEDIA: Final = "vnd.coreos.ignition+json"
KUBECONFIG_FILE: Final = "/etc/kubernetes/kubeconfig"
_SEMVER: Final = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?\Z")
MODE: Final = 0o644
MAX_ACCEPT: Final = 4096


class UnsupportedAccept(MachineConfigError):
    """The client asks for an Ignition version that is not served."""

    code = "unsupported-accept"


class CannotServe(MachineConfigError):
    """The config cannot be said in the version that the client asks for."""

    code = "cannot-serve"


def negotiate(accept: str) -> str:
    """The Ignition version to answer with; raises UnsupportedAccept."""
    return _negotiated(accept[:MAX_ACCEPT])


@lru_cache(maxsize=64)
def _negotiated(accept: str) -> str:
    """The same for the same header; machines of a fleet have few of them."""
    ranges = [item for item in map(_item, accept.split(",")) if item is not None]
    for subtype, version, _quality in sorted(ranges, key=lambda item: -item[2]):
        if subtype == MEDIA and version:
            return _served(version)
    return ignition.LEGACY


def _item(text: str) -> tuple[str, str, float] | None:
    """Subtype, version (empty unless a full one) and quality of one item."""
    kind, *parameters = (part.strip() for part in text.split(";"))
    _, slash, subtype = kind.lower().partition("/")
    if not slash:
        return None
    values = dict(part.partition("=")[::2] for part in parameters)
    values = {name.strip().lower(): value.strip().strip('"') for name, value in values.items()}
    version = values.get("version", "")
    try:
        quality = float(values.get("q", "1"))
    except ValueError:
        quality = 0.0
    return subtype, version if _SEMVER.match(version) else "", quality


def _served(version: str) -> str:
    major, minor = (int(part) for part in version.split(".")[:2])
    if major == 2 and minor >= 2:
        return ignition.LEGACY
    if major == 3:
        newest = int(ignition.CURRENT.split(".")[1])
        return f"3.{min(minor, newest)}.0"
    raise UnsupportedAccept(
        f"Ignition {version} is not served",
        f"ask for one of {', '.join(str(supported) for supported in ignition.SUPPORTED)}",
    )


def configuration_of(pool: Object) -> str:
    """The rendered config that new machines of a pool get; empty while there is none."""
    status = pool.get("status") or {}
    proved = int(status.get("updatedMachineCount") or 0) > 0
    rendered = ((pool.get("spec") or {}).get("configuration") or {}).get("name") or ""
    running = (status.get("configuration") or {}).get("name") or ""
    return str(rendered if proved or not running else running)


def document(config: Object, version: str, kubeconfig: str = "", trust: NodeTrust | None = None) -> bytes:
    """The bytes for a machine: the rendered config, whom it believes and what its agent starts from; raises CannotServe."""
    name = object_name(config).name
    spec = dict(config.get("spec") or {})
    body, arguments = _movable(_current(spec.get("config")), spec, version)
    spec["kernelArguments"] = arguments
    plain = {"apiVersion": config.get("apiVersion"), "kind": "MachineConfig", "metadata": {"name": name}}
    files = [file_entry(names.NODE_ANNOTATIONS_FILE, json.encode(_annotations(name)))]
    if kubeconfig:
        files.append(_verbatim(KUBECONFIG_FILE, kubeconfig, 0o600))
    # For root alone: the whole config is in there, with every secret of the pool.
    files.append(file_entry(names.CONTENT_FILE, json.encode({**plain, "spec": spec}), 0o600))
    empty = {"ignition": {"version": version}}
    capsule = json.encode({**plain, "spec": {**spec, "config": empty}})
    files.append(file_entry(names.ENCAPSULATED_FILE, capsule, 0o600))
    storage = body.get("storage") or {}
    replaced = {entry["path"] for entry in files}
    own_files = [entry for entry in storage.get("files") or () if entry.get("path") not in replaced]
    beside = _beside(trust, {entry.get("path") for entry in own_files})
    whole = {**body, "storage": {**storage, "files": [*own_files, *beside, *files]}}
    try:
        translated, losses = ignition.translate(ignition.parse(whole), _spec_version(version))
    except ignition.IgnitionError as error:
        raise CannotServe(f"{name} cannot be said in Ignition {version}: {error}", "boot a newer image") from error
    if losses:
        text = "; ".join(str(loss) for loss in losses[:5])
        raise CannotServe(f"{name} would lose something in Ignition {version}: {text}", "boot a newer image")
    return ignition.to_json(translated)


def _beside(trust: NodeTrust | None, managed: set[str]) -> list[JsonObject]:
    """Files that no rendered config holds; where one does, it is a person's wish, and the config counts."""
    files = first_files(trust).items() if trust is not None else ()
    return [file_entry(path, file.content, file.mode) for path, file in files if path not in managed]


def rendered_object(config: Object) -> bytes:
    """The bytes for the agent of a running machine: the MachineConfig itself, without what only the API needs."""
    plain = {"apiVersion": config.get("apiVersion"), "kind": "MachineConfig"}
    return json.encode({**plain, "metadata": {"name": object_name(config).name}, "spec": config.get("spec") or {}})


def _current(raw: Any) -> JsonObject:
    try:
        return ignition.upgrade(raw) if raw else EMPTY
    except ignition.IgnitionError as error:
        raise CannotServe(f"the rendered config cannot be read: {error}", "render it again") from error


def _spec_version(version: str) -> ignition.Version:
    for supported in ignition.SUPPORTED:
        if supported == version:
            return supported
    raise UnsupportedAccept(f"Ignition {version} is not served", f"ask for one of {', '.join(ignition.SUPPORTED)}")


def _movable(body: JsonObject, spec: Object, version: str) -> tuple[JsonObject, list[str]]:
    """Kernel arguments of the document, moved into those of the config for clients that do not know the section."""
    arguments = list(spec.get("kernelArguments") or ())
    section = body.get("kernelArguments") or {}
    if not section or version >= "3.3.0":
        return body, arguments
    if section.get("shouldNotExist"):
        raise CannotServe(
            f"kernelArguments.shouldNotExist cannot be said in Ignition {version}", "boot a newer image, or remove it"
        )
    rest = {name: value for name, value in body.items() if name != "kernelArguments"}
    return rest, [*arguments, *(section.get("shouldExist") or ())]


def _annotations(name: str) -> JsonObject:
    return {
        names.CURRENT_CONFIG: name, names.DESIRED_CONFIG: name, names.FIRST_PIVOT_CONFIG: name,
        names.STATE: names.NodeState.DONE.value,
    }  # fmt: skip


def _verbatim(path: str, text: str, mode: int) -> JsonObject:
    """A file whose letters and digits stand in the document as they are: a door puts a token there without making it anew."""
    source = f"data:,{quote(text)}"
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": source}}


def file_entry(path: str, content: bytes, mode: int = MODE) -> JsonObject:
    """A file of a document that is written whatever stands there."""
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": data_url.encode(content)}}
