"""An image run by runc alone: root that cannot be written, no capabilities, no way to gain any, as the user that it names."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE
from tools.release.layout import Built, blob_path, document

RUNC = "runc"


class Container:
    """An unpacked image."""

    def __init__(self, image: Built, directory: Path) -> None:
        self.directory = directory
        manifest = document(image.layout, image.digest)
        self.config: dict[str, Any] = document(image.layout, manifest["config"]["digest"])["config"]
        self.root = directory / "rootfs"
        self.root.mkdir()
        for layer in manifest["layers"]:
            blob = blob_path(image.layout, layer["digest"])
            subprocess.run(["tar", "--extract", "--file", blob, "--directory", self.root], check=True, timeout=PATIENCE)

    def run(self, *words: str, entrypoint: Sequence[str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run the image with arguments, or another program of it."""
        program = list(self.config["Entrypoint"] if entrypoint is None else entrypoint)
        (self.directory / "config.json").write_text(json.dumps(self._spec([*program, *words])))
        name = f"fastness-{secrets.token_hex(4)}"
        command = [RUNC, "--root", str(self.directory / "state"), "run", "--bundle", str(self.directory), name]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)

    def _spec(self, words: list[str]) -> dict[str, Any]:
        """The container, as the OCI runtime specification has it."""
        user, group = (int(number) for number in self.config["User"].split(":"))
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": user, "gid": group}, "args": words, "env": self.config["Env"],
                "cwd": self.config["WorkingDir"], "noNewPrivileges": True,
                "capabilities": {kind: [] for kind in ("bounding", "effective", "permitted", "inheritable", "ambient")},
            },
            "root": {"path": "rootfs", "readonly": True},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
            ],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
        }  # fmt: skip
