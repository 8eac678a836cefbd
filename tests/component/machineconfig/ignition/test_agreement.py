"""Our verdict on a config against that of the real validator, over a generated corpus.

Every disagreement must be one of `EXPLAINED`, for which there is a reason; anything else fails the test with the config. The
corpus has every doubtful value on its own and random configs with up to three changes, for the versions that the installed
validator knows.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import Severity
from tests.component.machineconfig.ignition.corpus import changed, good, systematic
from tests.component.machineconfig.ignition.real import accepts, known_minors, validator

pytestmark = pytest.mark.processes

SOAK = bool(os.environ.get("FASTNESS_SOAK"))
RANDOM_CONFIGS = 4_000 if SOAK else 300

EXPLAINED = {
    "field-case": "Go takes Mode for mode, other readers ignore it: a config must not mean two things",
    "repeated-key": "of two equal keys one reader takes the first, another the last",
    "path-of-unit": "a file where a unit of the same config will be written is refused by releases after 2.14",
    "legacy": "spec 2 is read here and refused by Ignition 2",
    "not-utf-8": "Go puts a replacement character where bytes are not text",
    "version-spelling": "Go reads 03.3.0 as 3.3.0",
    "quoted-backslash": "escapes in quoted parameters of a data URL are not read here; nobody writes them",
    "nesting": "a document may nest 32 deep; a config needs 9",
}
BY_HAND: tuple[tuple[str, bytes], ...] = (
    ("field-case", b'{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","Mode":420}]}}'),
    ("repeated-key", b'{"ignition":{"version":"3.3.0","version":"3.3.0"}}'),
    (
        "path-of-unit",
        b'{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/etc/systemd/system/a.path"}]},'
        b'"systemd":{"units":[{"name":"a.path","contents":"[Unit]\\nA=b\\n"}]}}',
    ),
    ("legacy", b'{"ignition":{"version":"2.2.0"}}'),
    ("not-utf-8", b'{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"a","gecos":"\xff"}]}}'),
    ("version-spelling", b'{"ignition":{"version":"03.3.0"}}'),
    (
        "quoted-backslash",
        b'{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:;a=\\"\\\\n\\",x"}}]}}',
    ),
    ("nesting", b'{"ignition":{"version":"3.3.0"},"x":' + b"[" * 40 + b"]" * 40 + b"}"),
)


def disagreement(program: str, config: bytes) -> str:
    """Why the two verdicts differ: a key of `EXPLAINED`, empty if they agree; fails if there is no reason."""
    theirs, output = accepts(program, config)
    inspection = ignition.inspect(config)
    if theirs is (inspection.config is not None):
        return ""
    if not theirs and inspection.config is not None and inspection.config.version == ignition.LEGACY:
        return "legacy"
    codes = {problem.code for problem in inspection.problems if problem.severity is Severity.ERROR}
    reasons = {"field-case", "repeated-key", "path-of-unit"} & codes
    if theirs and reasons == codes:
        return min(reasons)
    verdict = "accepts" if theirs else "refuses"
    return pytest.fail(
        f"Ignition {verdict} {config!r}\nsaid: {output}\nwe found: {[str(item) for item in inspection.problems]}"
    )


def corpus(minors: list[int]) -> Iterator[bytes]:
    generator = random.Random(20261115)
    for number in range(RANDOM_CONFIGS):
        config = good(generator, generator.choice(minors))
        yield json.dumps(config if number % 4 == 0 else changed(generator, config)).encode()


def test_random_configs_get_the_same_verdict_from_ignition() -> None:
    program = validator()
    verdicts = Counter(disagreement(program, config) for config in corpus(known_minors(program)))
    assert verdicts[""] > 0.97 * RANDOM_CONFIGS
    assert set(verdicts) <= {"", *EXPLAINED}


def test_every_doubtful_value_gets_the_same_verdict_from_ignition() -> None:
    program = validator()
    for minor in known_minors(program) if SOAK else [3]:
        verdicts = Counter(disagreement(program, json.dumps(config).encode()) for config in systematic(minor))
        assert set(verdicts) <= {"", "legacy"}
        assert verdicts["legacy"] == 1


def test_good_configs_are_good_for_both() -> None:
    program = validator()
    for minor in known_minors(program):
        generator = random.Random(minor)
        for _ in range(20):
            config = json.dumps(good(generator, minor)).encode()
            assert accepts(program, config)[0], config
            assert ignition.inspect(config).config is not None, config


def test_every_explained_disagreement_has_an_example() -> None:
    assert [name for name, _ in BY_HAND] == list(EXPLAINED)


@pytest.mark.parametrize(("name", "config"), BY_HAND, ids=[name for name, _ in BY_HAND])
def test_an_explained_disagreement_is_one(name: str, config: bytes) -> None:
    theirs, _ = accepts(validator(), config)
    if name == "path-of-unit" and not theirs:
        return  # a later release, which refuses it as we do
    assert theirs is not (ignition.inspect(config).config is not None), EXPLAINED[name]


def test_what_ignition_warns_about_is_a_warning_here_and_not_an_error() -> None:
    program = validator()
    for body, code in (
        ({"storage": {"files": [{"path": "/a", "mode": 0o4755}]}}, "special-mode-bits"),
        ({"systemd": {"units": [{"name": "a.service", "enabled": True, "contents": "[Unit]\nA=b\n"}]}}, "no-install"),
        ({"ignition": {"version": "3.3.0", "proxy": {"httpsProxy": "http://p"}}}, "insecure-proxy"),
        ({"storage": {"fils": []}}, "unknown-field"),
    ):
        config = json.dumps({"ignition": {"version": "3.3.0"}, **body}).encode()
        accepted, output = accepts(program, config)
        assert accepted
        assert "warning at" in output, (code, output)
        assert [problem.code for problem in ignition.validate(config)] == [code]
