"""The driver against a real swtpm: keys, credentials, quotes, and what the TPM's own tools say about our evidence."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fastness.agent.boot.attester import Attester
from fastness.agent.host.errors import TpmFailure
from fastness.agent.host.tee.identity import SEAL
from fastness.agent.host.tee.this_boot import RuntimeLog
from fastness.agent.host.tee.tpm import CONTEXT, PRIVATE, PUBLIC, AkHandle, TpmAttester, TpmTools
from fastness.attestation.evidence.checks import Appraisal, Findings
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.credential import EndorsementKey, make_credential
from fastness.crypto.silicon.verify import AttestationKey
from fastness.enrolment.endorsement import judge_endorsement
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.formats.evidence.tpm.public import Attributes, parse_public
from fastness.kinds.kind import JsonObject
from fastness.protocol.user_data import UserData
from fastness.protocol.user_data_event import user_data_event
from tests.evidence import tpm as minted
from tests.swtpm import Maker, Swtpm
from tests.virtual import SeededEntropy

SECRET = SecretBytes(bytes(range(32)))


@pytest.fixture
def tools(swtpm: Swtpm, tmp_path: Path) -> TpmTools:
    return TpmTools(swtpm.tcti, event_log=tmp_path / "no-log")


def judged(evidence: JsonObject, expected: TpmExpectations) -> Appraisal:
    return appraise_tpm(parse_envelope(json.dumps(evidence).encode()), expected)


def expectations(ak: AkHandle, nonce: bytes = b"nonce") -> TpmExpectations:
    return TpmExpectations(nonce=nonce, known_key=AttestationKey(ak.area.spki))


async def test_the_certificate_of_a_fresh_tpm_leads_to_its_makers_root(
    tools: TpmTools, tpm_maker: Maker, tmp_path: Path
) -> None:
    ak = await tools.create_ak(tmp_path / "ak")
    leaf = load_certificates(await tools.ek_certificate())
    findings = Findings()
    endorsement = judge_endorsement(
        findings, [*leaf, *tpm_maker.certificates], ak.area, {tpm_maker.root}, datetime.now(UTC)
    )
    assert endorsement is not None, findings.checks
    assert (endorsement.key.kind, endorsement.model, endorsement.root) == ("RSA-2048", "swtpm", tpm_maker.root)
    assert endorsement.ak_name == ak.area.name


def lock(swtpm: Swtpm, place: Path) -> None:
    """One wrong password where one is too many."""
    swtpm.tool("dictionarylockout", "-s", "-n", "1", "-t", "9999", "-l", "9999")
    context = str(place / "guarded.ctx")
    swtpm.tool("createprimary", "-C", "o", "-p", "right", "-c", context)
    with pytest.raises(subprocess.CalledProcessError):
        swtpm.tool("create", "-C", context, "-P", "wrong", "-u", str(place / "u"), "-r", str(place / "r"))
    assert "inLockout:                 1" in swtpm.tool("getcap", "properties-variable")
    swtpm.tool("flushcontext", "-t")


@pytest.mark.parametrize("algorithm", ["ecc", "rsa"])
async def test_a_tpm_that_is_locked_against_guessing_still_quotes(
    swtpm: Swtpm, tools: TpmTools, tmp_path: Path, algorithm: str
) -> None:
    """Power cuts count as guesses: a machine in a rack with a bad feed would lock itself out of the cluster."""
    ak = await tools.create_ak(tmp_path / "ak", algorithm)
    assert ak.area.attributes & Attributes.NO_DA
    lock(swtpm, tmp_path)
    assert await tools.quote(ak, b"nonce", (0, 7))
    (tmp_path / "ak" / CONTEXT).unlink(missing_ok=True)
    assert await tools.quote(ak, b"nonce", (0, 7)), "loaded anew, as after a reset"


async def test_an_attestation_key_is_made_once_and_found_again(tools: TpmTools, tmp_path: Path) -> None:
    first = await tools.create_ak(tmp_path / "ak")
    second = await tools.create_ak(tmp_path / "ak")
    assert first == second
    assert first.area.is_attestation_key
    assert (tmp_path / "ak").stat().st_mode & 0o777 == 0o700


async def test_a_key_may_be_kept_on_another_file_system_than_scratch_files(tools: TpmTools) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        if os.stat(place).st_dev == os.stat(tempfile.gettempdir()).st_dev:
            pytest.skip("temporary files lie in /dev/shm here")
        ak = await tools.create_ak(Path(place) / "identity")
        assert {path.name for path in ak.directory.iterdir()} == {PUBLIC, PRIVATE, SEAL}
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in ak.directory.iterdir())


async def test_half_an_attestation_key_is_a_failure_and_not_a_new_identity(tools: TpmTools, tmp_path: Path) -> None:
    await tools.create_ak(tmp_path / "ak")
    (tmp_path / "ak" / PRIVATE).unlink()
    with pytest.raises(TpmFailure, match="half of the attestation key"):
        await tools.create_ak(tmp_path / "ak")


@pytest.mark.parametrize("algorithm", ["ecc", "rsa"])
async def test_a_real_tpm_opens_what_was_sealed_to_it(tools: TpmTools, tmp_path: Path, algorithm: str) -> None:
    ak = await tools.create_ak(tmp_path / "ak", algorithm)
    key = EndorsementKey.of(load_certificates(await tools.ek_certificate())[0])
    blob = make_credential(key, ak.area.name, SECRET, SeededEntropy(1))
    assert await tools.activate(ak, blob.credential, blob.secret) == SECRET


@pytest.mark.parametrize("curve", ["P-256", "P-384"])
async def test_a_real_tpm_opens_what_was_sealed_to_an_elliptic_endorsement_key(
    swtpm: Swtpm, tmp_path: Path, curve: str
) -> None:
    def at(name: str) -> str:
        return str(tmp_path / name)

    def flush() -> None:
        for kind in ("-t", "-l", "-s"):
            swtpm.tool("flushcontext", kind)

    parent = "0x81010016"  # where swtpm_setup puts the P-384 key; its template asks for no policy session
    if curve == "P-256":
        parent = at("ek.ctx")
        swtpm.tool("createek", "-G", "ecc", "-c", parent)
        flush()
    swtpm.tool("readpublic", "-c", parent, "-f", "pem", "-o", at("ek.pem"))
    flush()
    words = ("-G", "ecc", "-g", "sha256", "-s", "ecdsa")
    swtpm.tool("createak", "-C", parent, "-c", at("ak.ctx"), *words, "-u", at("ak.pub"))
    flush()
    key = EndorsementKey((tmp_path / "ek.pem").read_bytes())
    assert key.kind == {"P-256": "EC secp256r1", "P-384": "EC secp384r1"}[curve]
    name = parse_public((tmp_path / "ak.pub").read_bytes()).name
    blob = make_credential(key, name, SECRET, SeededEntropy(2))
    (tmp_path / "blob").write_bytes(bytes.fromhex("badcc0de00000001") + blob.credential + blob.secret)
    session = []
    if curve == "P-256":
        swtpm.tool("startauthsession", "--policy-session", "-S", at("session"))
        swtpm.tool("policysecret", "-S", at("session"), "-c", "e")
        session = ["-P", f"session:{at('session')}"]
    swtpm.tool("activatecredential", "-c", at("ak.ctx"), "-C", parent, "-i", at("blob"), "-o", at("out"), *session)
    assert (tmp_path / "out").read_bytes() == SECRET.reveal()


async def test_a_credential_for_another_name_does_not_open(tools: TpmTools, tmp_path: Path) -> None:
    ak, other = await tools.create_ak(tmp_path / "ak"), await tools.create_ak(tmp_path / "other")
    key = EndorsementKey.of(load_certificates(await tools.ek_certificate())[0])
    blob = make_credential(key, other.area.name, SECRET, SeededEntropy(1))
    with pytest.raises(TpmFailure):
        await tools.activate(ak, blob.credential, blob.secret)
    assert await tools.activate(other, blob.credential, blob.secret) == SECRET


async def test_a_certificate_of_another_tpm_is_genuine_and_its_credential_does_not_open(
    tools: TpmTools, other_swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    """Pitfall 6: the paper of a real TPM beside a key that lives elsewhere."""
    foreign = load_certificates(await TpmTools(other_swtpm.tcti).ek_certificate())
    ak, findings = await tools.create_ak(tmp_path / "ak"), Findings()
    endorsement = judge_endorsement(
        findings, [*foreign, *tpm_maker.certificates], ak.area, {tpm_maker.root}, datetime.now(UTC)
    )
    assert endorsement is not None, "on paper nothing is wrong"
    blob = make_credential(endorsement.key, endorsement.ak_name, SECRET, SeededEntropy(3))
    with pytest.raises(TpmFailure):
        await tools.activate(ak, blob.credential, blob.secret)


async def test_a_quote_of_all_registers_is_accepted_and_explains_the_reset_counter(
    tools: TpmTools, swtpm: Swtpm, tmp_path: Path
) -> None:
    ak = await tools.create_ak(tmp_path / "ak")
    before = judged(await tools.quote(ak, b"nonce"), expectations(ak))
    assert before.acceptable, before.reason
    swtpm.reset()
    after = judged(await tools.quote(ak, b"nonce"), expectations(ak))
    assert after.acceptable, after.reason
    assert after.claims["tpm"]["reset_count"] == before.claims["tpm"]["reset_count"] + 1


@pytest.mark.parametrize(("bank", "registers"), [("sha256", (0, 7, 11)), ("sha384", (4, 14))])
async def test_a_quote_of_few_registers_carries_exactly_those(
    tools: TpmTools, tmp_path: Path, bank: str, registers: tuple[int, ...]
) -> None:
    ak = await tools.create_ak(tmp_path / "ak")
    judgement = judged(await tools.quote(ak, b"nonce", registers, bank), expectations(ak))
    assert judgement.acceptable, judgement.reason
    assert [name for name in judgement.claims["tpm"] if name.startswith("pcr")] == [f"pcr{i:02}" for i in registers]


async def test_a_quote_of_the_sha_1_bank_is_genuine_and_proves_nothing(tools: TpmTools, tmp_path: Path) -> None:
    ak = await tools.create_ak(tmp_path / "ak")
    judgement = judged(await tools.quote(ak, b"nonce", (0,), "sha1"), expectations(ak))
    assert (judgement.authentic, judgement.acceptable, judgement.reason) == (True, False, "bank-refused")


async def test_extending_shows_in_the_quote_and_the_log_explains_it(swtpm: Swtpm, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(minted.event_log([(8, 13, b"grub"), (11, 13, b"linux"), (8, 13, b"more")]))
    tools = TpmTools(swtpm.tcti, event_log=log)
    for register, data in ((8, b"grub"), (11, b"linux"), (8, b"more")):
        await tools.extend(register, hashlib.sha256(data).digest())
    ak = await tools.create_ak(tmp_path / "ak")
    judgement = judged(await tools.quote(ak, b"nonce"), expectations(ak))
    assert judgement.acceptable, judgement.reason
    assert all(event["verified"] and event["covers_data"] for event in judgement.claims["tpm"]["uefi_event_logs"])
    log.write_bytes(minted.event_log([(8, 13, b"grub"), (11, 13, b"other")]))
    assert judged(await tools.quote(ak, b"nonce"), expectations(ak)).reason == "event-log-differs"


async def test_what_was_taken_from_user_data_is_in_pcr_15_and_the_verdict_shows_it(
    swtpm: Swtpm, tmp_path: Path
) -> None:
    log, measured = tmp_path / "log", tmp_path / "run" / "measured"
    log.write_bytes(minted.event_log([(11, 13, b"linux")], ("sha256", "sha384")))
    tools = TpmTools(swtpm.tcti, event_log=log, runtime_log=RuntimeLog(measured))
    await tools.extend(11, hashlib.sha256(b"linux").digest())
    await tools.measure(user_data_event(UserData("worker", "https://a.example", "secret ticket")))
    assert measured.stat().st_mode & 0o777 == 0o600
    assert b"secret" not in measured.read_bytes()
    later = TpmTools(swtpm.tcti, event_log=log, runtime_log=RuntimeLog(measured))  # another process of the same boot
    ak = await later.create_ak(tmp_path / "ak")

    judgement = judged(await later.quote(ak, b"nonce"), expectations(ak))
    assert judgement.acceptable, judgement.reason
    check = next(entry for entry in judgement.checks if entry.name == "user-data")
    assert (check.result, check.source) == ("Pass", "PCR 15")
    assert check.seen.startswith("pool worker, server https://a.example, ticket sha256:")

    await tools.extend(15, hashlib.sha256(b"machine-id of systemd").digest())
    judgement = judged(await later.quote(ak, b"nonce"), expectations(ak))
    assert judgement.acceptable, judgement.reason  # what others add to the register keeps no machine out
    assert [check.code for check in judgement.checks if check.name == "user-data"] == ["user-data-unconfirmed"]


@pytest.mark.parametrize("algorithm", ["ecc", "rsa"])
async def test_the_tools_of_the_tpm_agree_with_us(tools: TpmTools, tmp_path: Path, algorithm: str) -> None:
    """tpm2_checkquote shares no code with our verifier: both accept a quote, and both refuse it when a bit is changed."""
    ak = await tools.create_ak(tmp_path / "ak", algorithm)
    evidence = await tools.quote(ak, b"nonce")
    assert judged(evidence, expectations(ak)).acceptable
    message, signature = (base64.b64decode(evidence["tpm_quote"][part]) for part in ("message", "signature"))
    assert checked(tmp_path, ak, message, signature)
    for place in (10, len(message) - 1):
        changed = bytearray(message)
        changed[place] ^= 1
        assert not checked(tmp_path, ak, bytes(changed), signature)
        evidence["tpm_quote"]["message"] = base64.b64encode(changed).decode()
        assert not judged(evidence, expectations(ak)).authentic


def checked(directory: Path, ak: AkHandle, message: bytes, signature: bytes) -> bool:
    """What tpm2_checkquote, which needs no TPM, says about a quote over the nonce of these tests."""
    command = ["tpm2_checkquote", "-g", "sha256", "-q", b"nonce".hex()]
    for option, data in (("-u", ak.public), ("-m", message), ("-s", signature)):
        target = directory / f"checked{option}"
        target.write_bytes(data)
        command += [option, str(target)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def test_the_quote_of_another_key_of_the_same_tpm_is_refused(tools: TpmTools, tmp_path: Path) -> None:
    ak, other = await tools.create_ak(tmp_path / "ak"), await tools.create_ak(tmp_path / "other")
    assert judged(await tools.quote(other, b"nonce"), expectations(ak)).reason == "key-differs"


async def test_a_quote_of_another_nonce_is_refused(tools: TpmTools, tmp_path: Path) -> None:
    ak = await tools.create_ak(tmp_path / "ak")
    assert judged(await tools.quote(ak, b"older"), expectations(ak)).reason == "nonce-differs"


async def test_the_key_of_another_tpm_cannot_be_loaded(tools: TpmTools, other_swtpm: Swtpm, tmp_path: Path) -> None:
    ak = await tools.create_ak(tmp_path / "ak")
    (tmp_path / "ak" / CONTEXT).unlink(missing_ok=True)
    with pytest.raises(TpmFailure, match="does not take the attestation key") as caught:
        await TpmTools(other_swtpm.tcti).quote(ak, b"nonce")
    assert "enrol the machine again" in caught.value.hint


@pytest.mark.parametrize(
    ("attributes", "lacking"),
    [
        ("fixedtpm|fixedparent|sensitivedataorigin|userwithauth|sign", "not restricted"),
        ("sensitivedataorigin|userwithauth|sign", "not fixedTPM"),
        ("fixedtpm|fixedparent|sensitivedataorigin|userwithauth|sign|decrypt", "decrypt"),
    ],
)
async def test_keys_of_a_real_tpm_with_wrong_attributes_are_no_attestation_keys(
    tools: TpmTools, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path, attributes: str, lacking: str
) -> None:
    """Pitfall 6: a signing key of a genuine TPM that would sign an invented quote, or that can leave."""
    target = tmp_path / "key.pub"
    algorithm = "ecc" if "decrypt" in attributes else "ecc:ecdsa-sha256"
    swtpm.tool("createprimary", "-C", "e", "-G", algorithm, "-a", attributes, "-c", str(tmp_path / "k.ctx"))
    swtpm.tool("readpublic", "-c", str(tmp_path / "k.ctx"), "-o", str(target))
    for kind in ("-t", "-l"):
        swtpm.tool("flushcontext", kind)
    public, findings = parse_public(target.read_bytes()), Findings()
    assert not public.is_attestation_key
    assert Attributes.SIGN in public.attributes
    leaf = load_certificates(await tools.ek_certificate())
    assert (
        judge_endorsement(findings, [*leaf, *tpm_maker.certificates], public, {tpm_maker.root}, datetime.now(UTC))
        is None
    )
    check = next(entry for entry in findings.checks if entry.name == "attestation-key-attributes")
    assert lacking in check.seen
    assert check.refuses


async def test_the_attester_of_a_tpm_fits_the_agents_port(swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path) -> None:
    attester: Attester = TpmAttester(TpmTools(swtpm.tcti, event_log=tmp_path / "none"), tmp_path / "identity")
    public = parse_public(await attester.identity_public())
    evidence = await attester.evidence(b"bound")
    judgement = judged(evidence, TpmExpectations(nonce=b"bound", known_key=AttestationKey(public.spki)))
    assert judgement.acceptable, judgement.reason
    (leaf,) = await attester.ek_certificates()
    key = EndorsementKey.of(load_certificates(leaf)[0])
    assert parse_public(await attester.ek_public()).spki == key.der
    blob = make_credential(key, public.name, SECRET, SeededEntropy(5))
    assert await attester.activate(blob.credential, blob.secret) == SECRET
    with pytest.raises(TpmFailure):
        await attester.sign(b"anything")


async def test_a_tpm_that_is_gone_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(TpmFailure):
        await TpmTools(f"swtpm:path={tmp_path}/nobody").create_ak(tmp_path / "ak")
    assert not (tmp_path / "ak" / PUBLIC).exists()
