"""The list of what is stored and not acted on: it names what is there, and what nobody reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.app.controllers import product_loops
from fastness.kinds.kata import names as kata
from fastness.kinds.kind import Kind
from fastness.kinds.kubernetes.definitions import REFERENCE, definition
from fastness.kinds.not_acted_on import ENTRIES, EVERYWHERE, NotActedOn, conditions_of, entries_of, set_fields
from fastness.kinds.registry import find
from fastness.kube.admission import MAX_WARNING
from fastness.kube.controllers.not_acted_on import NotActedOnLoop
from fastness.kube.informers import Informers
from fastness.runtime.clock import SystemEntropy

KEEPS = "x-kubernetes-preserve-unknown-fields"


def named(entry: NotActedOn) -> str:
    return f"{entry.kind.kind}:{entry.field or '*'}"


def schema_of(kind: Kind) -> Mapping[str, Any]:
    return definition(kind.definition) if kind.native else kind.schema


def below(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The schema of a member; None where there is none, itself where anything may stand."""
    for part in (schema, *schema.get("allOf", ())):
        if "$ref" in part:
            return below(definition(part["$ref"].removeprefix(REFERENCE)), name)
    member: Mapping[str, Any] | None = schema.get("properties", {}).get(name)
    return schema if member is None and schema.get(KEEPS) else member


@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_every_field_is_one_of_its_kind(entry: NotActedOn) -> None:
    schema: Mapping[str, Any] | None = schema_of(entry.kind)
    for name in entry.field.split(".") if entry.field else ():
        schema = below(schema, name.removesuffix("[]")) if schema is not None else None
        schema = schema.get("items") if schema is not None and name.endswith("[]") else schema
    assert schema is not None, entry.field


def test_fields_are_listed_once() -> None:
    places = [(entry.kind.group, entry.kind.plural, entry.field) for entry in ENTRIES]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_every_entry_says_why_and_what_to_do_in_one_warning(entry: NotActedOn) -> None:
    assert entry.why
    assert entry.why[0].islower() or entry.why.startswith("IBM")
    assert entry.instead.endswith(".")
    assert len(entry.warning.encode()) <= MAX_WARNING


def test_no_controller_reads_a_kind_that_is_listed_as_a_whole() -> None:
    """Whoever makes a controller act on a kind deletes its entry."""
    nowhere: Any = SimpleNamespace(listen=None)
    loops = product_loops(nowhere, Informers(nowhere, clock=nowhere, entropy=nowhere), nowhere, SystemEntropy())
    read = {source.resource for loop in loops if loop.name != NotActedOnLoop.name for source in loop.sources}
    assert {entry.kind.kind for entry in ENTRIES if not entry.field and entry.kind.resource in read} == set()


def test_kinds_of_kubernetes_are_listed_for_the_embedded_api_alone() -> None:
    assert not any(entry.kind.native for entry in EVERYWHERE)


def test_empty_values_and_defaults_ask_for_nothing() -> None:
    settings = find("operator.openshift.io", "", "MachineConfiguration")
    entries = entries_of(settings.group, settings.plural)
    quiet = {"spec": {"managementState": "Managed", "logLevel": "Normal", "forceRedeploymentReason": ""}}
    assert set_fields(quiet, entries) == ()
    loud = {"spec": {"managementState": "Unmanaged", "logLevel": "Debug"}}
    assert [field.entry.field for field in set_fields(loud, entries)] == ["spec.managementState", "spec.logLevel"]


@pytest.mark.parametrize("name", [kata.INSTALLER, kata.UNINSTALLER])
def test_the_daemon_sets_that_virtual_machines_obey_are_not_called_idle(name: str) -> None:
    entries = entries_of("apps", "daemonsets")
    spec = {"template": {"spec": {"containers": [{"name": "c"}]}}}
    assert set_fields({"metadata": {"namespace": kata.NAMESPACE, "name": name}, "spec": spec}, entries) == ()
    assert set_fields({"metadata": {"namespace": "default", "name": name}, "spec": spec}, entries) != ()
    assert set_fields({"metadata": {"namespace": kata.NAMESPACE, "name": "other"}, "spec": spec}, entries) != ()


def test_labels_and_a_status_are_no_part_of_a_whole_kind() -> None:
    route = find("route.openshift.io", "", "Route")
    entries = entries_of(route.group, route.plural)
    first = {"metadata": {"name": "r"}, "spec": {"host": "a"}}
    again = {"metadata": {"name": "r", "labels": {"a": "b"}}, "spec": {"host": "a"}, "status": {"ingress": [1]}}
    assert set_fields(first, entries) == set_fields(again, entries) != ()


def test_kinds_say_whether_they_have_conditions() -> None:
    has = {(kind.kind): conditions_of(kind) for kind in {id(entry.kind): entry.kind for entry in ENTRIES}.values()}
    assert has["Deployment"]
    assert has["MachineConfiguration"]
    assert has["Route"]
    assert not has["NetworkPolicy"]
    assert not has["SecurityContextConstraints"]
    assert not has["Ingress"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["spec", "logLevel", "a"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(obj=st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), _JSON, max_size=3))
def test_reading_an_object_is_total(obj: dict[str, Any]) -> None:
    set_fields(obj, ENTRIES)


def test_what_the_installation_made_asks_for_nothing_until_somebody_changes_it() -> None:
    [entry] = [entry for entry in ENTRIES if entry.built_in]

    def constraints(name: str, **meta: Any) -> Mapping[str, Any]:
        return {"metadata": {"name": name, **meta}, "runAsUser": {"type": "RunAsAny"}}

    assert set_fields(constraints("privileged", generation=1), [entry]) == ()
    assert set_fields(constraints("privileged", generation=2), [entry])
    assert set_fields(constraints("privileged"), [entry]), "one that is being written"
    assert set_fields(constraints("mine", generation=1), [entry])
