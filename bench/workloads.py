"""Confidential workloads: CPU of the verbs of init data, of agent policies, and of judging a pod; in a process of its own.

`python -m bench.workloads ROUNDS` prints microseconds by name. The document is one that people use: both settings files with a
certificate, and the policy that `fastness policy agent write` makes for a pod. Nothing here is a gate.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from bench.figures import Progress, Single, Spread
from fastness.admission.table import BEHIND_WEBHOOK
from fastness.formats.initdata import decode_init_data, encode_init_data, parse_init_data, write_init_data
from fastness.kube.access.user import User
from fastness.kube.admission import AdmissionRequest, Allowed, Operation
from fastness.workloads.admission.workloads import ENFORCEMENT
from fastness.workloads.agent_policy.decide import decide
from fastness.workloads.agent_policy.generate import policy_of
from fastness.workloads.agent_policy.lint import lint_policy
from fastness.workloads.initdata.lint import lint_encoded, lint_text
from fastness.workloads.initdata.registers import registers
from fastness.workloads.initdata.workload import applied
from tests.unit.admission.writes import World

BUILD = "init data: build from three entries: CPU"
READ = "init data: unpack and parse: CPU"
LINT = "init data: every rule but the engine's: CPU"
DIGEST = "init data: digest, HOSTDATA, MRCONFIGID and PCR 8: CPU"
WRITE = "agent policy: write one for a pod: CPU"
LINT_POLICY = "agent policy: lint the text: CPU"
DECIDE = "agent policy: one request by the engine, with the line: CPU"
JUDGE = "admission: one pod in a namespace that requires everything: CPU"
ROOT = Path(__file__).resolve().parent.parent
TIMES = {DECIDE: 20}

CERTIFICATE = "-----BEGIN CERTIFICATE-----\n" + "QUJD" * 400 + "\n-----END CERTIFICATE-----\n"
URL = "https://broker.example.com"
POD: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"},
    "spec": {"runtimeClassName": "kata-cc", "containers": [
        {"name": f"c{number}", "image": f"example.com/c@sha256:{number:064x}", "command": ["/bin/serve", "--port", "8080"]}
        for number in range(3)
    ]},
}  # fmt: skip


def figures(say: Progress, rounds: int) -> list[Single]:
    """Every figure, measured in a process that does nothing else."""
    say("confidential workloads")
    command = [sys.executable, "-m", "bench.workloads", str(max(3, rounds))]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return [Single(name, Spread.of(values), "µs") for name, values in orjson.loads(done.stdout).items()]


def entries() -> dict[str, str]:
    """What a guest is started with."""
    aa = f'[token_configs.kbs]\nurl = "{URL}"\ncert = """\n{CERTIFICATE}"""\n'
    cdh = f'[kbc]\nname = "cc_kbc"\nurl = "{URL}"\nkbs_cert = """\n{CERTIFICATE}"""\n'
    return {"aa.toml": aa, "cdh.toml": cdh, "policy.rego": policy_of(POD)}


def verbs() -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    given = entries()
    text = write_init_data("sha256", given).encode()
    encoded, policy = encode_init_data(text), given["policy.rego"]
    document = parse_init_data(text.decode())
    pod = applied(POD, encoded)
    namespace = {"metadata": {"name": "d", "labels": {ENFORCEMENT: "deny"}}}
    world = World(namespaces={"d": namespace}, classes={"kata-cc": {"handler": "kata-tdx"}})
    request = AdmissionRequest(
        operation=Operation.CREATE, user=User("a"), group="", version="v1", kind="Pod", resource="pods", name="p",
        namespace="d", object=pod,
    )  # fmt: skip
    assert BEHIND_WEBHOOK.review(request, world) == Allowed(), "the pod must pass, or nothing is measured"
    return {
        BUILD: lambda: encode_init_data(write_init_data("sha256", given).encode()),
        READ: lambda: parse_init_data(decode_init_data(encoded).decode()),
        LINT: lambda: (lint_encoded(encoded), lint_text(text)),
        DIGEST: lambda: registers(document),
        WRITE: lambda: policy_of(POD),
        LINT_POLICY: lambda: lint_policy(policy),
        DECIDE: lambda: decide(policy, "ExecProcessRequest", {"process": {"Args": ["sh"]}}),
        JUDGE: lambda: BEHIND_WEBHOOK.review(request, world),
    }


def measured(rounds: int) -> dict[str, list[float]]:
    """Microseconds of CPU by name."""
    result: dict[str, list[float]] = {}
    for name, verb in verbs().items():
        times = TIMES.get(name, 200)
        verb()
        for _ in range(rounds):
            began = time.process_time()
            for _ in range(times):
                verb()
            result.setdefault(name, []).append(1e6 * (time.process_time() - began) / times)
    return result


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(measured(int(sys.argv[1]))))
