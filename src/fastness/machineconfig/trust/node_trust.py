"""From the ControllerConfig to the one document that nodes get.

    trust, problems = node_trust(controller, api_ca)
    trust, problems = node_trust(controller, api_ca, whole)     # of the name that the controllers told? then they have read it

The ControllerConfig is the only input beside the authority of the API server, so that everybody who makes the document makes the
same one: the loop that tells nodes which they should have, the config server that hands it out, an agent that reads the API.
Fields may be a person's. What is wrong with one is told by its place, and then nothing changes on nodes that run.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from fastness.crypto.errors import CryptoError
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import SINGLETON
from fastness.kinds.objects import annotations_of
from fastness.machineconfig.trust.bundles import BadBundle, blocks, checked, merged
from fastness.machineconfig.trust.sources import BUNDLE_KEY, all_bundles, bad_host, host_of
from fastness.protocol.node_trust import MAX_BUNDLE, MAX_REGISTRIES, NodeTrust

Object = Mapping[str, Any]
Check = Callable[[str], str]
API_AUTHORITY: Final = (NAMESPACE, "kubeconfig-data")
MERGED: Final = "merged-trusted-image-registry-ca"
MAX_LISTED: Final = 500
KUBELET_BUNDLE: Final = "KubeAPIServerServingCAData"
_HELD: Final = "false"
_FIELDS: Final = {
    "kubeAPIServerServingCAData": KUBELET_BUNDLE, "cloudProviderCAData": "CloudProviderCAData",
    "rootCAData": "RootCAData", "additionalTrustBundle": "AdditionalTrustBundle",
}  # fmt: skip


class ListedCertificate(NamedTuple):
    """A certificate that came with a ControllerConfig, and the bundle that it is in."""

    bundle: str
    subject: str
    signer: str
    not_before: datetime
    not_after: datetime


def node_trust(
    controller: Object | None, authority: Object | None, check: Check = checked
) -> tuple[NodeTrust, list[str]]:
    """Whom nodes shall believe, and what is wrong with it; `authority` is the ConfigMap `kubeconfig-data`."""
    spec, problems = (controller or {}).get("spec") or {}, list[str]()
    registries: dict[str, str] = {}
    for key, text in all_bundles(spec):
        reason = bad_host(key) or _wrong(text, check)
        if reason:
            problems.append(f"the bundle of registry {key[:80]!r} {reason}")
            continue
        host = host_of(key)
        registries[host] = merged([registries.get(host, ""), text])
    if len(registries) > MAX_REGISTRIES:
        problems.append(f"there are bundles of {len(registries)} registries; {MAX_REGISTRIES} is the most")
    trust = NodeTrust(
        kubelet_ca=_bundle(spec, "kubeAPIServerServingCAData", problems, check),
        cloud_ca=_bundle(spec, "cloudProviderCAData", problems, check),
        api_ca=_api_ca(controller, authority, problems, check),
        registries=dict(sorted(registries.items())), pull_secret=_pull_secret(spec, problems),
    )  # fmt: skip
    return trust, [f"ControllerConfig {SINGLETON}: {problem}" for problem in problems]


def _wrong(text: str, check: Check) -> str:
    try:
        check(text)
    except BadBundle as error:
        return str(error)
    return ""


def _bundle(spec: Object, name: str, problems: list[str], check: Check) -> str:
    text = _bytes(spec, name)
    if not text:
        return ""
    try:
        return check(text)
    except BadBundle as error:
        problems.append(f"spec.{name} {error}")
        return ""


def _api_ca(controller: Object | None, authority: Object | None, problems: list[str], check: Check) -> str:
    # A person who holds a rotation back says so on the ControllerConfig; nodes keep what they have.
    if annotations_of(controller or {}).get(names.SERVICE_CA_ROTATE) == _HELD:
        return ""
    text = str(((authority or {}).get("data") or {}).get(BUNDLE_KEY) or "")
    reason = _wrong(text, check) if text else ""
    if reason:
        problems.append(f"ConfigMap {'/'.join(API_AUTHORITY)} {reason}")
    return text if not reason else ""


def _pull_secret(spec: Object, problems: list[str]) -> str:
    text = _bytes(spec, "internalRegistryPullSecret")
    try:
        value = json.decode(text.encode()) if text else {}
    except JsonError:
        value = None
    if not isinstance(value, dict) or len(text) > MAX_BUNDLE:
        problems.append("spec.internalRegistryPullSecret holds no credentials for registries")
        return ""
    return text


def _bytes(spec: Object, name: str) -> str:
    """A field of bytes as text; what is not even base64 is handed on as it is, for whoever reads it to refuse."""
    value = str(spec.get(name) or "")
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return value


def merged_bundle(controller: Object) -> str:
    """All certificates of registries in one text, for programs in pods that pull images."""
    spec = controller.get("spec") or {}
    return merged([*(text for _, text in all_bundles(spec)), _bytes(spec, "additionalTrustBundle")])


def listed_certificates(controller: Object) -> list[ListedCertificate]:
    """Every certificate that a ControllerConfig carries, bundle by bundle, up to a bound."""
    return [entry for entry, _ in zip(_listed(controller.get("spec") or {}), range(MAX_LISTED), strict=False)]


def _listed(spec: Object) -> Iterator[ListedCertificate]:
    from fastness.crypto.x509 import Certificate  # as in `bundles`

    bundles = [*((title, _bytes(spec, name)) for name, title in _FIELDS.items()), *all_bundles(spec)]
    for title, text in bundles:
        for block in blocks(text):
            try:
                handle = Certificate.from_pem(block.encode())
                subject, signer = handle.subject_text, handle.issuer_text
            except (CryptoError, UnicodeEncodeError):
                continue
            yield ListedCertificate(title, subject, signer, handle.not_before, handle.not_after)
