"""NodeOverlays: who gets which, what a fragment may say, and what the bytes are then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig import ignition
from fastness.machineconfig.overlay.merged import Laid, overlay_bytes
from fastness.machineconfig.overlay.overlay import (
    MOST_BYTES,
    MOST_OVERLAYS,
    RESERVED,
    Overlay,
    Recipient,
    examine,
    matches,
    matching,
)
from fastness.machineconfig.render.blame import Blame
from fastness.machineconfig.render.merge import Source
from fastness.machineconfig.serving import CannotServe, document

WHO = Recipient("uid-a", {"tee": "snp", "chip-generation": "Genoa", "image": "one@sha256:1,two@sha256:2"})


def file(path: str, text: str = "x", **more: Any) -> JsonObject:
    return {"path": path, "contents": {"source": dataurl.encode(text.encode())}, **more}


def fragment(*files: JsonObject, **more: Any) -> JsonObject:
    return {"ignition": {"version": "3.4.0"}, "storage": {"files": list(files)}, **more}


def overlay(name: str = "one", config: Any = None, match: Any = None, priority: int | None = None) -> JsonObject:
    spec: JsonObject = {
        "match": match if match is not None else {"machines": ["uid-a"]},
        "config": config or fragment(),
    }
    return {"metadata": {"name": name}, "spec": spec if priority is None else {**spec, "priority": priority}}


def served(*files: JsonObject, version: str = "3.5.0") -> bytes:
    spec = {"config": {"ignition": {"version": "3.5.0"}, "storage": {"files": list(files)}}}
    return document({"apiVersion": names.API_VERSION, "metadata": {"name": "rendered-worker-1"}, "spec": spec}, version)


def files_of(body: bytes) -> dict[str, bytes]:
    entries = ignition.upgrade(body)["storage"]["files"]
    return {entry["path"]: dataurl.contents(entry.get("contents", {})) for entry in entries}


@pytest.mark.parametrize(
    ("match", "who", "expected"),
    [
        ({"machines": ["uid-b", "uid-a"]}, WHO, True),
        ({"machines": ["uid-b"]}, WHO, False),
        ({"machines": [""]}, Recipient(""), False),
        ({"properties": {"tee": "snp"}}, WHO, True),
        ({"properties": {"tee": "snp", "chip-generation": "Genoa"}}, WHO, True),
        ({"properties": {"tee": "snp", "chip-generation": "Milan"}}, WHO, False),
        ({"properties": {"tee": "snp", "zone": ""}}, WHO, False),
        ({"properties": {"image": "two@sha256:2"}}, WHO, True),
        ({"properties": {"image": "two@sha256"}}, WHO, False),
        ({"properties": {"chip-generation": "Gen"}}, WHO, False),
        ({"properties": {"tee": "snp"}}, Recipient("uid-a"), False),
        ({"machines": ["uid-a"], "properties": {"tee": "tpm"}}, WHO, False),
        ({"properties": {}}, WHO, False),
        ({}, WHO, False),
        (None, WHO, False),
        ("uid-a", WHO, False),
    ],
)
def test_an_overlay_is_for_listed_machines_or_for_proved_properties(match: Any, who: Recipient, expected: bool) -> None:
    assert matches({"metadata": {"name": "x"}, "spec": {"match": match}}, who) is expected


def test_labels_and_annotations_of_nobody_are_looked_at() -> None:
    overlay_object = overlay(match={"properties": {"tee": "tdx"}})
    overlay_object["metadata"] |= {"labels": {"tee": "snp"}, "annotations": {"tee": "snp"}}
    assert not matches(overlay_object, WHO)


def test_the_order_is_by_priority_and_then_by_name() -> None:
    mixed = [overlay("b"), overlay("z", priority=1), overlay("a"), overlay("c", priority=500), overlay("y", match={})]
    assert [entry["metadata"]["name"] for entry in matching(mixed, WHO)] == ["z", "a", "b", "c"]


@pytest.mark.parametrize(
    ("config", "code", "place"),
    [
        (fragment(kernelArguments={"shouldExist": ["debug"]}), "confidential", "spec.config.kernelArguments.shouldExist"),
        (fragment(file(names.TUNING_FILE)), "confidential", "spec.config.storage.files[0]"),
        (fragment(file("/etc/a", append=[{"source": "data:,x"}])), "append", "spec.config.storage.files[0].append"),
        (
            fragment({"path": "/etc/a", "contents": {"source": "https://elsewhere/a"}}),
            "not-self-contained",
            "spec.config.storage.files[0].contents.source",
        ),
        (
            {"ignition": {"version": "3.4.0", "config": {"merge": [{"source": "data:,x"}]}}},
            "not-self-contained",
            "spec.config.ignition.config",
        ),
        (
            {"ignition": {"version": "3.4.0"}, "passwd": {"users": [{"name": "core"}, {"name": "eve"}]}},
            "unmanaged-user",
            "spec.config.passwd.users[1]",
        ),
        (
            {"ignition": {"version": "3.4.0"}, "storage": {"links": [{"path": "/etc/machine-config-daemon", "target": "/x"}]}},
            "reserved-path",
            "spec.config.storage.links[0].path",
        ),
        (fragment(file("/etc/a", mode=0o4755)), "file-mode", "spec.config.storage.files[0].mode"),
        (fragment(file("relative")), "ignition-path-relative", "spec.config.storage.files[0].path"),
        ({"ignition": {"version": "9.0.0"}}, "ignition-unknown-version", "spec.config.ignition.version"),
        (fragment(file("/etc/a", "x" * MOST_BYTES)), "too-large", "spec.config"),
        (["not an object"], "shape", "spec.config"),
    ],
)  # fmt: skip
def test_a_fragment_that_must_not_reach_a_machine_is_named_with_its_place(config: Any, code: str, place: str) -> None:
    examined = examine(overlay(config=config))
    assert examined.document is None
    assert (code, place) in [(problem.code, problem.field) for problem in examined.problems if problem.fatal]


@pytest.mark.parametrize("path", sorted(RESERVED))
@pytest.mark.parametrize("kind", ["files", "directories", "links"])
def test_what_tells_the_agent_what_it_has_is_out_of_reach(path: str, kind: str) -> None:
    entry = {"path": path, **({"target": "/x"} if kind == "links" else {})}
    examined = examine(overlay(config={"ignition": {"version": "3.4.0"}, "storage": {kind: [entry]}}))
    assert [problem.code for problem in examined.problems if problem.fatal] == ["reserved-path"]


@pytest.mark.parametrize("version", ["2.2.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"])
def test_overlays_lie_over_the_pool_in_whatever_version_it_is_served(version: str) -> None:
    body = served(file("/etc/a", "pool", mode=0o600), file("/etc/b", "pool"), version=version)
    overlays = [examine(overlay("one", fragment(file("/etc/a", "one"), file("/etc/c", "one")))),
                examine(overlay("two", fragment(file("/etc/c", "two"))))]  # fmt: skip
    merged = overlay_bytes(body, overlays)
    assert json.decode(merged)["ignition"]["version"] == version
    contents = files_of(merged)
    assert (contents["/etc/a"], contents["/etc/b"], contents["/etc/c"]) == (b"one", b"pool", b"two")
    assert Laid.read(contents[names.OVERLAY_FILE]).versions == tuple(layer.version for layer in overlays)
    entry = next(
        file_entry for file_entry in ignition.upgrade(merged)["storage"]["files"] if file_entry["path"] == "/etc/a"
    )
    assert entry["mode"] == 0o600  # what an overlay does not mention stays


def test_what_the_agent_starts_from_is_untouched_and_the_encapsulated_config_stays_last() -> None:
    body = served(file("/etc/a"))
    merged = overlay_bytes(body, [examine(overlay(config=fragment(file("/etc/z", "z"))))])
    before, after = files_of(body), files_of(merged)
    assert {path: after[path] for path in before} == before
    assert list(after)[-1] == names.ENCAPSULATED_FILE
    assert after.keys() - before.keys() == {"/etc/z", names.OVERLAY_FILE}


def test_the_record_of_overlays_is_for_root_alone() -> None:
    merged = overlay_bytes(served(), [examine(overlay())])
    record = next(
        entry for entry in ignition.upgrade(merged)["storage"]["files"] if entry["path"] == names.OVERLAY_FILE
    )
    assert record["mode"] == 0o600


def test_without_overlays_the_bytes_are_those_of_the_pool() -> None:
    body = b"anything at all"
    assert overlay_bytes(body, []) is body


def test_the_version_follows_the_fragment_and_nothing_else() -> None:
    first, same = examine(overlay(priority=1)), examine(overlay(priority=9, match={"machines": ["b"]}))
    other = examine(overlay(config=fragment(file("/etc/a"))))
    assert first.version == same.version != other.version


def test_an_overlay_that_cannot_be_merged_stops_the_delivery() -> None:
    with pytest.raises(CannotServe, match="one cannot be merged"):
        overlay_bytes(served(), [examine(overlay(config=["bad"]))])


def test_two_good_fragments_that_make_a_bad_config_stop_the_delivery() -> None:
    link = {"ignition": {"version": "3.4.0"}, "storage": {"links": [{"path": "/etc/dir", "target": "/elsewhere"}]}}
    overlays = [examine(overlay("one", fragment(file("/etc/dir/a")))), examine(overlay("two", link))]
    assert all(layer.document for layer in overlays)
    with pytest.raises(CannotServe, match="not good"):
        overlay_bytes(served(), overlays)


def test_what_the_version_of_the_machine_cannot_say_is_not_left_out_silently() -> None:
    volume = {"name": "d", "device": "/dev/sdb"}
    luks = {"ignition": {"version": "3.4.0"}, "storage": {"luks": [volume]}}
    examined = examine(overlay(config=luks))
    assert examined.document is not None
    with pytest.raises(CannotServe, match=r"3\.1\.0"):
        overlay_bytes(served(version="3.1.0"), [examined])
    assert overlay_bytes(served(version="3.4.0"), [examined])


def test_more_overlays_than_a_machine_may_have_stop_the_delivery() -> None:
    with pytest.raises(CannotServe, match=str(MOST_OVERLAYS)):
        overlay_bytes(served(), [examine(overlay(f"o{number}")) for number in range(MOST_OVERLAYS + 1)])


def test_blame_names_the_overlay_and_what_it_overrode() -> None:
    base = Source("00-worker", {}, ignition.upgrade(fragment(file("/etc/a", "pool", mode=0o600))))
    (origin,) = Blame([base, examine(overlay("rack-7", fragment(file("/etc/a", "mine")))).source]).of("/etc/a")
    assert (origin.source, origin.overridden) == ("overlay:rack-7", ("00-worker",))
    assert origin.fields["mode"] == "00-worker"


@pytest.mark.parametrize("damaged", [b"", b"[]", b"{}", b'{"overlays": [1]}', b'{"overlays": [{"version": "a"}]}',
                                     b'{"overlays": [{"version": "a", "config": {"ignition": {}}}]}'])  # fmt: skip
def test_a_damaged_record_is_said_to_be_one(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        Laid.read(damaged)


PATHS = st.sampled_from(["/etc/a", "/etc/b", "/etc/c/d"])
CONTENTS = st.dictionaries(PATHS, st.sampled_from(["1", "2", "3"]), max_size=3)


@given(pool=CONTENTS, layers=st.lists(CONTENTS, max_size=3), later=CONTENTS)
def test_a_machine_expects_exactly_what_it_was_handed(
    pool: dict[str, str], layers: list[dict[str, str]], later: dict[str, str]
) -> None:
    """Door and agent merge with one function: what lies on the disk is what the agent holds it to, also after an update."""

    def made(contents: dict[str, str]) -> JsonObject:
        return ignition.upgrade(fragment(*(file(path, text) for path, text in contents.items())))

    def content(config: JsonObject) -> dict[str, bytes]:
        return files_of(json.encode({"storage": {"files": []}, **config}))

    overlays: list[Overlay] = [examine(overlay(f"o{index}", made(layer))) for index, layer in enumerate(layers)]
    handed = files_of(overlay_bytes(served(*made(pool)["storage"]["files"]), overlays))
    laid = Laid.read(handed[names.OVERLAY_FILE]) if overlays else Laid()
    texts = {path: text for layer in (pool, *layers) for path, text in layer.items()}
    expected = laid.over({"spec": {"config": made(pool)}})["spec"]["config"]
    assert laid.digest == Laid.of(overlays).digest, "door, rollout and agent have one word for it"
    assert {path: handed[path] for path in texts} == {path: text.encode() for path, text in texts.items()}
    assert {path: content(expected)[path] for path in texts} == {path: handed[path] for path in texts}
    updated = content(laid.over({"spec": {"config": made(later)}})["spec"]["config"])
    assert updated == {p: t.encode() for layer in (later, *layers) for p, t in layer.items()}
