"""Reading and checking: every problem at once, each with its path, and nothing but the package's own errors."""

import json
from typing import Any

import pytest

from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import InvalidConfig, Severity, UnreadableConfig, UnsupportedVersion
from fastness.machineconfig.ignition.problems import MAX_PROBLEMS

SHA512 = "sha512-" + "a" * 128


def config(version: str = "3.5.0", **sections: Any) -> dict[str, Any]:
    return {"ignition": {"version": version}, **sections}


def files(*entries: dict[str, Any], version: str = "3.5.0", **storage: Any) -> dict[str, Any]:
    return config(version, storage={"files": list(entries), **storage})


def problem_places(value: bytes | dict[str, Any], strict: bool = False) -> set[tuple[str, str]]:
    """Path and code of every error."""
    problems = ignition.validate(value, strict)
    return {(problem.path, problem.code) for problem in problems if problem.severity is Severity.ERROR}


def warned(value: dict[str, Any]) -> set[tuple[str, str]]:
    problems = ignition.validate(value)
    assert all(problem.severity is Severity.WARNING for problem in problems), problems
    return {(problem.path, problem.code) for problem in problems}


def test_every_problem_is_reported_at_once_with_its_path() -> None:
    bad = config(
        storage={
            "files": [
                {"path": "etc/a", "mode": 0o10000, "contents": {"source": "ftp://x"}},
                {"path": "/b", "mode": "0644", "append": [{"compression": "xz"}]},
                {"path": "/b"},
            ],
            "links": [{"path": "/l"}],
        },
        systemd={"units": [{"name": "a", "dropins": [{"name": "b", "contents": "[x"}]}]},
    )
    assert problem_places(bad) == {
        ("storage.files[0].path", "path-relative"),
        ("storage.files[0].mode", "illegal-mode"),
        ("storage.files[0].contents.source", "invalid-scheme"),
        ("storage.files[1].mode", "wrong-type"),
        ("storage.files[1].append[0].compression", "invalid-compression"),
        ("storage.files[2]", "duplicate"),
        ("storage.links[0].target", "target-required"),
        ("systemd.units[0].name", "unit-suffix"),
        ("systemd.units[0].dropins[0].name", "dropin-suffix"),
        ("systemd.units[0].dropins[0].contents", "unit-syntax"),
    }
    with pytest.raises(InvalidConfig) as caught:
        ignition.parse(bad)
    assert len(caught.value.problems) == 10
    assert "and 9 more" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "data", [b"", b"  \n", b"{", b"[]", b"null", b"1", b"\xff", b'{"ignition":{"version":"3.5.0"}} x']
)
def test_what_is_no_json_object_cannot_be_read(data: bytes) -> None:
    with pytest.raises(UnreadableConfig) as caught:
        ignition.parse(data)
    assert caught.value.hint
    assert ignition.inspect(data).config is None


def test_a_config_of_ten_megabytes_is_refused_unread() -> None:
    with pytest.raises(UnreadableConfig) as caught:
        ignition.parse(b'{"a":"' + b"x" * 10_000_000 + b'"}')
    assert caught.value.code == "json-too-large"


@pytest.mark.parametrize(
    ("version", "code"),
    [
        ("3.6.0", "unknown-version"), ("3.5.0-experimental", "unknown-version"), ("2.3.0", "unknown-version"),
        ("4.0.0", "unknown-version"), ("1.0.0", "unknown-version"), ("3.5", "invalid-version"), ("", "invalid-version"),
        (None, "invalid-version"), (3, "invalid-version"), ("3.5.0 ", "invalid-version"), ("v3.5.0", "invalid-version"),
    ],
)  # fmt: skip
def test_an_unknown_version_is_told_from_an_invalid_one(version: Any, code: str) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        ignition.parse({"ignition": {"version": version}})
    assert caught.value.code == code
    assert "2.2, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5" in caught.value.hint


@pytest.mark.parametrize("raw", [{}, {"ignition": []}, {"ignition": None}])
def test_a_config_without_a_version_is_invalid(raw: dict[str, Any]) -> None:
    assert problem_places(raw) == {("ignition.version", "invalid-version")}


@pytest.mark.parametrize("version", ignition.SUPPORTED)
def test_the_empty_config_of_every_version_is_good(version: str) -> None:
    parsed = ignition.parse(config(version))
    assert (parsed.version, parsed.warnings) == (version, ())


def test_older_minors_of_spec_2_are_read_as_2_2() -> None:
    assert ignition.parse(config("2.0.0")).body == config("2.2.0")


def test_unknown_fields_are_warnings_that_name_the_nearest_field_and_errors_when_strict() -> None:
    odd = files({"path": "/a", "mod": 1, "unheardof": 2})
    messages = {problem.path: problem.message for problem in ignition.validate(odd)}
    assert "mode" in messages["storage.files[0].mod"]
    assert warned(odd) == {("storage.files[0].mod", "unknown-field"), ("storage.files[0].unheardof", "unknown-field")}
    assert len(problem_places(odd, strict=True)) == 2
    assert ignition.parse(odd).body == files({"path": "/a"})


def test_a_field_of_a_later_version_says_since_when_it_exists() -> None:
    (problem,) = ignition.validate(config("3.2.0", kernelArguments={"shouldExist": ["a"]}))
    assert (problem.path, problem.message) == ("kernelArguments", "exists only since spec 3.3")


def test_a_field_in_other_capitals_is_an_error() -> None:
    assert problem_places(files({"path": "/a", "Mode": 1})) == {("storage.files[0].Mode", "field-case")}


def test_a_repeated_key_is_an_error() -> None:
    assert problem_places(b'{"ignition":{"version":"3.5.0","version":"3.5.0"}}') == {
        ("ignition.version", "repeated-key")
    }


def test_nulls_mean_absent_and_a_null_entry_means_an_empty_one() -> None:
    parsed = ignition.parse(files({"path": "/a", "mode": None, "contents": None}))
    assert parsed.body == files({"path": "/a"})
    assert problem_places(config(storage={"files": [None]})) == {("storage.files[0].path", "path-required")}


def test_a_config_in_normal_form_is_not_copied() -> None:
    raw = files({"path": "/a", "contents": {"source": "data:,x"}})
    assert ignition.parse(raw).body is raw


def test_equal_configs_have_equal_bytes() -> None:
    first, other = files({"path": "/a", "mode": 1}), files({"mode": 1, "path": "/a"})
    assert ignition.to_json(ignition.parse(first)) == ignition.to_json(other)
    assert json.loads(ignition.to_json(first)) == first


def test_a_config_full_of_mistakes_gives_a_bounded_report_that_still_refuses() -> None:
    mistakes = files(*({"path": "/same", "x": 1} for _ in range(2 * MAX_PROBLEMS)))
    problems = ignition.validate(mistakes)
    assert len(problems) == MAX_PROBLEMS
    assert ignition.inspect(mistakes).config is None


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "path-required"), ("a", "path-relative"), ("../a", "path-relative"), ("/a/../b", "path-not-simplified"),
        ("/..", "path-not-simplified"), ("/a/", "path-not-simplified"), ("/a//b", "path-not-simplified"),
        ("/./a", "path-not-simplified"),
    ],
)  # fmt: skip
def test_paths_are_absolute_and_simple(path: str, code: str) -> None:
    assert problem_places(files({"path": path})) == {("storage.files[0].path", code)}


@pytest.mark.parametrize("path", ["/", "/a", "/a/..b", "/...", "/a b", "/a\nb"])
def test_odd_but_simple_paths_are_fine(path: str) -> None:
    assert problem_places(files({"path": path})) == set()


def test_two_kinds_of_entry_cannot_share_a_path() -> None:
    both = files({"path": "/a"}, directories=[{"path": "/a"}], links=[{"path": "/b", "target": "/a"}])
    assert problem_places(both) == {("storage.files[0]", "duplicate")}


def test_paths_do_not_lead_through_links_of_the_same_config() -> None:
    links = [{"path": "/link", "target": "/x"}, {"path": "/link/inner", "target": "/y"}]
    through = files({"path": "/link/a/b"}, {"path": "/linked"}, directories=[{"path": "/link/d"}], links=links)
    assert problem_places(through) == {
        ("storage.files[0]", "through-link"),
        ("storage.directories[0]", "through-link"),
        ("storage.links[1]", "through-link"),
    }


def test_a_file_where_a_unit_will_be_written_is_refused() -> None:
    units: list[dict[str, Any]] = [
        {"name": "a.service", "contents": "[Unit]\n", "dropins": [{"name": "b.conf", "contents": "[Unit]\n"}]}
    ]
    clash = {
        **files({"path": "/etc/systemd/system/a.service"}, {"path": "/etc/systemd/system/a.service.d/b.conf"}),
        "systemd": {"units": units},
    }
    assert {code for _, code in problem_places(clash)} == {"path-of-unit"}
    units[0] = {"name": "a.service", "enabled": True}
    assert problem_places(clash) == set()


def test_resources_need_good_sources_hashes_and_headers() -> None:
    headers = [{"name": "", "value": ""}]
    bad = files(
        {"path": "/a", "overwrite": True},
        {"path": "/b", "contents": {"verification": {"hash": SHA512}}},
        {"path": "/c", "contents": {"source": "data:,x", "httpHeaders": headers}},
        {"path": "/d", "contents": {"source": "data:,x", "verification": {"hash": "sha512-abc"}}},
        {"path": "/e", "contents": {"source": "data:;base64,abc"}},
        {"path": "/f", "user": {"id": 1, "name": "x"}},
    )
    assert problem_places(bad) == {
        ("storage.files[0].overwrite", "overwrite-without-source"),
        ("storage.files[1].contents.verification.hash", "hash-without-source"),
        ("storage.files[2].contents.httpHeaders[0].name", "header-name-required"),
        ("storage.files[2].contents.httpHeaders[0].value", "header-value-empty"),
        ("storage.files[2].contents.httpHeaders", "headers-need-http"),
        ("storage.files[3].contents.verification.hash", "hash-wrong-size"),
        ("storage.files[4].contents.source", "data-url-malformed"),
        ("storage.files[5].user", "id-and-name"),
    }


@pytest.mark.parametrize(
    ("source", "since"), [("gs://b/k", "3.2.0"), ("arn:aws:s3:::b/k", "3.4.0"), ("https://x/", "3.0.0")]
)
def test_schemes_came_with_versions(source: str, since: str) -> None:
    for version in ignition.SPEC3:
        bad = problem_places(files({"path": "/a", "contents": {"source": source}}, version=version))
        assert bool(bad) is (version < since), version


def test_references_and_authorities_need_a_source() -> None:
    bad = config()
    bad["ignition"] |= {"config": {"merge": [{}]}, "security": {"tls": {"certificateAuthorities": [{"source": ""}]}}}
    assert {code for _, code in problem_places(bad)} == {"source-required"}


def test_special_mode_bits_are_a_warning_until_they_are_supported() -> None:
    assert warned(files({"path": "/a", "mode": 0o4755}, version="3.3.0")) == {
        ("storage.files[0].mode", "special-mode-bits")
    }
    assert warned(files({"path": "/a", "mode": 0o4755}, version="3.4.0")) == set()


def test_enabling_what_has_no_install_section_is_a_warning() -> None:
    units = [
        {"name": "a.service", "enabled": True, "contents": "[Unit]\nA=b\n"},
        {"name": "t@.service", "contents": "[Unit]\nA=b\n"},
        {"name": "t@one.service", "enabled": True},
        {"name": "fine.service", "enabled": True, "contents": "[Install]\nAlias=x\n"},
    ]
    expected = {("systemd.units[0].contents", "no-install"), ("systemd.units[2].contents", "no-install")}
    assert warned(config(systemd={"units": units})) == expected


def test_inline_contents_can_be_opened_and_compared_before_boot() -> None:
    opened = files(
        {"path": "/a", "contents": {"source": "data:,x", "compression": "gzip"}},
        {"path": "/b", "contents": {"source": "data:,x", "verification": {"hash": SHA512}}},
        {"path": "/c", "append": [{"source": "https://example.com"}]},
    )
    problems = ignition.check_contents(opened)
    assert [(problem.path, problem.code) for problem in problems] == [
        ("storage.files[0].contents", "not-gzip"),
        ("storage.files[1].contents", "hash-mismatch"),
    ]


def test_sha256_exists_since_3_1() -> None:
    entry = {"path": "/a", "contents": {"source": "data:,x", "verification": {"hash": "sha256-" + "a" * 64}}}
    where = "storage.files[0].contents.verification.hash"
    assert problem_places(files(entry, version="3.0.0")) == {(where, "hash-unrecognised")}
    assert problem_places(files(entry, version="3.1.0")) == set()


def test_a_hard_link_must_not_point_to_a_directory_however_it_is_written() -> None:
    links = [{"path": "/l", "target": "/x/../dir", "hard": True}]
    assert problem_places(files(links=links, directories=[{"path": "/dir"}])) == {
        ("storage.links[0]", "hard-link-to-directory")
    }
