"""The rules of a resource: something that a machine fetches, or that is inline as a data URL.

Files and fragments, configs to merge, certificate bundles and key files are all resources. This is where most of the time of
a validation goes, so the common case, a good source and nothing else, takes the shortest way.

`check_contents` goes further than Ignition does before boot: it opens what is inline and compares it with its hash, so that
a machine does not have to find out.
"""

from collections.abc import Mapping
from typing import Any

from fastness.formats import data_url
from fastness.formats.errors import DataUrlError
from fastness.machineconfig.ignition import urls
from fastness.machineconfig.ignition.problems import Path, Problem, Report
from fastness.machineconfig.ignition.shape import JsonObject


def check_resource(resource: JsonObject, path: Path, minor: int, report: Report, required: bool = False) -> None:
    """The rules of something that is fetched or inline."""
    source = resource.get("source")
    if source:
        bad = urls.problem(source, minor)
        if bad is not None:
            report.error((path, "source"), *bad)
    elif required:
        report.error((path, "source"), "source-required", "a source is required")
    if len(resource) <= 1 and source is not None:
        return
    if resource.get("compression", "") not in ("", "gzip"):
        report.error((path, "compression"), "invalid-compression", "the compression must be gzip or absent")
    if "verification" in resource:
        _check_hash(resource, path, minor, report)
    if "httpHeaders" in resource:
        _check_headers(resource["httpHeaders"], source, path, report)


def _check_hash(resource: JsonObject, path: Path, minor: int, report: Report) -> None:
    text = resource["verification"].get("hash")
    where: Path = ((path, "verification"), "hash")
    if text is None:
        return
    # A digest without a source would look like a protected file in a review, while nothing is compared at all.
    if "source" not in resource:
        report.error(where, "hash-without-source", "a hash needs a source")
    try:
        digest = data_url.verification(text)
    except DataUrlError as error:
        # Ignition looks at the digits only when it compares, on the machine.
        tell = report.warn if error.code == "hash-not-hexadecimal" else report.error
        tell(where, error.code, error.message)
        digest = None
    # A reader of spec 3.0 refuses the whole config for it, on the machine, at its first boot.
    if minor < 1 and (digest.algorithm if digest else text.partition("-")[0]) == "sha256":
        report.error(where, "hash-unrecognised", "sha256 exists only since spec 3.1")


def _check_headers(headers: list[JsonObject], source: str | None, path: Path, report: Report) -> None:
    where: Path = (path, "httpHeaders")
    for index, header in enumerate(headers):
        if not header.get("name"):
            report.error(((where, index), "name"), "header-name-required", "a header needs a name")
        # In a config that is merged into another, no value means "take the inherited header away"; an empty string is neither
        # that nor a header.
        if header.get("value") == "":
            report.error(((where, index), "value"), "header-value-empty", "a header value must not be empty")
    if not headers:
        return
    url = urls.split(source) if source else None
    if url is None:
        report.error(where, "invalid-url", "headers need a source")
    # Ignition refuses them for other schemes, whose readers have nowhere to put a header.
    elif url.scheme not in ("http", "https"):
        report.error(where, "headers-need-http", "headers are for http and https only")


def file_bytes(entry: Any) -> bytes | None:
    """The content of a file entry; None where there is no entry or the content is not in the config."""
    resource = entry.get("contents") if isinstance(entry, Mapping) else None
    if not isinstance(resource, Mapping):
        return b"" if isinstance(entry, Mapping) and resource is None else None
    try:
        return data_url.contents({name: value for name, value in resource.items() if value is not None})
    except (DataUrlError, AttributeError, TypeError):  # one that nobody has checked the shape of
        return None


def check_contents(config: JsonObject, limit: int = data_url.MAX_CONTENTS) -> tuple[Problem, ...]:
    """What is wrong inside the inline files of a spec 3 config: bad gzip, other hash, too large when unpacked."""
    report = Report()
    for index, file in enumerate(config.get("storage", {}).get("files", ())):
        here: Path = (((None, "storage"), "files"), index)
        inline: list[tuple[JsonObject, Path]] = [(file.get("contents", {}), (here, "contents"))]
        inline += [(item, ((here, "append"), place)) for place, item in enumerate(file.get("append", ()))]
        for resource, path in inline:
            try:
                # With the bound, because a few kilobytes of gzip can unpack to gigabytes; this runs in the controller, for
                # configs of everybody who may write one.
                data_url.contents(resource, limit)
            except DataUrlError as error:
                if error.code != "not-inline":
                    report.error(path, error.code, error.message)
    return tuple(report.problems)
