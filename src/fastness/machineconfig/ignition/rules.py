"""What a well-shaped spec 3 config must also satisfy: the rules between fields, as Ignition applies them.

The walk is over a value in normal form (`shape`), so types can be relied on and absent means null. Rules that came with a
minor version look at `minor`. Disks, arrays, encrypted volumes and filesystems are in `rules_disks`.

Errors are what Ignition refuses; warnings what it only reports. Where its releases disagree (a file that a unit of the same
config would overwrite is refused after 2.14), the stricter reading wins: a config that passes here passes everywhere.
"""

import re
from typing import Any, Final

from fastness.machineconfig.ignition import rules_disks, urls
from fastness.machineconfig.ignition.paths import bad_path, clean_path, parents
from fastness.machineconfig.ignition.problems import Path, Report
from fastness.machineconfig.ignition.resources import check_resource
from fastness.machineconfig.ignition.shape import JsonObject
from fastness.machineconfig.ignition.unit_file import UnitSyntax, sections

UNIT_SUFFIXES: Final = frozenset(
    {
        ".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".snapshot",
        ".slice", ".scope",
    }
)  # fmt: skip
UNIT_DIRECTORY: Final = "/etc/systemd/system/"
_TARGET_CHECKED_SINCE: Final = 3
_INSTANCE: Final = re.compile(r"(.+?)@(.+?)\.service", re.DOTALL)


def check(config: JsonObject, minor: int, report: Report) -> None:
    """Apply every rule of spec 3.<minor>."""
    ignition = config.get("ignition")
    if ignition:
        _check_ignition(ignition, minor, report)
    storage: JsonObject = config.get("storage", {})
    if storage:
        path: Path = (None, "storage")
        rules_disks.check(storage, path, minor, report)
        for name in ("directories", "files", "links"):
            _check_nodes(storage, name, path, minor, report)
    units: list[JsonObject] = config.get("systemd", {}).get("units", [])
    if units:
        _check_units(units, ((None, "systemd"), "units"), report)
        _check_unit_paths(storage, units, report)


def _check_ignition(ignition: JsonObject, minor: int, report: Report) -> None:
    path: Path = (None, "ignition")
    references = ignition.get("config", {})
    where: Path = (path, "config")
    for index, reference in enumerate(references.get("merge", ())):
        # 3.0 let a reference without a source pass; so do its readers.
        check_resource(reference, ((where, "merge"), index), minor, report, required=minor > 0)
    check_resource(references.get("replace", {}), (where, "replace"), minor, report)
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    where = (((path, "security"), "tls"), "certificateAuthorities")
    for index, authority in enumerate(authorities):
        check_resource(authority, (where, index), minor, report, required=True)
    proxy = ignition.get("proxy", {})
    for name in ("httpProxy", "httpsProxy"):
        if name in proxy:
            _check_proxy(proxy[name], name, ((path, "proxy"), name), report)


def _check_proxy(text: str, name: str, path: Path, report: Report) -> None:
    url = urls.split(text)
    if url is None:
        report.error(path, "invalid-url", "the URL cannot be understood")
    elif url.scheme not in ("http", "https"):
        report.error(path, "invalid-proxy", "a proxy must be http or https")
    # The proxy learns the names of all hosts that the machine asks, and with plain http so does everybody on the way to it.
    elif url.scheme == "http" and name == "httpsProxy":
        report.warn(path, "insecure-proxy", "a proxy for https should itself be https")


def _check_nodes(storage: JsonObject, name: str, path: Path, minor: int, report: Report) -> None:
    nodes = storage.get(name)
    if not nodes:
        return
    # Ignition follows links in all parts of a path but the last, so an entry below a link of the same config lands where the link
    # points: a file that reads as /opt/x in a review could overwrite something in /etc.
    links: frozenset[str] = frozenset(link.get("path", "") for link in storage.get("links", ()))
    where: Path = (path, name)
    for index, node in enumerate(nodes):
        here: Path = (where, index)
        bad = bad_path(node.get("path", ""))
        if bad is not None:
            report.error((here, "path"), *bad)
        # Go compares prefixes, so a bad path counts here too; but one mistake is enough to report.
        elif links and not links.isdisjoint(parents(node["path"])):
            report.error(here, "through-link", "the path leads through a link of this config")
        if "user" in node or "group" in node:
            _check_owner(node, here, report)
        if "mode" in node:
            _check_mode(node["mode"], (here, "mode"), minor, report)
        if name == "files":
            _check_file(node, here, minor, report)
        elif name == "links":
            _check_link(node, here, storage, minor, report)


def _check_owner(node: JsonObject, path: Path, report: Report) -> None:
    for name in ("user", "group"):
        owner = node.get(name)
        # Which of the two wins is not specified; a file of root that turns out to be somebody else's is the bad case.
        if owner and "id" in owner and owner.get("name"):
            report.error((path, name), "id-and-name", "set the id or the name, not both")


def _check_mode(mode: int, path: Path, minor: int, report: Report) -> None:
    if not 0 <= mode <= 0o7777:
        report.error(path, "illegal-mode", "the mode must be between 0 and 0o7777 (4095 in decimal)")
    # Ignition's issue 1301: it dropped these bits until spec 3.4, and keeps dropping them for older specs, so that no config
    # gains a setuid file by an update of Ignition.
    elif minor < 4 and mode & 0o7000:
        report.warn(path, "special-mode-bits", "setuid, setgid and sticky bits are ignored before spec 3.4")


def _check_file(file: JsonObject, path: Path, minor: int, report: Report) -> None:
    contents: JsonObject = file.get("contents", {})
    if contents:
        check_resource(contents, (path, "contents"), minor, report)
    # With nothing to write, to replace would mean to empty the file that the image has.
    if file.get("overwrite") and "source" not in contents:
        report.error((path, "overwrite"), "overwrite-without-source", "to overwrite, contents need a source")
    for index, fragment in enumerate(file.get("append", ())):
        check_resource(fragment, ((path, "append"), index), minor, report)


def _check_link(link: JsonObject, path: Path, storage: JsonObject, minor: int, report: Report) -> None:
    target = link.get("target", "")
    if not target:
        # Readers of older specs let it pass and fail when they make the link.
        tell = report.error if minor >= _TARGET_CHECKED_SINCE else report.warn
        tell((path, "target"), "target-required", "a link needs a target")
        return
    if not link.get("hard"):
        return
    target = clean_path(target) if target.startswith("/") else clean_path(f"{link.get('path', '')}/{target}")
    # Linux has no such links: the boot would fail in the last stage, after disks were written.
    if any(directory.get("path") == target for directory in storage.get("directories", ())):
        report.error(path, "hard-link-to-directory", "a hard link must not point to a directory")
    for owner in ("user", "group"):
        for name in link.get(owner, ()):
            report.warn(((path, owner), name), "hard-link-owner", "a hard link has the owner of its target")


def _check_units(units: list[JsonObject], path: Path, report: Report) -> None:
    parsed: dict[str, frozenset[str] | None] = {}
    for index, unit in enumerate(units):
        name = unit.get("name", "")
        here: Path = (path, index)
        # systemd ignores a file of any other ending without a word; a unit that never runs may be the one that guards something.
        if suffix(name) not in UNIT_SUFFIXES:
            report.error(
                (here, "name"), "unit-suffix", "a unit name must end in .service, .socket, .mount or another type"
            )
        contents = unit.get("contents")
        if contents:
            parsed[name] = sections = _parse(contents, (here, "contents"), report)
            if unit.get("enabled") and sections is not None and "Install" not in sections:
                report.warn(
                    (here, "contents"),
                    "no-install",
                    "the unit is enabled but has no Install section, so nothing happens",
                )
        for position, dropin in enumerate(unit.get("dropins", ())):
            where: Path = ((here, "dropins"), position)
            # systemd reads only *.conf there (systemd.unit(5)); anything else would be written and never read.
            if suffix(dropin.get("name", "")) != ".conf":
                report.error((where, "name"), "dropin-suffix", "the name of a drop-in must end in .conf")
            if dropin.get("contents"):
                _parse(dropin["contents"], (where, "contents"), report)
    _check_instances(units, parsed, path, report)


def _check_instances(
    units: list[JsonObject], parsed: dict[str, frozenset[str] | None], path: Path, report: Report
) -> None:
    for index, unit in enumerate(units):
        if not unit.get("enabled") or "@" not in unit.get("name", ""):
            continue
        match = _INSTANCE.fullmatch(unit["name"])
        template = parsed.get(f"{match[1]}@.service") if match else None
        if template is not None and "Install" not in template:
            report.warn(
                ((path, index), "contents"),
                "no-install",
                "the instance is enabled but its template has no Install section, so nothing happens",
            )


def _parse(contents: str, path: Path, report: Report) -> frozenset[str] | None:
    try:
        return sections(contents)
    except UnitSyntax as error:
        report.error(path, "unit-syntax", f"not a unit file: {error}")
        return None


def _check_unit_paths(storage: JsonObject, units: list[JsonObject], report: Report) -> None:
    """A file, directory or link must not stand where a unit of the same config will be written."""
    taken: set[str] = set()
    for unit in units:
        if unit.get("contents"):
            taken.add(UNIT_DIRECTORY + unit.get("name", ""))
        for dropin in unit.get("dropins", ()):
            if dropin.get("contents"):
                taken.add(f"{UNIT_DIRECTORY}{unit.get('name', '')}.d/{dropin.get('name', '')}")
    for name in ("directories", "files", "links"):
        nodes: list[Any] = storage.get(name, [])
        for index, node in enumerate(nodes):
            # Two writers of one path: which one wins depends on the order in which Ignition writes, so what was reviewed might
            # not be what runs.
            if node.get("path") in taken:
                report.error(
                    ((((None, "storage"), name), index), "path"),
                    "path-of-unit",
                    "a unit of this config is written there",
                )


def suffix(name: str) -> str:
    """The last dot of the last path element and what follows it."""
    _, dot, tail = name.rpartition("/")[2].rpartition(".")
    return dot + tail
