"""What `fastness plan` makes of objects about registries: mirror sets, policies about signatures, the Image of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness import __version__
from fastness.cli.config.offline import near
from fastness.cli.errors import CliError
from fastness.cli.manifests import Manifests
from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries.proposed import KINDS, changed, names_of, proposed_registries
from fastness.machineconfig.rollout.plan import Proposal, State

_SHORT: Final = {"idms": "ImageDigestMirrorSet", "itms": "ImageTagMirrorSet"}
_PLURALS: Final = {"clusterimagepolicy": "clusterimagepolicies", "imagepolicy": "imagepolicies"}
WORDS: Final = {
    **_SHORT,
    **{word: kind for kind in KINDS for word in (kind.lower(), _PLURALS.get(kind.lower(), f"{kind.lower()}s"))},
    "imagecontentsourcepolicies": "ImageContentSourcePolicy",
}


def deleted(state: State, delete: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Of names to delete those of objects about registries, with their kinds, and the others; raises CliError."""
    mine: list[tuple[str, str]] = []
    others: list[str] = []
    for target in delete:
        word, slash, name = target.partition("/")
        kind = WORDS.get(word.lower(), "") if slash else ""
        if not kind:
            others.append(target)
            continue
        existing = names_of(state.registries, kind)
        if name not in existing:
            raise CliError(f"there is no {kind} {name!r} to delete", near(name, existing))
        mine.append((kind, name))
    return mine, others


def with_registries(state: State, proposal: Proposal, new: Manifests, gone: Sequence[tuple[str, str]]) -> Proposal:
    """The proposal with what follows from objects about registries that are applied or deleted; raises CliError."""
    applied = new.of(*KINDS)
    after = changed(state.registries, applied, gone)
    if after == state.registries:
        return proposal
    if after.image is None and applied:
        raise CliError("nothing follows while there is no Image 'cluster'", "Apply one too; its spec may be empty.")
    try:
        made, stale = proposed_registries(after, state.pools, state.configs, state.owners.controller, __version__)
    except BadRegistries as error:
        raise CliError(f"{error.culprit} would be refused: {error.message}", error.hint) from error
    return Proposal([*proposal.apply, *made], [*proposal.delete, *stale], proposal.owners)
