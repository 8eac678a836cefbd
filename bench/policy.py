"""Policies: CPU of one evaluation on real claims, of new values, of a resource, of the book; in a process of its own.

`python -m bench.policy ROUNDS` prints the figures that `figures` reads: lists of microseconds by name. The claims are those of
simulated machines with whole event logs, and the book has the values of a hundred images.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bench.figures import Progress, Single, Spread
from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.policy.claims import policy_input
from fastness.attestation.policy.policy import built_in_text, default_policy
from fastness.attestation.policy.query import ActivePolicy, about_evidence
from fastness.attestation.policy.resource_policy import Request, default_resource_policy
from fastness.attestation.values.values import ReferenceValues
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.snp.envelope import parse_evidence as parse_snp
from fastness.formats.evidence.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.kinds.kind import JsonObject
from fastness.runtime.clock import SystemClock
from fastness.sim.tee import SimVendor, default_image
from fastness.sim.tee.vendor import EPOCH

IMAGES = 100
EVALUATIONS = 100
AIM_US = 500.0
TEES = ("tpm", "snp", "tdx")
NEW_VALUES = "first evaluation after values changed: CPU"
BOOK = f"book of the values of {IMAGES} images: CPU"
RESOURCE = "one resource by the built-in policy: CPU"
USERS = "a policy of a user in its process, another machine each time: time"
USERS_AGAIN = "the same for a machine that showed the same before: time"
NONCE = bytes(32)
ROOT = Path(__file__).resolve().parent.parent


def evaluation(tee: str) -> str:
    """The name of a figure."""
    return f"evaluate the policy for {tee}, values of {IMAGES} images: CPU"


def again(tee: str) -> str:
    """The name of a figure: another machine that booted the same image."""
    return f"the same for another {tee} machine that booted the same: CPU"


def figures(say: Progress, rounds: int) -> list[Single]:
    """Every figure, measured in a process that does nothing else."""
    say("policies")
    command = [sys.executable, "-m", "bench.policy", str(max(5, 3 * rounds))]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    spreads = {name: Spread.of(values) for name, values in orjson.loads(done.stdout).items()}
    return [
        *(Single(evaluation(tee), spreads[evaluation(tee)], "µs", AIM_US) for tee in TEES),
        *(Single(again(tee), spreads[again(tee)], "µs") for tee in TEES),
        Single(RESOURCE, spreads[RESOURCE], "µs", AIM_US),
        Single(USERS, spreads[USERS], "µs"),
        Single(USERS_AGAIN, spreads[USERS_AGAIN], "µs"),
        Single(NEW_VALUES, spreads[NEW_VALUES], "µs"),
        Single(BOOK, spreads[BOOK], "µs"),
    ]


def measured(rounds: int) -> dict[str, list[float]]:
    """Microseconds of CPU by name."""
    sets = list(_sets())
    book = ReferenceValues.of(sets, EPOCH)
    vendor = SimVendor()
    result: dict[str, list[float]] = {}
    for tee in TEES:
        document, policy = policy_input(_appraised(vendor, tee), {"nonce": "n"}), default_policy(tee)
        assert policy.evaluate(document, book).affirms(tee), f"{tee} is not affirmed"
        result[again(tee)] = _each(rounds, EVALUATIONS, partial(policy.recall, document, book))
        result[evaluation(tee)] = _each(rounds, EVALUATIONS, partial(policy.evaluate, document, book))
    gate, claims = default_resource_policy(), {"submods": {"cpu0": {"ear.status": "affirming"}}}
    result[RESOURCE] = _each(rounds, EVALUATIONS, lambda: gate.allow(claims, Request(("pool", "worker", "key"))))
    document, policy = policy_input(_appraised(vendor, "tpm"), {}), default_policy("tpm")
    books = iter([ReferenceValues.of([*sets, _set(f"more-{n}", "tpm", f"{n:064x}")], EPOCH) for n in range(rounds)])
    result[NEW_VALUES] = _each(rounds, 1, lambda: policy.evaluate(document, next(books)))
    result |= asyncio.run(_users(rounds, document, book))
    result[BOOK] = _each(rounds, 1, lambda: ReferenceValues.of(sets, EPOCH).digest)
    return result


async def _users(rounds: int, document: JsonObject, book: ReferenceValues) -> dict[str, list[float]]:
    """A policy of a user, asked as a verifier asks it: elapsed time, because the work is done by another process."""
    policy = ActivePolicy("users", "tpm", built_in_text("tpm"), "v")
    fresh, again = list[float](), list[float]()
    async with PolicyWorkers(SystemClock()) as workers:
        await workers.answer(about_evidence(policy, document, book))
        for number in range(rounds * 10):
            other = {**document, "tpm": {**document["tpm"], "pcr12": f"{number:064x}"}}
            for spent in (fresh, again):
                began = time.perf_counter()
                await workers.answer(about_evidence(policy, other, book))
                spent.append(1e6 * (time.perf_counter() - began))
    return {USERS: fresh, USERS_AGAIN: again}


def _each(rounds: int, times: int, work: Callable[[], Any]) -> list[float]:
    spent = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(times):
            work()
        spent.append(1e6 * (time.process_time() - began) / times)
    return spent


def _sets() -> Iterable[JsonObject]:
    """One image that the machines booted, and many that they did not."""
    values = [value for tee in TEES for value in default_image().reference_values(tee)]
    yield {"metadata": {"name": "booted"}, "spec": {"source": "manual", "values": values}}
    for number in range(IMAGES - 1):
        yield _set(f"image-{number}", "tpm", f"{number:064x}")


def _set(name: str, tee: str, value: str) -> JsonObject:
    others = [{**entry, "value": value} for entry in default_image().reference_values(tee)]
    return {"metadata": {"name": name}, "spec": {"source": "manual", "values": others}}


def _appraised(vendor: SimVendor, tee: str) -> Appraisal:
    machine: Any = vendor.chip(tee).boot(default_image())
    data = orjson.dumps(machine.quote(NONCE))
    if tee == "tpm":
        key = AttestationKey(machine.identity_key.public_der())
        return appraise_tpm(parse_envelope(data), TpmExpectations(nonce=NONCE, known_key=key))
    if tee == "snp":
        snp = parse_snp(data)
        pool = [entry for der in snp.certificates for entry in load_certificates(der)]
        return appraise_snp(snp.report, pool, SnpExpectations(nonce=NONCE, roots=vendor.roots.amd), EPOCH)
    tdx = parse_tdx(data)
    expected = TdxExpectations(
        nonce=NONCE, root=vendor.roots.intel, collateral=vendor.collateral(EPOCH), event_log=tdx.event_log
    )
    return appraise_tdx(tdx.quote, [], expected, EPOCH)


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(measured(int(sys.argv[1]))))
