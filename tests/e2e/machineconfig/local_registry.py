"""A real registry on loopback with small images, some of them signed, and tools that pull as container runtimes do."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.bed import settings
from tests.bed.images import CONFIG, MANIFEST, Image, digest, push
from tests.patience import PATIENCE
from tests.realkube.cluster import free_ports
from tests.realkube.process import Program

SIGNATURE = "application/vnd.dev.cosign.simplesigning.v1+json"


class SigningKey:
    """A key that images are signed with, as cosign does it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    @property
    def public(self) -> str:
        """The public half as policies hold it: PEM in base64."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return base64.b64encode(self._key.public_key().public_bytes(serialization.Encoding.PEM, form)).decode()

    def sign(self, payload: bytes) -> str:
        """A signature in base64."""
        return base64.b64encode(self._key.sign(payload, ec.ECDSA(hashes.SHA256()))).decode()


@dataclass(frozen=True)
class LocalRegistry:
    """Where a registry is, as `host:port`."""

    address: str

    @property
    def url(self) -> str:
        """Its address with the scheme: there is no TLS on loopback."""
        return f"http://{self.address}"

    def push(
        self, path: str, tag: str, text: str, file: str = "etc-motd", labels: Mapping[str, str] | None = None
    ) -> str:
        """An image with one file of this text, and with labels; its digest."""
        sink = io.BytesIO()
        with tarfile.open(fileobj=sink, mode="w") as archive:
            entry = tarfile.TarInfo(file)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
        push(self.url, Image(path, tag, sink.getvalue(), labels=tuple((labels or {}).items())))
        with httpx.Client(base_url=self.url, trust_env=False) as http:
            answer = http.head(f"/v2/{path}/manifests/{tag}", headers={"accept": MANIFEST}).raise_for_status()
        return str(answer.headers["docker-content-digest"])

    def sign(self, path: str, image: str, key: SigningKey, name: str) -> None:
        """Put a signature beside an image, which says that the image of this digest is called `name`."""
        what = {"type": "cosign container image signature", "image": {"docker-manifest-digest": image}}
        payload = json.dumps({"critical": {**what, "identity": {"docker-reference": name}}, "optional": {}}).encode()
        config = json.dumps({"architecture": "", "os": "", "rootfs": {"type": "layers", "diff_ids": []}}).encode()
        notes = {"dev.cosignproject.cosign/signature": key.sign(payload)}
        layer = {"mediaType": SIGNATURE, "digest": digest(payload), "size": len(payload), "annotations": notes}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest(config), "size": len(config)},
            "layers": [layer],
        }
        tag = f"{image.replace(':', '-')}.sig"
        with httpx.Client(base_url=self.url, trust_env=False) as http:
            for blob in (payload, config):
                place = http.post(f"/v2/{path}/blobs/uploads/").raise_for_status().headers["location"]
                parameters = {**httpx.URL(place).params, "digest": digest(blob)}
                http.put(place, params=parameters, content=blob).raise_for_status()
            headers = {"content-type": MANIFEST}
            place = f"/v2/{path}/manifests/{tag}"
            http.put(place, content=json.dumps(manifest), headers=headers).raise_for_status()


@contextmanager
def running_registry(
    program: Path, directory: Path, passwords: str = "", *, deletes: bool = False
) -> Iterator[LocalRegistry]:
    """A registry on loopback for the time of the block, with a line of htpasswd only for whoever knows it; raises StartFailed.

    With `deletes` images can be taken out of it, which registries leave off unless they are asked.
    """
    (port,) = free_ports(1)
    registry = LocalRegistry(f"127.0.0.1:{port}")
    config = directory / "registry.yml"
    document = json.loads(settings.registry_settings(str(directory / "storage"), registry.address))
    if passwords:
        (directory / "htpasswd").write_text(passwords)
        document["auth"] = {"htpasswd": {"realm": "tests", "path": str(directory / "htpasswd")}}
    if deletes:
        document["storage"]["delete"] = {"enabled": True}
    config.write_text(json.dumps(document))
    started = Program.start(program, ["serve", str(config)], directory, os.getpid())
    try:
        _until_ready(registry, started)
        yield registry
    finally:
        started.stop()


def _until_ready(registry: LocalRegistry, program: Program) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if program.ended():
            raise program.failure("ended")
        try:
            answer = httpx.get(f"{registry.url}/v2/", trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
            continue
        if answer.status_code != httpx.codes.UNAUTHORIZED:
            answer.raise_for_status()
        return
    raise program.failure("was not ready in time")


@dataclass(frozen=True)
class Machine:
    """A directory with the files of a machine, and pulls as the container runtime of that machine would make them.

    `tool` is skopeo of a distribution, or `ask-image` of tools/images, which is the library itself.
    """

    root: Path
    tool: Path

    def write(self, files: Mapping[str, str]) -> None:
        """Put files where they belong."""
        for path, text in files.items():
            place = self.root / path.removeprefix("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

    def pull(self, reference: str, policy: str = "/etc/containers/policy.json") -> str:
        """Pull an image; why that failed, empty if it did not."""
        command = self._skopeo(reference, policy)
        if self.tool.name != "skopeo":
            command = [str(self.tool), "-root", str(self.root), "-policy", policy, reference]
        environment = {"HOME": str(self.root), "PATH": os.environ["PATH"]}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False)
        return "" if done.returncode == 0 else done.stderr

    def _skopeo(self, reference: str, policy: str) -> list[str]:
        containers = self.root / "etc/containers"
        return [
            str(self.tool), "--registries-conf", str(containers / "registries.conf"),
            "--policy", str(self.root / policy.removeprefix("/")), "--registries.d", str(containers / "registries.d"),
            "copy", f"docker://{reference}", f"dir:{self.root / 'pulled'}",
        ]  # fmt: skip
