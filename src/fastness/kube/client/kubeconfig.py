"""Kubeconfig files: bytes to checked entries, without touching a disk.

- `parse` reads one file, `merge` joins several (the first that names a thing wins, as for kubectl), `select` follows a context to
  its cluster and user.
- Only what is selected is judged field by field: a broken entry of another cluster is nobody's problem today.
- Every complaint names the file and the field. A field that we do not know is an error with the closest known name: a misspelt
  `certificate-authority` must not end in a connection that trusts the wrong people.
- Relative paths belong to the directory of the file that they stand in.

`config.py` reads the files that the selection names and makes a `Connection` of it.
"""

from __future__ import annotations

import base64
import binascii
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastness.formats.errors import YamlError
from fastness.formats.yaml import load_documents
from fastness.kube.errors import BadConfig, NoCluster

SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
FIELDS: Mapping[str, Mapping[str, type]] = {
    "cluster": {
        "server": str, "tls-server-name": str, "insecure-skip-tls-verify": bool, "certificate-authority": str,
        "certificate-authority-data": str, "proxy-url": str, "disable-compression": bool, "extensions": list,
    },
    "user": {
        "client-certificate": str, "client-certificate-data": str, "client-key": str, "client-key-data": str,
        "token": str, "tokenFile": str, "as": str, "as-uid": str, "as-groups": list, "as-user-extra": dict,
        "username": str, "password": str, "auth-provider": dict, "exec": dict, "extensions": list,
    },
    "context": {"cluster": str, "user": str, "namespace": str, "extensions": list},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """One cluster, user or context, where it stands, and what it says."""

    section: str
    name: str
    source: Path
    fields: Mapping[str, Any]

    @property
    def place(self) -> str:
        """How errors call it."""
        return f'{self.source}: {self.section} "{self.name}"'

    def text(self, key: str) -> str:
        """A text field, empty if not set."""
        return str(self.fields.get(key) or "")

    def path(self, key: str) -> Path | None:
        """A path, relative to the file that names it."""
        value = self.text(key)
        return self.source.parent / value if value else None

    def data(self, key: str) -> bytes:
        """Base64 content, empty if not set; raises BadConfig."""
        try:
            return base64.b64decode("".join(self.text(key).split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadConfig(f"{self.place}: {key} is not base64: {error}", "Write the file again.") from error


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One file, or several merged."""

    entries: Mapping[tuple[str, str], KubeconfigEntry] = field(default_factory=dict)
    current_context: str = ""
    sources: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Selected:
    """What a context leads to."""

    context: KubeconfigEntry
    cluster: KubeconfigEntry
    user: KubeconfigEntry


def parse(data: bytes, source: Path) -> Kubeconfig:
    """Read one file; raises BadConfig."""
    try:
        documents = load_documents(data)
    except YamlError as error:
        raise BadConfig(f"{source}: {error}", error.hint or "Correct the file.") from error
    if not documents:
        return Kubeconfig(sources=(source,))
    document = documents[0].value
    if len(documents) > 1 or not isinstance(document, dict):
        raise BadConfig(f"{source}: a kubeconfig is one YAML mapping", "Split or correct the file.")
    kind, version = document.get("kind", "Config"), document.get("apiVersion", "v1")
    if kind != "Config" or version != "v1":
        raise BadConfig(f"{source}: this is {version} {kind}, not v1 Config", "Name a kubeconfig file.")
    entries = [entry for section in SECTIONS for entry in _section(document, section, source)]
    current = document.get("current-context") or ""
    if not isinstance(current, str):
        raise BadConfig(f"{source}: current-context must be a text", "Write the name of a context.")
    return Kubeconfig({(entry.section, entry.name): entry for entry in entries}, current, (source,))


def _section(document: Mapping[str, Any], section: str, source: Path) -> list[KubeconfigEntry]:
    listed, member = document.get(section) or [], SECTIONS[section]
    if not isinstance(listed, list):
        raise BadConfig(f"{source}: {section} must be a list", "Correct the file.")
    entries: dict[str, KubeconfigEntry] = {}
    for index, item in enumerate(listed):
        name = item.get("name") if isinstance(item, dict) else None
        fields = item.get(member) if isinstance(item, dict) else None
        if not isinstance(name, str) or not isinstance(fields, dict | None):
            shape = f"an entry has a text `name` and a mapping `{member}`"
            raise BadConfig(f"{source}: {section}[{index}]: {shape}", "Correct the entry.")
        if name in entries:
            raise BadConfig(f'{source}: {section}[{index}]: the name "{name}" is taken', "Rename one of them.")
        entries[name] = KubeconfigEntry(member, name, source, fields or {})
    return list(entries.values())


def merge(files: Iterable[Kubeconfig]) -> Kubeconfig:
    """Several files as one; the first that names an entry or a current context wins."""
    entries: dict[tuple[str, str], KubeconfigEntry] = {}
    current = ""
    sources: list[Path] = []
    for file in files:
        entries = {**file.entries, **entries}
        current = current or file.current_context
        sources.extend(file.sources)
    return Kubeconfig(entries, current, tuple(sources))


def select(config: Kubeconfig, context: str = "") -> Selected:
    """Follow a context, or the current one, to its cluster and user; raises BadConfig, NoCluster."""
    where = ", ".join(map(str, config.sources))
    name = context or config.current_context
    if not name:
        raise NoCluster(f"{where}: no current-context", "Name one with --context, or set current-context.")
    chosen = _find(config, "context", name, f"{where}: there is no context")
    cluster = _find(config, "cluster", chosen.text("cluster"), f"{chosen.place}: there is no cluster")
    user_name = chosen.text("user")
    anonymous = KubeconfigEntry("user", "", chosen.source, {})
    user = _find(config, "user", user_name, f"{chosen.place}: there is no user") if user_name else anonymous
    return Selected(chosen, cluster, user)


def _find(config: Kubeconfig, section: str, name: str, complaint: str) -> KubeconfigEntry:
    entry = config.entries.get((section, name))
    if entry is None:
        names = sorted(name_there for kind, name_there in config.entries if kind == section)
        near = difflib.get_close_matches(name, names, n=1)
        listed = ", ".join(names[:10]) or "none"
        hint = f'Did you mean "{near[0]}"?' if near else f"There are: {listed}."
        raise BadConfig(f'{complaint} "{name}"', hint)
    _check(entry)
    return entry


def _check(entry: KubeconfigEntry) -> None:
    """Known fields of the right types; raises BadConfig."""
    types = FIELDS[entry.section]
    for key, value in entry.fields.items():
        if key not in types:
            near = difflib.get_close_matches(str(key), types, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known fields: {', '.join(types)}."
            raise BadConfig(f"{entry.place}: unknown field {key}", hint)
        if value is not None and not isinstance(value, types[key]):
            expected = {str: "a text", bool: "true or false", list: "a list", dict: "a mapping"}[types[key]]
            raise BadConfig(
                f"{entry.place}: {key} must be {expected}", "Correct the field; quote texts that look otherwise."
            )
