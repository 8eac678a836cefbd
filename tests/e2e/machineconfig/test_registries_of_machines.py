"""Files about registries in the hands of the library that reads them on machines, with a real registry as the mirror.

skopeo is built on the same library as CRI-O and podman: what it pulls, refuses and cannot read they do as well. Debian's skopeo
comes without signatures of the kind that policies ask for, so those are judged by the library itself (tools/images).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.machineconfig.render.base.runtime import POLICY_JSON, REGISTRIES_CONF
from tests.components import require_program
from tests.e2e.machineconfig.local_registry import LocalRegistry, Machine, SigningKey, running_registry
from tests.realkube.fixtures import binaries_or_skip
from tests.unit.machineconfig.render.registries.build import ACCEPT, idms, image, itms, signed, trusted, written
from tests.unit.machineconfig.render.registries.test_requirements import FULCIO, PKI
from tools.realkube import IMAGES

NEVER = "NeverContactSource"
SOURCE = "quay.example/team/app"
BASE = {"/etc/containers/registries.conf": REGISTRIES_CONF, "/etc/containers/policy.json": POLICY_JSON}
Made = Callable[..., Machine]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def library() -> Path:
    """The library that container runtimes pull with."""
    return binaries_or_skip(os.environ, IMAGES) / "ask-image"


@pytest.fixture(scope="module", params=["skopeo", "library"])
def tool(request: pytest.FixtureRequest) -> Path:
    """What pulls."""
    if request.param == "skopeo":
        return require_program(Path("/usr/bin/skopeo"), "skopeo")
    path: Path = request.getfixturevalue("library")
    return path


@pytest.fixture
def machine(tmp_path: Path, registry: LocalRegistry, tool: Path) -> Made:
    """Makes a machine with the files that follow from objects; the registry on loopback is insecure."""
    return _maker(tmp_path, registry, tool)


@pytest.fixture
def strict_machine(tmp_path: Path, registry: LocalRegistry, library: Path) -> Made:
    """The same, where signatures matter."""
    return _maker(tmp_path, registry, library)


def _maker(directory: Path, registry: LocalRegistry, tool: Path) -> Made:
    def made(*objects: Any, **lists: list[str]) -> Machine:
        root = directory / "machine"
        machine = Machine(root, tool)
        (root / "etc/containers/registries.d").mkdir(parents=True, exist_ok=True)
        machine.write(BASE | written(image(insecure=[registry.address], **lists), *objects))
        return machine

    return made


@pytest.fixture(scope="module")
def app(registry: LocalRegistry) -> str:
    """The digest of an image that the mirror has as team/app:1."""
    return registry.push("team/app", "1", "hello")


def test_a_pull_by_digest_goes_to_the_mirror(machine: Made, registry: LocalRegistry, app: str) -> None:
    mirrored = machine(idms("a", {"quay.example/team": [f"{registry.address}/team"]}))
    assert mirrored.pull(f"{SOURCE}@{app}") == ""
    refusal = mirrored.pull(f"{SOURCE}:1")
    assert "quay.example" in refusal
    assert registry.address not in refusal, "a mirror for digests is not asked for a tag"


def test_a_pull_by_tag_goes_to_its_mirror(machine: Made, registry: LocalRegistry, app: str) -> None:
    mirrored = machine(itms("a", {"quay.example": [registry.address]}))
    assert mirrored.pull(f"{SOURCE}:1") == ""
    assert registry.address not in mirrored.pull(f"{SOURCE}@{app}")


def test_the_next_mirror_is_asked_when_the_first_has_nothing(machine: Made, registry: LocalRegistry, app: str) -> None:
    mirrored = machine(idms("a", {SOURCE: [f"{registry.address}/no/such", f"{registry.address}/team/app"]}))
    assert mirrored.pull(f"{SOURCE}@{app}") == ""


def test_a_wildcard_is_mirrored(machine: Made, registry: LocalRegistry, app: str) -> None:
    assert machine(idms("a", {"*.example": [registry.address]})).pull(f"{SOURCE}@{app}") == ""


def test_a_source_that_is_never_contacted_is_refused_where_no_mirror_is_asked(
    machine: Made, registry: LocalRegistry, app: str
) -> None:
    closed = machine(idms("a", {"quay.example": [registry.address]}, NEVER))
    assert closed.pull(f"{SOURCE}@{app}") == ""
    assert "registry quay.example is blocked" in closed.pull(f"{SOURCE}:1")


@pytest.mark.parametrize("scope", ["quay.example", "*.example", "quay.example/team", SOURCE])
def test_a_blocked_scope_is_refused(machine: Made, app: str, scope: str) -> None:
    refusal = machine(blocked=[scope]).pull(f"{SOURCE}@{app}")
    assert "is blocked" in refusal or "is rejected by policy" in refusal


def test_a_blocked_scope_stays_blocked_inside_a_mirrored_one(machine: Made, registry: LocalRegistry, app: str) -> None:
    part = machine(idms("a", {"quay.example": [registry.address]}), blocked=[SOURCE])
    assert "rejected by policy" in part.pull(f"{SOURCE}@{app}")


def test_an_insecure_part_of_a_mirrored_source_keeps_its_mirrors(
    machine: Made, registry: LocalRegistry, app: str
) -> None:
    mirrored = idms("a", {"quay.example": [registry.address]}, NEVER)
    part = machine(mirrored)
    part.write(written(image(insecure=[registry.address, "quay.example/team"]), mirrored))
    assert part.pull(f"{SOURCE}@{app}") == ""
    assert "is blocked" in part.pull(f"{SOURCE}:1")


def test_only_allowed_scopes_are_pulled(machine: Made, registry: LocalRegistry, app: str) -> None:
    limited = machine(idms("a", {"quay.example": [registry.address]}), allowed=["quay.example/team"])
    assert limited.pull(f"{SOURCE}@{app}") == ""
    assert "rejected by policy" in limited.pull(f"{registry.address}/team/app@{app}"), (
        "the mirror's own name is another"
    )


@pytest.fixture(scope="module")
def key() -> SigningKey:
    """A key that somebody signs with."""
    return SigningKey()


@pytest.fixture(scope="module")
def signed_app(registry: LocalRegistry, key: SigningKey) -> str:
    """The digest of an image with a signature beside it, under the name of the source."""
    made = registry.push("signed/app", "1", "signed")
    registry.sign("signed/app", made, key, "quay.example/signed/app:1")
    return made


def test_signatures_are_required_and_found_beside_the_image_at_the_mirror(
    strict_machine: Made, registry: LocalRegistry, key: SigningKey, signed_app: str
) -> None:
    unsigned = registry.push("signed/other", "1", "unsigned")
    mirrored = idms("a", {"quay.example": [registry.address]})
    strict = strict_machine(mirrored, signed("p", "quay.example/signed", root=trusted(key.public)))
    assert strict.pull(f"quay.example/signed/app@{signed_app}") == ""
    assert "no signature exists" in strict.pull(f"quay.example/signed/other@{unsigned}")


def test_a_signature_of_another_key_is_none(strict_machine: Made, registry: LocalRegistry, signed_app: str) -> None:
    policy = signed("p", "quay.example/signed", root=trusted(SigningKey().public))
    refusal = strict_machine(idms("a", {"quay.example": [registry.address]}), policy).pull(
        f"quay.example/signed/app@{signed_app}"
    )
    assert "cryptographic signature verification failed" in refusal or "invalid signature" in refusal


IDENTITIES: list[tuple[dict[str, Any], bool]] = [
    ({"matchPolicy": "MatchRepoDigestOrExact"}, True),
    ({"matchPolicy": "MatchRepository"}, True),
    ({"matchPolicy": "ExactRepository", "exactRepository": {"repository": "quay.example/signed/app"}}, True),
    ({"matchPolicy": "ExactRepository", "exactRepository": {"repository": "quay.example/other"}}, False),
    (
        {"matchPolicy": "RemapIdentity", "remapIdentity": {"prefix": "quay.example", "signedPrefix": "quay.example"}},
        True,
    ),
    (
        {"matchPolicy": "RemapIdentity", "remapIdentity": {"prefix": "quay.example", "signedPrefix": "vendor.example"}},
        False,
    ),
]


@pytest.mark.parametrize(("identity", "accepted"), IDENTITIES)
def test_the_identity_in_a_signature_must_fit(
    strict_machine: Made,
    registry: LocalRegistry,
    key: SigningKey,
    signed_app: str,
    identity: dict[str, Any],
    accepted: bool,
) -> None:
    policy = signed("p", "quay.example/signed", root=trusted(key.public), signedIdentity=identity)
    refusal = strict_machine(idms("a", {"quay.example": [registry.address]}), policy).pull(
        f"quay.example/signed/app@{signed_app}"
    )
    assert refusal == "" if accepted else "is not accepted" in refusal


def test_pods_of_a_namespace_need_what_it_asks_for(
    strict_machine: Made, registry: LocalRegistry, key: SigningKey, app: str, signed_app: str
) -> None:
    mirrored = idms("a", {"quay.example": [registry.address]})
    strict = strict_machine(mirrored, signed("p", "quay.example", namespace="team", root=trusted(key.public)))
    own = "/etc/crio/policies/team.json"
    assert strict.pull(f"quay.example/signed/app@{signed_app}", own) == ""
    assert "no signature exists" in strict.pull(f"{SOURCE}@{app}", own)
    assert strict.pull(f"{SOURCE}@{app}") == "", "other namespaces do not"


def test_a_broken_policy_of_a_namespace_rejects_its_images(machine: Made, registry: LocalRegistry, app: str) -> None:
    mirrored = idms("a", {"quay.example": [registry.address]})
    broken = machine(mirrored, signed("p", "quay.example/team", namespace="team", root=trusted("?")))
    assert "rejected by policy" in broken.pull(f"{SOURCE}@{app}", "/etc/crio/policies/team.json")


SCOPES = ["a.example", "a.example:5000", "a.example/n", "a.example/n/a/b/c", "*.b.example", "localhost/x"]
SINGLE = ["a.example/n:t", "a.example/n/a:t", "a.example/n/a@sha256:" + "0" * 64]


def test_the_library_reads_files_with_everything_in_them(machine: Made, registry: LocalRegistry, app: str) -> None:
    lists = {scope: ["m.example", "n.example/p"] for scope in SCOPES}
    full = machine(
        idms("a", {**lists, "quay.example": [registry.address]}, NEVER), itms("b", lists, NEVER), signed("p", *SCOPES, *SINGLE),
        search=["s.example:5000"], blocked=["*.c.example", "d.example/x"],
    )  # fmt: skip
    assert full.pull(f"{SOURCE}@{app}") == ""


@pytest.mark.parametrize("root", [FULCIO, PKI], ids=["fulcio", "pki"])
def test_the_library_reads_every_root_of_trust(
    strict_machine: Made, registry: LocalRegistry, app: str, root: dict[str, Any]
) -> None:
    full = strict_machine(idms("a", {"quay.example": [registry.address]}), signed("p", "a.example", root=root))
    assert full.pull(f"{SOURCE}@{app}") == ""


def test_scopes_that_are_left_out_for_openshift_would_spoil_the_file(
    strict_machine: Made, registry: LocalRegistry
) -> None:
    for scope in ("a.example/n:t", "a.example/n/a/b"):
        policy = {"default": [ACCEPT], "transports": {"atomic": {scope: [ACCEPT]}}}
        spoiled = strict_machine()
        spoiled.write({"/etc/containers/policy.json": json.dumps(policy)})
        assert f'Unknown key "{scope}"' in spoiled.pull(f"{registry.address}/team/app:1")
