"""Manifests from files: YAML or JSON, several documents, lists, directories, standard input.

A file that cannot be read is told with its name, and the others are still read: nobody should have to fix files one by one. Sizes
are checked before a byte is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fastness.cli.errors import CliError, Exit
from fastness.formats.errors import YamlError
from fastness.formats.yaml import DEFAULT_YAML_LIMITS, load_documents
from fastness.kinds.kind import JsonObject

Object = Mapping[str, Any]
STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, and where it stands."""

    file: str
    line: int
    object: JsonObject

    @property
    def kind(self) -> str:
        """The kind that the object says it is."""
        return str(self.object.get("kind") or "")

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class Manifests:
    """What was read, and what could not be."""

    manifests: list[Manifest] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[JsonObject]:
        """The objects of some kinds."""
        return [manifest.object for manifest in self.manifests if manifest.kind in kinds]


def read(files: Iterable[str | Path]) -> Manifests:
    """Read files and directories; total."""
    result = Manifests()
    for file in files:
        for name in _expanded(str(file)):
            try:
                result.manifests += _objects(name)
            except YamlError as error:
                result.unreadable[name] = f"{error}" + (f" ({error.hint})" if error.hint else "")
            except OSError as error:
                result.unreadable[name] = error.strerror or str(error)
    return result


def read_all(files: Iterable[str | Path]) -> Manifests:
    """Read files and directories, every one of them; raises CliError for the first that cannot be read."""
    manifests = read(files)
    for place, reason in manifests.unreadable.items():
        raise CliError(f"{place}: {reason}", code=Exit.USAGE)
    return manifests


def _expanded(name: str) -> Sequence[str]:
    if name != STDIN and Path(name).is_dir():
        return [str(path) for path in sorted(Path(name).rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    return [name]


def _objects(name: str) -> Iterator[Manifest]:
    label = "standard input" if name == STDIN else name
    documents = load_documents(_bytes(name))
    if not documents:
        raise YamlError("empty", "there is nothing in it", hint="give a manifest")
    for document in documents:
        if not isinstance(document.value, dict) or not document.value.get("kind"):
            raise YamlError(
                "not-a-manifest", "not a Kubernetes object: it has no kind", hint="wrap Ignition in a MachineConfig",
                line=document.line,
            )  # fmt: skip
        for manifest in _unpacked(Manifest(label, document.line, document.value)):
            _check_metadata(manifest)
            yield manifest


def _check_metadata(manifest: Manifest) -> None:
    """An API server would not take it otherwise, and everything behind here relies on it; raises YamlError."""
    meta: Any = manifest.object.setdefault("metadata", {})
    right = {
        "metadata": isinstance(meta, dict),
        "metadata.name": isinstance(_member(meta, "name", ""), str),
        "metadata.namespace": isinstance(_member(meta, "namespace", ""), str),
        "metadata.labels": _holds(_member(meta, "labels", {}), dict, str),
        "metadata.annotations": _holds(_member(meta, "annotations", {}), dict, str),
        "metadata.ownerReferences": _holds(_member(meta, "ownerReferences", []), list, dict),
    }
    wrong = next((place for place, good in right.items() if not good), "")
    if wrong:
        raise YamlError("bad-metadata", f"{wrong} has the wrong type", hint="correct it", line=manifest.line)


def _holds(value: Any, container: type, member: type) -> bool:
    items: list[Any] = (
        list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    )
    return isinstance(value, container) and all(isinstance(item, member) for item in items)


def _member(meta: Any, name: str, default: Any) -> Any:
    value = meta.get(name) if isinstance(meta, dict) else None
    return default if value is None else value


def _unpacked(manifest: Manifest) -> Iterator[Manifest]:
    """The objects inside a List; anything else is itself."""
    items = manifest.object.get("items")
    if not manifest.kind.endswith("List") or not isinstance(items, list):
        yield manifest
        return
    for item in items:
        if isinstance(item, dict):
            kind = item.get("kind") or manifest.kind.removesuffix("List")
            yield Manifest(manifest.file, manifest.line, {**item, "kind": kind})


def _bytes(name: str) -> bytes:
    most = DEFAULT_YAML_LIMITS.max_bytes
    if name == STDIN:
        return sys.stdin.buffer.read(most + 1)
    path = Path(name)
    size = path.stat().st_size
    if size > most:
        raise YamlError("yaml-too-large", f"the file has {size} bytes, the limit is {most}", hint="split the file")
    return path.read_bytes()
