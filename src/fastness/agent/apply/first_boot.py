"""The first boot, before the kubelet: the operating system becomes the one that the configuration asks for.

Ignition wrote files and units. An image, kernel arguments, a kernel or packages it cannot bring: what was served carries them in
a file of its own. Where the machine has them already the file goes, and that was all. Otherwise they are staged and the machine
reboots once, while no pod runs on it yet. The same is done after a machine left an image of its own (`path`).

What the machine was installed with is written down before: it is what the machine goes back to when no config names an image.
"""

from __future__ import annotations

from fastness.agent.apply.accounts import Accounts
from fastness.agent.apply.desired import desired
from fastness.agent.apply.disk import record_base_image
from fastness.agent.apply.ports import BootLoader, Files, OperatingSystem, Power
from fastness.agent.apply.validate import system_drifts
from fastness.agent.errors import BadConfig
from fastness.agent.host.boot_loader import NoBootLoader
from fastness.agent.host.states import ABSENT, File
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.image_reference import same_image
from fastness.kinds.machineconfiguration import names

REASON = "Completing the first boot"


def first_boot(
    root: Files, system: OperatingSystem, power: Power, path: str = names.ENCAPSULATED_FILE, *,
    boot_loader: BootLoader = NoBootLoader(),  # noqa: B008 - it has no state
) -> tuple[str, ...]:  # fmt: skip
    """What the machine lacked, for which it reboots now; nothing where it has everything. Raises BadConfig, DriverError."""
    state = root.look(path)
    if not isinstance(state, File):
        return ()
    try:
        config = json.decode(state.content)
        asked_for = desired(config, Accounts())
    except (JsonError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadConfig(f"{path} cannot be read: {error}", "Install the machine anew.") from error
    record_base_image(root, system, {})
    lacking = tuple(str(drift) for drift in system_drifts(asked_for, system))
    if lacking:
        system.stage(asked_for.deployment, extensions_image=asked_for.extensions_image)
        lacking += _loader(root, system, asked_for.deployment.image, boot_loader)
        root.put(f"{path}.bak", state)
    # Before the reboot: a machine that comes up in the new image must not begin again.
    root.put(path, ABSENT)
    if lacking:
        power.reboot(REASON)
    return lacking


def _loader(root: Files, system: OperatingSystem, image: str, boot_loader: BootLoader) -> tuple[str, ...]:
    """What became of the boot loader of another image, where the files that Ignition wrote ask for it."""
    word = root.look(names.BOOT_LOADER_FILE)
    asked_for = isinstance(word, File) and word.content == names.UPDATE_BOOT_LOADER.encode()
    if not asked_for or not image or same_image(image, system.booted().image):
        return ()
    return (boot_loader.update(image).text,)
