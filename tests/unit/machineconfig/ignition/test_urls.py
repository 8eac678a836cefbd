"""URLs as the machine reads them."""

import pytest

from fastness.machineconfig.ignition.urls import legacy_problem, problem, scheme_since, split


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("https://example.com/a", "https"), ("HTTPS://x", "https"), ("http:opaque", "http"), ("data:,x", "data"), ("/path", ""),
        ("https://u:p@h:80/%20?%zz#f", "https"), ("https://[::1]:80/", "https"), ("https://h:/", "https"),
        ("arn:aws:s3:::b/k", "arn"),
    ],
)  # fmt: skip
def test_the_scheme_is_found(text: str, scheme: str) -> None:
    url = split(text)
    assert url is not None
    assert url.scheme == scheme


@pytest.mark.parametrize(
    "text",
    [
        ":x", "a:b/c\n", "https://h:port/", "https://[::1/", "https://a b/", "https://h/%zz", "https://h/#%z", "https://u @h/",
        "1a:b",
    ],
)  # fmt: skip
def test_what_go_cannot_parse_is_no_url(text: str) -> None:
    assert split(text) is None


def test_versions_of_objects_must_not_be_empty() -> None:
    assert problem("s3://b/k?versionId=1", 0) is None
    for query in ("versionId=", "versionId", "a=b&versionId="):
        refusal = problem(f"s3://b/k?{query}", 0)
        assert refusal is not None
        assert refusal.code == "invalid-version-id"


@pytest.mark.parametrize("text", ["arn:aws:s3:::b", "arn:aws:ec2:::b/k", "arn:a/b", "arn:aws:s3:r:1:accesspoint/p"])
def test_an_arn_names_an_object_of_s3(text: str) -> None:
    refusal = problem(text, 4)
    assert refusal is not None
    assert refusal.code == "invalid-arn"


def test_the_schemes_of_spec_2() -> None:
    assert legacy_problem("") is None
    assert legacy_problem("oem:///x") is None
    for text in ("gs://b/k", "file:///x"):
        refusal = legacy_problem(text)
        assert refusal is not None
        assert refusal.code == "invalid-scheme"


def test_schemes_know_their_age() -> None:
    assert [scheme_since(text) for text in ("https://x", "gs://b/k", "arn:aws:s3:::b/k", "")] == [0, 2, 4, 0]
