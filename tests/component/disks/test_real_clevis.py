"""Debian's own clevis on a LUKS2 file, with the key of a root that our broker gives: bound once, opened at every boot.

Real: `clevis luks bind`, `list` and `pass`, `clevis decrypt`, jose, cryptsetup, and the broker over the wire. The pin `trustee`
and `trustee-attester` are in no distribution: stand-ins do what the public ones do, which is fetch a key of 32 characters by URL
and path, and seal with it as it is. Server and path come from the token on the disk, as they do there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fastness.formats import json
from tests.components import require_program
from tests.pinning import PinnedMachine, PinSite, pin_site

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]
ROOT = Path(__file__).parents[3]
NEEDED = {"clevis": "clevis", "clevis-luks-bind": "clevis-luks", "jose": "jose", "cryptsetup": "cryptsetup-bin"}
# A key of 32 characters, used as the bytes that it is written with.
FETCH = """#!/bin/bash
set -euo pipefail
key_of() {
    local url path
    url=$(jose fmt -j- -Og servers -Ag 0 -Og url -u- <<< "$1")
    path=$(jose fmt -j- -Og path -u- <<< "$1")
    trustee-attester --url "$url" get-resource --path "$path" | base64 -d > "$scratch/answer"
    jose fmt -j "$scratch/answer" -Og key -u- | tr -d '\\n' | jose b64 enc -I- > "$scratch/key"
    printf '{"kty":"oct","k":"%s"}' "$(cat "$scratch/key")"
}
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
"""
ENCRYPT = (
    FETCH
    + """
[ "${1-}" = --summary ] && { echo "stand-in of the pin trustee"; exit 0; }
plain=$(cat; echo .); jwk=$(key_of "$1")
head=$(jose fmt -j '{"alg":"dir","enc":"A256GCM"}' -j '{}' -q trustee -s pin -U -j "$1" -s trustee -U -s clevis -U -o-)
printf %s "${plain%.}" | jose jwe enc -i "{\\"protected\\":$head}" -k <(printf %s "$jwk") -I- -c
"""
)
DECRYPT = (
    FETCH
    + """
sealed=$(cat)
config=$(jose b64 dec -i- <<< "${sealed%%.*}" | jose fmt -j- -Og clevis -Og trustee -o-)
printf %s "$sealed" | jose jwe dec -i- -k <(key_of "$config")
"""
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PinSite]:
    async with pin_site(tmp_path_factory.mktemp("pins")) as shared:
        yield shared


class Image:
    """What an image of a trusted-execution cluster brings: the pin, its attester, and a root on a LUKS2 file."""

    def __init__(self, directory: Path, machine: PinnedMachine) -> None:
        self.directory, self.machine = directory, machine
        self.disk = directory / "root.luks"
        attester = f'#!/bin/sh\nexec {sys.executable} -m tests.standins.trustee_attester "$@"\n'
        programs = {"clevis-encrypt-trustee": ENCRYPT, "clevis-decrypt-trustee": DECRYPT, "trustee-attester": attester}
        for name, text in programs.items():
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        (directory / "doors.pem").write_text(machine.pin["servers"][0]["cert"])
        with self.disk.open("wb") as file:
            file.truncate(32 << 20)
        (directory / "first").write_text("the key of the installation")
        format_options = "--type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file"
        self.run("cryptsetup", "luksFormat", "-q", *format_options.split(), self.path("first"), str(self.disk))

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def boot(self, *words: str, **state: Any) -> subprocess.CompletedProcess[str]:
        """Run a program of the initial file system in a boot of this machine."""
        tpm = json.encode({**asdict(self.machine.tpm), **state}).decode()
        environment = {
            **os.environ, "PATH": f"{self.directory}:/usr/sbin:{os.environ['PATH']}", "STANDIN_TPM": tpm,
            "SSL_CERT_FILE": self.path("doors.pem"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }  # fmt: skip
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)

    def run(self, *words: str, **state: Any) -> str:
        done = self.boot(*words, **state)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def bind(self, pin: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        config = json.encode(pin).decode()
        return self.boot(
            "clevis", "luks", "bind", "-f", "-k", self.path("first"), "-d", str(self.disk), "trustee", config, boot=60
        )

    def passphrase(self, **state: Any) -> subprocess.CompletedProcess[str]:
        return self.boot("clevis", "luks", "pass", "-d", str(self.disk), "-s", "1", **state)

    def opens(self, passphrase: str) -> bool:
        self.directory.joinpath("passphrase").write_text(passphrase)
        words = ("open", "--test-passphrase", "--key-slot", "1", "--key-file", self.path("passphrase"), str(self.disk))
        return self.boot("cryptsetup", *words).returncode == 0


async def test_clevis_binds_a_root_to_the_key_of_its_machine_and_opens_it_by_proof_alone(
    site: PinSite, tmp_path: Path
) -> None:
    for name, package in NEEDED.items():
        require_program(Path(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") or f"/usr/bin/{name}"), package)
    machine = await site.enrolled()
    image = await asyncio.to_thread(Image, tmp_path, machine)
    pin = {"servers": machine.pin["servers"], "path": machine.path}
    bound = await asyncio.to_thread(image.bind, pin)
    assert bound.returncode == 0, bound.stderr
    listed = await asyncio.to_thread(image.run, "clevis", "luks", "list", "-d", str(image.disk))
    assert "trustee" in listed, "a pin that this version of clevis has no words for"
    # A reboot opens it by proof; the key of the broker is nowhere on the disk.
    opened = await asyncio.to_thread(image.passphrase, boot=61)
    assert opened.returncode == 0, opened.stderr
    assert await asyncio.to_thread(image.opens, opened.stdout)
    key = (await site.key(machine, boot=61))["key"]
    assert key.encode() not in image.disk.read_bytes()
    # Something else that boots gets none, nor does one in quarantine, nor another path that the host writes.
    for state in ({"boot": 62, "image": "tampered"}, {"boot": 63, "serial": machine.tpm.serial + 5000}):
        other = await asyncio.to_thread(image.passphrase, **state)
        assert (other.returncode != 0, other.stdout) == (True, ""), state
    await site.patch(machine, spec={"approval": "Quarantined"})
    held = await asyncio.to_thread(image.passphrase, boot=64)
    assert (held.returncode != 0, held.stdout) == (True, "")
