"""User-data, read strictly: which pool, with which ticket, at which server; whatever else is in it is refused.

Whoever runs a machine writes its user-data, and in a confidential pool that is the one who must not decide anything. The agent
takes three words from it, all of which the cluster checks later: a ticket that lets the machine knock, the pool that it asks for,
and where the door is. Two documents say them:

    {"version": "fastness.dev/userdata/v1", "pool": "worker", "ticket": "…", "server": "https://cluster.example:8000"}

and the pointer that the user-data controller writes and that machine controllers hand on unchanged:

    {"ignition": {"version": "3.2.0", "config": {"merge": [{"source": "http://127.0.0.1:22625/config/worker", "httpHeaders": [
        {"name": "Authorization", "value": "Bearer …"}, {"name": "X-Fastness-Server", "value": "https://cluster.example:8000"}]}]}}}

* Both are closed: a member that is not shown here is refused by its path, also an empty one. Nobody has to know what a member of
  the next Ignition would do.
* A repeated member is refused: two readers would take two different ones.
* JSON in UTF-8, not compressed and not encoded once more. Where a platform wraps user-data, its reader unwraps it.
* Errors name paths and reasons and never a value: a value may be the ticket. Names of members are the host's, too, and are shown
  without characters that a console would obey.

On SNP and TDX the host may put the document into init-data instead (`user_data_in`), as its one entry: the digest of the whole is
in HOSTDATA or MRCONFIGID, so the verifier reads what the machine was told, and nothing else can ride along.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError, UserDataError
from fastness.formats.initdata import InitData
from fastness.formats.names import dns1123_subdomain
from fastness.protocol.door import is_origin
from fastness.protocol.ignition_spec import SPEC3
from fastness.protocol.pointer import CONFIG, FORWARDER, SERVER_HEADER

VERSION: Final = "fastness.dev/userdata/v1"
# AWS allows 16 KiB, the least of all platforms; what we read has a few hundred bytes.
MAX_BYTES: Final = 16 * 1024
MAX_DEPTH: Final = 8
MAX_TICKET: Final = 512
AUTHORIZATION: Final = "Authorization"
CODE: Final = "user-data-refused"
_BEARER: Final = "Bearer "
_SOURCE: Final = f"{FORWARDER}/{CONFIG}/"
_LOWEST: Final = "3.1.0"  # the first with headers
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
_TICKET: Final = re.compile(rf"[A-Za-z0-9._~+/=-]{{1,{MAX_TICKET}}}\Z", re.ASCII)  # b64token of RFC 6750
_STEP_CHARS: Final = 64
_HINT: Final = "Give the machine the user-data of its pool as `fastness userdata POOL` prints it, with nothing added."
_ONLY: Final = "only pool, ticket and server are taken from user-data"
_REASONS: Final[Mapping[str, str]] = {
    "/storage": "files and disks come from the configuration that the cluster signed",
    "/systemd": "units come from the configuration that the cluster signed",
    "/passwd": "users and their keys come from the configuration that the cluster signed",
    "/kernelArguments": "the command line is measured with the image",
    "/ignition/config/replace": "the configuration is the one that the cluster signed",
    "/ignition/config/append": "the configuration is the one that the cluster signed",
    "/ignition/config/merge/1": "the configuration comes from one place",
    "/ignition/security": "the authority of the doors comes from the image",
    "/ignition/proxy": "nobody stands between the machine and the doors",
    "/ignition/timeouts": "the agent decides how long it waits",
}


@dataclass(frozen=True, slots=True)
class UserData:
    """What a machine is told by whoever runs it; `ticket` is a secret and is not shown."""

    pool: str
    server: str
    ticket: str = field(repr=False)


def parse_user_data(data: bytes) -> UserData:
    """Read user-data; raises UserDataError with the path of what is not taken from a host."""
    document = _members(_decoded(data), "")
    # By what it is, not by what it says it is: a document of ours with a member `ignition` is refused by its path below.
    if "ignition" in document:
        return _of_pointer(document)
    if "version" not in document:
        raise _refused("", f"it is neither an Ignition pointer nor a document of version {VERSION}")
    return _of_document(document)


def _decoded(data: bytes) -> Any:
    if not data:
        raise _refused("", "there is nothing in it")
    try:
        value, repeated = json.decode_reporting_duplicates(data, _LIMITS)
    except JsonError as error:
        # The decoder's sentences name sizes and places in the text, never the text.
        raise _refused("", error.message) from error
    if repeated:
        steps = re.sub(r"\[(\d+)\]", r".\1", repeated[0]).split(".")
        raise _refused("".join(_step(step) for step in steps), "the member is there twice")
    return value


def _of_document(document: Mapping[str, Any]) -> UserData:
    _closed(document, "", ("version", "pool", "ticket", "server"))
    if document["version"] != VERSION:
        raise _refused("/version", f"this agent reads {VERSION}")
    return UserData(
        _pool(document["pool"], "/pool"), _server(document["server"], "/server"), _ticket(document["ticket"], "/ticket")
    )


def _of_pointer(document: Mapping[str, Any]) -> UserData:
    _closed(document, "", ("ignition",))
    head = _members(document["ignition"], "/ignition")
    _closed(head, "/ignition", ("version", "config"))
    if head["version"] not in SPEC3 or head["version"] < _LOWEST:
        raise _refused("/ignition/version", f"a pointer with headers is of version {_LOWEST} to {SPEC3[-1]}")
    config = _members(head["config"], "/ignition/config")
    _closed(config, "/ignition/config", ("merge",))
    path = "/ignition/config/merge"
    entry = _members(_items(config["merge"], path, 1)[0], f"{path}/0")
    _closed(entry, f"{path}/0", ("source", "httpHeaders"))
    source, headers = entry["source"], f"{path}/0/httpHeaders"
    # A source elsewhere is what an attacker would write: stock Ignition would fetch and apply it before anybody attested.
    if not isinstance(source, str) or not source.startswith(_SOURCE):
        raise _refused(
            f"{path}/0/source", f"the source is {_SOURCE}<pool>: Ignition does not follow it, the agent is there"
        )
    places = _header_places(_items(entry["httpHeaders"], headers, 2), headers)
    (ticket, at), (server, where) = places[AUTHORIZATION], places[SERVER_HEADER]
    if not ticket.startswith(_BEARER):
        raise _refused(at, "the ticket follows the word Bearer")
    pool = _pool(source.removeprefix(_SOURCE), f"{path}/0/source")
    return UserData(pool, _server(server, where), _ticket(ticket.removeprefix(_BEARER), at))


def _header_places(headers: list[Any], path: str) -> dict[str, tuple[str, str]]:
    """The two headers by name, each with its value and the path of that."""
    places: dict[str, tuple[str, str]] = {}
    for number, header in enumerate(headers):
        here = f"{path}/{number}"
        members = _members(header, here)
        _closed(members, here, ("name", "value"))
        name, value = members["name"], members["value"]
        if name not in (AUTHORIZATION, SERVER_HEADER) or name in places:
            raise _refused(f"{here}/name", f"the headers are {AUTHORIZATION} and {SERVER_HEADER}, each once")
        if not isinstance(value, str):
            raise _refused(f"{here}/value", "it is not a text")
        places[name] = (value, f"{here}/value")
    return places


def _pool(value: Any, path: str) -> str:
    if not isinstance(value, str) or dns1123_subdomain(value):
        raise _refused(path, "it does not name a pool")
    return value


def _server(value: Any, path: str) -> str:
    if not is_origin(value):
        raise _refused(path, "the server is an https URL without a path")
    return str(value).rstrip("/")


def _ticket(value: Any, path: str) -> str:
    if not isinstance(value, str) or _TICKET.match(value) is None:
        raise _refused(path, "it is not a ticket")
    return value


def _members(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _refused(path, "it is not an object")
    return value


def _items(value: Any, path: str, count: int) -> list[Any]:
    if not isinstance(value, list) or len(value) < count:
        raise _refused(path, f"it is not a list of {count}")
    if len(value) > count:
        raise _refused(f"{path}/{count}", "")
    return value


def _closed(members: Mapping[str, Any], path: str, names: tuple[str, ...]) -> None:
    """An object has exactly these members; what is too much is named before what lacks."""
    # In the order of the text, so that the first member that should not be there is the one that is named.
    for name in members:
        if name not in names:
            raise _refused(path + _step(name), "")
    for name in names:
        if name not in members:
            raise _refused(path + _step(name), "it is missing")


def _step(name: str) -> str:
    """One step of a JSON pointer; what a console would obey is replaced, because the host chose the name."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in name[:_STEP_CHARS])
    return "/" + printable.replace("~", "~0").replace("/", "~1")


def _refused(path: str, reason: str) -> UserDataError:
    return UserDataError(CODE, reason or _REASONS.get(path, _ONLY), path, _HINT)


ENTRY: Final = "fastness-userdata.json"
_ENTRY_HINT: Final = f"Leave {ENTRY} alone in the document: only pool, ticket and server are taken from user-data."


def user_data_in(document: InitData) -> UserData | None:
    """What a document tells a machine; None where it is not for a machine; raises UserDataError."""
    if ENTRY not in document.data:
        return None
    if len(document.data) > 1:
        # The name of the other entry is the host's; that there is one says enough.
        raise UserDataError(CODE, f"there are other entries beside {ENTRY}", "/data", _ENTRY_HINT)
    return parse_user_data(document.data[ENTRY].encode())
