"""Tables of the device mapper: written, and compared with those of the kernel.

Devices are named by number, as the kernel names them when it is asked: what it answers can be compared word by word. The key is
named by its place in the kernel's keyring, so no table ever shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SECTOR: Final = 512
TAG_BYTES: Final = 32
KEY_PREFIX: Final = "fastness:"
# What the kernel adds to the line of dm-integrity by itself. `recalculate`, `internal_hash` and `meta_device` are not among
# them: they would let the host's bytes be tagged anew, or tags lie elsewhere.
_INTEGRITY_ADDS: Final = frozenset({
    "journal_sectors", "interleave_sectors", "buffer_sectors", "journal_watermark", "commit_time", "block_size", "fix_padding",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """One line of a table: from sector `start`, so many sectors, of a kind, with its parameters."""

    start: int
    sectors: int
    kind: str
    parameters: str


def crypt_target(device: str, offset: int, sectors: int, key: str, sector_size: int) -> Target:
    """AES-XTS over a part of a disk; `key` is `:size:logon:description`, `offset` counts in bytes."""
    options = _options([] if sector_size == SECTOR else [f"sector_size:{sector_size}"])
    return Target(0, sectors, "crypt", f"aes-xts-plain64 {key} 0 {device} {offset // SECTOR}{options}")


def authenticated_target(device: str, sectors: int, key: str, sector_size: int) -> Target:
    """AES-XTS with an HMAC for each sector, over a device of dm-integrity, as LUKS2 stacks them."""
    options = [f"integrity:{TAG_BYTES}:aead", *([] if sector_size == SECTOR else [f"sector_size:{sector_size}"])]
    cipher = "capi:authenc(hmac(sha256),xts(aes))-plain64"
    return Target(0, sectors, "crypt", f"{cipher} {key} 0 {device} 0{_options(options)}")


def integrity_target(device: str, offset: int, sectors: int, sector_size: int) -> Target:
    """Tags beside sectors, with a journal so that both change together; `offset` counts in bytes."""
    options = _options(["fix_padding", *([] if sector_size == SECTOR else [f"block_size:{sector_size}"])])
    return Target(0, sectors, "integrity", f"{device} {offset // SECTOR} {TAG_BYTES} J{options}")


def _options(words: list[str]) -> str:
    return f" {len(words)} {' '.join(words)}" if words else ""


def same_mapping(meant: Target, actual: tuple[Target, ...]) -> bool:
    """Whether the kernel maps what was meant and nothing else."""
    if len(actual) != 1 or (actual[0].start, actual[0].sectors, actual[0].kind) != (0, meant.sectors, meant.kind):
        return False
    if meant.kind != "integrity":
        return actual[0].parameters.split() == meant.parameters.split()
    ours, theirs = meant.parameters.split(), actual[0].parameters.split()
    names = {word.partition(":")[0] for word in theirs[5:]}
    return theirs[:4] == ours[:4] and set(ours[5:]) <= set(theirs[5:]) and names <= _INTEGRITY_ADDS
