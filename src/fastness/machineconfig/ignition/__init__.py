"""Ignition configs, specs 2.2 and 3.0 to 3.5: read, checked, merged, translated, and what a machine makes of them.

    config.py        From bytes to a checked config, and back
    fields.py        Every field of the specification, as data: what it holds, since when, and how lists of it merge
    from_legacy.py   Spec 2.2 to the current spec
    layout.py        What a machine has on disk after Ignition's files stage
    legacy_rules.py  The rules of spec 2.2, the language of old boot images and old stubs
    merge.py         Child configs laid over a parent, as Ignition does it, for configs of spec 3 in normal form
    origins.py       Who supplied what: the record that a merge keeps for whoever asks
    paths.py         Paths on the machine: absolute, in shortest form, and what lies above them
    problems.py      What can be wrong with an Ignition config, said all at once
    resources.py     The rules of a resource: something that a machine fetches, or that is inline as a data URL
    rules.py         What a well-shaped spec 3 config must also satisfy: the rules between fields, as Ignition applies them
    rules_disks.py   The rules for block devices: disks and partitions, arrays, encrypted volumes, filesystems
    shape.py         Does a JSON value have the shape that the field table describes?
    to_legacy.py     The current spec to spec 2.2, for boot images from before spec 3
    translate.py     One spec version into another, with everything that could not come along named
    unit_file.py     The syntax of a systemd unit, as the machine's reader sees it
    urls.py          The URLs of a config, read as the machine's own reader does

* `parse`, `inspect`, `validate`: bytes or JSON to a `Config`; every problem at once, with its field path.
* `upgrade`: any supported config as JSON of the current spec, which is what the rest of the house uses.
* `translate`: one version to another, with the losses named.
* `merge`, `merge_all`, `Merger`: children over parents as Ignition does it; an observer hears who supplied and overrode what.
* `check_contents`: inline files, their compression and hashes.
* `predict`: the files, links and directories that a machine will have after its first boot.
* `empty`, `to_json`: the config that asks for nothing; bytes, the same for the same config.
"""

from fastness.machineconfig.ignition.config import Config, Inspection, empty, inspect, parse, to_json, validate
from fastness.machineconfig.ignition.layout import EntryKind, Layout, PathEntry, predict
from fastness.machineconfig.ignition.merge import (
    Merger,
    default_overwrite,
    forget_compression,
    merge,
    merge_all,
    settle_compression,
)
from fastness.machineconfig.ignition.origins import ChildEffect, Observer, Place, Supply
from fastness.machineconfig.ignition.problems import (
    IgnitionError,
    InvalidConfig,
    Problem,
    Severity,
    UnreadableConfig,
    UnsupportedVersion,
)
from fastness.machineconfig.ignition.resources import check_contents
from fastness.machineconfig.ignition.shape import JsonObject
from fastness.machineconfig.ignition.translate import Loss, translate, upgrade
from fastness.protocol.ignition_spec import CURRENT, LEGACY, SPEC3, SUPPORTED, Version

__all__ = [
    "CURRENT",
    "LEGACY",
    "SPEC3",
    "SUPPORTED",
    "ChildEffect",
    "Config",
    "EntryKind",
    "IgnitionError",
    "Inspection",
    "InvalidConfig",
    "JsonObject",
    "Layout",
    "Loss",
    "Merger",
    "Observer",
    "PathEntry",
    "Place",
    "Problem",
    "Severity",
    "Supply",
    "UnreadableConfig",
    "UnsupportedVersion",
    "Version",
    "check_contents",
    "default_overwrite",
    "empty",
    "forget_compression",
    "inspect",
    "merge",
    "merge_all",
    "parse",
    "predict",
    "settle_compression",
    "to_json",
    "translate",
    "upgrade",
    "validate",
]
