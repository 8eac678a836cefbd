"""What can be wrong with the keys of a cluster.

    TrustError               code, hint
    ├── UnsafeKeyFile        others may read a private file, or it is none
    ├── MissingVaultKey      sealed data without its key
    ├── DamagedKeyFile       a key file that cannot be understood
    ├── DamagedAuthority     a Secret that should hold an authority and does not
    ├── DamagedKeys          a Secret that should hold keys and does not
    ├── BadDoorNames         names that no certificate of a door can speak for
    ├── BadToken             a token that does not count here
    ├── NotOurPerson         a token of an identity provider that does not log in here
    ├── IssuerUnreachable    the identity provider cannot be asked, or says something else than its name promises
    ├── NoTokenKeys          nobody published keys of tokens yet, so none can be verified
    ├── KmsFailed            the command that wraps the vault key failed
    ├── ReplayedChallenge    a challenge that was answered before
    ├── CollateralUnavailable  a vendor's document is not at hand now
    ├── TicketUnclear        nobody can tell now whether a join ticket is good
    ├── CannotKnow           nobody can tell now whether a machine is still trusted
    ├── TokenContended       a bootstrap token could not be made for now
    ├── RecordError          the record could not be written, so nothing may leave
    ├── DamagedRecord        the state of the record cannot be understood
    ├── RecordBehind         the record does not continue what was signed of it before, so nothing more is signed
    ├── WitnessBusy          another process uses the directory of a witness
    └── WitnessFailed        a witness did not cosign

Errors of certificates and envelopes themselves are `fastness.crypto.errors`.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class TrustError(FastnessError):
    """Base of the package: a stable `code` and a `hint` for the operator."""

    code = "trust"

    def __init__(self, message: str, hint: str) -> None:
        # No default: what helps depends on the case, and whoever lost a key must not be left without an answer.
        super().__init__(message, hint)


class UnsafeKeyFile(TrustError):
    """A private file that others may read or that is not a plain file."""

    code = "unsafe-key-file"


class MissingVaultKey(TrustError):
    """There is sealed data and no key to open it."""

    code = "missing-vault-key"


class DamagedKeyFile(TrustError):
    """A key file that cannot be understood."""

    code = "damaged-key-file"


class BadDoorNames(TrustError):
    """A name that is none, or more names than one certificate speaks for."""

    code = "bad-door-names"


class DamagedAuthority(TrustError):
    """A Secret that should hold an authority and does not."""

    code = "damaged-authority"


class DamagedKeys(TrustError):
    """A Secret that should hold keys and does not."""

    code = "damaged-keys"


class BadToken(TrustError):
    """A token that is forged, expired, or for somebody else."""

    code = "bad-token"


class NotOurPerson(TrustError):
    """A token that does not log in here."""

    code = "not-our-person"


class IssuerUnreachable(TrustError):
    """The identity provider cannot be asked, or says something else than its name promises."""

    code = "issuer-unreachable"


class NoTokenKeys(TrustError):
    """Nobody published keys of tokens yet: whether a token is good cannot be known now."""

    code = "no-token-keys"


class KmsFailed(TrustError):
    """The command that wraps and unwraps the vault key failed."""

    code = "kms-failed"


class ReplayedChallenge(TrustError):
    """A challenge that was answered before."""

    code = "challenge-replayed"


class CollateralUnavailable(TrustError):
    """A vendor's document is not at hand now; asking later may help."""

    code = "collateral-unavailable"


class TicketUnclear(TrustError):
    """Nobody can tell now whether a join ticket is good; whoever shows it may come again."""

    code = "cluster-unavailable"


class CannotKnow(TrustError):
    """The API does not answer for a machine, so nobody can tell whether it is still trusted; nothing leaves until it does."""

    code = "out-of-touch"


class TokenContended(TrustError):
    """A bootstrap token could not be made: its ids are taken, or others change it at the same time."""

    code = "token-contended"


class RecordError(TrustError):
    """The record could not be written, so what it would describe must not happen."""

    code = "record-failed"


class DamagedRecord(TrustError):
    """The state of the record cannot be understood."""

    code = "damaged-record"


class RecordBehind(TrustError):
    """The record does not continue a checkpoint that exists somewhere: it was cut, rolled back or begun anew."""

    code = "record-behind"


class WitnessBusy(TrustError):
    """Another process uses the directory of a witness."""

    code = "witness-busy"


class WitnessFailed(TrustError):
    """A witness did not cosign. `seen` is the size that it has seen before, where it refused for that."""

    code = "witness-failed"

    def __init__(self, message: str, hint: str, seen: int | None = None) -> None:
        super().__init__(message, hint)
        self.seen = seen
