"""From an approval to a set of values: labels of real images, manifests, and everything that is wrong with them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.values.from_images import (
    MAX_VALUES,
    BadValues,
    checked_value,
    end_of,
    joined,
    set_name,
    set_of_image,
    states_of_manifest,
)
from fastness.crypto.silicon.registers import extend, hashed
from fastness.formats import json
from fastness.kinds.kind import JsonObject

IMAGE = "registry.example/os@sha256:" + "ab" * 32
SHIM, GRUB = hashed("sha256", b"shim").hex(), hashed("sha256", b"grub").hex()


def replayed(*digests: str) -> str:
    value = bytes(32)
    for digest in digests:
        value = extend("sha256", value, bytes.fromhex(digest))
    return value.hex()


def label(**change: Any) -> JsonObject:
    """A label as images carry it."""
    events = [
        {"name": "EV_EFI_BOOT_SERVICES_APPLICATION", "pcr": 4, "hash": SHIM, "id": "Pcr4Shim"},
        {"name": "EV_EFI_BOOT_SERVICES_APPLICATION", "pcr": 4, "hash": GRUB, "id": "Pcr4Grub"},
    ]
    return {"pcrs": [{"id": 4, "value": replayed(SHIM, GRUB), "events": events, **change}]}


def approval(manifest: object, key: str = "fastness.dev/measurements", **notes: str) -> JsonObject:
    annotations = {key: json.encode(manifest).decode(), **notes}
    meta = {"name": "os", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations}
    return {"metadata": meta, "spec": {"image": IMAGE}}


@pytest.mark.parametrize("key", ["fastness.dev/measurements", "org.coreos.pcrs"])
def test_the_registers_of_a_label_become_values_and_its_events_explanations(key: str) -> None:
    made = set_of_image(IMAGE, [approval(label(), key)])
    assert made["metadata"]["name"] == set_name(IMAGE) == "image-" + "ab" * 32
    values = {(value["name"], value["value"]): value for value in made["spec"]["values"]}
    assert set(values) == {
        ("tpm_pcr4", replayed(SHIM, GRUB)),
        ("event_pcr4", SHIM),
        ("event_pcr4", GRUB),
    }
    assert values["event_pcr4", GRUB]["note"] == "Pcr4Grub"
    assert made["spec"]["validity"] == {"notAfter": "2027-01-01T00:00:00Z"}, "it counts at once"


def test_a_manifest_whose_events_do_not_end_in_its_value_is_refused() -> None:
    with pytest.raises(BadValues) as refused:
        joined(states_of_manifest(label(value="00" * 32)))
    assert refused.value.code == "does-not-add-up"


def test_a_manifest_may_list_what_a_tpm_does_not_measure() -> None:
    launch = {"name": "snp_launch_measurement", "algorithm": "sha384", "value": "ab" * 48}
    assert joined(states_of_manifest({"values": [launch]})) == [
        {"state": "Current", "type": "Text", "single": False, **launch}
    ]
    both = joined(states_of_manifest({**label(), "values": [launch]}))
    assert {value["name"] for value in both} == {"tpm_pcr4", "event_pcr4", "snp_launch_measurement"}


@pytest.mark.parametrize(
    "manifest",
    [
        None, [], "x", {}, {"pcrs": []}, {"pcrs": [{"id": 99, "value": "00" * 32}]}, {"values": {}}, {"values": [1]},
        {"values": [{"name": "a"}]}, {"pcrs": [{"id": 4, "value": "zz"}]}, {"pcrs": "4"},
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(manifest: object) -> None:
    with pytest.raises(BadValues):
        joined(states_of_manifest(manifest))


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""}, {"name": "a b"}, {"name": "x" * 129}, {"value": ""}, {"value": "x" * 257}, {"algorithm": "md5"},
        {"algorithm": "sha256"}, {"algorithm": "sha256", "value": "AB" * 32}, {"type": "Number"}, {"type": "Boolean"},
        {"type": "Date"}, {"state": "Old"}, {"single": "yes"}, {"note": 5}, {"note": "x" * 257}, {"register": 4},
        {"colour": "red"},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_that_a_cluster_would_refuse_is_refused_here(change: JsonObject) -> None:
    assert checked_value({"name": "a", "value": "b"})
    with pytest.raises(BadValues):
        checked_value({"name": "a", "value": "b", **change})


def test_numbers_and_flags_are_checked_by_their_type() -> None:
    assert checked_value({"name": "a", "value": "-12", "type": "Number"})["type"] == "Number"
    assert checked_value({"name": "a", "value": "true", "type": "Boolean", "single": True})["single"] is True


@pytest.mark.parametrize("image", ["os", "os:latest", "os@sha256:ab", "os@sha512:" + "ab" * 32, ""])
def test_an_image_without_a_digest_has_no_set(image: str) -> None:
    with pytest.raises(BadValues) as refused:
        set_name(image)
    assert refused.value.code == "no-digest"


def test_an_approval_without_measurements_makes_no_set() -> None:
    bare: JsonObject = {
        "metadata": {"name": "os", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"image": IMAGE},
    }
    with pytest.raises(BadValues) as refused:
        set_of_image(IMAGE, [bare])
    assert (refused.value.code, "fastness image approve" in refused.value.hint) == ("no-measurements", True)


def test_an_image_with_more_values_than_a_set_may_have_makes_no_set() -> None:
    def listed(count: int) -> JsonObject:
        return approval({"values": [{"name": "a", "value": str(number)} for number in range(count)]})

    assert len(set_of_image(IMAGE, [listed(MAX_VALUES)])["spec"]["values"]) == MAX_VALUES
    with pytest.raises(BadValues) as refused:
        set_of_image(IMAGE, [listed(MAX_VALUES + 1)])
    assert refused.value.code == "too-many-values"


def test_an_annotation_that_is_no_json_is_refused() -> None:
    broken = approval({})
    broken["metadata"]["annotations"] = {"org.coreos.pcrs": "{"}
    with pytest.raises(BadValues) as refused:
        set_of_image(IMAGE, [broken])
    assert refused.value.code == "unreadable"


def test_all_approvals_of_an_image_make_one_set_that_lasts_as_long_as_the_last() -> None:
    first = approval({"values": [{"name": "a", "value": "1"}]}, **{"fastness.dev/valid-until": "2026-02-01T00:00:00Z"})
    two = approval({"values": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]})
    spec = set_of_image(IMAGE, [first, two])["spec"]
    assert [value["value"] for value in spec["values"]] == ["1", "2"]
    assert spec["validity"]["notAfter"] == "2027-01-01T00:00:00Z"
    assert set_of_image(IMAGE, [first])["spec"]["validity"]["notAfter"] == "2026-02-01T00:00:00Z"


@pytest.mark.parametrize("text", ["soon", "2026-02-01T00:00:00", "2025-02-01T00:00:00Z", ""])
def test_an_end_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(BadValues) as refused:
        end_of(approval({}, **{"fastness.dev/valid-until": text}))
    assert refused.value.code == "bad-date"


_WORDS = [
    "pcrs",
    "values",
    "id",
    "value",
    "events",
    "hash",
    "name",
    "algorithm",
    "type",
    "single",
    "state",
    "note",
    "register",
]
_LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 30) | st.sampled_from(["", "a", "00" * 32, "sha256", "Number", "1"])
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=6),
    max_leaves=20,
)


@given(_JSON | _JSON.map(lambda inner: {"values": [{"name": "a", "value": "b", "algorithm": inner}]}))
def test_any_json_is_a_manifest_or_bad_values(value: object) -> None:
    with suppress(BadValues):
        assert all(checked_value(entry) == entry for entry in joined(states_of_manifest(value)))


def zero(pcr: int, value: str = "0" * 64) -> JsonObject:
    return {"id": pcr, "value": value, "events": []}


def test_named_states_of_an_image_are_variants_of_its_values() -> None:
    ready = {"name": "tpm_pcr11", "value": "cd" * 32, "algorithm": "sha256"}
    manifest = {**label(), "variants": {"ready": {"values": [ready]}}}
    manifest["pcrs"].append(zero(11))
    variants = {
        (entry["name"], entry["value"]): entry.get("variants") for entry in joined(states_of_manifest(manifest))
    }
    assert variants["tpm_pcr4", replayed(SHIM, GRUB)] is None
    assert variants["tpm_pcr11", "0" * 64] == ["booted"]
    assert variants["tpm_pcr11", "cd" * 32] == ["ready"]
    assert variants["event_pcr4", SHIM] is None


@pytest.mark.parametrize(
    "variants", [[], {"-bad": label()}, {"booted": label()}, {"good": []}, {"good": {"pcrs": [{}]}}, {"x" * 64: label()},
                 {f"v{number}": label() for number in range(16)}],
)  # fmt: skip
def test_variants_that_are_none_are_refused(variants: Any) -> None:
    with pytest.raises(BadValues):
        joined(states_of_manifest({**label(), "variants": variants}))


def test_two_approvals_of_an_image_that_say_different_things_do_not_mix() -> None:
    first, two = approval({"pcrs": [zero(7), zero(12)]}), approval({"values": [
        {"name": "tpm_pcr7", "value": "cd" * 32}, {"name": "tpm_pcr12", "value": "ef" * 32}]})  # fmt: skip
    two["metadata"]["name"] = "other"
    made = {
        (value["name"], value["value"]): value.get("variants")
        for value in set_of_image(IMAGE, [first, two])["spec"]["values"]
    }
    assert made["tpm_pcr7", "0" * 64] == made["tpm_pcr12", "0" * 64] == ["1 os"]
    assert made["tpm_pcr7", "cd" * 32] == made["tpm_pcr12", "ef" * 32] == ["2 other"]
    same = set_of_image(IMAGE, [first, {**first, "metadata": {**first["metadata"], "name": "again"}}])
    assert all("variants" not in value for value in same["spec"]["values"])
    with pytest.raises(BadValues):
        set_of_image(IMAGE, [approval({"pcrs": [zero(number)]}) for number in range(17)])


def test_an_approval_may_be_for_some_pools() -> None:
    infra, worker = (approval(label(), **{"fastness.dev/pools": pools}) for pools in ("infra, gpu", "worker"))
    assert set_of_image(IMAGE, [infra, worker])["spec"]["pools"] == ["gpu", "infra", "worker"]
    assert "pools" not in set_of_image(IMAGE, [infra, approval(label())])["spec"]
