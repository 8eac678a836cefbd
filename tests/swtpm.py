"""A real TPM in software: swtpm, provisioned by a certificate authority of its own, behind a Unix socket.

    with Maker(directory) as maker:
        with maker.tpm("one") as tpm: …           # tpm.tcti for tpm2-tools, maker.root for extraRoots

`swtpm_setup` makes endorsement keys and certificates (RSA 2048 and P-384) under the maker's CA; provisioning takes a second, so
it is done once for each name and copied. Sockets lie in a short path of their own: their length is limited to 108 bytes.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.x509 import Certificate
from tests.components import require_program

PROGRAMS = {
    "/usr/bin/swtpm": "swtpm",
    "/usr/bin/swtpm_setup": "swtpm-tools",
    "/usr/bin/swtpm_localca": "swtpm-tools",
    "/usr/bin/tpm2_quote": "tpm2-tools",
}
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
SECONDS = 60.0


@dataclass
class Swtpm:
    """One running TPM; `reset` switches it off and on, as a reboot does."""

    state: Path
    socket: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def tcti(self) -> str:
        """How tpm2-tools reach it."""
        return f"swtpm:path={self.socket}"

    def start(self) -> None:
        """Switch it on and wait until it listens."""
        control = self.socket.with_name(self.socket.name + ".ctrl")
        self.process = subprocess.Popen(
            [
                "swtpm", "socket", "--tpm2", "--tpmstate", f"dir={self.state}", "--server", f"type=unixio,path={self.socket}",
                "--ctrl", f"type=unixio,path={control}", "--flags", "not-need-init,startup-clear",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT,
        )  # fmt: skip
        deadline = time.monotonic() + SECONDS
        while not (self.socket.exists() and control.exists()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"swtpm did not come up: {self.process.poll()}")
            time.sleep(0.01)

    def stop(self) -> None:
        """Switch it off."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(SECONDS)
            self.process = None
        for path in self.socket.parent.glob("sock*"):
            path.unlink(missing_ok=True)

    def reset(self) -> None:
        """A reboot: registers begin anew, loaded keys and sessions are gone."""
        self.stop()
        self.start()

    def tool(self, name: str, *words: str) -> str:
        """Run one of tpm2-tools; what it printed; raises CalledProcessError."""
        done = subprocess.run(
            [f"tpm2_{name}", "-T", self.tcti, *words], capture_output=True, check=True, env=ENVIRONMENT, timeout=SECONDS
        )
        return done.stdout.decode()


@dataclass
class Maker:
    """Someone who makes TPMs: a certificate authority, and the state of each TPM as it left the factory."""

    directory: Path
    sockets: Path
    provisioned: dict[str, Path] = field(default_factory=dict)

    @property
    def certificates(self) -> list[Certificate]:
        """The intermediate and the root."""
        names = ("issuercert.pem", "swtpm-localca-rootca-cert.pem")
        return [load_certificates((self.directory / "ca" / name).read_bytes())[0] for name in names]

    @property
    def root(self) -> str:
        """SHA-256 of the root, as extraRoots names it."""
        return self.certificates[-1].fingerprint.hex

    def provision(self, name: str) -> Path:
        """A TPM with keys and certificates, made at first and remembered."""
        if name not in self.provisioned:
            state = self.directory / f"factory-{name}"
            state.mkdir()
            subprocess.run(
                [
                    "swtpm_setup", "--tpm2", "--tpmstate", str(state), "--config", str(self._config()), "--create-ek-cert",
                    "--pcr-banks", "sha1,sha256,sha384", "--vmid", name,
                ],
                check=True, capture_output=True, env=ENVIRONMENT, timeout=SECONDS,
            )  # fmt: skip
            self.provisioned[name] = state
        return self.provisioned[name]

    @contextlib.contextmanager
    def tpm(self, name: str = "one") -> Iterator[Swtpm]:
        """A running TPM that starts from its factory state each time."""
        with tempfile.TemporaryDirectory(prefix="tpm-", dir=self.sockets) as place:
            state = Path(place) / "state"
            shutil.copytree(self.provision(name), state)
            tpm = Swtpm(state, Path(place) / "sock")
            try:
                tpm.start()
                yield tpm
            finally:
                tpm.stop()

    def _config(self) -> Path:
        authority, setup = self.directory / "localca.conf", self.directory / "setup.conf"
        if not setup.exists():
            ca, options = self.directory / "ca", self.directory / "options"
            ca.mkdir()
            options.write_text(
                "--tpm-manufacturer id:00001014\n--tpm-model swtpm\n--tpm-version id:00020001\n--tpm-spec-family 2.0\n"
                "--tpm-spec-level 0\n--tpm-spec-revision 164\n"
            )
            authority.write_text(
                f"statedir = {ca}\nsigningkey = {ca}/signkey.pem\nissuercert = {ca}/issuercert.pem\n"
                f"certserial = {ca}/certserial\n"
            )
            setup.write_text(
                f"create_certs_tool = /usr/bin/swtpm_localca\ncreate_certs_tool_config = {authority}\n"
                f"create_certs_tool_options = {options}\n"
            )
        return setup


@contextlib.contextmanager
def made() -> Iterator[Maker]:
    """A maker with an authority of its own, below the temporary directory of the system."""
    for path, package in PROGRAMS.items():
        require_program(Path(path), package)
    with tempfile.TemporaryDirectory(prefix="fx-") as place:
        yield Maker(Path(place), Path(place))


@pytest.fixture(scope="session")
def tpm_maker() -> Iterator[Maker]:
    """The maker of every TPM of a test run."""
    with made() as maker:
        yield maker


@pytest.fixture
def swtpm(tpm_maker: Maker) -> Iterator[Swtpm]:
    """A TPM as it left the factory."""
    with tpm_maker.tpm("one") as tpm:
        yield tpm


@pytest.fixture
def other_swtpm(tpm_maker: Maker) -> Iterator[Swtpm]:
    """Another TPM of the same maker."""
    with tpm_maker.tpm("other") as tpm:
        yield tpm
