"""The component that gate and broker share: who gets which bytes, and how often they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.http.refusals import Refusal
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.overlay.merged import overlay_bytes, overlay_in
from fastness.machineconfig.overlay.overlay import Overlay, Recipient, examine
from fastness.machineconfig.overlay.targets import overlays_of
from fastness.machineconfig.serving import document, rendered_object
from fastness.release.configs import Config
from fastness.release.live import overlays as delivery
from fastness.release.live.overlays import Overlays, recipient

A = Recipient("uid-a", {"tee": "snp", "chip-generation": "Genoa"})
B = Recipient("uid-b", {"tee": "tdx"})
SPEC = {"config": {"ignition": {"version": "3.5.0"}}}
BODY = document({"metadata": {"name": "rendered-worker-1"}, "spec": SPEC}, "3.4.0")
POOL = Config(BODY, b'"pool"', "rendered-worker-1")


class Cache:
    """An informer of overlays."""

    def __init__(self, *overlays: JsonObject) -> None:
        self.found = list(overlays)

    def add_index(self, name: str, indexer: Any) -> None:
        self.indexer = indexer

    def by_index(self, name: str, value: str) -> list[JsonObject]:
        return [overlay for overlay in self.found if value in self.indexer(overlay)]


def overlay(name: str, match: Any, text: str = "x") -> JsonObject:
    source = dataurl.encode(text.encode())
    files = [{"path": f"/etc/{name}", "contents": {"source": source}}]
    config = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    return {"metadata": {"name": name}, "spec": {"match": match, "config": config}}


def over(*overlays: JsonObject) -> Overlays:
    cache: Any = Cache(*overlays)
    return Overlays(cache)


def test_claims_say_who_the_machine_is_and_what_it_proved() -> None:
    claims = {"fastness": {"machine": "uid-a", "properties": {"tee": "snp"}}, "labels": {"tee": "tpm"}}
    assert recipient(claims) == Recipient("uid-a", {"tee": "snp"})
    assert recipient({}) == recipient({"fastness": "?"}) == Recipient("")


def test_a_machine_with_an_overlay_gets_other_bytes_another_etag_and_its_version_on_the_record() -> None:
    merged = over(overlay("one", {"machines": ["uid-a"]})).over(POOL, A)
    assert merged.body != BODY
    assert merged.etag not in (b"", POOL.etag)
    assert merged.described()["overlays"].startswith("one@")
    assert merged.described()["config"] == "rendered-worker-1"


def test_a_ticket_without_a_verdict_gets_no_overlay() -> None:
    overlays = over(overlay("one", {"machines": ["uid-a"]}), overlay("two", {"properties": {"tee": "snp"}}))
    assert overlays.over(POOL, recipient({})) is POOL


def test_the_same_overlays_on_the_same_config_are_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def counted(body: bytes, overlays: Sequence[Overlay]) -> bytes:
        made.append(body)
        return overlay_bytes(body, overlays)

    monkeypatch.setattr(delivery, "overlay_bytes", counted)
    overlay_cache = over(overlay("genoa", {"properties": {"tee": "snp"}}))
    first = overlay_cache.over(POOL, A)
    assert overlay_cache.over(POOL, Recipient("uid-c", {"tee": "snp"})).body is first.body
    assert len(made) == 1
    assert (
        overlay_cache.over(POOL._replace(body=BODY + b" "), A).overlays == first.overlays
    )  # another config, the etag a lie
    assert len(made) == 2


def test_a_changed_overlay_is_merged_anew_and_a_deleted_one_is_gone() -> None:
    cache: Any = Cache(overlay("one", {"machines": ["uid-a"]}, "before"))
    overlays = Overlays(cache)
    before = overlays.over(POOL, A)
    cache.found = [overlay("one", {"machines": ["uid-a"]}, "after")]
    after = overlays.over(POOL, A)
    assert before.overlays != after.overlays
    assert dataurl.encode(b"after").encode() in after.body
    cache.found = []
    assert overlays.over(POOL, A) is POOL


RUNNING = Config(
    rendered_object({"metadata": {"name": "rendered-worker-1"}, "spec": SPEC}), b'"r"', "rendered-worker-1"
)


def test_a_running_machine_gets_the_overlays_that_it_was_told_to_go_to_or_has_to_wait() -> None:
    cache: Any = Cache(overlay("one", {"machines": ["uid-a"]}))
    overlays, mine = Overlays(cache), overlays_of([examine(overlay("one", {"machines": ["uid-a"]}))])
    assert mine
    merged = overlays.over_rendered(RUNNING, A, mine)
    assert overlay_in(json.decode(merged.body)) == mine
    assert merged.described()["overlays"].startswith("one@")
    assert overlays.over_rendered(RUNNING, B, "") is RUNNING
    for who, digest in ((A, ""), (A, "e" * 32), (B, mine)):
        with pytest.raises(Refusal) as waits:
            overlays.over_rendered(RUNNING, who, digest)
        assert (waits.value.status, waits.value.code) == (503, "overlay-changed")
    cache.found = []
    assert overlays.over_rendered(RUNNING, A, "") is RUNNING


def test_a_running_machine_whose_overlay_cannot_be_merged_waits() -> None:
    broken = {**overlay("one", {"machines": ["uid-a"]}), "spec": {"match": {"machines": ["uid-a"]}, "config": []}}
    with pytest.raises(Refusal) as waits:
        over(broken).over_rendered(RUNNING, A, "")
    assert (waits.value.status, waits.value.code) == (503, "overlay-invalid")


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MOST_KEPT", 2)
    overlays = over(*(overlay(f"o{n}", {"machines": [f"uid-{n}"]}) for n in range(5)))
    for number in range(5):
        overlays.over(POOL, Recipient(f"uid-{number}"))
    assert len(overlays._kept) == 2


def test_an_overlay_that_cannot_be_merged_makes_its_machine_wait_and_no_other() -> None:
    bad = overlay("one", {"machines": ["uid-a"]})
    bad["spec"]["config"]["kernelArguments"] = {"shouldExist": ["init=/bin/sh"]}
    overlays = over(bad)
    with pytest.raises(Refusal) as refused:
        overlays.over(POOL, A)
    assert (refused.value.status, refused.value.code) == (503, "overlay-invalid")
    assert overlays.over(POOL, B) is POOL


MATCHES_A = st.one_of(
    st.just({"machines": ["uid-a"]}),
    st.just({"machines": ["uid-a", "uid-z"]}),
    st.dictionaries(st.sampled_from(["tee", "chip-generation"]), st.just(""), min_size=1).map(
        lambda names: {"properties": {name: A.properties[name] for name in names}}
    ),
)
FOR_B = st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True)


@given(mine=st.lists(MATCHES_A, max_size=4), theirs=FOR_B, text=st.text(max_size=20), priority=st.integers(0, 1000))
def test_an_overlay_for_one_machine_never_changes_a_byte_for_another(
    mine: list[JsonObject], theirs: list[str], text: str, priority: int
) -> None:
    common = [overlay(f"b-{name}", {"machines": ["uid-b"]}, name) for name in theirs]
    others = [overlay(f"a-{index}", match, text) for index, match in enumerate(mine)]
    for other in others:
        other["spec"]["priority"] = priority
    with_others = over(*others, *common)
    if others:
        assert with_others.over(POOL, A).body != BODY
    assert with_others.over(POOL, B) == over(*common).over(POOL, B)
