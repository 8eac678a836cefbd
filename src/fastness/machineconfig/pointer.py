"""What a new machine boots with: a pointer to its config, and the Secret that carries it.

* A machine of a confidential pool asks the forwarder on its own loopback, which attests before it fetches. The server's CA comes
  from the measured image, never from here.
* Any other machine asks the config server over TLS, with the server's CA in the pointer.
* Both show a join ticket in a header, so the version is at least 3.1, the first with headers; the default is 3.2, which every
  boot image of the last years reads.

The Secret is ours entirely: it belongs to its pool and is rewritten when it differs; `sealed` and `untouched` tell a hand edit
from a rewrite of our own. Pointers that an installer made are left alone except for two things: `with_ca` puts a new CA into one,
`upgraded` brings a spec 2 stub to spec 3. The second waits for the machine sets that use the stub: each says by annotation which
version its boot image reads (`readable_by`), because an old boot image reads spec 2 only.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from fastness.crypto.digests import sha256
from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import data_url, json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.machineconfig.render.errors import BadPointer
from fastness.protocol.ignition_spec import SPEC3
from fastness.protocol.pointer import CONFIG, FORWARDER, SERVER_HEADER

Object = Mapping[str, Any]
DEFAULT_VERSION: Final = "3.2.0"
LOWEST: Final = "3.1.0"
SECRET_TYPE: Final = "Opaque"
_DISABLE_TEMPLATING: Final = "true\n"
_CONTROL_PLANE: Final = "machines_v1beta1_machine_openshift_io"


def pointer(pool: Object, trust: TrustModel, doors: Doors, ticket: str) -> JsonObject:
    """The pointer config of a pool; raises BadPointer."""
    name = object_name(pool).name
    headers = [{"name": "Authorization", "value": f"Bearer {ticket}"}]
    version = pointer_version(pool)
    if trust is TrustModel.CONFIDENTIAL_CLUSTER:
        headers.append({"name": SERVER_HEADER, "value": doors.gate})
        return _pointer(version, f"{FORWARDER}/{CONFIG}/{name}", headers)
    if not doors.config_server.startswith("https://"):
        raise BadPointer(f"the config server {doors.config_server!r} is not reached over TLS", "give an https URL")
    if not doors.ca:
        raise BadPointer("the CA of the config server is not known", "wait for the doors' CA, or create it")
    document = _pointer(version, f"{doors.config_server.rstrip('/')}/config/{name}", headers)
    source = data_url.encode(doors.ca.encode(), "text/plain;charset=utf-8")
    document["ignition"]["security"] = {"tls": {"certificateAuthorities": [{"source": source}]}}
    return document


def pointer_version(pool: Object) -> str:
    """The Ignition version of a pool's pointer: the default, or what the pool's annotation says; raises BadPointer."""
    annotated = annotations_of(pool).get(names.POINTER_VERSION) or DEFAULT_VERSION
    version = annotated if annotated.count(".") == 2 else f"{annotated}.0"
    if version not in SPEC3 or version < LOWEST:
        usable = ", ".join(supported for supported in SPEC3 if supported >= LOWEST)
        raise BadPointer(f"a pointer cannot be of version {annotated}: it carries a header", f"use one of {usable}")
    return version


def user_data_secret(pool: Object, document: Object) -> JsonObject:
    """The Secret that machines of the pool are created with; it goes when the pool does."""
    name = object_name(pool).name
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "MachineConfigPool",
        "name": name,
        "uid": metadata(pool).get("uid") or "",
    }
    data = {
        "userData": _base64(json.encode(dict(document))),
        "disableTemplating": _base64(_DISABLE_TEMPLATING.encode()),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{name}{names.USER_DATA_SUFFIX}",
            "namespace": names.USER_DATA_NAMESPACE,
            "labels": {names.MANAGED_CA_LABEL: ""},
            "annotations": {names.USER_DATA_DIGEST: sealed(data)},
            "ownerReferences": [owner],
        },
        "type": SECRET_TYPE,
        "data": data,
    }


def sealed(data: Object) -> str:
    """A mark of the data that we wrote; the ticket in it has too much entropy to be guessed from a digest."""
    return str(sha256(json.canonical(dict(data))))


def untouched(secret: Object) -> bool:
    """Whether the data is still what we wrote last, so that a difference comes from us and not from a hand."""
    return annotations_of(secret).get(names.USER_DATA_DIGEST) == sealed(secret.get("data") or {})


def is_unmanaged_pointer(secret: Object) -> bool:
    """Whether a Secret holds a pointer that somebody else made: its CA is kept fresh, nothing more."""
    return names.MANAGED_CA_LABEL not in labels_of(secret) and _stub(secret) is not None


def hosts_of(secret: Object) -> frozenset[str]:
    """The hosts that a pointer leads to; none when it cannot be read."""
    stub = _stub(secret)
    config = (stub["ignition"].get("config") or {}) if stub is not None else {}
    entries = [*(config.get("append") or ()), *(config.get("merge") or ())] if isinstance(config, Mapping) else []
    sources = (str(entry.get("source") or "") for entry in entries if isinstance(entry, Mapping))
    return frozenset(host for source in sources if (host := _host_of(source)))


def _host_of(source: str) -> str:
    try:
        return urlsplit(source).hostname or ""
    except ValueError:
        return ""


def with_ca(secret: Object, ca: str) -> JsonObject | None:
    """The data of an unmanaged pointer with the new CA; None when nothing changes; raises BadPointer."""
    stub = _stub(secret)
    if stub is None:
        return None
    tls = ((stub["ignition"].get("security") or {}).get("tls")) or {}
    authorities = tls.get("certificateAuthorities") or []
    if len(authorities) > 1:
        raise BadPointer(
            f"{object_name(secret)} names {len(authorities)} authorities", "leave one, or manage it by hand"
        )
    source = data_url.encode(ca.encode(), "text/plain;charset=utf-8")
    if authorities and authorities[0].get("source") == source:
        return None
    entry = {**(authorities[0] if authorities else {}), "source": source}
    security = {"security": {"tls": {**tls, "certificateAuthorities": [entry]}}}
    return {"userData": _base64(json.encode({**stub, "ignition": {**stub["ignition"], **security}}))}


def readable_by(secret: str, makers: Iterable[Object]) -> str:
    """The Ignition version that the boot images of all machine sets which use a Secret read; empty when one does not say.

    Raises BadPointer for a machine set that names a version which does not exist.
    """
    versions: set[str] = set()
    for maker in makers:
        if user_data_of(maker) != secret:
            continue
        annotated = annotations_of(maker).get(names.POINTER_VERSION, "")
        version = annotated if annotated.count(".") == 2 else f"{annotated}.0"
        if annotated and version not in SPEC3:
            place = object_name(maker)
            raise BadPointer(
                f"{place} says that its boot image reads Ignition {annotated}", f"use one of {', '.join(SPEC3)}"
            )
        versions.add(version if annotated else "")
    return min(versions) if versions else ""


def user_data_of(maker: Object) -> str:
    """The Secret that a MachineSet or a ControlPlaneMachineSet creates machines with; empty when it cannot be seen."""
    value: Any = maker
    template = ((maker.get("spec") or {}).get("template")) or {}
    path = ["spec", "template", "spec", "providerSpec", "value", "userDataSecret", "name"]
    if isinstance(template, Mapping) and _CONTROL_PLANE in template:
        path.insert(2, _CONTROL_PLANE)
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def upgraded(secret: Object, version: str = DEFAULT_VERSION) -> JsonObject | None:
    """The data of a spec 2 stub brought to a version of spec 3; None when it is of spec 3 already; raises BadPointer."""
    stub = _stub(secret)
    if stub is None or str(stub["ignition"].get("version", "")).startswith("3"):
        return None
    old = stub["ignition"]
    extra = sorted(stub.keys() - {"ignition"} - {name for name, value in stub.items() if not value})
    config = old.get("config") or {}
    if not str(old.get("version", "")).startswith("2.") or extra or config.keys() - {"append", "replace"}:
        what = f"section {extra[0]}" if extra else "version or config"
        raise BadPointer(f"{object_name(secret)} is not a plain spec 2 stub: {what}", "convert it by hand")
    new: JsonObject = {"version": version, "config": {}}
    if config.get("append"):
        new["config"]["merge"] = config["append"]
    if config.get("replace"):
        new["config"]["replace"] = config["replace"]
    if old.get("security"):
        new["security"] = old["security"]
    if old.get("timeouts"):
        new["timeouts"] = old["timeouts"]
    return {"userData": _base64(json.encode({"ignition": new}))}


def _pointer(version: str, source: str, headers: list[JsonObject]) -> JsonObject:
    return {"ignition": {"version": version, "config": {"merge": [{"source": source, "httpHeaders": headers}]}}}


def _stub(secret: Object) -> JsonObject | None:
    try:
        document = json.decode(base64.b64decode((secret.get("data") or {}).get("userData") or "", validate=True))
    except (ValueError, JsonError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("ignition"), dict) else None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
