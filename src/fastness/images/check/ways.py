"""The ways by which a host speaks to its guest, as far as they are known; adding one is one entry.

Most ways are units or generators that somebody listens with, and words that the kernel command line must have; those are data.
The others are looked for by a function of their own (`looks`). What closes a way is the same data: whoever prepares an image
writes it, whoever checks one looks for it.

The names of units are those of Debian, Fedora and their kin. A unit that an image does not have is masked all the same when the
image is prepared, so that a package that is added later opens nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fastness.images.check import looks
from fastness.images.check.tree import Tree

TreeLook = Callable[[Tree], list[str]]
LineLook = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Way:
    """A way in.

    `host` is what the host can do, `reason` what that gives it, `remedy` what a person does where preparing cannot do it.
    `units` and `generators` are masked; `words` stand on the kernel command line and `files` in the image. Where `listener` is
    set, both matter only in an image that has that file: nobody else reads them. `look` and `look_at_line` see what data cannot
    say.
    """

    id: str
    host: str
    reason: str
    remedy: str
    units: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    listener: str = ""
    look: TreeLook | None = None
    look_at_line: LineLook | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """A way that an image leaves open, and every place that shows it."""

    way: Way
    places: tuple[str, ...]


_PREPARE: Final = "`fastness machine image` closes it"
_CLOUD_CONFIG: Final = (
    "# The host of this machine is not believed: nothing is read from a metadata service or a disk.\n"
)

WAYS: Final = (
    Way(
        "user-data",
        "Ignition applies what the host writes as user-data",
        "units, users, files and another trust.json become part of an affirmed machine",
        f"{_PREPARE}: with a user.ign of the image Ignition never asks the platform.",
        look=looks.pointer,
    ),
    Way(
        "cloud-init",
        "cloud-init takes user-data from a metadata service or from a disk labelled cidata or config-2",
        "user-data holds commands that run as root",
        f"{_PREPARE}, by three means, because `cloud-init=enabled` on the kernel command line undoes the first.",
        units=(
            "cloud-init-local.service", "cloud-init-main.service", "cloud-init-network.service", "cloud-init.service",
            "cloud-config.service", "cloud-final.service", "cloud-init-hotplugd.service", "cloud-init-hotplugd.socket",
            "cloud-config.target", "cloud-init.target",
        ),
        generators=("cloud-init-generator",),
        words=("cloud-init=disabled",),
        files={
            "/etc/cloud/cloud-init.disabled": _CLOUD_CONFIG,
            "/etc/cloud/cloud.cfg.d/99-fastness.cfg": f"{_CLOUD_CONFIG}datasource_list: [None]\n",
        },
        listener="/usr/bin/cloud-init",
    ),
    Way(
        "afterburn",
        "afterburn takes SSH keys, a host name and network settings from a metadata service",
        "a key in authorized_keys is a login on the machine",
        f"{_PREPARE}; the dracut module afterburn stays out of the initial file system.",
        units=(
            "afterburn.service", "afterburn-sshkeys@.service", "afterburn-sshkeys.target", "afterburn-hostname.service",
            "afterburn-checkin.service", "afterburn-firstboot-checkin.service", "afterburn-network-kargs.service",
            # On Azure it writes users and keys of the metadata service into Ignition's base configuration, past the pointer.
            "afterburn-ignition-fragment.service", "rhcos-afterburn-checkin.service",
            # Names of older releases.
            "afterburn-net-bootstrap.service", "afterburn-net-kargs.service", "coreos-metadata.service",
            "coreos-metadata-sshkeys@.service",
        ),
    ),
    Way(
        "provider-agents",
        "an agent of the provider takes keys, scripts and passwords from its metadata service",
        "it runs commands and adds users as root",
        f"{_PREPARE}; better, leave the package out.",
        units=(
            "walinuxagent.service", "waagent.service", "google-guest-agent.service", "google-guest-agent-manager.service",
            "google-startup-scripts.service", "google-shutdown-scripts.service", "google-oslogin-cache.timer",
            "amazon-ssm-agent.service", "snap.amazon-ssm-agent.amazon-ssm-agent.service", "oracle-cloud-agent.service",
            "nm-cloud-setup.service", "nm-cloud-setup.timer",
        ),
    ),
    Way(
        "guest-agents",
        "the hypervisor runs commands through an agent in the guest (QEMU, VMware, Hyper-V, VirtualBox)",
        "guest-exec and its like are root commands of the host",
        f"{_PREPARE}; better, leave the package out.",
        units=(
            "qemu-guest-agent.service", "vmtoolsd.service", "open-vm-tools.service", "vgauthd.service", "vgauth.service",
            "hypervkvpd.service", "hypervvssd.service", "hypervfcopyd.service", "hv-kvp-daemon.service",
            "hv-vss-daemon.service", "hv-fcopy-daemon.service", "hv_kvp_daemon.service", "vboxservice.service",
            "virtualbox-guest-utils.service", "xe-daemon.service", "spice-vdagentd.service", "spice-vdagentd.socket",
        ),
    ),
    Way(
        "credentials",
        "systemd imports credentials from SMBIOS, fw_cfg and files beside the image",
        "they set root's password and SSH keys, write any file (tmpfiles.extra) and add units (systemd.extra-unit)",
        f"{_PREPARE} on the kernel command line; build the image with that line inside.",
        generators=("systemd-debug-generator", "systemd-run-generator", "systemd-import-generator"),
        words=("systemd.import_credentials=no",),
    ),
    Way(
        "vsock-ssh",
        "systemd opens SSH on a socket that only the host reaches (AF_VSOCK)",
        "with a key from any other way it is a shell that no network shows",
        f"{_PREPARE}.",
        listener="/usr/lib/systemd/system-generators/systemd-ssh-generator",
        generators=("systemd-ssh-generator",),
        words=("systemd.ssh_auto=no",),
    ),
    Way(
        "console",
        "the host sits at the serial port and the screen",
        "a shell of an initial file system or of a failed boot is root on a machine whose registers are good: it can attest",
        f"{_PREPARE}: no getty, no wizard that asks for root's password, no shell when something fails.",
        units=(
            "serial-getty@.service", "getty@.service", "console-getty.service", "container-getty@.service",
            "autovt@.service", "getty-static.service", "debug-shell.service", "emergency.service", "rescue.service",
            "dracut-emergency.service", "systemd-firstboot.service",
            # Fedora CoreOS hands the journal of a failed boot to the host by a virtio port.
            "ignition-virtio-dump-journal.service",
        ),
        generators=("systemd-getty-generator",),
        words=("rd.shell=0", "rd.emergency=halt"),
    ),
    Way(
        "extensions",
        "images of extensions lie on a disk or beside the boot image (sysext, confext, portable services)",
        "they lay files over /usr and /etc that no register holds",
        f"{_PREPARE}.",
        units=(
            "systemd-sysext.service", "systemd-confext.service", "systemd-sysext.socket", "systemd-portabled.service",
            "systemd-sysext-initrd.service", "systemd-confext-initrd.service",
        ),
    ),
    Way(
        "second-disk",
        "a second disk carries the label, the name or the type of a partition that is mounted by it",
        "what the machine reads there is the host's: programs, keys, swap",
        "Mount what attestation opened (/dev/mapper) or nothing; name no partition in /etc/fstab.",
        units=("systemd-volatile-root.service",),
        generators=("systemd-gpt-auto-generator",),
        words=("systemd.gpt_auto=no",),
        look=looks.mounts_by_name,
    ),
    Way(
        "root-by-name",
        "the root is looked for by a label or a number that another disk can carry",
        "the registers are those of the approved image while the programs are the host's",
        "Seal the root with dm-verity (roothash= or usrhash=), open it by attestation, or keep it in the image.",
        look_at_line=looks.root_by_name,
    ),
    Way(
        "boot-loader",
        "a boot loader takes words for the kernel, credentials or extensions from a disk",
        "one word more gives a root shell; what is beside a unified kernel image reaches PCR 12 and 13 only",
        "Boot a unified kernel image, without GRUB, loader entries or files in *.extra.d and loader/addons.",
        look=looks.boot_loaders,
    ),
    Way(
        "command-line",
        "words on the image's own kernel command line hand the machine over",
        "they are measured, and say what the host wants",
        "Build the image without them.",
        look_at_line=looks.telling_words,
    ),
    Way(
        "ignition-again",
        "a flag on a disk makes Ignition run once more",
        "the host decides when a machine is set up anew",
        "Put ignition.firstboot on the line of the image or nowhere; keep no flag and no boot loader that reads it.",
        look=looks.first_boot_flags,
    ),
)  # fmt: skip
MASKED_UNITS: Final = tuple(unit for way in WAYS for unit in way.units)
MASKED_GENERATORS: Final = tuple(generator for way in WAYS for generator in way.generators)
WORDS: Final = tuple(word for way in WAYS for word in way.words)
