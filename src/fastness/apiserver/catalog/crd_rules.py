"""Whether a CustomResourceDefinition may be served: the rules that its own schema cannot express.

* The name is `<plural>.<group>`; names are DNS labels; kind and list kind differ; versions are distinct and exactly one of
  them is the storage version.
* Every version has a structural schema; printer columns are JSONPath that compiles; scale paths lie under spec and status.
* A user may not take what is built in: neither a kind of ours nor any kind in a group of Kubernetes itself.
* Objects are stored as they are, so the only conversion is `None`; a webhook is refused with that reason.
* What identifies stored objects (scope, and names once they are established) does not change afterwards, and a version that
  has stored objects does not disappear.

`check_crd` returns causes in the notation of a Kubernetes `Status`; `require_valid` raises them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from fastness.apiserver.schema import structural_problems
from fastness.formats.errors import FormatError
from fastness.formats.jsonpath import compile_path
from fastness.kube.errors import Cause, Invalid

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SIMPLE_PATH: Final = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+")
COLUMN_TYPES: Final = ("integer", "number", "string", "boolean", "date")
COLUMN_FORMATS: Final = ("int32", "int64", "float", "double", "byte", "date", "date-time", "password")
APPROVAL: Final = "api-approved.kubernetes.io"
MAX_EXCERPT: Final = 200


class Neighbours(Protocol):
    """What the judge asks of the catalog."""

    def is_builtin(self, group: str, plural: str) -> bool:
        """Whether that kind is ours or Kubernetes' own."""

    def is_native_group(self, group: str) -> bool:
        """Whether the group belongs to Kubernetes itself."""


def require_valid(manifest: Mapping[str, Any], neighbours: Neighbours) -> None:
    """Raises Invalid with every cause."""
    causes = check_crd(manifest, neighbours)
    if causes:
        raise invalid(manifest, causes)


def invalid(manifest: Mapping[str, Any], causes: Sequence[Cause]) -> Invalid:
    """The refusal of a definition, worded as an API server does."""
    name = str(_mapping(manifest.get("metadata")).get("name") or "")
    listed = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
    text = f"[{listed}]" if len(causes) > 1 else listed
    return Invalid(
        f'CustomResourceDefinition.apiextensions.k8s.io "{name}" is invalid: {text}',
        group="apiextensions.k8s.io", kind="CustomResourceDefinition", name=name, causes=causes,
    )  # fmt: skip


def check_crd(manifest: Mapping[str, Any], neighbours: Neighbours) -> list[Cause]:
    """Everything that is wrong with a definition; empty when it may be served."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return [_required("spec")]
    return [
        *_check_group(spec, neighbours),
        *_check_names(manifest, spec, neighbours),
        *_check_approval(manifest, spec),
        *_check_versions(spec),
        *_check_conversion(spec),
    ]


def check_crd_update(old: Mapping[str, Any], new: Mapping[str, Any], neighbours: Neighbours) -> list[Cause]:
    """Everything that is wrong with a change of a definition, including what is wrong with the result."""
    before, after = old["spec"], new["spec"]
    # Objects are stored under group and plural: a change would leave them where nobody looks.
    if before.get("group") != after.get("group"):
        return [_invalid("spec.group", after.get("group"), "field is immutable")]
    causes = check_crd(new, neighbours)
    if causes:
        return causes
    causes += [
        _invalid(f"spec.{field}", after.get(field), "field is immutable")
        for field in ("scope",)
        if before.get(field) != after.get(field)
    ]
    causes += [
        _invalid(f"spec.names.{field}", after["names"].get(field), "field is immutable")
        for field in ("plural", "kind")
        if before["names"].get(field) != after["names"].get(field)
    ]
    names = [version["name"] for version in after["versions"]]
    # A version that may have stored objects must stay, or nobody could say any more how to read them.
    stored = (new.get("status") or old.get("status") or {}).get("storedVersions") or []
    return causes + [
        _invalid(f"status.storedVersions[{index}]", version, "missing from spec.versions; it has stored objects")
        for index, version in enumerate(stored)
        if version not in names
    ]


def _check_group(spec: Mapping[str, Any], neighbours: Neighbours) -> Iterator[Cause]:
    group = spec.get("group")
    if not group:
        yield _required("spec.group")
    elif not isinstance(group, str) or len(group) > 253 or not _SUBDOMAIN.fullmatch(group):
        yield _invalid("spec.group", group, "must be a lowercase RFC 1123 subdomain")
    elif "." not in group:
        yield _invalid("spec.group", group, "should be a domain with at least one dot")
    elif neighbours.is_native_group(group):
        yield _invalid("spec.group", group, "the group belongs to Kubernetes itself")
    scope = spec.get("scope")
    if not scope:
        yield _required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield _unsupported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield _invalid("spec.preserveUnknownFields", True, text)


def _check_approval(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Cause]:
    """Groups under the domains of Kubernetes need its approval, stated in an annotation."""
    group = spec.get("group")
    # kubernetes/enhancements#1111: these domains are for APIs that the Kubernetes project has reviewed.
    if not isinstance(group, str) or not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    if not _mapping(_mapping(manifest.get("metadata")).get("annotations")).get(APPROVAL):
        yield _required(f"metadata.annotations[{APPROVAL}]")


def _check_names(manifest: Mapping[str, Any], spec: Mapping[str, Any], neighbours: Neighbours) -> Iterator[Cause]:
    names = spec.get("names")
    if not isinstance(names, dict):
        yield _required("spec.names")
        return
    for field in ("plural", "singular", "kind", "listKind"):
        value = names.get(field)
        if not value:
            yield _required(f"spec.names.{field}")
        elif not isinstance(value, str) or not _LABEL.fullmatch(value.lower() if "ind" in field else value):
            yield _invalid(f"spec.names.{field}", value, "must be a DNS-1035 label")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield _invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    for field in ("shortNames", "categories"):
        for index, value in enumerate(_list(names.get(field))):
            if not isinstance(value, str) or not _LABEL.fullmatch(value):
                yield _invalid(f"spec.names.{field}[{index}]", value, "must be a DNS-1035 label")
    plural, group = names.get("plural"), spec.get("group")
    name = _mapping(manifest.get("metadata")).get("name")
    if not isinstance(name, str) or not _SUBDOMAIN.fullmatch(name):
        yield _invalid("metadata.name", name, "must be a lowercase RFC 1123 subdomain")
    elif name != f"{plural}.{group}":
        yield _invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if isinstance(plural, str) and isinstance(group, str) and neighbours.is_builtin(group, plural):
        yield Cause(
            "metadata.name", "FieldValueForbidden", "Forbidden: this kind is built in and cannot be defined again"
        )


def _check_versions(spec: Mapping[str, Any]) -> Iterator[Cause]:
    versions = spec.get("versions")
    if not isinstance(versions, list) or not all(isinstance(version, dict) for version in versions):
        yield _required("spec.versions")
        return
    for index, version in enumerate(versions):
        yield from _check_version(version, f"spec.versions[{index}]")
    counted = Counter(str(version.get("name")) for version in versions)
    if any(count > 1 for count in counted.values()):
        yield _invalid("spec.versions", list(counted), "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        yield _invalid("spec.versions", list(counted), "must have exactly one version marked as storage version")


def _check_version(version: Mapping[str, Any], at: str) -> Iterator[Cause]:
    name = version.get("name")
    if not isinstance(name, str) or not _LABEL.fullmatch(name):
        yield _invalid(f"{at}.name", name, "must be a DNS-1035 label")
    schema = _mapping(version.get("schema")).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        yield _required(f"{at}.schema.openAPIV3Schema", "schemas are required")
    else:
        for problem in structural_problems(schema):
            field = f"{at}.schema.openAPIV3Schema" + (f".{problem.field}" if problem.field else "")
            yield Cause(field, problem.reason, problem.message)
    for index, column in enumerate(_list(version.get("additionalPrinterColumns"))):
        yield from _check_column(_mapping(column), f"{at}.additionalPrinterColumns[{index}]")
    yield from _check_subresources(_mapping(version.get("subresources")), f"{at}.subresources")


def _check_column(column: Mapping[str, Any], at: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield _required(f"{at}.name")
    if column.get("type") not in COLUMN_TYPES:
        yield _invalid(f"{at}.type", column.get("type"), f"must be one of {','.join(COLUMN_TYPES)}")
    if column.get("format") and column["format"] not in COLUMN_FORMATS:
        yield _invalid(f"{at}.format", column["format"], f"must be one of {','.join(COLUMN_FORMATS)}")
    path = column.get("jsonPath")
    if not path:
        yield _required(f"{at}.jsonPath")
        return
    if not str(path).startswith("."):
        yield _invalid(f"{at}.jsonPath", path, "must be a simple json path starting with .")
        return
    try:
        compile_path(str(path))
    except FormatError as error:
        yield _invalid(f"{at}.jsonPath", path, error.message)


def _check_subresources(subresources: Mapping[str, Any], at: str) -> Iterator[Cause]:
    scale = subresources.get("scale")
    if scale is None:
        return
    rules = (("specReplicasPath", True, (".spec.",)), ("statusReplicasPath", True, (".status.",)),
             ("labelSelectorPath", False, (".spec.", ".status.")))  # fmt: skip
    for field, needed, roots in rules:
        path = _mapping(scale).get(field)
        if not path:
            if needed:
                yield _required(f"{at}.scale.{field}")
        elif not isinstance(path, str) or not _SIMPLE_PATH.fullmatch(path) or not path.startswith(roots):
            where = " or ".join(root.rstrip(".") for root in roots)
            yield _invalid(f"{at}.scale.{field}", path, f"should be a json path under {where}")


def _check_conversion(spec: Mapping[str, Any]) -> Iterator[Cause]:
    strategy = _mapping(spec.get("conversion")).get("strategy", "None")
    if strategy == "Webhook":
        text = "objects are stored and served without conversion here: use strategy None"
        yield _unsupported("spec.conversion.strategy", strategy, ("None",), text)
    elif strategy != "None":
        yield _unsupported("spec.conversion.strategy", strategy, ("None",))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _required(field: str, detail: str = "") -> Cause:
    return Cause(field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def _invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause(field, "FieldValueInvalid", f"Invalid value: {_excerpt(value)}: {detail}")


def _unsupported(field: str, value: Any, supported: Sequence[str], detail: str = "") -> Cause:
    listed = ", ".join(f'"{name}"' for name in supported)
    text = f"Unsupported value: {_excerpt(value)}: supported values: {listed}"
    return Cause(field, "FieldValueNotSupported", text + (f"; {detail}" if detail else ""))


def _excerpt(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= MAX_EXCERPT else text[:MAX_EXCERPT] + "…"
