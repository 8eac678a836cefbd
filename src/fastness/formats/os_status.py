"""What `bootc status` and `rpm-ostree status` print: what is booted, what is staged, what is kept to fall back to.

    bootc_status(data)         `bootc status --format=json --format-version=1`, apiVersion org.containers.bootc/v1
    rpm_ostree_status(data)    `rpm-ostree status --json`
    features(text)             the features in the text of `rpm-ostree --version`

* An image is known by its digest. Names come with the transport that ostree puts before them; it is taken off.
* A deployment that bootc has only downloaded is not applied by a reboot, and is therefore not staged.
* Fields that are null or missing are neutral; those that decide and have another type are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError, OsStatusError
from fastness.formats.image_reference import canonical, digest_of

API_VERSION: Final = "org.containers.bootc/v1"
MAX_ENTRIES: Final = 64
MAX_PACKAGES: Final = 4096
MAX_VERSION_TEXT: Final = 16 * 1024
_DIGEST: Final = re.compile(r"sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128})", re.ASCII)
_TRANSPORTS: Final = ("registry:", "docker://", "docker:", "oci:", "oci-archive:", "containers-storage:", "dir:")
_FEATURE: Final = re.compile(r"^\s*-\s*([A-Za-z0-9_-]+)\s*$", re.MULTILINE | re.ASCII)


@dataclass(frozen=True, slots=True)
class OsEntry:
    """One deployment; `image` is by digest where one is known, and empty for one that is no container image."""

    image: str = ""
    packages: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()
    composefs: bool = False
    uki: bool = False
    incompatible: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class OsStatus:
    """What a machine boots now, at the next boot, and if it falls back; `transaction` is what its daemon is busy with."""

    booted: OsEntry | None = None
    staged: OsEntry | None = None
    rollback: OsEntry | None = None
    transaction: str = ""


def bootc_status(data: bytes) -> OsStatus:
    """Read what bootc prints; raises OsStatusError."""
    host = _object(_decoded(data), "")
    if host.get("apiVersion") != API_VERSION:
        raise _refused("apiVersion", f"is {str(host.get('apiVersion'))[:60]!r}, not {API_VERSION}")
    status = _object(host.get("status") or {}, "status")
    entries = {name: _bootc_entry(status.get(name), f"status.{name}") for name in ("booted", "staged", "rollback")}
    if entries["staged"] is not None and _flag(status["staged"], "downloadOnly", "status.staged"):
        entries["staged"] = None
    return OsStatus(entries["booted"], entries["staged"], entries["rollback"])


def rpm_ostree_status(data: bytes) -> OsStatus:
    """Read what rpm-ostree prints; raises OsStatusError."""
    document = _object(_decoded(data), "")
    entries = document.get("deployments") or []
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        raise _refused("deployments", f"is not a list of at most {MAX_ENTRIES}")
    booted: OsEntry | None = None
    staged: OsEntry | None = None
    rollback: OsEntry | None = None
    for index, value in enumerate(entries):
        place = f"deployments[{index}]"
        raw = _object(value, place)
        entry = _rpm_ostree_entry(raw, place)
        if _flag(raw, "booted", place):
            booted = entry
        # In boot order: what stands before the booted one is what the next boot takes, staged or written already.
        elif booted is None:
            staged = staged or entry
        else:
            rollback = rollback or entry
    if booted is None:
        staged, rollback = None, None
    transaction = document.get("transaction")
    busy = " ".join(map(str, transaction)) if isinstance(transaction, list) else str(transaction or "")
    return OsStatus(booted, staged, rollback, busy[:200])


def features(text: str) -> frozenset[str]:
    """The features that `rpm-ostree --version` lists."""
    return frozenset(_FEATURE.findall(text[:MAX_VERSION_TEXT]))


def plain_reference(reference: str) -> str:
    """A reference without the scheme and the transport that ostree puts before it."""
    rest = reference
    for scheme in ("ostree-unverified-registry:", "ostree-unverified-image:", "ostree-image-signed:"):
        if rest.startswith(scheme):
            rest = rest.removeprefix(scheme)
            break
    else:
        # ostree-remote-image:REMOTE:TRANSPORT:NAME and ostree-remote-registry:REMOTE:NAME
        if rest.startswith("ostree-remote-"):
            rest = rest.partition(":")[2].partition(":")[2]
    for transport in _TRANSPORTS:
        if rest.startswith(transport):
            return rest.removeprefix(transport).removeprefix("//")
    return rest


def _bootc_entry(value: Any, place: str) -> OsEntry | None:
    if value is None:
        return None
    raw = _object(value, place)
    status = _object(raw.get("image") or {}, f"{place}.image")
    reference = _object(status.get("image") or {}, f"{place}.image.image")
    composefs = _object(raw.get("composefs") or {}, f"{place}.composefs")
    image = _image(
        _text(reference, "image", f"{place}.image.image"), _text(status, "imageDigest", f"{place}.image"), place
    )
    return OsEntry(
        image, composefs=bool(composefs), uki=_text(composefs, "bootType", f"{place}.composefs").lower() == "uki",
        incompatible=_flag(raw, "incompatible", place), pinned=_flag(raw, "pinned", place),
    )  # fmt: skip


def _rpm_ostree_entry(raw: Mapping[str, Any], place: str) -> OsEntry:
    reference = _text(raw, "container-image-reference", place)
    if not reference:
        origin = _texts(raw, "custom-origin", place)
        reference = origin[0].removeprefix("pivot://") if origin and origin[0].startswith("pivot://") else ""
    image = _image(plain_reference(reference), _text(raw, "container-image-reference-digest", place), place)
    packages = _texts(raw, "requested-packages", place)
    return OsEntry(
        image, packages, _texts(raw, "requested-base-removals", place), pinned=_flag(raw, "pinned", place)
    )  # fmt: skip


def _image(reference: str, digest: str, place: str) -> str:
    """One name for an image: its repository and its digest, where both are known."""
    if digest and not _DIGEST.fullmatch(digest):
        raise _refused(place, f"has the digest {digest[:80]!r}")
    if not reference or not digest:
        return canonical(reference)
    named = canonical(reference)
    repository = named.rpartition("@")[0] if digest_of(named) else named
    # Without its tag: the digest decides, and a tag that moved since must not make two names of one image.
    slash, colon = repository.rfind("/"), repository.rfind(":")
    return f"{repository[:colon] if colon > slash >= 0 else repository}@{digest}"


def _decoded(data: bytes) -> Any:
    try:
        return json.decode(data)
    except JsonError as error:
        raise OsStatusError(error.code, f"the status is not JSON: {error.message}", error.path, _HINT) from error


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _refused(place, "is not an object")
    return value


def _text(raw: Mapping[str, Any], name: str, place: str) -> str:
    value = raw.get(name)
    if value is not None and not isinstance(value, str):
        raise _refused(f"{place}.{name}", "is not a text")
    return value or ""


def _texts(raw: Mapping[str, Any], name: str, place: str) -> tuple[str, ...]:
    value = raw.get(name) or []
    if not isinstance(value, list) or len(value) > MAX_PACKAGES or not all(isinstance(item, str) for item in value):
        raise _refused(f"{place}.{name}", "is not a list of texts")
    return tuple(value)


def _flag(raw: Mapping[str, Any], name: str, place: str) -> bool:
    value = raw.get(name)
    if value is not None and not isinstance(value, bool):
        raise _refused(f"{place}.{name}", "is neither true nor false")
    return bool(value)


_HINT: Final = "Run the command by hand on that machine; a newer program may print another version."


def _refused(place: str, why: str) -> OsStatusError:
    return OsStatusError("os-status", why, place, _HINT)
