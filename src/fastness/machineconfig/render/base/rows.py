"""A table of what a machine gets: one row for each file, unit and drop-in, with when it applies and why it is there.

    Row("/etc/sysctl.d/arp.conf", "…why…", "net.ipv4.conf.all.arp_announce = 2\\n")
    Row("kubelet.service", "…why…", kubelet_unit, enabled=True)
    Row("crio.service/10-proxy.conf", "…why…", ENVIRONMENT, CRIO & PROXY)

A place is written as `blame` writes it: a path, the name of a unit, a unit and its drop-in. Content is a text or follows from the
inputs. `document` makes the Ignition document of those rows that apply, in the order of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fastness.formats import data_url
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.protocol.ignition_spec import CURRENT

Content = str | Callable[[NodeInputs], str]


@dataclass(frozen=True, slots=True)
class When:
    """On which machines a row applies; `text` is for people."""

    text: str
    holds: Callable[[NodeInputs], bool]

    def __and__(self, other: When) -> When:
        return When(f"{self.text}, {other.text}", lambda inputs: self.holds(inputs) and other.holds(inputs))


EVERYWHERE: Final = When("every node", lambda _: True)
CRIO: Final = When("CRI-O", lambda inputs: inputs.crio)
CONTAINERD: Final = When("containerd", lambda inputs: not inputs.crio)
OPENSHIFT: Final = When("OpenShift", lambda inputs: inputs.openshift)
KUBERNETES: Final = When("plain Kubernetes", lambda inputs: not inputs.openshift)
PROXY: Final = When("with a proxy", lambda inputs: bool(inputs.proxy))
WITHOUT_CLOUD: Final = When("where no cloud gives addresses", lambda inputs: inputs.finds_address)
ATTESTED: Final = When("pools that enforce attestation", lambda inputs: inputs.attested)
CONFIDENTIAL: Final = When("confidential pools", lambda inputs: inputs.confidential)
NOT_CONFIDENTIAL: Final = When("pools whose image is not measured", lambda inputs: not inputs.confidential)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that a machine gets, and why. A unit without content is one that the image brings."""

    place: str
    reason: str
    content: Content = ""
    when: When = EVERYWHERE
    mode: int = 0o644
    enabled: bool | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a file; else it is a unit or a drop-in."""
        return self.place.startswith("/")

    def text(self, inputs: NodeInputs) -> str:
        """What it says on a machine with these inputs."""
        return self.content if isinstance(self.content, str) else self.content(inputs)


def applying(rows: Iterable[Row], inputs: NodeInputs) -> Iterator[Row]:
    """The rows that hold for these inputs."""
    return (row for row in rows if row.when.holds(inputs))


def document(rows: Iterable[Row], inputs: NodeInputs) -> JsonObject:
    """The Ignition document of the rows that apply."""
    files: list[JsonObject] = []
    units: dict[str, JsonObject] = {}
    for row in applying(rows, inputs):
        if row.is_file:
            files.append(config_file(row.place, row.text(inputs), row.mode))
            continue
        name, _, dropin = row.place.partition("/")
        unit = units.setdefault(name, {"name": name})
        text = row.text(inputs)
        if dropin:
            unit.setdefault("dropins", []).append({"name": dropin, "contents": text})
        elif text:
            unit["contents"] = text
        if row.enabled is not None:
            unit["enabled"] = row.enabled
    made: JsonObject = {"ignition": {"version": CURRENT}}
    if files:
        made["storage"] = {"files": files}
    if units:
        made["systemd"] = {"units": list(units.values())}
    return made


def config_file(path: str, text: str, mode: int = 0o644) -> JsonObject:
    """A file of an Ignition document that is written whatever stands there."""
    source = data_url.encode(text.encode(), "text/plain;charset=utf-8")
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": source}}
