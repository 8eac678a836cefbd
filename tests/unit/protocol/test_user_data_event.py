"""What a machine took from its user-data: in a register of its own, in the log, and in the verdict."""

from __future__ import annotations

import pytest

from fastness.attestation.evidence.checks import Appraisal, Check
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.eventlog.log import EV_IPL, Event, parse_log, with_event
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.protocol.user_data import UserData
from fastness.protocol.user_data_event import described, logged, user_data_event
from fastness.sim.tee import SimVendor
from fastness.sim.tee.machine import BootedMachine
from tests.evidence import tpm
from tests.evidence.simulated import NONCE, judged
from tests.virtual import SeededEntropy

TAKEN = UserData("worker", "https://cluster.example:8000", "fjt_secret")
EVENT = user_data_event(TAKEN)
WORDS = "pool worker, server https://cluster.example:8000, ticket sha256:"


@pytest.fixture(scope="module")
def vendor() -> SimVendor:
    return SimVendor(SeededEntropy(13))


def user_data_check(appraisal: Appraisal) -> Check | None:
    return next((check for check in appraisal.checks if check.name == "user-data"), None)


def quoted(vendor: SimVendor, machine: BootedMachine) -> Appraisal:
    return judged(vendor, machine.tee, machine.quote(NONCE))


def test_the_event_tells_everything_but_the_ticket() -> None:
    assert described(EVENT).startswith(WORDS)
    assert b"secret" not in EVENT
    assert described(user_data_event(UserData("worker", TAKEN.server, "other"))) != described(EVENT)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"grub", EVENT[:-1], EVENT + b"x", EVENT.replace(b"worker", b"wor\x1b[2Jker"), EVENT.replace(b"https", b"http"),
        EVENT.replace(b"sha256:", b"sha1:"), EVENT.replace(b'"pool"', b'"pool":"a","pool"'), EVENT.replace(b'{"', b'{"a":1,"'),
        EVENT.split(b" ")[0] + b" []", EVENT + b" " * 4096,
    ],
)  # fmt: skip
def test_a_log_is_the_machines_word_and_is_read_strictly(data: bytes) -> None:
    assert described(data) == ""


@pytest.mark.parametrize(("tee", "source"), [("tpm", "PCR 15"), ("tdx", "RTMR 3")])
def test_the_verdict_shows_what_was_taken_where_the_register_confirms_it(
    vendor: SimVendor, tee: str, source: str
) -> None:
    machine = vendor.chip(tee).boot()
    assert user_data_check(quoted(vendor, machine)) is None
    machine.measure(EVENT)
    appraisal = quoted(vendor, machine)
    check = user_data_check(appraisal)
    assert appraisal.acceptable, appraisal.reason
    assert check is not None
    assert (check.result, check.source, check.seen.startswith(WORDS)) == ("Pass", source, True)
    machine.measure(user_data_event(UserData("infra", TAKEN.server, "t")))  # it enrolled anew, in the same boot
    again = user_data_check(quoted(vendor, machine))
    assert again is not None
    assert again.result == "Pass"
    assert "pool infra" in again.seen


def test_an_snp_guest_has_no_register_for_it(vendor: SimVendor) -> None:
    machine = vendor.chip("snp").boot()
    machine.measure(EVENT)
    assert quoted(vendor, machine).acceptable
    assert user_data_check(quoted(vendor, machine)) is None


@pytest.mark.parametrize(("tee", "register", "refused"), [("tpm", 15, False), ("tdx", 4, True)])
def test_an_entry_that_does_not_replay_is_a_finding(vendor: SimVendor, tee: str, register: int, refused: bool) -> None:
    machine = vendor.chip(tee).boot()
    machine.measure(EVENT)
    lying = vendor.chip(tee).boot()
    lying.measure(user_data_event(UserData("infra", TAKEN.server, "t")))
    name = "event_log" if tee == "tpm" else "cc_eventlog"
    evidence = {**machine.quote(NONCE), name: lying.quote(NONCE)[name]}
    appraisal = judged(vendor, tee, evidence)
    check = user_data_check(appraisal)
    assert check is not None
    assert (check.result, check.code) == ("Warn", "user-data-unconfirmed")
    assert ("event-log-differs" in [entry.code for entry in appraisal.checks if entry.refuses]) is refused


def test_an_event_whose_digest_is_not_of_its_words_says_nothing() -> None:
    log = parse_log(tpm.event_log([(15, 13, b"other")])).events[0]
    lying = with_event(tpm.event_log([(11, 13, b"linux")]), Event(15, EV_IPL, log.banks, log.values, EVENT))
    values = {index: bytes(32) for index in range(24)}
    appraisal = tpm_judged(values, lying)
    assert user_data_check(appraisal) is None


def tpm_judged(values: dict[int, bytes], log: bytes) -> Appraisal:
    return appraise_tpm(parse_envelope(tpm.quoted(values)), TpmExpectations(event_log=log))


@pytest.mark.parametrize("filling", [b"", b"\xff" * 32, bytes(32)])
def test_events_are_added_where_the_filling_began(filling: bytes) -> None:
    log = tpm.event_log([(11, 13, b"linux")], ("sha1", "sha256"), filling=filling)
    events = parse_log(logged(log, 15, [EVENT, b"more"])).events
    assert [(event.register, event.data) for event in events] == [(11, b"linux"), (15, EVENT), (15, b"more")]


def test_a_log_that_cannot_be_read_stays_as_it_is() -> None:
    assert logged(b"nonsense", 15, [EVENT]) == b"nonsense"
    with pytest.raises(EvidenceError, match="banks"):
        with_event(tpm.event_log([(1, 4, b"")]), Event(15, EV_IPL, ("sha384",), (bytes(48),), b""))
