"""When the controllers issue a certificate to a role anew, and what a Secret of a role is read as."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.keys.authorities import Lineage
from fastness.keys.certificates import INTERNAL_ROLES, NAMES, RoleCertificates, content, names_in, read, renewed
from fastness.keys.doors import DOORS
from fastness.keys.internal import INTERNAL
from fastness.protocol.door import DoorRole, role_named
from tests.virtual import SeededEntropy

ENTROPY = SeededEntropy(11)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTS = ("doors.example", "127.0.0.1")


def lineages() -> tuple[Lineage, Lineage]:
    return Lineage(DOORS._made(ENTROPY, NOW)), Lineage(INTERNAL._made(ENTROPY, NOW))


def issued(role: DoorRole, doors: Lineage, internal: Lineage, now: datetime = NOW) -> RoleCertificates:
    return renewed(role, HOSTS, None, doors, internal, now)


@pytest.mark.parametrize("role", DoorRole)
def test_a_role_gets_certificates_that_name_it_and_nothing_that_it_does_not_need(role: DoorRole) -> None:
    doors, internal = lineages()
    held = issued(role, doors, internal)
    assert role_named(held.serving.certificate.uris) is role
    assert held.serving.certificate.is_signed_by(doors.issuing.certificate)
    assert (held.inner is not None) == (role in INTERNAL_ROLES)
    if held.inner is not None:
        assert role_named(held.inner.certificate.uris) is role
        assert held.inner.certificate.is_signed_by(internal.issuing.certificate)
    keys = {name for name in content(held) if name.endswith(".key")}
    assert keys == ({"tls.key", "internal.key"} if role in INTERNAL_ROLES else {"tls.key"})


def test_what_is_good_stays_as_it_is() -> None:
    doors, internal = lineages()
    held = issued(DoorRole.GATE, doors, internal)
    assert content(renewed(DoorRole.GATE, HOSTS, held, doors, internal, NOW + timedelta(hours=15))) == content(held)
    assert content(renewed(DoorRole.GATE, HOSTS[:1], held, doors, internal, NOW)) == content(held)
    back = read({"data": content(held)})
    assert back is not None
    assert content(renewed(DoorRole.GATE, HOSTS, back, doors, internal, NOW)) == content(held)


def test_each_reason_to_issue_anew_touches_what_it_concerns() -> None:
    doors, internal = lineages()
    held = issued(DoorRole.CONFIG_SERVER, doors, internal)

    def changed(names: tuple[str, ...] = HOSTS, now: datetime = NOW, **other: Lineage) -> set[str]:
        authorities = {"doors": doors, "internal": internal, **other}
        after = content(renewed(DoorRole.CONFIG_SERVER, names, held, now=now, **authorities))
        return {name for name, value in content(held).items() if after[name] != value}

    serving, inner = {"tls.crt", "tls.key"}, {"internal.crt", "internal.key"}
    assert changed(now=NOW + timedelta(hours=17)) == inner
    assert changed(now=NOW + 61 * DAY) == serving | inner
    assert changed(now=NOW - timedelta(minutes=45)) == serving | inner  # a clock that was ahead, and was set right
    assert changed((*HOSTS, "more.example")) == serving | inner
    assert changed(doors=lineages()[0]) == {*serving, "ca.crt"}
    assert changed(internal=lineages()[1]) == {*inner, "internal-ca.crt"}
    successor = DOORS.step(doors, NOW, ENTROPY, requested=True)
    assert changed(doors=successor) == {"ca.crt"}  # trusted already, not issuing yet


def test_certificates_of_another_role_are_replaced() -> None:
    """Whatever a door writes into its own Secret: what it holds in the end names its own role."""
    doors, internal = lineages()
    foreign = issued(DoorRole.BROKER, doors, internal)
    after = renewed(DoorRole.GATE, HOSTS, foreign, doors, internal, NOW)
    assert role_named(after.serving.certificate.uris) is DoorRole.GATE
    assert after.inner is not None
    assert role_named(after.inner.certificate.uris) is DoorRole.GATE


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: data.pop("tls.key"),
        lambda data: data.pop("ca.crt"),
        lambda data: data.update({"tls.crt": "no base64"}),
        lambda data: data.update({"internal.key": base64.b64encode(b"no key").decode()}),
        lambda data: data.clear(),
    ],
)
def test_a_secret_that_cannot_be_understood_holds_nothing(harm: Any) -> None:
    data = content(issued(DoorRole.GATE, *lineages()))
    harm(data)
    assert read({"data": data}) is None


def test_names_are_read_strictly_and_bounded() -> None:
    text = "b.example  a.example b.example 127.0.0.1 0:0::1 *.example -x x/y 999.1.1.1.1: under_score.example"
    names = names_in({"metadata": {"annotations": {NAMES: text}}})
    assert names == ("b.example", "a.example", "127.0.0.1", "::1", "under_score.example")
    many = " ".join(f"n{number}.example" for number in range(200))
    assert len(names_in({"metadata": {"annotations": {NAMES: many}}})) == 64
    assert names_in({"metadata": {}}) == ()


@pytest.mark.parametrize(
    ("uris", "role"),
    [
        (["fastness://role/gate"], DoorRole.GATE),
        (["fastness://role/gate", "fastness://role/gate"], None),
        (["fastness://role/gate", "https://example"], None),
        (["fastness://role/Gate"], None),
        (["fastness://role/gate/"], None),
        (["fastness://role/"], None),
        (["spiffe://role/gate"], None),
        ([], None),
    ],
)
def test_a_role_is_one_uri_to_the_letter(uris: list[str], role: DoorRole | None) -> None:
    assert role_named(uris) is role
