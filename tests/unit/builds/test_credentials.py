"""A credential of a registry in what goes into an image is noticed before anything is built."""

from __future__ import annotations

import base64
import json

import pytest

from fastness.builds.credentials import credential_in
from fastness.builds.inputs import BuildInputs, ImageFile

AUTH = base64.b64encode(b"robot:correct horse").decode()
SECRET = json.dumps(
    {"auths": {"registry.example": {"auth": AUTH}, "other.example": {"identitytoken": "t0ken-of-mine"}}}
).encode()


@pytest.mark.parametrize(
    ("made_of", "place"),
    [
        (BuildInputs("b", "RUN curl -u robot:correct\\ horse"), ""),
        (BuildInputs("b", "RUN login --password 'correct horse'"), "the Containerfile"),
        (BuildInputs("b", f"RUN echo {AUTH}"), "the Containerfile"),
        (BuildInputs("b", "", (ImageFile("/etc/a", b"x"), ImageFile("/etc/auth.json", SECRET))), "/etc/auth.json"),
        (BuildInputs("b", "", (ImageFile("/etc/token", b"t0ken-of-mine"),)), "/etc/token"),
        (BuildInputs("b", "RUN echo other words", (ImageFile("/etc/a", b"x"),)), ""),
    ],
)
def test_passwords_and_tokens_are_looked_for_as_they_are_written(made_of: BuildInputs, place: str) -> None:
    sentence = credential_in(made_of, (b"", SECRET))
    assert sentence.startswith(f"{place} holds a password of a registry") if place else sentence == ""
    assert "correct horse" not in sentence, "and are not repeated"


@pytest.mark.parametrize("secret", [b"", b"no json", b"[]", b'{"auths": 1}', b'{"auths": {"a": {"auth": "%"}}}'])
def test_what_cannot_be_read_holds_none(secret: bytes) -> None:
    assert credential_in(BuildInputs("b", "RUN true"), (secret,)) == ""


def test_a_word_that_is_too_short_to_be_a_secret_is_not_looked_for() -> None:
    short = json.dumps({"auths": {"a.example": {"username": "u", "password": "true"}}}).encode()
    assert credential_in(BuildInputs("b", "RUN true"), (short,)) == ""
