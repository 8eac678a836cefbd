"""Which objects a list, a watch or a deletecollection is about.

A `Selection` is namespace, label selector and field selector, parsed once per request. Rules:

* Custom kinds can be selected by `metadata.name` and `metadata.namespace`; native kinds also by the fields that Kubernetes
  offers for them (`SELECTABLE`). Any other field is a 400 that names it, never an empty answer.
* `matches` looks at encoded bodies. Only metadata is decoded when only labels are asked for: a microsecond per object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fastness.apiserver import storable
from fastness.formats.errors import SelectorError
from fastness.formats.selectors import (
    EVERYTHING,
    FieldSelector,
    LabelSelector,
    Operator,
    parse_field_selector,
    parse_label_selector,
)
from fastness.kinds.kind import Kind
from fastness.kube.errors import BadRequest

_EVENT = tuple(
    f"involvedObject.{field}"
    for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
_REGARDING = tuple(field.replace("involvedObject", "regarding") for field in _EVENT)
SELECTABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("", "events"): (*_EVENT, "reason", "reportingComponent", "source", "type"),
    ("events.k8s.io", "events"): (*_REGARDING, "reason", "reportingController", "type"),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
}  # fmt: skip
_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Meta


_decode_head = msgspec.json.Decoder(_Head).decode


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a request is about.

    `text` is in every encoded object that the labels select: looking for it costs a hundredth of reading the labels.
    """

    namespace: str = ""
    labels: LabelSelector = EVERYTHING
    fields: FieldSelector | None = None
    text: bytes = b""

    @property
    def everything(self) -> bool:
        """Whether no selector narrows the namespace."""
        return self.labels.everything and self.fields is None

    @property
    def name(self) -> str | None:
        """The one name that is asked for, if there is one."""
        return self.fields.exact("metadata.name") if self.fields else None

    def matches(self, body: bytes) -> bool:
        """Whether the encoded object is selected."""
        # Only a hint: the text may stand anywhere in the object, so the labels are still compared below.
        if self.text not in body:
            return False
        if not self.labels.everything and not self.labels.matches(_decode_head(body).metadata.labels or {}):
            return False
        return self.fields is None or self.fields.matches(field_values(storable.read(body), self.fields.fields))


def parse(kind: Kind, namespace: str, labels: str, fields: str) -> Selection:
    """The selection that query parameters ask for; raises BadRequest."""
    try:
        label_selector = parse_label_selector(labels) if labels else EVERYTHING
        field_selector = parse_field_selector(fields) if fields else None
    except SelectorError as error:
        raise BadRequest(f"unable to parse the selector: {error}") from error
    if field_selector is not None:
        if not field_selector.fields:
            field_selector = None
        else:
            declared = (path.removeprefix(".") for path in kind.selectable_fields)
            selectable = _ALWAYS.union(SELECTABLE.get((kind.group, kind.plural), ()), declared)
            for field in field_selector.fields:
                # An empty answer would read as "there are none", and a controller would act on it.
                if field not in selectable:
                    raise BadRequest(
                        f'field label not supported: "{field}"; this kind has {", ".join(sorted(selectable))}'
                    )
    return Selection(namespace, label_selector, field_selector, _sure(label_selector))


def _sure(labels: LabelSelector) -> bytes:
    """The longest value that a label must have, as it stands in an encoded object; label values are never escaped."""
    exact = [requirement.values[0] for requirement in labels.requirements if requirement.operator is Operator.EQUALS]
    return f'"{max(exact, key=len)}"'.encode("ascii") if exact else b""


def field_values(obj: Mapping[str, Any], fields: tuple[str, ...]) -> Mapping[str, str]:
    """The selectable fields of an object as the strings that selectors compare with."""
    return {field: _text(obj, field) for field in fields}


def _text(obj: Mapping[str, Any], field: str) -> str:
    # Events are stored as core/v1 writes them, also for those who ask by the names of events.k8s.io.
    field = field.replace("regarding.", "involvedObject.").replace("reportingController", "reportingComponent")
    value: Any = obj
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if field == "source" and isinstance(value, dict):
        value = value.get("component")
    if value is None:
        # What a typed server compares with where a field is left out: the zero value of its Go type.
        return "false" if field in ("spec.unschedulable", "spec.hostNetwork") else "0" if field.endswith("icas") else ""
    return str(value).lower() if isinstance(value, bool) else str(value)
