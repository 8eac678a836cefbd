"""What a new machine boots with: a pointer to its config, and the Secret that carries it.

* A machine of a confidential pool asks the forwarder on its own loopback, which attests before it fetches. The server's CA comes
  from the measured image, never from here.
* Any other machine asks the config server over TLS, with the server's CA in the pointer.
* Both show a join ticket in a header, so the version is at least 3.1, the first with headers; the default is 3.2, which every
  boot image of the last years reads.

The Secret is ours entirely: it belongs to its pool and is rewritten when it differs; `sealed` and `untouched` tell a hand edit
from a rewrite of our own. Which version a pointer is of says `boot_images.pointer_version`; pointers that an installer made are
the subject of `installer_stub`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import data_url, json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, metadata, object_name
from fastness.machineconfig.boot_images.pointer_version import DEFAULT_VERSION
from fastness.machineconfig.render.errors import BadPointer
from fastness.protocol.pointer import CONFIG, FORWARDER, SERVER_HEADER

Object = Mapping[str, Any]
SECRET_TYPE: Final = "Opaque"
_DISABLE_TEMPLATING: Final = "true\n"


def pointer(name: str, trust: TrustModel, doors: Doors, ticket: str, version: str = DEFAULT_VERSION) -> JsonObject:
    """The pointer config of a pool, by its name; raises BadPointer."""
    headers = [{"name": "Authorization", "value": f"Bearer {ticket}"}]
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


def user_data_secret(pool: Object, document: Object) -> JsonObject:
    """The Secret that machines of the pool are created with; it goes when the pool does."""
    secret = unowned_secret(object_name(pool).name, document)
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "MachineConfigPool",
        "name": object_name(pool).name,
        "uid": metadata(pool).get("uid") or "",
    }
    meta = {
        **secret["metadata"],
        "labels": {names.MANAGED_CA_LABEL: ""},
        "annotations": {names.USER_DATA_DIGEST: sealed(secret["data"])},
        "ownerReferences": [owner],
    }
    return {**secret, "metadata": meta}


def unowned_secret(pool: str, document: Object) -> JsonObject:
    """The same as whoever installs a cluster makes it, before there is a pool that could own it: it is adopted later."""
    data = {
        "userData": base64_of(json.encode(dict(document))),
        "disableTemplating": base64_of(_DISABLE_TEMPLATING.encode()),
    }
    meta = {"name": f"{pool}{names.USER_DATA_SUFFIX}", "namespace": names.USER_DATA_NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": SECRET_TYPE, "data": data}


def sealed(data: Object) -> str:
    """A mark of the data that we wrote; the ticket in it has too much entropy to be guessed from a digest."""
    return str(sha256(json.canonical(dict(data))))


def untouched(secret: Object) -> bool:
    """Whether the data is still what we wrote last, so that a difference comes from us and not from a hand."""
    return annotations_of(secret).get(names.USER_DATA_DIGEST) == sealed(secret.get("data") or {})


def _pointer(version: str, source: str, headers: list[JsonObject]) -> JsonObject:
    return {"ignition": {"version": version, "config": {"merge": [{"source": source, "httpHeaders": headers}]}}}


def base64_of(data: bytes) -> str:
    """Bytes as a Secret holds them."""
    return base64.b64encode(data).decode()
