"""Kernel arguments in an image: files below /usr/lib/bootc/kargs.d, which come and go with the image.

    file = arguments_file(added)                 what MachineConfigs ask for, in one file of ours
    without(text, removed)                       a file of the base without what a config takes out of it

bootc reads these files when it deploys an image, and sealing reads them into the command line that is measured. Arguments that
the base brings are in files of the base: taking one out means writing that file anew, which is done from the base of each build,
so that the next image has it again when nobody asks for its removal any more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fastness.formats import json
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render import kargs

Object = Mapping[str, Any]
PLACE: Final = f"{names.KARGS_DIRECTORY}/50-machineconfigs.toml"
MOST_BYTES: Final = 65536
_KEYS: Final = ("kargs", "match-architectures")


class Arguments(NamedTuple):
    """What MachineConfigs add to the command line, in order, and what they take out of the base's."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def arguments_for(spec: Object) -> Arguments:
    """The kernel arguments of a rendered config: its own field, then those of its Ignition document."""
    inside = (spec.get("config") or {}).get("kernelArguments") or {}
    added = [*kargs.split_all(spec.get("kernelArguments")), *kargs.split_all(inside.get("shouldExist"))]
    return Arguments(tuple(added), tuple(kargs.split_all(inside.get("shouldNotExist"))))


def arguments_file(added: Iterable[str]) -> bytes:
    """The file that brings arguments with the image."""
    return f"kargs = {_array(added)}\n".encode()


def without(content: bytes, removed: Iterable[str]) -> bytes | None:
    """A file of the base without some arguments, None where it has none of them; raises ValueError for what is no such file."""
    gone = frozenset(removed)
    document = tomllib.loads(content.decode())
    unknown = sorted(document.keys() - set(_KEYS))
    if unknown or not all(_is_list(value) for value in document.values()):
        raise ValueError(f"it has more than kargs and match-architectures: {', '.join(unknown)[:80]}")
    present = [str(each) for each in document.get("kargs") or ()]
    left = [each for each in present if each not in gone]
    if left == present:
        return None
    document["kargs"] = left
    return "".join(f"{key} = {_array(document[key])}\n" for key in _KEYS if key in document).encode()


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _array(values: Iterable[str]) -> str:
    # A string of JSON is a basic string of TOML: the same quotes, and escapes that TOML knows.
    return f"[{', '.join(json.encode(each).decode() for each in values)}]"
