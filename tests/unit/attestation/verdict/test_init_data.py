"""Init-data beside evidence: what of it is shown, what a policy sees, and that no ticket is among it."""

from __future__ import annotations

import pytest

from fastness.attestation.evidence.checks import Appraisal, Check, Result
from fastness.attestation.policy.claims import policy_input
from fastness.attestation.policy.policy import default_policy
from fastness.attestation.verdict.init_data import FIELDS, USER_DATA, digest_of, judged
from fastness.formats.initdata import InitData, parse_init_data, write_init_data
from fastness.protocol.user_data import ENTRY
from tests.initdisks import document, user_data
from tests.unit.attestation.policyinputs import GOOD_VALUES, book, good_input

SIZES = {"snp": 32, "tdx": 48}


def appraised(tee: str, signed: bytes) -> Appraisal:
    proof = Check("attestation-key", Result.PASS, "ok", proof=True)
    field = signed[: SIZES.get(tee, 0)].ljust(SIZES.get(tee, 0), b"\0")
    return Appraisal(tee, (proof,), {tee: {}, "init_data": field.hex()}, None)


def init_data_check(checks: list[Check]) -> Check | None:
    return next((check for check in checks if check.name == USER_DATA), None)


@pytest.mark.parametrize("tee", SIZES)
@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_what_was_measured_is_shown_by_the_name_of_its_field(tee: str, algorithm: str) -> None:
    init_data = document(user_data(), algorithm)
    checks, claims = judged(appraised(tee, digest_of(init_data)), init_data)
    check = init_data_check(checks)
    assert check is not None
    assert (check.result, check.source, check.refuses) == (Result.PASS, FIELDS[tee], False)
    assert check.seen.endswith(f"init-data {algorithm}:{digest_of(init_data).hex()}")
    assert claims is not None
    assert claims[ENTRY]["pool"] == "worker"
    assert "fjt_secret" not in f"{checks}{claims}"


@pytest.mark.parametrize("tee", [*SIZES, "tpm"])
def test_what_nobody_measured_is_refused_and_not_shown(tee: str) -> None:
    init_data = document(user_data())
    checks, _ = judged(appraised(tee, bytes(32)), init_data)
    assert [(check.code, check.refuses) for check in checks] == [("init-data-differs", True)]


@pytest.mark.parametrize(
    ("init_data", "where"),
    [
        (document(user_data(), **{"aa.toml": "x"}), "/data"),
        (document('{"version":"fastness.dev/userdata/v1","pool":"worker","unit":"fjt_secret"}'), "/unit"),
        (document("fjt_secret"), "/"),
    ],
)
@pytest.mark.parametrize("tee", SIZES)
def test_user_data_that_no_agent_takes_is_refused_although_it_was_measured(
    tee: str, init_data: InitData, where: str
) -> None:
    checks, claims = judged(appraised(tee, digest_of(init_data)), init_data)
    check = init_data_check(checks)
    assert check is not None
    assert (check.code, check.seen, check.refuses) == ("user-data-refused", where, True)
    assert claims is None
    assert "fjt_secret" not in f"{checks}"


@pytest.mark.parametrize("tee", SIZES)
def test_a_document_for_others_is_compared_and_is_no_user_data(tee: str) -> None:
    init_data = parse_init_data(write_init_data("sha256", {"aa.toml": "x"}))
    checks, claims = judged(appraised(tee, digest_of(init_data)), init_data)
    assert [(check.name, check.code) for check in checks] == [("init-data", "ok")]
    assert claims == {"aa.toml": "x"}


@pytest.mark.parametrize("tee", SIZES)
def test_the_built_in_policy_takes_measured_user_data_and_compares_it_with_nothing(tee: str) -> None:
    init_data = document(user_data())
    appraisal = appraised(tee, digest_of(init_data))
    _, claims = judged(appraisal, init_data)
    policy_document = policy_input(appraisal, {}, digest_of(init_data), claims)
    good = {
        **good_input(tee),
        "init_data": policy_document["init_data"],
        "init_data_claims": policy_document["init_data_claims"],
    }
    assert default_policy(tee).evaluate(good, book(GOOD_VALUES[tee])).affirms(tee)
    # The entry of another document of that name is a text, which a host may write as it likes.
    for entry in ({ENTRY: user_data()}, {"aa.toml": "x"}, None):
        other = {**good, "init_data_claims": entry}
        assert not default_policy(tee).evaluate(other, book(GOOD_VALUES[tee])).affirms(tee)


def test_measured_user_data_does_not_explain_another_register() -> None:
    init_data = document(user_data())
    _, claims = judged(appraised("tdx", digest_of(init_data)), init_data)
    good = {**good_input("tdx"), "init_data": digest_of(init_data).hex() + "00" * 16, "init_data_claims": claims}
    body = good["tdx"]["quote"]["body"]
    quote = {**good["tdx"]["quote"], "body": {**body, "rtmr_3": "ab" * 48}}
    policy, values = default_policy("tdx"), book(GOOD_VALUES["tdx"])
    assert policy.evaluate(good, values).affirms("tdx")
    assert not policy.evaluate({**good, "tdx": {**good["tdx"], "quote": quote}}, values).affirms("tdx")
