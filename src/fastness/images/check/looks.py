"""Questions to an image that a list of names cannot express; each answers with the places that stand open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from fastness.images.check.kernel_line import ENTRIES
from fastness.images.check.tree import Tree, present, settings_path, text
from fastness.protocol.pointer import OTHER_SYSTEM_CONFIGS, SYSTEM_CONFIG, is_image_pointer

POINTER: Final = f"/{SYSTEM_CONFIG}"
POINTERS: Final = (POINTER, *(f"{place}/{path}" for path in OTHER_SYSTEM_CONFIGS for place in ("", "/usr")))
IGNITION: Final = ("/usr/bin/ignition", "/usr/lib/dracut/modules.d/30ignition/ignition", "/usr/libexec/ignition")
_GRUB: Final = (
    "/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/usr/lib/bootupd/grub2-static/grub-static-pre.cfg",
    "/usr/lib/ostree-boot/grub2/grub.cfg",
)  # fmt: skip
_EFI: Final = ("/boot/efi/EFI", "/boot/EFI", "/efi/EFI", "/usr/lib/ostree-boot/efi/EFI")
_ADDONS: Final = ("/boot/efi/loader/addons", "/boot/loader/addons", "/efi/loader/addons")
_COMPANIONS: Final = (".addon.efi", ".cred", ".raw")
_FLAGS: Final = ("/boot/ignition.firstboot", "/boot/efi/ignition.firstboot", "/ignition.firstboot")
# The names by which one disk is told from another are content of that disk: whoever adds a disk chooses them.
_NAMED: Final = re.compile(r"(?:PART)?(?:LABEL|UUID)=|/dev/disk/by-|/dev/(?:[sv]d|xvd|nvme|mmcblk)")
_SEALED: Final = ("roothash=", "usrhash=")
_OFF: Final = ("no", "0", "off", "false")
# Words that hand the machine to whoever sits at its console or writes them, and what they do.
TELLING_WORDS: Final = {
    "init": "another program becomes process 1", "rdinit": "another program becomes process 1",
    "rd.break": "the initial file system stops at a shell", "systemd.debug_shell": "a root shell without a password",
    "systemd.debug-shell": "a root shell without a password", "systemd.run": "systemd runs a program from the line",
    "systemd.wants": "a unit is started from the line", "systemd.unit": "another target is booted",
    "rescue": "another target is booted", "emergency": "another target is booted", "single": "another target is booted",
    "systemd.set_credential": "a credential from the line", "systemd.set_credential_binary": "a credential from the line",
    "systemd.volatile": "the root is replaced by an empty one", "systemd.mount-extra": "a mount from the line",
    "systemd.confirm_spawn": "the console is asked what to start", "ignition.config.url": "a config from elsewhere",
    "SYSTEMD_SULOGIN_FORCE": "a root shell without a password", "systemd.setenv": "the environment of every program",
    "systemd.crash_shell": "a shell after a crash of systemd", "coreos.inst.ignition_url": "a config from elsewhere",
}  # fmt: skip


def pointer(tree: Tree) -> list[str]:
    """Whether Ignition is in the image and would ask the platform for user-data."""
    held = {path: content for path in POINTERS if (content := tree.content(path)) is not None}
    if held:
        others = [path for path, content in held.items() if not is_image_pointer(content)]
        return [f"{path} is not the pointer to the agent" for path in others]
    return [f"{path} without {POINTER}" for path in IGNITION if present(tree, path)][:1]


def boot_loaders(tree: Tree) -> list[str]:
    """Boot loaders that take words for the kernel from a disk, and files beside an image that add some."""
    places = [path for path in _GRUB if present(tree, path)]
    for directory in _EFI:
        for vendor in tree.names(directory):
            files = tree.names(f"{directory}/{vendor}")
            places += [f"{directory}/{vendor}/{name}" for name in files if name.lower().startswith("grub")]
            extras = [name for name in files if name.endswith(".extra.d")]
            places += _companions(tree, [f"{directory}/{vendor}/{name}" for name in extras])
    places += [f"{directory}/{name}" for directory in ENTRIES for name in tree.names(directory)]
    return places + _companions(tree, _ADDONS)


def _companions(tree: Tree, directories: Sequence[str]) -> list[str]:
    return [
        f"{directory}/{name}"
        for directory in directories
        for name in tree.names(directory)
        if name.endswith(_COMPANIONS)
    ]


def first_boot_flags(tree: Tree) -> list[str]:
    """Files on a disk that make Ignition run once more, and boot loaders that look for them."""
    asking = [path for path in _GRUB if "ignition.firstboot" in text(tree, path)]
    return [*(path for path in _FLAGS if present(tree, path)), *(f"{path} looks for the flag" for path in asking)]


def mounts_by_name(tree: Tree) -> list[str]:
    """Lines of fstab whose disk is found by a name that another disk can carry."""
    places = []
    for line in text(tree, settings_path(tree, "/etc/fstab")).splitlines():
        fields = line.split()
        if len(fields) > 1 and not fields[0].startswith("#") and _NAMED.match(fields[0]):
            places.append(f"/etc/fstab: {fields[1]} is {fields[0]}")
    return places


def root_by_name(words: Sequence[str]) -> list[str]:
    """Whether the root comes from a disk by name, with nothing that would tell it from another."""
    if any(word.startswith(_SEALED) for word in words):
        return []
    return [word for word in words if word.startswith("root=") and _NAMED.match(word.removeprefix("root="))]


def telling_words(words: Sequence[str]) -> list[str]:
    """Words of the image's own line that hand the machine over."""
    parted = [(word, *word.partition("=")[::2]) for word in words]
    return [
        f"{word}: {TELLING_WORDS[key]}" for word, key, value in parted if key in TELLING_WORDS and value not in _OFF
    ]
