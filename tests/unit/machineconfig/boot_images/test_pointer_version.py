"""Of which version a pointer is: what all boot images of its machine sets read, unless the pool says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.boot_images.pointer_version import pointer_version, read_by_all
from fastness.machineconfig.render.errors import BadPointer
from tests.unit.machineconfig.boot_images.sets import (
    OLD_RELEASE,
    RELEASE,
    ami,
    aws,
    azure,
    gcp,
    maker,
    metal,
    stream,
    virtual,
)
from tests.unit.machineconfig.build import pool

MINE = "worker-user-data-managed"


def annotated(version: str) -> dict[str, Any]:
    chosen = pool()
    chosen["metadata"]["annotations"] = {names.POINTER_VERSION: version}
    return chosen


def said(obj: dict[str, Any], version: str) -> dict[str, Any]:
    obj["metadata"]["annotations"][names.POINTER_VERSION] = version
    return obj


@pytest.mark.parametrize(
    ("values", "version"),
    [
        ([], "3.2.0"),
        ([gcp(RELEASE, user_data=MINE)], "3.5.0"),
        ([gcp(RELEASE, user_data=MINE), gcp(OLD_RELEASE, user_data=MINE)], "3.4.0"),
        ([gcp("46.82.202011260640-0", user_data=MINE), gcp(RELEASE, user_data=MINE)], "3.1.0"),
        ([gcp("46.82.202011260640-0", user_data="other")], "3.2.0"),
        ([aws(ami(RELEASE), MINE)], "3.5.0"),
        ([metal(f"https://m/rhcos-{OLD_RELEASE}-openstack.x86_64.qcow2.gz", MINE)], "3.4.0"),
        ([azure({"publisher": "p", "offer": "o", "sku": "s", "version": "413.92.2023101700"}, MINE)], "3.2.0"),
        ([virtual("", MINE)], "3.2.0"),
    ],
    ids=["no set", "new", "new and old", "oldest", "another Secret", "AMI", "metal", "Azure", "no image named"],
)
def test_it_is_the_newest_that_all_of_them_read(values: list[dict[str, Any]], version: str) -> None:
    makers = [maker(value, f"set-{number}") for number, value in enumerate(values)]
    chosen = pointer_version(pool(), makers, stream())
    assert (chosen.version, chosen.problem, chosen.unknown) == (version, "", ())


def test_an_image_that_nobody_knows_counts_as_the_default_and_is_named() -> None:
    makers = [maker(aws("ami-mine", MINE), "mystery"), maker(gcp(RELEASE, user_data=MINE), "new")]
    chosen = pointer_version(pool(), makers, stream())
    assert (chosen.version, chosen.reason, chosen.problem) == ("3.2.0", "BootImageUnknown", "")
    assert "mystery (ami-mine)" in chosen.note
    assert chosen.unknown == ("mystery",)


def test_a_person_may_say_what_an_unknown_image_reads() -> None:
    chosen = pointer_version(pool(), [said(maker(aws("ami-mine", MINE)), "3.4")], stream())
    assert (chosen.version, chosen.reason) == ("3.4.0", "AsExpected")
    assert "workers-a (ami-mine)" in chosen.note


def test_a_note_about_an_image_counts_while_the_set_has_that_image() -> None:
    notes = {names.BOOT_IMAGE: f"{RELEASE} ami-mine"}
    assert pointer_version(pool(), [maker(aws("ami-mine", MINE), annotations=notes)], None).version == "3.5.0"
    other = pointer_version(pool(), [maker(aws("ami-other", MINE), annotations=notes)], None)
    assert (other.version, other.reason) == ("3.2.0", "BootImageUnknown")


def test_a_set_whose_image_reads_no_pointer_is_the_problem_and_the_others_are_served() -> None:
    makers = [maker(gcp("45.82.202008101249-0", user_data=MINE), "old"), maker(gcp(RELEASE, user_data=MINE), "new")]
    chosen = pointer_version(pool(), makers, stream())
    assert (chosen.version, chosen.reason) == ("3.5.0", "BootImageTooOld")
    assert "old (45.82.202008101249-0) reads Ignition 2.2.0 and no later one" in chosen.problem
    assert "new" not in chosen.problem.partition("reads")[0]


@pytest.mark.parametrize(("requested", "version"), [("3.1", "3.1.0"), ("3.5.0", "3.5.0")])
def test_the_pool_may_choose_the_version(requested: str, version: str) -> None:
    chosen = pointer_version(annotated(requested), [maker(gcp(RELEASE, user_data=MINE))], stream())
    assert (chosen.version, chosen.problem) == (version, "")


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        ("2.2.0", "it shows its ticket in a header, which Ignition has since 3.1.0"),
        ("3.0", "it shows its ticket in a header, which Ignition has since 3.1.0"),
        ("9", "there is no Ignition spec '9' that this control plane can write"),
        ("3.9.0", "there is no Ignition spec '3.9.0' that this control plane can write"),
        ("x" * 500, "there is no Ignition spec 'xxxxxxxx"),
    ],
)
def test_a_version_that_cannot_be_is_refused_for_its_own_reason_and_changes_nothing(
    requested: str, reason: str
) -> None:
    chosen = pointer_version(annotated(requested), [maker(gcp(OLD_RELEASE, user_data=MINE))], stream())
    assert (chosen.version, chosen.reason) == ("3.4.0", "BadPointerVersion")
    assert reason in chosen.problem
    assert "use one of 3.1.0, 3.2.0" in chosen.problem
    assert chosen.problem.endswith("Version 3.4.0 is used")


def test_a_choice_that_a_boot_image_cannot_read_is_told() -> None:
    chosen = pointer_version(annotated("3.5"), [maker(gcp(OLD_RELEASE, user_data=MINE))], stream())
    assert (chosen.version, chosen.reason) == ("3.5.0", "BootImageTooOld")
    assert f"workers-a ({OLD_RELEASE}) reads Ignition 3.4.0 and no later one" in chosen.problem


def test_a_set_that_names_no_version_is_told_and_the_default_is_used() -> None:
    chosen = pointer_version(pool(), [said(maker(gcp(user_data=MINE)), "4.0")], stream())
    assert (chosen.version, chosen.reason) == ("3.2.0", "BadPointerVersion")
    assert "says that its boot image reads Ignition 4.0" in chosen.problem


def test_a_stub_is_read_by_all_when_the_image_of_every_set_is_known() -> None:
    known = maker(gcp(OLD_RELEASE))
    assert read_by_all("worker-user-data", [known, maker(gcp(RELEASE))], None) == "3.4.0"
    assert read_by_all("worker-user-data", [known, maker(aws("ami-x"))], None) == ""
    assert read_by_all("worker-user-data", [], None) == ""
    with pytest.raises(BadPointer, match=r"Ignition 4\.0"):
        read_by_all("worker-user-data", [said(known, "4.0")], None)
