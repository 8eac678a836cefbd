"""The manifests in `deploy/crds`, kept in step with the kinds.

One file per resource, `<plural>.<group>.yaml`, written from the registry and never by hand. The text is deterministic: keys in
the order of the manifest, no anchors, one style. `stale` tells which files differ, are missing or belong to no kind any more,
so that a check can name them; `write` makes the directory right again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fastness.kinds.crd.manifest import manifests
from fastness.kinds.kind import JsonObject

HEADER = "# Generated from fastness.kinds by `python -m fastness.kinds.crd --write deploy/crds`; do not edit.\n"


class _Plain(yaml.CSafeDumper):
    """No anchors: two equal fragments are written twice, as every reader of a manifest expects."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text_as_it_reads(dumper: yaml.CSafeDumper, data: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_Plain.add_representer(str, _text_as_it_reads)


def as_yaml(document: JsonObject) -> str:
    """One document as YAML, keys in their order."""
    return yaml.dump(document, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


def rendered() -> dict[str, str]:
    """File name and text of every definition."""
    return {f"{definition['metadata']['name']}.yaml": HEADER + as_yaml(definition) for definition in manifests()}


def stale(directory: Path) -> list[str]:
    """Names of files that are missing, differ, or describe no kind any more."""
    contents = rendered()
    present = _present(directory)
    return sorted(name for name in contents.keys() | present.keys() if contents.get(name) != present.get(name))


def write(directory: Path) -> list[str]:
    """Make the directory right; returns the names of the files that changed."""
    changed = stale(directory)
    contents = rendered()
    directory.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in contents:
            (directory / name).write_text(contents[name], encoding="utf-8")
        else:
            (directory / name).unlink()
    return changed


def load(directory: Path) -> list[Mapping[str, Any]]:
    """The definitions in a directory, ordered by file name."""
    return [yaml.load(text, Loader=yaml.CSafeLoader) for _, text in sorted(_present(directory).items())]


def _present(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.yaml"))}
