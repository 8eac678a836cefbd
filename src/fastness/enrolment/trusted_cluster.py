"""TrustedExecutionCluster: which one counts, where it sends machines, and what it is told about itself.

The kind comes from an operator whose parts are separate servers. Here it drives the doors that are built in:

| field | what it becomes |
| --- | --- |
| `publicTrusteeAddr`, `trusteeKbsPort` | the broker's URL, as enrolment tells it to machines |
| `publicAttestationKeyRegisterAddr` | the URL of enrolment in pointer configs: here keys are registered by enrolling |
| `attestationKeyRegisterPort`, `registerServerPort` | the port of that URL, the first that is set |
| `trusteeSecret` and the other two Secrets | nothing: doors show certificates of their own authority, which images know |

* Of several the oldest counts, so a newcomer takes nothing over. Which namespaces count is said in `kube.places`.
* An address is a host, or a host and a port; anything else is no address.
* An AttestationKey is approved when it is the very key that its Machine proved at enrolment. A key that somebody wrote down is
  registered, and nothing more: trust comes from the proof, never from the object.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, metadata, object_name

Object = Mapping[str, Any]
BROKER_PORT: Final = 8080
ENROLMENT_PORT: Final = 8000
MAX_PORT: Final = 65535
# A name and nothing around it: what is written here goes into a URL, where a path, a user or a second host could hide behind it.
_HOST: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9]([a-z0-9-]{0,62}))*\Z", re.ASCII | re.IGNORECASE
)
_UNUSED: Final = ("trusteeSecret", "registerServerSecret", "attestationKeyRegisterSecret")


@dataclass(frozen=True, slots=True)
class Doors:
    """Where machines knock: the gate for confidential pools, the config server for others with its CA (PEM)."""

    gate: str
    config_server: str
    ca: str = ""


class InstallCondition(NamedTuple):
    """One condition."""

    kind: str
    status: bool
    reason: str
    message: str


def honoured(clusters: Iterable[Object]) -> JsonObject | None:
    """The one that counts; None when there is none."""
    candidates = [cluster for cluster in clusters if not is_being_deleted(cluster)]
    # The oldest: a second object, whoever may create one, must not redirect machines.
    oldest = min(candidates, key=_age, default=None)
    return None if oldest is None else dict(oldest)


def broker_url(cluster: Object | None) -> str:
    """Where a cluster sends machines to attest; empty when it does not say."""
    spec = _spec(cluster)
    return _url(spec.get("publicTrusteeAddr"), spec.get("trusteeKbsPort") or BROKER_PORT)


def enrolment_url(cluster: Object | None) -> str:
    """Where a cluster sends machines to enrol; empty when it does not say."""
    spec = _spec(cluster)
    port = spec.get("attestationKeyRegisterPort") or spec.get("registerServerPort") or ENROLMENT_PORT
    return _url(spec.get("publicAttestationKeyRegisterAddr"), port)


def conditions_of(
    cluster: Object, counts: Object | None, *, doors: bool, confidential: bool, unreachable: str | None = None
) -> list[InstallCondition]:
    """What a cluster is told about itself; `counts` is the one that is honoured, `doors` whether a door was ever opened.

    `unreachable` says which of its addresses does not answer; None when all do.
    """
    if is_being_deleted(cluster):
        return [
            InstallCondition(
                "Installed",
                False,
                "Uninstalling",
                "the ConfidentialCluster stays: to give it up is a decision of its own",
            )
        ]
    if counts is None or object_name(counts) != object_name(cluster):
        return [
            InstallCondition(
                "Installed", False, "NonUnique", f"only one counts, and that is {object_name(counts or {})}"
            )
        ]
    return [
        _installed(cluster, doors=doors, confidential=confidential, unreachable=unreachable),
        _address(cluster, unreachable),
    ]


def _installed(cluster: Object, *, doors: bool, confidential: bool, unreachable: str | None) -> InstallCondition:
    if not confidential:
        return InstallCondition("Installed", False, "Installing", "the ConfidentialCluster is being made")
    if not doors:
        return InstallCondition(
            "Installed", False, "Installing", "no door was opened yet: fastness serve --roles enrol,broker"
        )
    if unreachable is not None:
        return InstallCondition(
            "Installed", False, "Unreachable", f"machines are sent where nobody answers: {unreachable}"
        )
    unused = [name for name in _UNUSED if _spec(cluster).get(name)]
    more = f"; not used, because doors show certificates of their own authority: {', '.join(unused)}" if unused else ""
    return InstallCondition("Installed", True, "InstallationCompleted", f"machines can enrol and attest{more}")


def _address(cluster: Object, unreachable: str | None) -> InstallCondition:
    url, given = broker_url(cluster), _spec(cluster).get("publicTrusteeAddr")
    if url and unreachable is not None and url in unreachable:
        return InstallCondition(
            "KnownTrusteeAddress", False, "Unreachable", f"machines are told to attest at {unreachable}"
        )
    if url:
        return InstallCondition("KnownTrusteeAddress", True, "AddressFound", f"machines attest at {url}")
    why = (
        "publicTrusteeAddr is no host"
        if given
        else "publicTrusteeAddr is not set: machines are told what the doors were told"
    )
    return InstallCondition("KnownTrusteeAddress", False, "NoAddressFound", why)


def _url(address: object, port: object) -> str:
    """The URL of an address; empty when it is none."""
    if not isinstance(address, str) or type(port) is not int:
        return ""
    host, given = address, str(port)
    if not _is_v6(address) and (parted := re.fullmatch(r"(.+):([0-9]{1,5})", address, re.ASCII)):
        host, given = parted[1], parted[2]
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not 0 < int(given) <= MAX_PORT or not (_is_v6(host) or _HOST.match(host)):
        return ""
    # Always https, whatever was written: tickets and evidence travel there (pitfall 25).
    return f"https://[{host}]:{int(given)}" if _is_v6(host) else f"https://{host.lower()}:{int(given)}"


def _is_v6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _age(cluster: Object) -> tuple[str, str, str]:
    place = object_name(cluster)
    return str(metadata(cluster).get("creationTimestamp") or "9"), place.namespace, place.name


def _spec(cluster: Object | None) -> Object:
    spec = (cluster or {}).get("spec")
    return spec if isinstance(spec, dict) else {}
