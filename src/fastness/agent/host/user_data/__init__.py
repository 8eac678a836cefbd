"""Where platforms put user-data, and how the agent reads it there: bytes, and nothing is believed of them.

    drives.py     User-data on a disc or a disk that the host attached
    files.py      User-data in a single file: QEMU's fw_cfg in sysfs, or a path that the image names
    guestinfo.py  User-data of VMware: variables that the host sets on a machine, asked through the back door by `vmware-rpctool`
    init_data.py  User-data in an init-data document, on the block device by which hosts hand such documents to guests
    metadata.py   User-data from the metadata service of a cloud, at the link-local address that only the host can answer

    platform_of(command_line)    which platform the image was built for: `ignition.platform.id`, measured with the command line
    places_of("aws")             where user-data lies there, in the order in which it is looked for

| platform | places |
| --- | --- |
| aws | metadata service with a session token (IMDSv2); the older way without one is not tried |
| azure | metadata service (userData, base64); CustomData.bin on the provisioning disc |
| gcp | metadata service, attribute user-data |
| openstack | config drive (label config-2); metadata service |
| kubevirt | init-data disk; config drive (label config-2) |
| nutanix, metal | config drive (label config-2) |
| ibmcloud, powervs | drive with label cidata |
| qemu | init-data disk; fw_cfg opt/com.coreos/config; virtio disk with serial `ignition` |
| vmware | guestinfo.ignition.config.data, plain or base64 |

`metadata` asks services, `drives` reads discs and disks, `files` single files, `guestinfo` VMware's back door, `init_data` the
one place whose content the processor measures; it comes first where it can be. Rules for all:

* At most MAX_BYTES and a few seconds; a place that is larger is refused, not cut.
* Services are asked by a link-local address and never by name; redirects are not followed, no proxy is used.
* Drives are mounted read-only, without devices, programs and set-user-id bits, away from every other path; below them no link is
  followed, because a link of the host's leads where the host likes.
* What was read goes to `protocol.user_data` and from there only as three checked words. It is written nowhere, but init-data
  to a file of /run for root alone: the verifier is sent it with every evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from fastness.agent.host.errors import UnknownPlatform
from fastness.agent.host.user_data.drives import Drive, SerialDisk
from fastness.agent.host.user_data.files import fw_cfg
from fastness.agent.host.user_data.guestinfo import GuestInfo
from fastness.agent.host.user_data.init_data import InitDataDisk
from fastness.agent.host.user_data.metadata import aws, azure, gcp, openstack
from fastness.formats.initdata import InitData


class UserDataSource(Protocol):
    """One place where user-data may lie."""

    @property
    def name(self) -> str:
        """What an operator calls it."""

    async def read(self) -> bytes | InitData | None:
        """What lies there, the whole document where it is init-data; None when nothing does; raises UserDataFailure for now."""


_OPTION: Final = "ignition.platform.id="


def _config_drive() -> UserDataSource:
    return Drive.labelled("config drive", "config-2", ("openstack", "latest", "user_data"))


def _cidata() -> UserDataSource:
    return Drive.labelled("cidata drive", "cidata", ("user-data",))


PLATFORMS: Final[Mapping[str, tuple[Callable[[], UserDataSource], ...]]] = {
    "aws": (aws,),
    "azure": (azure, Drive.azure),
    "gcp": (gcp,),
    "ibmcloud": (_cidata,),
    "kubevirt": (InitDataDisk, _config_drive),
    "metal": (_config_drive,),
    "nutanix": (_config_drive,),
    "openstack": (_config_drive, openstack),
    "powervs": (_cidata,),
    # The measured place before those that a host may fill as it likes (decision 40).
    "qemu": (InitDataDisk, fw_cfg, SerialDisk),
    "vmware": (GuestInfo,),
}


def platform_of(command_line: str) -> str:
    """The platform that a kernel command line names; raises UnknownPlatform unless it names exactly one."""
    names = {word.removeprefix(_OPTION) for word in command_line.split() if word.startswith(_OPTION)}
    # Two would leave it to the order of words which host is believed; the command line is measured, so this is the image's
    # mistake.
    if len(names) != 1:
        raise UnknownPlatform(f"the kernel command line names {len(names) or 'no'} platforms ({_OPTION}…)")
    return names.pop()


def places_of(platform: str) -> tuple[UserDataSource, ...]:
    """Where user-data lies on a platform; raises UnknownPlatform."""
    if platform not in PLATFORMS:
        raise UnknownPlatform(f"{platform[:32]!r} is not a platform whose user-data this agent can read")
    return tuple(make() for make in PLATFORMS[platform])
