"""hosts.toml, and what containerd cannot be told."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries.files import containerd_files, untold
from tests.unit.machineconfig.render.registries.build import icsp, idms, image, itms, settings, signed

PULL, BOTH = ["pull"], ["pull", "resolve"]


def hosts(*given: Any) -> dict[str, dict[str, Any]]:
    """Every hosts.toml as the standard library reads it, by host."""
    documents = {}
    for path, text in containerd_files(settings(*given)):
        directory, host, name = path.rsplit("/", 2)
        assert (directory, name) == ("/etc/containerd/certs.d", "hosts.toml")
        documents[host] = tomllib.loads(text)
    return documents


def test_nothing_is_written_where_nothing_is_said() -> None:
    assert hosts() == {}


def test_a_mirror_for_digests_serves_content_and_no_names() -> None:
    for given in (idms("a", {"quay.io": ["m.io:5000"]}), icsp("a", {"quay.io": ["m.io:5000"]})):
        assert hosts(None, given) == {
            "quay.io": {"server": "https://quay.io", "host": {"https://m.io:5000": {"capabilities": PULL}}}
        }


def test_a_mirror_for_both_serves_names_too() -> None:
    document = hosts(None, idms("a", {"quay.io": ["m.io", "n.io"]}), itms("b", {"quay.io": ["m.io"]}))["quay.io"]
    assert document["host"] == {"https://m.io": {"capabilities": BOTH}, "https://n.io": {"capabilities": PULL}}
    assert list(document["host"]) == ["https://m.io", "https://n.io"], "in the order of the mirrors"


def test_a_path_of_the_mirror_comes_before_that_of_the_image() -> None:
    document = hosts(None, idms("a", {"quay.io/ns": ["m.io/ns", "n.io/pre/fix/ns"], "docker.io": ["m.io/hub"]}))
    assert document["quay.io"]["host"] == {
        "https://m.io": {"capabilities": PULL},
        "https://n.io/v2/pre/fix": {"capabilities": PULL, "override_path": True},
    }
    assert document["docker.io"] == {
        "server": "https://registry-1.docker.io",
        "host": {"https://m.io/v2/hub": {"capabilities": PULL, "override_path": True}},
    }


def test_sources_of_one_host_share_a_file() -> None:
    document = hosts(None, idms("a", {"quay.io/b": ["m.io/b"], "quay.io/a": ["n.io/a"], "quay.io/c": ["m.io/c"]}))
    assert list(document) == ["quay.io"]
    assert list(document["quay.io"]["host"]) == ["https://n.io", "https://m.io"]


def test_insecure_places_are_asked_without_proof_and_then_without_tls() -> None:
    document = hosts(image(insecure=["m.io:5000", "i.io"]), idms("a", {"quay.io": ["m.io:5000", "n.io"]}))
    assert document["quay.io"]["host"] == {
        "https://m.io:5000": {"capabilities": PULL, "skip_verify": True},
        "http://m.io:5000": {"capabilities": PULL},
        "https://n.io": {"capabilities": PULL},
    }
    assert "skip_verify" not in document["quay.io"]
    assert document["i.io"] == {
        "server": "https://i.io",
        "skip_verify": True,
        "host": {"https://i.io": {"capabilities": BOTH, "skip_verify": True}, "http://i.io": {"capabilities": BOTH}},
    }


REFUSALS = [
    ((image(blocked=["a.io"]),), "blockedRegistries", "Image cluster"),
    ((image(allowed=["a.io"]),), "allowedRegistries", "Image cluster"),
    ((image(search=["a.io"]),), "containerRuntimeSearchRegistries", "Image cluster"),
    ((image(insecure=["*.a.io"]),), '"*.a.io" as insecure', "Image cluster"),
    ((image(insecure=["a.io/ns"]),), '"a.io/ns" as insecure', "Image cluster"),
    ((None, signed("p", "a.io")), "policies about signatures", "ClusterImagePolicy p"),
    ((None, idms("x", {"*.a.io": ["m"]})), '"*.a.io" is a wildcard', "ImageDigestMirrorSet x"),
    (
        (None, idms("x", {"a.io": ["m"]}, "NeverContactSource")),
        "blocked by NeverContactSource",
        "ImageDigestMirrorSet x",
    ),
    ((None, itms("x", {"a.io": ["m"]})), "mirrors for tags only", "ImageTagMirrorSet x"),
    ((None, idms("w", {"a.io": ["n"]}), itms("x", {"a.io": ["m"]})), "mirrors for tags only", "ImageTagMirrorSet x"),
    (
        (None, idms("w", {"a.io/n": ["m/n"]}), itms("x", {"a.io/n": ["m/n"]})),
        "is a part of a host",
        "ImageTagMirrorSet x",
    ),
    ((None, icsp("x", {"a.io": ["a.io", "m"]})), "asked before one of its mirrors", "ImageContentSourcePolicy x"),
    ((None, idms("x", {"a.io/ns": ["m/other"]})), "their path must stay the same", "ImageDigestMirrorSet x"),
    ((None, idms("x", {"a.io/ns": ["mns"]})), "their path must stay the same", "ImageDigestMirrorSet x"),
]


@pytest.mark.parametrize(("given", "words", "culprit"), REFUSALS)
def test_what_containerd_cannot_be_told_is_refused(given: Any, words: str, culprit: str) -> None:
    with pytest.raises(BadRegistries) as refused:
        hosts(*given)
    assert words in refused.value.message
    assert str(refused.value.culprit) == culprit
    assert "CRI-O" in refused.value.hint


def test_a_policy_of_a_namespace_keeps_no_mirror_from_a_pool_and_is_named() -> None:
    given = settings(None, idms("a", {"quay.io": ["m.io"]}), signed("p", "a.io", namespace="team"))
    assert containerd_files(given)
    missing = untold(given)
    assert missing is not None
    assert str(missing).startswith("ImagePolicy team/p: containerd cannot be told this: policies about signatures")
    assert untold(settings(None, idms("a", {"quay.io": ["m.io"]}))) is None
