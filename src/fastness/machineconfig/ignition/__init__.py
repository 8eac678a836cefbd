"""Ignition configs, specs 2.2 and 3.0 to 3.5: read, checked, merged, translated, and what a machine makes of them.

    parse, inspect, validate   bytes or JSON to a `Config`; every problem at once, with its field path
    upgrade                    any supported config as JSON of the current spec, which is what the rest of the house uses
    translate                  one version to another, with the losses named
    merge, merge_all, Merger   children over parents as Ignition does it; an observer hears who supplied and overrode what
    check_contents             inline files: compression and hashes
    predict                    the files, links and directories that a machine will have after its first boot
    empty, to_json             the config that asks for nothing; bytes, the same for the same config

The specification itself is data: `fields` says what exists since when and how lists merge; `types` has the same as typed
dictionaries. The rules between fields are in `rules`, `rules_disks` and `resources`, those of spec 2.2 in `legacy_rules`.
"""

from fastness.machineconfig.ignition.config import Config, Inspection, empty, inspect, parse, to_json, validate
from fastness.machineconfig.ignition.layout import Entry, EntryKind, Layout, predict
from fastness.machineconfig.ignition.merge import (
    Merger,
    default_overwrite,
    forget_compression,
    merge,
    merge_all,
    settle_compression,
)
from fastness.machineconfig.ignition.origins import Change, Observer, Place, Supply
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
    "Change",
    "Config",
    "Entry",
    "EntryKind",
    "IgnitionError",
    "Inspection",
    "InvalidConfig",
    "JsonObject",
    "Layout",
    "Loss",
    "Merger",
    "Observer",
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
