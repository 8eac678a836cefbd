"""Controllers on a bed that build images in Jobs, as `fastness serve` with what the chart gives it, and a registry with a login.

    with building(bed, image, directory) as site:
        site.describe("RUN echo hello > /etc/greeting")      # a MachineOSConfig for pool worker
        site.image()                                         # what it says that was built

The controllers run in the bed's network, with the account of their role and the rights of builds and no others. Images go to a
registry of the site's own, which takes nothing from anybody without a login; bases come from the bed's.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from fastness.app.accounts import builds
from fastness.builds.build_objects import NAMESPACE
from fastness.kinds.machineconfiguration import names
from tests.bed import Bed
from tests.bed.bed import ADDRESS
from tests.bed.images import MANIFEST, busybox_image, push
from tests.bed.kubectl import Kubectl
from tests.bed.space import command
from tests.e2e.bed.walking import forget
from tests.e2e.live import FASTNESS, environment, run
from tests.e2e.machineconfig.enforcing import installed
from tests.patience import PATIENCE, eventually
from tests.realkube.cluster import free_ports
from tests.realkube.process import Program

# A line of htpasswd: bcrypt of the password.
LOGIN = ("builder", "of-the-site", "builder:$2b$05$abcdefghijklmnopqrstuuxlf0lDjonOyIcR9ZNF7ovDCu/R217em")
API = "machineconfiguration.openshift.io/v1"
LONG = 3 * PATIENCE


@dataclass
class ClosedRegistry:
    """A registry in the bed that takes nothing from anybody without a login."""

    bed: Bed
    directory: Path
    port: int
    program: Program | None = None

    @property
    def address(self) -> str:
        """As pods, nodes and controllers name it."""
        return f"{ADDRESS}:{self.port}"

    @property
    def url(self) -> str:
        """Where tests reach it."""
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> httpx.Client:
        """Somebody who has the login."""
        return httpx.Client(base_url=self.url, auth=LOGIN[:2], trust_env=False, timeout=PATIENCE)

    def start(self) -> None:
        """Serve, or serve again what is there."""
        self.stop()
        (self.directory / "users").write_text(f"{LOGIN[2]}\n")
        config = {
            "version": "0.1", "log": {"level": "warn"}, "http": {"addr": f"0.0.0.0:{self.port}"},
            "storage": {"filesystem": {"rootdirectory": str(self.directory / "images")}, "delete": {"enabled": True}},
            "auth": {"htpasswd": {"realm": "site", "path": str(self.directory / "users")}},
        }  # fmt: skip
        (self.directory / "registry.yml").write_text(json.dumps(config))
        words = ["serve", str(self.directory / "registry.yml")]
        self.program = self.bed.network.run(Path(command("docker-registry")), words, self.directory)
        eventually(self._answers, "the registry of the site")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/v2/", trust_env=False).status_code == 401
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """Serve nobody."""
        if self.program is not None:
            self.program.stop()
            self.program = None

    def secret(self, name: str, login: tuple[str, str] = LOGIN[:2]) -> dict[str, Any]:
        """A Secret of a registry, as `kubectl create secret docker-registry` makes it."""
        auth = base64.b64encode(":".join(login).encode()).decode()
        content = json.dumps({"auths": {self.address: {"auth": auth}}}).encode()
        return {
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {".dockerconfigjson": base64.b64encode(content).decode()},
        }  # fmt: skip


@dataclass
class BuildSite:
    """The controllers, the registry, and what an administrator does."""

    bed: Bed
    registry: ClosedRegistry
    builder: str
    directory: Path
    base: str
    kubectl: Kubectl = field(init=False)
    controllers: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.kubectl = Kubectl(self.bed.kube.kubeconfig, NAMESPACE)

    # ------------------------------------------------------------ the control plane

    def start(self) -> None:
        """The controllers, as the chart starts them."""
        config = self._kubeconfig()
        words = [
            str(FASTNESS), "serve", "--roles", "controllers", "--kubeconfig", str(config), "--metrics-port", "0",
            "--lease-seconds", "5", "--builder-image", self.builder, "--builder-privileged", "--builder-seconds", "300",
        ]  # fmt: skip
        with (self.directory / "controllers.log").open("ab") as log:
            self.controllers = subprocess.Popen(
                [*self.bed.enter, *words], env=environment(self.directory), stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End the controllers without a warning."""
        if self.controllers is not None and self.controllers.poll() is None:
            self.controllers.send_signal(signal.SIGKILL)
            self.controllers.wait()

    def _kubeconfig(self) -> Path:
        person = environment(self.directory, KUBECONFIG=str(self.bed.kube.kubeconfig))
        config = yaml.safe_load(self.bed.kube.kubeconfig.read_text().replace(self.bed.kube.url, self.bed.inner_url))
        words = ["kubectl", "create", "token", "fastness-controllers", "-n", "fastness-system"]
        config["users"][0]["user"] = {"token": run(words, person).out.strip()}
        path = self.directory / "controllers.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    @property
    def log(self) -> str:
        """What the controllers wrote so far."""
        return (self.directory / "controllers.log").read_text(errors="replace")

    # ------------------------------------------------------------ what an administrator does

    def describe(self, text: str) -> None:
        """A MachineOSConfig for pool worker, or another text for it."""
        self.kubectl.apply({
            "apiVersion": API, "kind": "MachineOSConfig", "metadata": {"name": "worker"},
            "spec": {
                "machineConfigPool": {"name": "worker"}, "imageBuilder": {"imageBuilderType": "Job"},
                "renderedImagePushSecret": {"name": "push"},
                "renderedImagePushSpec": f"{self.registry.address}/os/worker:latest", "containerFile": [{"content": text}],
            },
        })  # fmt: skip

    def read(self, what: str, *words: str) -> dict[str, Any]:
        """An object, or all of a kind."""
        return dict(json.loads(self.kubectl.ok("get", what, *words, "-o", "json")))

    def image(self) -> str:
        """The image that the MachineOSConfig names; empty while there is none."""
        return str((self.read("machineosconfig/worker").get("status") or {}).get("currentImagePullSpec") or "")

    def builds(self) -> list[dict[str, Any]]:
        """All builds."""
        return list(self.read("machineosbuilds")["items"])

    def until(self, holds: Any, what: str) -> None:
        """Wait for something that a build takes."""
        try:
            eventually(holds, what, LONG)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.report()}") from error

    def report(self) -> str:
        """What one needs who must find out why."""
        parts = [self.log[-3000:]]
        for words in (
            ("get", "pods,jobs", "-o", "wide"),
            ("describe", "pods"),
            ("get", "machineosbuilds", "-o", "yaml"),
        ):
            with suppress(AssertionError):
                parts.append(self.kubectl.ok(*words)[-4000:])
        return "\n---\n".join(parts)


@contextmanager
def building(bed: Bed, builder: str, directory: Path) -> Iterator[BuildSite]:
    """Everything for the time of the block; afterwards nothing of it is in the bed."""
    forget(bed)
    installed(bed.kube)
    (port,) = free_ports(1)
    bed.open([port])
    (directory / "registry").mkdir()
    registry = ClosedRegistry(bed, directory / "registry", port)
    registry.start()
    site = BuildSite(bed, registry, builder, directory, _base(bed))
    try:
        for document in builds():
            site.kubectl.apply(document)
        facts = f"--from-literal=kubeconfig={{clusters: [{{cluster: {{server: '{bed.inner_url}'}}}}]}}"
        site.kubectl.ok("create", "configmap", "cluster-info", "-n", "kube-public", facts)
        _furnish(site)
        site.start()
        site.kubectl.wait("controllerconfig/machine-config-controller", "create")
        dns = '{"spec":{"clusterDNSIP":"10.96.0.10"}}'
        site.kubectl.ok("patch", "controllerconfig", "machine-config-controller", "--type=merge", "-p", dns)
        site.kubectl.wait("mcp/worker", "create")
        yield site
    finally:
        site.kill()
        registry.stop()
        site.kubectl.ok("delete", "role,rolebinding", "fastness-builds", "--ignore-not-found")
        _let_go(site)
        forget(bed)


def _let_go(site: BuildSite) -> None:
    """Builds wait for somebody who takes their images away, and he is gone."""
    for build in site.builds():
        patch = '{"metadata":{"finalizers":null}}'
        site.kubectl.ok("patch", "machineosbuild", build["metadata"]["name"], "--type=merge", "-p", patch)


def _base(bed: Bed) -> str:
    """An operating system to build on, in the bed's registry, by digest."""
    image = busybox_image(Path(command("busybox")))
    push(bed.registry, image)
    answer = httpx.head(
        f"{bed.registry}/v2/{image.path}/manifests/{image.tag}", headers={"accept": MANIFEST}, trust_env=False
    ).raise_for_status()
    inside = bed.registry.removeprefix("http://").replace("127.0.0.1", ADDRESS)
    return f"{inside}/{image.path}@{answer.headers['docker-content-digest']}"


def _furnish(site: BuildSite) -> None:
    """What every administrator has before a first build: a secret, registries that are known, a base."""
    site.kubectl.apply(site.registry.secret("push"))
    plain = [site.registry.address, site.base.partition("/")[0]]
    site.kubectl.apply({
        "apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"},
        "spec": {"registrySources": {"insecureRegistries": plain}},
    })  # fmt: skip
    site.kubectl.apply({
        "apiVersion": API, "kind": "MachineConfig", "metadata": {"name": "10-base", "labels": {names.ROLE_LABEL: "worker"}},
        "spec": {"osImageURL": site.base},
    })  # fmt: skip
