"""Before `kubeadm join`: prove this machine, and come back with what lets it ask for a certificate.

    prepared = await prepare_join(broker, attester, trust, key_file, patience)      # token; the key lies where the kubelet looks

A kubelet with `rotateCertificates: false` asks for its certificate with a bootstrap token, and with the key in
`kubelet-client.key.tmp` if there is one; one that rotates makes a key of its own, which nobody named, and is denied. So the key
is made here first and named in the evidence of the attested session, and the token that comes back is good for this machine, this
node name and this key alone. A token that leaks lets nobody in. Later certificates are the business of `node_certificates.py`.

* The key is new each time, never leaves the machine, and is readable for its owner only. One that lies there already is replaced
  unread, and the kubelet's other keys are removed: whoever could write the disk before this boot knows them.
* 503 and a broker that is not there are waited for; a refusal is final and says what to do.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.boot import ATTEMPTS, BootRefused, hint_for
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.agent.errors import AgentError
from fastness.crypto.digests import sha256
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.protocol.node_keys import NamedKeys
from fastness.runtime.clock import Entropy
from fastness.runtime.retries import retry

OTHER_KEYS: Final = ("kubelet-client-current.pem", "kubelet-server-current.pem", "kubelet.crt", "kubelet.key")
LONGEST_PAUSE: Final = 60.0


class JoinFileFailed(AgentError):
    """A file that the kubelet needs cannot be written."""

    code = "join-file"
    hint = "Run it as root, before the kubelet starts."


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a kubelet joins with."""

    token: SecretBytes
    machine: str
    node_name: str


async def prepare_join(
    url: str, attester: Attester, trust: ImageTrust, key_file: Path, patience: RetryBudget
) -> Prepared:  # fmt: skip
    """Attest and get the bootstrap token for the key in a file; raises BootRefused, DoorRefused, JoinFileFailed, DriverError."""
    name = sha256(new_key(key_file, patience.entropy).public_der())
    end, waited, unbelieved = patience.clock.monotonic() + patience.seconds, 0, 0

    async def attested() -> Prepared:
        async with BrokerClient(url, trust.tls, attester, patience.entropy) as broker:
            await broker.attest(keys=NamedKeys(client=str(name)))
            token = await broker.resource(f"machine/{broker.machine}/bootstrap-token", f"key={name}")
            return Prepared(token, broker.machine, broker.node_name)

    def pause(error: DoorRefused) -> float:
        nonlocal waited, unbelieved
        unbelieved += error.status == 401  # a challenge that grew old on the way: a new one helps
        if not error.passing and not (error.status == 401 and unbelieved < ATTEMPTS):
            raise BootRefused(error.reason, error.message, hint_for(error.reason, "")) from error
        seconds = min(max(error.retry_after, patience.pause * math.pow(2, waited)), LONGEST_PAUSE)
        seconds, waited = seconds * (1 + patience.entropy.fraction()), min(waited + 1, 10)
        if patience.clock.monotonic() + seconds >= end:
            raise error
        return seconds

    return await retry(attested, DoorRefused, pause, patience.clock)


def new_key(path: Path, entropy: Entropy) -> PrivateKey:
    """A key that was never used, in place of whatever lies there and of the kubelet's other keys; raises JoinFileFailed."""
    key = PrivateKey.generate(entropy)
    try:
        for name in OTHER_KEYS:
            # A kubelet that finds a certificate does not ask for one; a key that lay there before this boot is known to whoever
            # put it there.
            path.with_name(name).unlink(missing_ok=True)
        write_secret(path, key.to_pem())
    except OSError as error:
        raise JoinFileFailed(f"{path}: {error.strerror}") from error
    return key


def write_secret(path: Path, content: SecretBytes) -> None:
    """Write a file for its owner alone, whole or not at all; a link in its place is replaced, not followed; raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    # 0600 from its first byte: with a mode that is set afterwards somebody could hold it open by then.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.reveal())
        file.flush()
        os.fsync(file.fileno())
    # A rename, so that a link which lies at the path is replaced and not followed.
    draft.replace(path)
