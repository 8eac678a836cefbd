"""The config server beside nginx: 200 KiB over a new TLS connection each, the same bytes from both.

Ours is `fastness serve --roles configserver --no-node-certificates --no-join-tokens`, a process of its own that reads an API
(here `fastness up`, whose CPU is not counted); it checks a join ticket for every request. nginx has one worker, sends the same
bytes from a file, checks nothing, and has session tickets off as every client here is new. Both show a P-256 certificate of the
same kind.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from bench.accounting import cpu_seconds
from bench.cases import Bench
from bench.figures import Progress, Row, Sample, Single, Spread, per_operation
from bench.loadgen import Job, run
from bench.targets import OURS, PATIENCE, Target, TargetError, ours
from fastness.crypto.x509 import CertificateAuthority
from fastness.enrolment.live.tickets import join_ticket, mint
from fastness.runtime.clock import SystemEntropy

NGINX = "nginx"
WANTED = 200 * 1024
POOL = "worker"
ACCEPT = "application/vnd.coreos.ignition+json;version=3.4.0"
CLIENTS = 16
REQUESTS = 1500
UPSTREAM_RATE, UPSTREAM_CPU_MS = 16.0, 118.0  # the best of its figures; see the page
_CONFIG = """{user}daemon off; worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/error.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; default_type application/json; keepalive_timeout 65;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  server {{
    listen 127.0.0.1:{port} ssl backlog=1024; root {directory}/root;
    ssl_certificate {directory}/tls.crt; ssl_certificate_key {directory}/tls.key;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_session_tickets off; ssl_session_cache off;
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class Door:
    """Something that serves a config over TLS."""

    name: str
    address: str
    ca: str
    token: str
    pids: tuple[int, ...]

    def job(self, count: int) -> Job:
        """The load of one round."""
        return Job(
            address=self.address, ca=self.ca, token=self.token, method="GET", path=f"/config/{POOL}", count=count,
            accept=ACCEPT, connections=CLIENTS, fresh=True,
        )  # fmt: skip


async def beside_nginx(bench: Bench, directory: Path, rounds: int, say: Progress) -> tuple[Row, list[Single]]:
    """The row and what stands beside it; raises TargetError without nginx."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise TargetError("there is no nginx: install it, or measure other families")
    with ExitStack() as stack:
        say("starting a config server and nginx")
        api = stack.enter_context(ours(directory / "ours"))
        door = stack.enter_context(_config_server(api, directory))
        body = _fetch(door)
        peer = stack.enter_context(_nginx(program, directory / "nginx", body))
        row = Row("serve-new", f"serve {len(body) / 1024:.0f} KiB, new TLS connection each", against=NGINX)
        for number in range(rounds):
            say(f"serve, round {number + 1} of {rounds}")
            for each in (door, peer) if number % 2 == 0 else (peer, door):
                sample = await _round(bench, each)
                (row.ours if each is door else row.peer).append(sample)
    rate = row.spread(row.ours, "rate")
    cpu = Spread.of([sample.cpu_us / 1000 for sample in row.ours])
    return row, [
        Single("serve a config, per second; beside it the upstream server, which renders each", rate, "per s",
               peer=UPSTREAM_RATE, at_most=False),
        Single("serve a config, CPU; beside it the upstream server, which renders each", cpu, "ms", peer=UPSTREAM_CPU_MS),
    ]  # fmt: skip


async def _round(bench: Bench, door: Door) -> Sample:
    spent: list[float] = []

    def note() -> None:
        spent.append(cpu_seconds(door.pids))

    outcome = await run(bench.program, door.job(bench.count(REQUESTS)), note, note)
    return per_operation(outcome.seconds, outcome.done, outcome.latency, spent[1] - spent[0])


@contextmanager
def _config_server(api: Target, directory: Path) -> Iterator[Door]:
    ticket = mint(SystemEntropy())
    with api.client() as client:
        _post(client, "/apis/machineconfiguration.openshift.io/v1/machineconfigs", _config())
        expires = datetime.now(UTC) + timedelta(days=1)
        _post(client, "/apis/fastness.dev/v1alpha1/jointickets", join_ticket("bench", ticket, POOL, expires))
        secret = client.get("/api/v1/namespaces/fastness-system/secrets/doors-ca").raise_for_status().json()
    ca = base64.b64decode(secret["data"]["ca.crt"]).decode()
    command = [
        str(Path(sys.executable).with_name("fastness")), "serve", "--roles", "configserver", "--no-node-certificates",
        "--no-join-tokens", "--metrics-port", "0", "--config-port", "0", "--internal-port", "0", "--log-level", "warning",
        "--kubeconfig", str(directory / "ours" / "state" / "kubeconfig"),
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        try:
            yield Door(OURS, _said(child), ca, ticket.reveal(), (child.pid,))
        finally:
            child.terminate()
            child.wait(PATIENCE)


def _said(child: subprocess.Popen[str]) -> str:
    """Where it serves configs, as it says itself."""
    assert child.stderr is not None
    lines: list[str] = []
    for line in child.stderr:
        lines.append(line)
        if line.startswith("configs on https://"):
            return line.removeprefix("configs on https://").partition(",")[0]
    raise TargetError(f"the config server ended: {' '.join(lines)[-300:]}")


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    client.post(path, json=body).raise_for_status()


def _config() -> dict[str, Any]:
    """A config whose answer has about 200 KiB: each byte of it goes out twice, the second time escaped."""
    text = "setting%20%3D%20value%0A" * 16
    files = [
        {"path": f"/etc/bench/{number:03}.conf", "mode": 420, "contents": {"source": f"data:,{text}"}}
        for number in range(182)
    ]
    body = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    meta = {"name": "50-bench", "labels": {"machineconfiguration.openshift.io/role": POOL}}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": meta,
        "spec": {"config": body},
    }  # fmt: skip


def _fetch(door: Door) -> bytes:
    """The answer, once the pool hands out the config of the benchmark."""
    trust = ssl.create_default_context(cadata=door.ca)
    headers = {"authorization": f"Bearer {door.token}", "accept": ACCEPT}
    deadline = time.monotonic() + PATIENCE
    with httpx.Client(base_url=f"https://{door.address}", verify=trust, headers=headers, trust_env=False) as client:
        while time.monotonic() < deadline:
            answer = client.get(f"/config/{POOL}")
            if answer.is_success and len(answer.content) > WANTED // 2:
                return answer.content
            time.sleep(0.1)
    raise TargetError("the pool did not hand out the config of the benchmark")


@contextmanager
def _nginx(program: str, directory: Path, body: bytes) -> Iterator[Door]:
    (directory / "root" / "config").mkdir(parents=True)
    (directory / "root" / "config" / POOL).write_bytes(body)
    now = datetime.now(UTC)
    authority = CertificateAuthority.create("bench", now, SystemEntropy())
    credential = authority.issue_server(["127.0.0.1"], timedelta(days=1), now)
    (directory / "tls.crt").write_bytes(credential.certificate.pem)
    (directory / "tls.key").touch(mode=0o600)
    (directory / "tls.key").write_bytes(credential.key_pem.reveal())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    user = (
        "" if os.geteuid() else "user root root; "
    )  # the directory is private, and root's worker would be somebody else
    (directory / "nginx.conf").write_text(_CONFIG.format(user=user, directory=directory, port=port))
    with subprocess.Popen([program, "-p", str(directory), "-c", str(directory / "nginx.conf")]) as child:
        try:
            workers = _workers(child.pid)
            door = Door(NGINX, f"127.0.0.1:{port}", authority.certificate.pem.decode(), "", (child.pid, *workers))
            yield door
        finally:
            child.terminate()
            child.wait(PATIENCE)


def _workers(master: int) -> list[int]:
    """The workers of nginx, once there are any."""
    children = Path(f"/proc/{master}/task/{master}/children")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if children.exists() and (pids := children.read_text().split()):
            return [int(pid) for pid in pids]
        time.sleep(0.05)
    raise TargetError("nginx did not start")
