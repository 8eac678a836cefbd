"""Where objects count: at home, where administrators said so, and everywhere for what speaks for its own namespace."""

from __future__ import annotations

import pytest

from fastness.kinds import registry
from fastness.kinds.confidentialcontainers.broker import KBS_CONFIG
from fastness.kinds.kind import Resource
from fastness.kinds.nfd.feature import NODE_FEATURE
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.informers import InformerError
from fastness.kube.informers.placed import elsewhere, require_place, scopes_of
from fastness.kube.places import AT_HOME, EMBEDDED, HOME, OPERATORS, Belongs, Places, belongs, counted_kinds
from fastness.kube.port import EVERYWHERE, Scope

PODS = Resource("", "v1", "pods", "Pod", True)
SECRETS = Resource("", "v1", "secrets", "Secret", True)
MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)
COUNTED = counted_kinds(kind.resource for kind in registry.custom_kinds())


def test_names_of_operators_count_by_name_in_the_embedded_api_alone() -> None:
    for resource in COUNTED:
        assert not set(AT_HOME.of(resource)) & set(OPERATORS), resource
    assert EMBEDDED.of(APPROVED_IMAGE.resource) == (HOME, "trusted-execution-clusters")
    assert EMBEDDED.of(KBS_CONFIG.resource) == (HOME, "trustee-operator-system")
    assert EMBEDDED.of(NODE_FEATURE.resource) == (HOME, "openshift-nfd")


def test_machines_are_at_home_whatever_is_adopted() -> None:
    assert Places(True, frozenset({"team", *OPERATORS})).of(MACHINE.resource) == (HOME,)


def test_an_adopted_name_of_an_operator_counts_for_its_own_kinds() -> None:
    adopted = Places(adopted=frozenset({"trustee-operator-system"}))
    assert adopted.of(KBS_CONFIG.resource) == (HOME, "trustee-operator-system")
    assert adopted.of(APPROVED_IMAGE.resource) == (HOME,)


def test_another_adopted_name_counts_for_all_that_administrators_write() -> None:
    adopted = Places(adopted=frozenset({"platform"}))
    assert adopted.of(KBS_CONFIG.resource) == adopted.of(APPROVED_IMAGE.resource) == (HOME, "platform")
    assert adopted.counts(KBS_CONFIG.resource, "platform")
    assert not adopted.counts(KBS_CONFIG.resource, "team")
    assert adopted.counts(PODS, "team")


def test_a_look_into_every_namespace_is_for_kinds_that_speak_for_their_own() -> None:
    require_place(PODS, EVERYWHERE)
    require_place(MAPS, Scope(fields="metadata.name=kube-root-ca.crt"))
    for resource in (*COUNTED, SECRETS, MAPS):
        for scope in (EVERYWHERE, Scope(labels="a=b"), Scope(fields="metadata.name=x")):
            with pytest.raises(InformerError, match="every namespace"):
                require_place(resource, scope)


def test_scopes_are_those_that_count_and_no_other_can_be_named() -> None:
    assert scopes_of(AT_HOME, MACHINE.resource, Scope(labels="a=b")) == (Scope(HOME, "a=b"),)
    assert scopes_of(EMBEDDED, KBS_CONFIG.resource) == (Scope(HOME), Scope("trustee-operator-system"))
    assert scopes_of(AT_HOME, PODS) == (EVERYWHERE,)
    with pytest.raises(InformerError, match="do not count in namespace team"):
        scopes_of(AT_HOME, MACHINE.resource, Scope("team"))


def test_elsewhere_is_what_is_left() -> None:
    away = elsewhere(EMBEDDED, KBS_CONFIG.resource)
    assert away == Scope(fields="metadata.namespace!=fastness-system,metadata.namespace!=trustee-operator-system")
    require_place(KBS_CONFIG.resource, away)
    assert scopes_of(EMBEDDED, KBS_CONFIG.resource, away) == (away,)


def test_no_kind_of_ours_is_read_everywhere_by_accident() -> None:
    """A namespaced kind that nobody put into the table has to be looked for in a named place."""
    assert belongs(Resource("example.com", "v1", "things", "Thing", True)) is Belongs.NAMED
