"""Hostile bytes against everything that reads Ignition configs and data URLs."""

import base64
import contextlib
import json
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import data_url as dataurl
from fastness.formats.errors import DataUrlError, FormatError
from fastness.machineconfig import ignition
from fastness.machineconfig.ignition.unit_file import UnitSyntax, sections
from fastness.machineconfig.ignition.urls import legacy_problem, problem, split
from tests.component.machineconfig.ignition.corpus import GZIPPED, UNITS, URLS, good
from tests.fuzz.driver import Target, run


def _config(data: bytes) -> object:
    report = ignition.inspect(data)
    config = ignition.parse(data)
    assert config == report.config
    # What was accepted can be written and read again, and moved to every other version and back without an accident.
    assert ignition.parse(ignition.to_json(config)).body == config.body
    for version in ("3.0.0", ignition.LEGACY):
        ignition.translate(config, version)
    body = ignition.upgrade(data)
    alone = ignition.merge_all([("one", body)])
    assert ignition.merge(alone, {}) == alone
    assert ignition.merge(alone, body)["ignition"]["version"] == ignition.CURRENT
    return config


def _predict(data: bytes) -> object:
    return ignition.predict(ignition.upgrade(data), limit=100_000)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _url(data: bytes) -> object:
    text = _text(data)
    split(text)
    problem(text, 5)
    legacy_problem(text)
    decoded = dataurl.decode(text, 10_000)
    assert problem(text, 0) is None or any(ord(character) < 32 for character in text)
    assert dataurl.decode(dataurl.encode(decoded)) == decoded
    return decoded


def _unit(data: bytes) -> object:
    try:
        return sections(_text(data))
    except UnitSyntax as error:
        raise DataUrlError("unit", str(error), hint="a unit file has sections and options") from error


def _gzip(data: bytes) -> object:
    return dataurl.gunzip(data, 10_000)


_JSON = (
    b"{", b"}", b"[", b"]", b":", b",", b'"', b"null", b"true", b"-1", b"1e9", b'"3.0.0"', b'"2.2.0"', b'"path":"/a"',
    b'"source":"',
    b'"name":"a.service"', b'"files":[', b'"links":', b"/../", b"%", b"data:,", b'"mode":', b"\\u0000", b'"contents":',
)  # fmt: skip
_CONFIGS = tuple(json.dumps(good(random.Random(seed), seed % 6)).encode() for seed in range(12))
_LEGACY = json.dumps(
    {
        "ignition": {"version": "2.2.0", "config": {"append": [{"source": "https://x/"}]}},
        "storage": {"files": [{"filesystem": "root", "path": "/a", "append": True, "contents": {"source": "data:,x"}}]},
        "systemd": {"units": [{"name": "a.service", "enable": True, "dropins": [{"name": "b.conf"}]}]},
    }
).encode()
_INLINE = json.dumps(
    {
        "ignition": {"version": "3.4.0"},
        "storage": {
            "files": [
                {"path": "/a", "contents": {"source": GZIPPED, "compression": "gzip"}, "append": [{"source": "data:,x"}]}
            ],
            "links": [{"path": "/b/c", "target": "x"}],
        },
        "systemd": {"units": [{"name": "a@b.service", "enabled": True, "contents": "[Unit]\n", "mask": True}]},
    }
).encode()  # fmt: skip
_GOOD_URLS = tuple(url.encode() for url in URLS if url.startswith("data:") and problem(url, 5) is None)

TARGETS = (
    Target("ignition config", _config, (*_CONFIGS, _LEGACY), _JSON, calls_per_byte=120, base_calls=20_000),
    Target("ignition layout", _predict, (_INLINE,), _JSON, calls_per_byte=120, base_calls=20_000),
    Target("url", _url, _GOOD_URLS, (b"%", b"%20", b"//", b"@", b":", b"[", b"]", b"#", b"?", b";base64,", b"arn:", b"=")),
    Target("unit file", _unit, tuple(u.encode() for u in UNITS[:3]), (b"[", b"]", b"=", b"\n", b"\\\n", b"#", b"\xc2\xa0")),
    Target("gzip", _gzip, (dataurl.gzip(b"text"), dataurl.gzip(b"\0" * 9000)), (b"\x1f\x8b", b"\x08", b"\0" * 8)),
)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_input_gives_a_value_or_a_format_error(target: Target) -> None:
    outcome = run(
        target, iterations=None if target.name not in ("ignition config", "ignition layout") else _iterations()
    )
    assert outcome.accepted > 0
    assert len(outcome.refused) > 0


def _iterations() -> int | None:
    return None if os.environ.get("FASTNESS_SOAK") else 2_500


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["files", "path", "units", "name", "contents", "source", "mode", "luks"]), inner
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from(ignition.SUPPORTED),
    st.dictionaries(st.sampled_from(["storage", "systemd", "passwd", "x"]), _VALUES),
)
def test_any_json_gives_a_report(version: str, sections_: dict[str, object]) -> None:
    report = ignition.inspect({"ignition": {"version": version}, **sections_})
    assert (report.config is None) is any(item.severity == "error" for item in report.problems)


@given(st.binary(max_size=120))
def test_any_bytes_give_a_config_or_an_error(data: bytes) -> None:
    for text in (data, base64.b64encode(data)):
        with contextlib.suppress(FormatError):
            ignition.parse(text)
