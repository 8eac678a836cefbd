"""Kubeconfig files: what is read, how files merge, and what is said about mistakes."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kube.client.kubeconfig import merge, parse, select
from fastness.kube.errors import BadConfig, ConfigError, NoCluster

SOURCE = Path("/home/ann/.kube/config")


def document(**changes: Any) -> bytes:
    """A small kubeconfig with some top-level fields changed."""
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "clusters": [{"name": "dev", "cluster": {"server": "https://dev:6443"}}],
        "users": [{"name": "ann", "user": {"token": "secret"}}],
        "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "ann"}}],
    }
    return json.dumps({**whole, **changes}).encode()


def test_the_current_context_leads_to_cluster_and_user() -> None:
    selected = select(parse(document(), SOURCE))
    assert selected.cluster.text("server") == "https://dev:6443"
    assert selected.user.text("token") == "secret"


def test_a_named_context_wins_over_the_current_one() -> None:
    contexts = [
        {"name": "dev", "context": {"cluster": "absent"}},
        {"name": "other", "context": {"cluster": "dev", "user": "ann", "namespace": "shop"}},
    ]
    selected = select(parse(document(contexts=contexts), SOURCE), "other")
    assert selected.context.text("namespace") == "shop"


def test_yaml_as_people_write_it_is_read() -> None:
    text = b"""
apiVersion: v1
kind: Config
preferences: {}
current-context: dev
clusters:
- name: dev
  cluster: {server: "https://dev:6443"}
contexts:
- {name: dev, context: {cluster: dev}}
"""
    selected = select(parse(text, SOURCE))
    assert selected.user.fields == {}


def test_the_first_file_that_names_a_thing_wins() -> None:
    first = parse(document(clusters=[], contexts=[], **{"current-context": ""}), Path("/a"))
    second = parse(document(users=[{"name": "ann", "user": {"token": "late"}}]), Path("/b"))
    selected = select(merge([first, second]))
    assert selected.user.text("token") == "secret"
    assert (selected.user.source, selected.cluster.source) == (Path("/a"), Path("/b"))


def test_an_empty_file_is_an_empty_config() -> None:
    assert parse(b"", SOURCE).entries == {}


def test_paths_are_relative_to_the_file_that_names_them() -> None:
    users = [{"name": "ann", "user": {"client-key": "keys/ann.pem", "tokenFile": "/abs/token"}}]
    user = select(parse(document(users=users), SOURCE)).user
    assert user.path("client-key") == SOURCE.parent / "keys/ann.pem"
    assert user.path("tokenFile") == Path("/abs/token")


def test_data_may_be_wrapped_into_lines() -> None:
    encoded = base64.encodebytes(b"x" * 100).decode()
    users = [{"name": "ann", "user": {"client-key-data": encoded}}]
    assert select(parse(document(users=users), SOURCE)).user.data("client-key-data") == b"x" * 100


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"a: b: c", "line 1"),
        (b"- a\n- b\n", "one YAML mapping"),
        (b"a: 1\n---\nb: 2\n", "one YAML mapping"),
        (b"kind: Pod\napiVersion: v1\n", "this is v1 Pod"),
        (document(clusters={}), ""),
        (document(clusters={"a": 1}), "clusters must be a list"),
        (document(clusters=["dev"]), "clusters[0]"),
        (document(clusters=[{"name": 7, "cluster": {}}]), "clusters[0]"),
        (document(clusters=[{"name": "dev", "cluster": "x"}]), "clusters[0]"),
        (document(users=[{"name": "a"}, {"name": "a"}]), 'users[1]: the name "a" is taken'),
        (document(**{"current-context": ["dev"]}), "current-context must be a text"),
        (document(contexts=[]), 'there is no context "dev"'),
        (document(clusters=[]), 'context "dev": there is no cluster "dev"'),
        (document(users=[]), 'context "dev": there is no user "ann"'),
        (document(clusters=[{"name": "dev", "cluster": {"server": 7}}]), 'cluster "dev": server must be a text'),
        (document(users=[{"name": "ann", "user": {"tokn": "x"}}]), 'user "ann": unknown field tokn'),
    ],
)
def test_a_mistake_is_refused_with_file_and_place(data: bytes, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        select(parse(data, SOURCE))
    assert str(SOURCE) in caught.value.message
    assert complaint in caught.value.message
    assert caught.value.hint


def test_a_misspelt_field_gets_the_closest_known_one_as_hint() -> None:
    users = [{"name": "ann", "user": {"client-certficate": "x"}}]
    with pytest.raises(BadConfig) as caught:
        select(parse(document(users=users), SOURCE))
    assert caught.value.hint == "Did you mean client-certificate?"


def test_a_misspelt_context_gets_the_closest_known_one_as_hint() -> None:
    with pytest.raises(BadConfig) as caught:
        select(parse(document(), SOURCE), "dav")
    assert caught.value.hint == 'Did you mean "dev"?'


def test_a_broken_entry_of_another_cluster_does_not_matter() -> None:
    clusters = [{"name": "dev", "cluster": {"server": "https://dev"}}, {"name": "x", "cluster": {"bogus": 1}}]
    assert select(parse(document(clusters=clusters), SOURCE)).cluster.name == "dev"


def test_no_current_context_is_said() -> None:
    with pytest.raises(NoCluster, match="no current-context"):
        select(parse(document(**{"current-context": ""}), SOURCE))


def test_data_that_is_not_base64_is_refused_with_its_field() -> None:
    users = [{"name": "ann", "user": {"client-key-data": "%%%"}}]
    with pytest.raises(BadConfig, match="client-key-data is not base64"):
        select(parse(document(users=users), SOURCE)).user.data("client-key-data")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["name", "cluster", "user", "context", "server", "token", "clusters", "users", "contexts", "current-context"]
    ), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
def test_whatever_a_file_holds_only_config_errors_come_out(value: Any) -> None:
    with contextlib.suppress(ConfigError):
        select(parse(json.dumps(value).encode(), SOURCE))
