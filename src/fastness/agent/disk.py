"""What the machine itself remembers: its current config, how it was first booted, whether somebody forces an update.

The disk is the truth. What the API says about the current config may be older than the machine (a restored backup) or belong to
another one; what was written last on this disk, by the journal, is what holds.
"""

from __future__ import annotations

from fastness.agent.accounts import GROUP, PASSWD, Accounts, read_accounts
from fastness.agent.desired import desired
from fastness.agent.errors import BadConfig
from fastness.agent.ports import Files
from fastness.agent.update import Goal
from fastness.drivers.states import ABSENT, File
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.model.kind import JsonObject
from fastness.model.machineconfiguration import names
from fastness.model.objects import object_name

BACKUP = "/etc/machine-config-daemon/node-annotation.json.bak"
IGNITION_PRESET = "/etc/systemd/system-preset/20-ignition.preset"


def accounts_of(root: Files) -> Accounts:
    """The accounts of the machine."""
    return read_accounts(root.look(PASSWD), root.look(GROUP))


def goal(root: Files, config: JsonObject) -> Goal:
    """A config and what it asks of this machine; raises BadConfig, also for one that no renderer would make."""
    try:
        return Goal(config, desired(config, accounts_of(root)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        name = object_name(config).name
        raise BadConfig(f"config {name} is malformed: {type(error).__name__} {error}") from error


def read_current(root: Files) -> JsonObject | None:
    """The config that was applied last; raises BadConfig when the record is damaged."""
    return _read(root, names.CURRENT_CONFIG_FILE)


def read_first_boot(root: Files) -> JsonObject | None:
    """The annotations that came with the first config, until they were taken over."""
    return _read(root, names.NODE_ANNOTATIONS_FILE)


def adopt_first_boot(root: Files, config: JsonObject) -> None:
    """What Ignition wrote is the current config from now on."""
    root.put(names.CURRENT_CONFIG_FILE, File(json.encode(config), 0o600, 0, 0))
    left = root.look(names.NODE_ANNOTATIONS_FILE)
    if isinstance(left, File):
        root.put(BACKUP, left)
        root.put(names.NODE_ANNOTATIONS_FILE, ABSENT)
    encapsulated = root.look(names.ENCAPSULATED_FILE)
    if isinstance(encapsulated, File):
        root.put(f"{names.ENCAPSULATED_FILE}.bak", encapsulated)
        root.put(names.ENCAPSULATED_FILE, ABSENT)
    # Made for the first boot only; left there it would enable units again that a later config disables.
    root.put(IGNITION_PRESET, ABSENT)


def is_forced(root: Files) -> bool:
    """Whether somebody asks for the whole update whatever the disk says."""
    return isinstance(root.look(names.FORCE_FILE), File)


def consume_force(root: Files) -> None:
    """The force file was obeyed."""
    root.put(names.FORCE_FILE, ABSENT)


def _read(root: Files, path: str) -> JsonObject | None:
    state = root.look(path)
    if not isinstance(state, File):
        return None
    try:
        value = json.decode(state.content)
    except JsonError as error:
        raise BadConfig(
            f"{path} cannot be read: {error}", "Restore it, or remove it and let the agent start anew."
        ) from error
    return value if isinstance(value, dict) else None
