"""Why a volume was not made, opened or given a new key.

    DiskError               code, hint
        header-refused      the header is damaged, or says something that is not opened here
        disk-exchanged      the header is well formed and of another volume than the recorded one
        key-does-not-open   no slot opens with a key that was released
        disk-too-small      there is no room for a header and data
        no-room-for-slot    the space for slots has no gap for one more
        disk-busy           the disk is mounted or mapped already
        disk-io, disk-short-read, disk-full, disk-read-only     the disk does not do what was asked
        mapper              the kernel's device mapper refuses, or is not there
        mapping-differs     the kernel maps something else than was asked; the mapping was removed
        bad-request         a name or an option that nobody passes by accident

Messages name device, place and field; they never hold a key.
"""

from __future__ import annotations

from typing import Final

from fastness.runtime.errors import CodedError

_OTHERWISE: Final = "Attach the machine's own disk, or replace the machine."
HINTS: Final = {
    "header-refused": f"The disk was changed by its host, or is not a volume of this machine. {_OTHERWISE}",
    "disk-exchanged": "Attach the disk that was recorded for this machine; if it is lost, replace the machine.",
    "key-does-not-open": f"The disk is of another machine, or was made with a key that is destroyed. {_OTHERWISE}",
    "disk-too-small": "Give the machine a larger disk.",
    "no-room-for-slot": "Replace the machine: its volume was made with room for one slot.",
    "disk-busy": "Name a disk that nothing else uses; `lsblk` on the machine shows what does.",
    "disk-io": "See the host's log about this disk.",
    "disk-short-read": "The disk is shorter than it claims: see what the host attached.",
    "disk-full": "Make room where the host keeps this disk.",
    "disk-read-only": "Attach the disk so that the machine may write to it.",
    "mapper": "The image needs the modules dm_mod, dm_crypt, xts and ecb (with integrity also dm_integrity and authenc).",
    "mapping-differs": "Report this: something else on the machine changes mappings.",
    "bad-request": "Correct the settings of the pool's volume.",
}


class DiskError(CodedError):
    """A volume stays closed; `code` says which of the reasons above."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint or HINTS[code])
