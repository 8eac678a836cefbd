"""Hostile bytes against the messages of enrolment, and against the whole first step with a good ticket."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

import pytest

from fastness.agent.boot.enrol import EnrolmentFailed, first_message, read_enrolled, read_offer
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.enrolment import EnrolmentRefused, Invitation, Terms, begin
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.protocol.enrolment import EnrolmentFormatError, parse_completion, parse_request
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.fuzz.driver import Target, run
from tests.virtual import SeededEntropy

NOW: Final = datetime(2026, 6, 1, tzinfo=UTC)
VENDOR: Final = SimVendor()
_WORKS: Final = VENDOR.tpm
_TERMS: Final = Terms(TrustModel.CONFIDENTIAL_CLUSTER, first_use=True, roots=VENDOR.roots.tpm)
_TEXT: Final = (b'"', b"{", b"}", b":", b",", b"null", b"[]", b"==", b"A", b"\\u0000", b'"tpm"', b'"pool"', b"-")


def _message(tee: str) -> bytes:
    return asyncio.run(first_message(SimAttester(VENDOR.chip(tee, serial=1).boot())))


def _begin(data: bytes) -> object:
    """Whatever is wrong inside the message is a refusal with a code."""
    try:
        return begin(
            parse_request(data), Invitation("t", "u", "worker"), _TERMS, NOW, SecretBytes(b"s" * 32), SeededEntropy()
        )
    except EnrolmentRefused as refused:
        raise EnrolmentFormatError(refused.code, refused.detail) from refused


def _offer(data: bytes) -> object:
    try:
        return read_offer(data)
    except EnrolmentFailed as failed:
        raise EnrolmentFormatError(failed.reason, failed.message) from failed


def _enrolled(data: bytes) -> object:
    try:
        return read_enrolled(data)
    except EnrolmentFailed as failed:
        raise EnrolmentFormatError(failed.reason, failed.message) from failed


_GUEST: Final = _message("snp")
_COMPLETIONS: Final = (
    json.encode({"enrolment": "a-b_c", "activated": "eHl6"}),
    json.encode({"enrolment": "a-b_c", "signature": "eHl6" * 21 + "eA=="}),
)
_OFFERS: Final = (
    json.encode({"enrolment": "abc", "credential": {"credential": "eHl6", "secret": "eHl6"}}),
    json.encode({"enrolment": "abc", "challenge": "eHl6"}),
)
_ENROLLED: Final = (json.encode({"machine": "u", "name": "n", "nodeName": "w", "pool": "p", "state": "Approved"}),)

TARGETS: Final = (
    Target("enrolment request", parse_request, (_message("tpm"), _GUEST), _TEXT),
    Target("enrolment completion", parse_completion, _COMPLETIONS, _TEXT),
    Target("first step of enrolment", _begin, (_GUEST,), _TEXT),
    Target("offer of a door", _offer, _OFFERS, _TEXT),
    Target("answer of a door", _enrolled, _ENROLLED, _TEXT),
)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_messages_give_a_value_or_a_format_error(target: Target) -> None:
    outcome = run(target)
    assert outcome.accepted > 0, "every mutation was refused: the corpus teaches nothing"
    assert len(outcome.refused) > 0, "no mutation was refused: the parser checks nothing"
