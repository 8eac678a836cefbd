"""Canaries: what is secret is in no log line, no refusal and no metric, whatever goes wrong."""

from __future__ import annotations

import io
import logging
import random

from fastness.observe import logs, metrics
from tests.component.release.broker.brokered_cluster import ENTROPY, BrokeredCluster, Guest, subject

CANARY = b"canary-7f3a9e"
STATUS = "default/attestation-status/status"


class _Listening:
    """All log lines for the time of the block."""

    def __enter__(self) -> io.StringIO:
        root = logging.getLogger("fastness")
        self._before = root.handlers[:], root.level, root.propagate
        self.text = io.StringIO()
        logs.configure(level="debug", stream=self.text, as_json=True)
        return self.text

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger("fastness")
        root.handlers[:], level, root.propagate = self._before
        root.setLevel(level)


async def test_secrets_tokens_cookies_and_names_of_resources_stay_out_of_logs_refusals_and_metrics(
    here: BrokeredCluster,
) -> None:
    with _Listening() as lines:
        texts: list[str] = []
        guest = await here.guest()
        own = f"machine/{guest.who.machine}/{CANARY.decode()}"
        admin = await here.admin()
        answer = await guest.http.post(f"/kbs/v0/resource/{own}", content=CANARY, headers={"authorization": admin})
        texts.append(answer.text)
        nonce = await guest.challenge()
        challenge = guest.http.cookies["kbs-session-id"]
        await guest.send(guest.evidence(nonce))
        session = guest.http.cookies["kbs-session-id"]
        answer = await guest.get(own)
        assert CANARY not in answer.content
        here.ledger.broken = True
        texts.append((await guest.get(own)).text)
        here.ledger.broken = False
        here.judge.answer = RuntimeError(CANARY.decode())
        failed = await Guest(await here.client(), subject("b")).attest()
        assert failed.status_code == 500
        texts.append(failed.text)
        texts.append((await guest.get("machine/other/canary-7f3a9e")).text)
        texts.append((await guest.http.get(f"/kbs/v0/resource/{STATUS}", headers={"authorization": admin})).text)
        here.judge.answer = None
    logged = "\n".join(line for line in lines.getvalue().splitlines() if '"request.failed"' not in line)
    for secret in (CANARY.decode(), challenge, session, guest.token or challenge, admin, nonce):
        assert secret not in logged
        assert secret not in "".join(texts)
        assert secret.encode() not in metrics.exposition()
    # A defect is told with its traceback to operators, and to nobody else.
    assert "request.failed" in lines.getvalue()
    assert "internal" in failed.text


async def test_the_record_names_who_what_and_why_and_no_secret(here: BrokeredCluster) -> None:
    guest = await here.guest()
    own = f"machine/{guest.who.machine}/key"
    await here.put(own, CANARY)
    await guest.attest()
    await guest.read(own)
    written, released = here.ledger.entries
    assert (written.what, written.who, written.resource) == ("resource-written", "admin:tester", own)
    assert (released.what, released.who, released.verdict) == ("release", guest.who.thumbprint, "verdict-1")
    assert released.grant.startswith("grant-")
    assert CANARY.decode() not in repr(here.ledger.entries)


async def test_mangled_requests_get_an_answer_of_the_table_and_never_a_defect(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.attest()
    admin = await here.admin()
    generator = random.Random(11)
    seeds = [b"{}", b'{"version":"0.4.0","tee":"tpm"}', b'{"policy":"e30"}', b'{"token":"a.b.c"}', b"\xff\x00" * 30]
    for _ in range(400):
        route = generator.choice(here.door.routes)
        path = bytearray(route.path.replace("<", "").replace(">", "").replace("*", "x").encode())
        if generator.random() < 0.5:
            path[generator.randrange(1, len(path))] = generator.choice(b"/.%;aZ09-_~")
        body = bytearray(generator.choice(seeds))
        body[generator.randrange(len(body))] = generator.randrange(256)
        headers = {"authorization": generator.choice([admin, f"Bearer {guest.token}", "DPoP x", "Basic eDp5", ""])}
        if generator.random() < 0.3:
            headers["cookie"] = f"kbs-session-id={ENTROPY.token(generator.choice([3, 36, 90])).hex()}"
        answer = await guest.http.request(route.methods[0], path.decode(), content=bytes(body), headers=headers)
        assert answer.status_code in (200, 400, 401, 403, 404, 405, 413, 415, 503), (route, path, body, answer.text)
        assert len(answer.content) <= 300 or answer.status_code == 200
