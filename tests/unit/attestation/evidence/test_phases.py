"""Boot phases behind an image's value: which of them there are, and which phase a machine is in."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Appraisal, Check, Result
from fastness.attestation.evidence.phases import ENTER, LEAVE, READY, SYSINIT, phase_of, words_between
from fastness.attestation.evidence.replay import logged_phase
from fastness.attestation.values.phases import without_phases
from fastness.attestation.values.values import ReferenceValues
from fastness.protocol.user_data_event import PCR, RTMR, logged
from fastness.sim.tee.images import default_image

IMAGE = default_image()
V = IMAGE.pcrs[11]
STARTED = b"\x00" * 48


def after(value: bytes, *words: str, bank: str = "sha256") -> bytes:
    for word in words:
        value = hashlib.new(bank, value + hashlib.new(bank, word.encode()).digest()).digest()
    return value


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ((), "initrd"), ((ENTER,), "initrd"), ((LEAVE,), "system"), ((ENTER, LEAVE), "system"), ((LEAVE, LEAVE), "system"),
        ((ENTER, LEAVE, LEAVE, SYSINIT, READY), "system"),
    ],
)  # fmt: skip
def test_the_words_are_found_in_their_order(words: tuple[str, ...], phase: str) -> None:
    assert words_between("sha256", V, after(V, *words)) == words
    assert phase_of(words) == phase


@pytest.mark.parametrize(
    "words", [(SYSINIT,), (READY,), (LEAVE, ENTER), (ENTER, ENTER), (LEAVE, READY), ("leave-initrd\0",), (LEAVE,) * 3]
)
def test_another_order_or_another_word_is_no_phase(words: tuple[str, ...]) -> None:
    assert words_between("sha256", V, after(V, *words)) is None


def test_a_log_ends_in_the_value_before_the_phases() -> None:
    log = IMAGE.event_log
    for words, phase in (((), "initrd"), ((ENTER,), "initrd"), ((LEAVE,), "system")):
        logged_words = logged_phase(log, "sha256", {11: after(V, *words)}, PCR)
        assert logged_words is not None
        assert (logged_words.phase, logged_words.before) == (phase, V)
    assert logged_phase(log, "sha256", {11: after(V, "something else")}, PCR) is None
    assert logged_phase(b"no log", "sha256", {11: V}, PCR) is None
    assert logged_phase(log, "sha256", {4: V}, PCR) is None


def test_a_log_that_was_made_to_fit_has_the_word_as_an_event() -> None:
    forged = logged(IMAGE.event_log, PCR.phase, [LEAVE.encode()])
    logged_words = logged_phase(forged, "sha256", {11: after(V, LEAVE)}, PCR)
    assert logged_words is not None
    assert logged_words.phase == "system"


def test_a_trust_domain_without_a_log_begins_at_zero() -> None:
    for words, phase in (((), "initrd"), ((LEAVE,), "system")):
        logged_words = logged_phase(b"", "sha384", {4: after(STARTED, *words, bank="sha384")}, RTMR)
        assert logged_words is not None
        assert (logged_words.phase, logged_words.before) == (phase, STARTED)


def appraised(value: bytes, phase: str = "") -> Appraisal:
    tpm: dict[str, Any] = {"pcr11": value.hex(), "bank": "sha256", **({"phase": phase} if phase else {})}
    return Appraisal("tpm", (Check("signature", Result.PASS, "ok", proof=True),), {"tpm": tpm}, None)


def book(now: Any, *values: bytes) -> ReferenceValues:
    listed = [{"name": "tpm_pcr11", "value": value.hex()} for value in values]
    sets = [
        {"metadata": {"name": f"set-{number}"}, "spec": {"source": "manual", "values": [entry]}}
        for number, entry in enumerate(listed)
    ]
    return ReferenceValues.of(sets, now)


def test_claims_have_the_value_of_the_image_and_the_phase() -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    # Without a log nothing shows that the initrd was not left: the listed value may be of a machine that ran.
    cases = {(): None, (ENTER,): None, (ENTER, LEAVE): "system"}
    for words, phase in cases.items():
        tpm = without_phases(appraised(after(V, *words)), book(now, V)).claims["tpm"]
        assert (tpm["pcr11"], tpm.get("phase")) == (V.hex(), phase)
    strange = appraised(after(V, "something else"))
    assert without_phases(strange, book(now, V)) is strange
    # Somebody published what a running machine measured: the latest phase that explains a value counts.
    running = after(V, LEAVE)
    tpm = without_phases(appraised(running), book(now, running, V)).claims["tpm"]
    assert (tpm["pcr11"], tpm["phase"]) == (running.hex(), "system")
    # The log was there, and told: nothing is worked out a second time.
    logged_words = appraised(V, "system")
    assert without_phases(logged_words, book(now, V)) is logged_words
