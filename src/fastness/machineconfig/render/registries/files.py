"""Files of a machine about registries: for CRI-O, which reads what all tools of its family read, and for containerd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastness.formats import json, toml
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries.attachments import registries_d
from fastness.machineconfig.render.registries.containerd import HINT, hosts_files
from fastness.machineconfig.render.registries.settings import RegistrySettings

SEARCH_FILE: Final = "/etc/containers/registries.conf.d/01-image-searchRegistries.conf"
POLICY_FILE: Final = "/etc/containers/policy.json"
SIGSTORE_FILE: Final = "/etc/containers/registries.d/sigstore-registries.yaml"
NAMESPACE_POLICIES: Final = "/etc/crio/policies"
SIGNATURES: Final = "containerd cannot be told this: policies about signatures"
MAX_BYTES: Final = 768 * 1024


def crio_files(settings: RegistrySettings) -> list[tuple[str, str]]:
    """Paths and texts for machines with CRI-O; raises BadRegistries when they are more than a config can hold."""
    return _bounded(_crio_files(settings), settings)


def containerd_files(settings: RegistrySettings) -> list[tuple[str, str]]:
    """Paths and texts for machines with containerd; raises BadRegistries for what it cannot be told."""
    lists = settings.lists
    beyond = {
        "blockedRegistries": lists.blocked,
        "allowedRegistries": lists.allowed,
        "containerRuntimeSearchRegistries": lists.search,
    }
    for name, scopes in beyond.items():
        if scopes:
            raise BadRegistries(f"containerd cannot be told this: {name}", HINT, settings.image)
    for culprit in settings.signers:
        raise BadRegistries(SIGNATURES, HINT, culprit)
    return _bounded(hosts_files(settings.mirrored, lists.insecure, settings.image), settings)


def untold(settings: RegistrySettings) -> BadRegistries | None:
    """What machines with containerd are not told although somebody asks for it, where that must not stop the rest.

    An ImagePolicy is one of those: whoever owns a namespace must not keep mirrors from a pool.
    """
    culprits = settings.signers_of_namespaces
    return BadRegistries(SIGNATURES, HINT, culprits[0]) if culprits else None


def _crio_files(settings: RegistrySettings) -> Iterator[tuple[str, str]]:
    if settings.registries is not None:
        yield names.REGISTRIES_CONF, toml.encode(settings.registries)
    if settings.lists.search:
        yield SEARCH_FILE, toml.encode({"unqualified-search-registries": list(settings.lists.search)})
    if settings.policy is not None:
        yield POLICY_FILE, _text(settings.policy)
    for namespace in sorted(settings.namespaces):
        yield f"{NAMESPACE_POLICIES}/{namespace}.json", _text(settings.namespaces[namespace])
    if settings.signed:
        yield SIGSTORE_FILE, registries_d(settings.signed)


def _text(document: object) -> str:
    return json.canonical(document).decode() + "\n"


def _bounded(files: Iterator[tuple[str, str]], settings: RegistrySettings) -> list[tuple[str, str]]:
    written, size = list[tuple[str, str]](), 0
    for path, text in files:
        size += len(text)
        if size > MAX_BYTES:
            raise BadRegistries(
                f"the files about registries would have more than {MAX_BYTES} bytes with {path}",
                "mirror whole registries instead of single repositories, and give policies to the cluster",
                settings.image,
            )
        written.append((path, text))
    return written
