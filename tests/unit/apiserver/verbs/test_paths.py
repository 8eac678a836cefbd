"""REST paths: what they name, and what is no path at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.verbs.paths import Target, methods_of, target_of, verb_of
from fastness.formats.url_path import split


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", Target("", "v1", "pods")),
        ("/api/v1/namespaces", Target("", "v1", "namespaces")),
        ("/api/v1/namespaces/a", Target("", "v1", "namespaces", "a", "a")),
        ("/api/v1/namespaces/a/status", Target("", "v1", "namespaces", "a", "a", "status")),
        ("/api/v1/namespaces/a/finalize", Target("", "v1", "namespaces", "a", "a", "finalize")),
        ("/api/v1/namespaces/a/pods", Target("", "v1", "pods", "a")),
        ("/api/v1/namespaces/a/pods/b", Target("", "v1", "pods", "a", "b")),
        ("/api/v1/namespaces/a/pods/b/eviction", Target("", "v1", "pods", "a", "b", "eviction")),
        ("/apis/apps/v1/deployments/", Target("apps", "v1", "deployments")),
        ("/apis/fastness.dev/v1alpha1/verdicts/x/status", Target("fastness.dev", "v1alpha1", "verdicts", "", "x", "status")),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
         Target("rbac.authorization.k8s.io", "v1", "clusterroles", "", "system:node")),
    ],
)  # fmt: skip
def test_a_path_names_collection_object_or_subresource(path: str, target: Target) -> None:
    segments = split(path)
    assert segments is not None
    assert target_of(segments) == target


@pytest.mark.parametrize(
    "path",
    [
        "api/v1/pods", "/api/v1//pods", "/api/v1/pods/..", "/api/v1/pods/.", "/api/v1/pods/%2e%2e", "/api/v1/pods/a%2fb",
        "/api/v1/pods/a%00b", "/api/v1/pods/%ff", "/api/v1/pods/a%5cb", "/api/v1/pods/%252e%252e", "/api/v1/" + "a" * 5000,
        "/api" + "/a" * 20,
    ],
)  # fmt: skip
def test_a_path_that_plays_tricks_is_no_path(path: str) -> None:
    assert split(path) is None


def test_more_segments_than_a_subresource_has_name_nothing() -> None:
    segments = split("/api/v1/namespaces/a/pods/b/log/extra")
    assert segments is not None
    assert target_of(segments) is None


@pytest.mark.parametrize(
    ("method", "path", "watching", "verb"),
    [
        ("GET", "/api/v1/pods", False, "list"), ("GET", "/api/v1/pods", True, "watch"), ("POST", "/api/v1/pods", False, "create"),
        ("DELETE", "/api/v1/pods", False, "deletecollection"), ("PUT", "/api/v1/pods", False, ""),
        ("GET", "/api/v1/nodes/a", False, "get"), ("HEAD", "/api/v1/nodes/a", False, "get"),
        ("PUT", "/api/v1/nodes/a", False, "update"), ("PATCH", "/api/v1/nodes/a", False, "patch"),
        ("DELETE", "/api/v1/nodes/a", False, "delete"), ("POST", "/api/v1/nodes/a", False, ""),
        ("POST", "/api/v1/namespaces/x/pods/a/eviction", False, "create"), ("TRACE", "/api/v1/nodes/a", False, ""),
    ],
)  # fmt: skip
def test_the_verb_follows_from_method_and_shape(method: str, path: str, watching: bool, verb: str) -> None:
    segments = split(path)
    assert segments is not None
    target = target_of(segments)
    assert target is not None
    assert verb_of(method, target, watching=watching) == verb


@given(st.text(max_size=60))
def test_no_path_raises_and_no_segment_can_leave_its_place(text: str) -> None:
    segments = split("/" + text)
    for segment in segments or ():
        assert segment
        assert "/" not in segment
        assert segment not in (".", "..")


def test_the_methods_of_a_path_are_those_that_make_a_verb_of_it() -> None:
    assert methods_of(Target("", "v1", "pods", "a")) == ("GET", "HEAD", "POST", "DELETE")
    assert methods_of(Target("", "v1", "pods", "a", "b")) == ("GET", "HEAD", "PUT", "PATCH", "DELETE")
    assert "POST" in methods_of(Target("", "v1", "pods", "a", "b", "eviction"))
