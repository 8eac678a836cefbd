"""What the machine itself remembers: its current config, its overlays, how it was first booted, its base image, and whether an
update is forced.

The disk is the truth. What the API says about the current config may be older than the machine (a restored backup) or belong to
another one; what was written last on this disk, by the journal, is what holds.
"""

from __future__ import annotations

from typing import Final

from fastness.agent.apply.accounts import GROUP, PASSWD, Accounts, read_accounts
from fastness.agent.apply.desired import desired
from fastness.agent.apply.ports import Files, OperatingSystem
from fastness.agent.apply.update import Goal
from fastness.agent.errors import BadConfig
from fastness.agent.host.states import ABSENT, File
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.image_reference import MAX_LENGTH
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.machineconfig.overlay.merged import Laid

BACKUP = "/etc/machine-config-daemon/node-annotation.json.bak"
IGNITION_PRESET = "/etc/systemd/system-preset/20-ignition.preset"
BOOTSTRAPPED: Final = "/run/cluster-api/bootstrap-success.complete"


def accounts_of(root: Files) -> Accounts:
    """The accounts of the machine."""
    return read_accounts(root.look(PASSWD), root.look(GROUP))


def goal(root: Files, config: JsonObject) -> Goal:
    """A config and what it asks of this machine; raises BadConfig."""
    try:
        return Goal(config, desired(config, accounts_of(root), read_base_image(root)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # one that no renderer would make
        name = object_name(config).name
        raise BadConfig(f"config {name} is malformed: {type(error).__name__} {error}") from error


def read_current(root: Files) -> JsonObject | None:
    """The config that was applied last; raises BadConfig when the record is damaged."""
    return _read(root, names.CURRENT_CONFIG_FILE)


def read_overlays(root: Files) -> Laid:
    """The overlays that came with the first config, until they were taken over; raises BadConfig."""
    state = root.look(names.OVERLAY_FILE)
    if not isinstance(state, File):
        return Laid()
    try:
        return Laid.read(state.content)
    except ValueError as error:
        raise BadConfig(
            f"{names.OVERLAY_FILE}: {error}", "Install the machine anew: it is fetched again then."
        ) from error


def read_base_image(root: Files) -> str:
    """What the machine boots when no config names an image; empty where nobody recorded it."""
    state = root.look(names.BASE_IMAGE_FILE)
    return state.content.decode(errors="replace").strip()[:MAX_LENGTH] if isinstance(state, File) else ""


def record_base_image(root: Files, system: OperatingSystem, config: JsonObject) -> None:
    """Write down once what the machine booted before any config named an image; raises DriverError.

    Where the config that holds names one it is too late: what runs is that image, and what ran before it nobody can tell.
    """
    if isinstance(root.look(names.BASE_IMAGE_FILE), File) or (config.get("spec") or {}).get("osImageURL"):
        return
    image = system.booted().image
    if image:
        root.put(names.BASE_IMAGE_FILE, File(f"{image}\n".encode(), 0o644, 0, 0))


def read_first_boot(root: Files) -> JsonObject | None:
    """The annotations that came with the first config, until they were taken over."""
    return _read(root, names.NODE_ANNOTATIONS_FILE)


def read_served(root: Files, name: str) -> JsonObject | None:
    """The rendered config of this name, as it came with the first boot; None where it did not, or not as it was rendered."""
    config = _read(root, names.CONTENT_FILE) or {}
    spec = config.get("spec")
    if object_name(config).name != name or not isinstance(spec, dict):
        return None
    # For old versions of Ignition arguments of the document were moved into those of the config: what was rendered is another.
    moved = isinstance(spec.get("config"), dict) and bool(spec["config"].get("kernelArguments"))
    return None if moved else config


def adopt_first_boot(root: Files, config: JsonObject) -> None:
    """What Ignition wrote is the current config from now on, overlays included."""
    root.put(names.CURRENT_CONFIG_FILE, File(json.encode(config), 0o600, 0, 0))
    # The same again, of the first boot: kept, it would outlive every secret that a later config or overlay takes away.
    root.put(names.CONTENT_FILE, ABSENT)
    root.put(names.OVERLAY_FILE, ABSENT)
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


def note_bootstrapped(root: Files) -> None:
    """Leave the file by which providers of Cluster API know that a machine became a node; raises DriverError.

    Every machine has it: a pointer says where to ask and no more, so nobody here knows who ordered the machine.
    """
    if not isinstance(root.look(BOOTSTRAPPED), File):
        root.put(BOOTSTRAPPED, File(b"success\n"))


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
