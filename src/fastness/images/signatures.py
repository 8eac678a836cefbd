"""Who has to have signed an image, and who has.

    asked = signers_for(image, signers)         those of ConfidentialCluster.spec.images.signers whose images it is one of
    by = signed_by(digest, keys, signatures)    the keys that signed it

Everybody who is asked for has to have signed: one more signer makes a cluster stricter, never laxer. A signature counts when the
key made it over a statement that names this very digest; one that was moved here from another image does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.crypto.errors import BadKey
from fastness.crypto.image_keys import ImageKey
from fastness.formats.cosign import Signature, SignatureError, signed_digest
from fastness.kinds.fastness_dev.image_approval import ImageSigner


def signers_for(image: str, signers: Iterable[ImageSigner]) -> list[ImageSigner]:
    """The signers that an image needs: of those without places all, of others those in whose places it is."""
    repository = image.partition("@")[0]
    return [
        signer for signer in signers if not signer.images or any(_inside(repository, each) for each in signer.images)
    ]


def key_id(signer: ImageSigner) -> str:
    """The key of a signer in short; empty for one that cannot be read, which nobody can have signed with."""
    try:
        return ImageKey(signer.key.encode()).id
    except BadKey:
        return ""


def signed_by(digest: str, signers: Sequence[ImageSigner], signatures: Iterable[Signature]) -> frozenset[str]:
    """The keys of signers that signed an image, in short."""
    keys = [ImageKey(signer.key.encode()) for signer in signers if key_id(signer)]
    ids: set[str] = set()
    for each in signatures:
        try:
            meant = signed_digest(each.document) == digest
        except SignatureError:
            continue
        ids |= {key.id for key in keys if meant and key.signed(each.signature, each.document)}
    return frozenset(ids)


def unsigned(image: str, signers: Iterable[ImageSigner], keys: Iterable[str]) -> list[str]:
    """The names of signers that an image needs and that have not signed it, as far as these keys are all that did."""
    present = frozenset(keys)
    return [signer.name for signer in signers_for(image, signers) if key_id(signer) not in present]


def _inside(repository: str, place: str) -> bool:
    return repository == place or repository.startswith(f"{place.rstrip('/')}/")
