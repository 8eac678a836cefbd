"""`fastness witness`, and `fastness audit verify` with the keys of witnesses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.run.witness import witness
from fastness.cli.trust.audit import audit
from fastness.crypto.cosignatures import WitnessSigner
from fastness.crypto.merkle import leaf_hash, tree_root
from fastness.crypto.notes import NoteSigner
from fastness.crypto.secret import SecretBytes
from fastness.formats.tlog import Checkpoint, encode_bundle, encode_hashes, entries_path, tile_path

LOG = NoteSigner("example.com/record", SecretBytes(bytes(32)))
ENTRIES = [b'{"what":"release"}', b'{"what":"refusal"}']
FIRST, SECOND = (WitnessSigner(f"witness.example/{n}", SecretBytes(bytes([n]) * 32)) for n in (1, 2))


def exported(directory: Path, *cosigners: WitnessSigner) -> Path:
    """An export with the lines of these witnesses."""
    hashes = [leaf_hash(entry) for entry in ENTRIES]
    text = Checkpoint("example.com/record", 2, tree_root(hashes)).text()
    pieces = {
        tile_path(0, 0, 2): encode_hashes(hashes),
        entries_path(0, 2): encode_bundle(ENTRIES),
        "checkpoint": (LOG.sign(text) + "".join(cosigner.cosign(text, 100) for cosigner in cosigners)).encode(),
    }
    for path, content in pieces.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    return directory


def verify(directory: Path, *words: str) -> Result:
    return CliRunner().invoke(audit, ["verify", str(directory), "--key", str(LOG.verifier), *words])


def keys(*witnesses: WitnessSigner) -> list[str]:
    return [word for witness in witnesses for word in ("--witness", str(witness.verifier))]


def test_all_witnesses_are_needed_unless_a_quorum_is_named(tmp_path: Path) -> None:
    place = exported(tmp_path, FIRST)
    both = keys(FIRST, SECOND)
    assert verify(place, *keys(FIRST)).stdout == "good: 2 entries of example.com/record, cosigned by 1 of 1 witness\n"
    short = verify(place, *both)
    assert (short.exit_code, short.stdout.split(":")[0]) == (1, "not good")
    assert "1 of 2 witnesses cosigned the checkpoint, and 2 are needed" in short.stdout
    assert verify(place, *both, "--quorum", "1").exit_code == 0


def test_one_key_is_one_voice(tmp_path: Path) -> None:
    result = verify(exported(tmp_path, FIRST), *keys(FIRST, FIRST))
    assert (result.exit_code, "named twice" in result.stderr) == (2, True)


def test_a_quorum_of_more_than_there_are_is_refused(tmp_path: Path) -> None:
    assert verify(exported(tmp_path, FIRST), *keys(FIRST), "--quorum", "2").exit_code == 2


def test_the_key_of_a_log_is_not_the_key_of_a_witness(tmp_path: Path) -> None:
    result = verify(exported(tmp_path, FIRST), "--witness", str(LOG.verifier))
    assert (result.exit_code, "not an Ed25519 key of a witness" in result.stderr) == (3, True)


def test_a_key_keeps_the_name_that_it_was_made_under(tmp_path: Path) -> None:
    state = ["--state", str(tmp_path / "w")]
    made = CliRunner().invoke(witness, ["key", *state, "--name", "witness.example/a"])
    again = CliRunner().invoke(witness, ["key", *state])
    assert made.stdout == again.stdout
    assert made.stdout.startswith("witness.example/a+")
    assert ((tmp_path / "w" / "key.json").stat().st_mode & 0o777) == 0o600


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["key"], "a key needs a name"),
        (["key", "--name", "two words"], "cannot name a witness"),
        (["run", "--name", "w", "--log", "x"], "not an Ed25519 key of a log"),
        (["run", "--name", "w", "--log", ""], "not a key of a log"),
        (["run", "--name", "w", "--log", str(LOG.verifier), "--listen", "nowhere"], "is not an address"),
        (["run", "--name", "w", "--log", str(LOG.verifier), "--tls-cert", __file__], "belong together"),
        (
            ["run", "--name", "w", "--log", str(LOG.verifier), "--tls-cert", __file__, "--tls-key", __file__],
            "not a certificate",
        ),
    ],
)
def test_bad_input_is_named_with_what_to_do(tmp_path: Path, words: list[str], reason: str) -> None:
    result = CliRunner().invoke(witness, [words[0], "--state", str(tmp_path / "w"), *words[1:]])
    assert result.exit_code in (2, 3)
    assert reason in result.stderr
    assert "\n  " in result.stderr
