"""Policies: the traps of the engine stay closed, the built-in ones deny by default, foreign ones give their own answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.policy.claims import MANDATORY, Tier, tier
from fastness.attestation.policy.policy import (
    BUILT_IN,
    RESOURCE,
    built_in_text,
    compile_policy,
    default_policy,
    policy_version,
)
from fastness.attestation.values.values import EMPTY
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.rego.builtins import ALLOWED
from fastness.rego.engine import BadPolicy, is_built_in
from tests.unit.attestation.policyinputs import GOOD_VALUES, book, good_input

HEAD = "package policy\nimport rego.v1\n"


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all leaves of an input."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    else:
        yield path


def without(value: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """The input without what stands at a path."""
    head, *rest = path
    if not rest:
        return {key: part for key, part in value.items() if key != head}
    return {**value, head: without(value[head], tuple(rest))}


def mandatory_claims(tee: str) -> list[tuple[str, ...]]:
    """The claims that the built-in policy of a kind of evidence rests on."""
    body = ("tdx", "quote", "body")
    return {
        "tpm": [
            *(("tpm", f"pcr{number:02}") for number in (4, 7, 11, 12, 14)),
            ("appraisal", "authentic"), ("appraisal", "checks", "attestation-key"), ("appraisal",), ("tpm",),
        ],
        "snp": [
            *(("snp", name) for name in ("measurement", "generation", "vmpl", "policy_debug_allowed", "policy_migrate_ma")),
            ("init_data",), ("appraisal", "authentic"), ("appraisal", "acceptable"), ("snp",),
        ],
        "tdx": [
            *((*body, name) for name in ("mr_td", "rtmr_0", "rtmr_1", "rtmr_2", "rtmr_3")),
            ("tdx", "td_attributes", "debug"), ("tdx", "td_attributes", "septve_disable"), ("tdx", "tcb_status"),
            ("tdx", "collateral_expiration_status"), ("tdx", "quote", "header", "tee_type"),
            ("tdx", "quote", "header", "vendor_id"), ("init_data",), ("appraisal", "authentic"),
            ("appraisal", "acceptable"), ("tdx",),
        ],
    }[tee]  # fmt: skip


@pytest.mark.parametrize("tee", BUILT_IN)
def test_a_good_machine_is_affirmed(tee: str) -> None:
    vector = default_policy(tee).evaluate(good_input(tee), book(GOOD_VALUES[tee]))
    assert vector.affirms(tee), vector


@pytest.mark.parametrize("tee", BUILT_IN)
def test_nothing_affirms_nothing(tee: str) -> None:
    assert not default_policy(tee).evaluate({}, book(GOOD_VALUES[tee])).affirms(tee)
    assert not default_policy(tee).evaluate(good_input(tee), EMPTY).affirms(tee)


@pytest.mark.parametrize(("tee", "path"), [(tee, path) for tee in BUILT_IN for path in mandatory_claims(tee)])
def test_removing_any_mandatory_claim_refuses(tee: str, path: tuple[str, ...]) -> None:
    vector = default_policy(tee).evaluate(without(good_input(tee), path), book(GOOD_VALUES[tee]))
    assert not vector.affirms(tee)


@pytest.mark.parametrize("tee", BUILT_IN)
@given(data=st.data())
def test_removing_claims_never_makes_a_refused_machine_affirmed(tee: str, data: st.DataObject) -> None:
    """Silence never helps: whatever else is left out, a machine without a mandatory claim stays refused."""
    document = without(good_input(tee), data.draw(st.sampled_from(mandatory_claims(tee)[:5])))
    paths = sorted(leaves(document))
    for path in data.draw(st.lists(st.sampled_from(paths), max_size=4, unique=True)):
        document = without(document, path)
    assert not default_policy(tee).evaluate(document, book(GOOD_VALUES[tee])).affirms(tee)


@pytest.mark.parametrize(("tee", "name"), [(tee, name) for tee in BUILT_IN for name in GOOD_VALUES[tee]])
def test_a_missing_value_fails_closed(tee: str, name: str) -> None:
    left = {key: values for key, values in GOOD_VALUES[tee].items() if key != name}
    assert not default_policy(tee).evaluate(good_input(tee), book(left)).affirms(tee)


@pytest.mark.parametrize("tee", BUILT_IN)
@given(data=st.data())
def test_adding_a_reference_value_never_accepts_what_another_claim_refuses(tee: str, data: st.DataObject) -> None:
    names = sorted(GOOD_VALUES[tee])
    refused = data.draw(st.sampled_from(names))
    others = [*[name for name in names if name != refused], "init_data", "xfam", "rtmr_3", "tpm_pcr8", "unrelated"]
    added = data.draw(
        st.dictionaries(st.sampled_from(others), st.lists(st.text("0123456789abcdef", max_size=96), min_size=1))
    )
    values = {name: list(listed) for name, listed in GOOD_VALUES[tee].items()} | {refused: ["f" * 64]}
    for name, listed in added.items():
        values[name] = [*values.get(name, []), *(value for value in listed if value)]
    assert not default_policy(tee).evaluate(good_input(tee), book(values)).affirms(tee)


def test_a_bare_tpm_never_affirms_hardware() -> None:
    vector = default_policy("tpm").evaluate(good_input("tpm"), book(GOOD_VALUES["tpm"]))
    assert tier(vector.value("hardware")) is Tier.NONE
    assert "hardware" not in MANDATORY["tpm"]


@pytest.mark.parametrize(
    ("tee", "change"),
    [
        ("snp", ("snp", "policy_debug_allowed", True)),
        ("snp", ("snp", "policy_migrate_ma", True)),
        ("snp", ("snp", "vmpl", 1)),
        ("snp", ("appraisal", "acceptable", False)),
        ("tdx", ("tdx", "tcb_status", "OutOfDate")),
        ("tdx", ("tdx", "collateral_expiration_status", "1")),
        ("tdx", ("tdx", "td_attributes", {"debug": True, "septve_disable": True})),
        ("tdx", ("tdx", "td_attributes", {"debug": False, "septve_disable": False})),
        ("tpm", ("appraisal", "authentic", False)),
        ("tpm", ("appraisal", "checks", {"attestation-key": "NotAssessed"})),
    ],
)
def test_what_is_wrong_is_refused(tee: str, change: tuple[str, str, Any]) -> None:
    document = good_input(tee)
    part, name, value = change
    document[part] = {**document[part], name: value}
    assert not default_policy(tee).evaluate(document, book(GOOD_VALUES[tee])).affirms(tee)


@pytest.mark.parametrize(("tee", "size"), [("snp", 64), ("tdx", 96)])
def test_pitfall_11_init_data_that_nobody_expects_is_refused_with_and_without_its_text(tee: str, size: int) -> None:
    digest = "cd" * (size // 2)
    silent = {**good_input(tee), "init_data": digest, "init_data_claims": None}
    spoken = {**silent, "init_data_claims": {"machine-id": "x"}}
    for document in (silent, spoken):
        assert not default_policy(tee).evaluate(document, book(GOOD_VALUES[tee])).affirms(tee)
        expected = {**GOOD_VALUES[tee], "init_data": [digest]}
        assert default_policy(tee).evaluate(document, book(expected)).affirms(tee)
    assert not default_policy(tee).evaluate({**silent, "init_data": ""}, book(GOOD_VALUES[tee])).affirms(tee)


def test_the_built_in_policy_says_nothing_about_the_host_around_a_bare_tpm() -> None:
    vector = default_policy("tpm").evaluate(good_input("tpm"), book(GOOD_VALUES["tpm"]))
    assert vector.affirms("tpm")
    assert vector.value("hardware") == 0


def test_exceptions_of_pages_are_left_to_the_check_that_the_cluster_may_relax() -> None:
    document = good_input("tdx")
    document["tdx"]["td_attributes"] = {"debug": False, "septve_disable": False}
    for result, affirmed in (("Warn", True), ("Fail", False), ("Pass", False)):
        document["appraisal"] = {**document["appraisal"], "checks": {"sept-ve-disable": result}}
        assert default_policy("tdx").evaluate(document, book(GOOD_VALUES["tdx"])).affirms("tdx") is affirmed


def test_pitfall_11_a_tpm_whose_pcr_8_holds_something_unexpected_is_refused() -> None:
    for value, affirmed in (("0" * 64, True), ("0" * 96, True), ("cd" * 32, False), ("", False), (None, False)):
        document = good_input("tpm")
        document["tpm"] = {**document["tpm"], "pcr08": value}
        assert default_policy("tpm").evaluate(document, book(GOOD_VALUES["tpm"])).affirms("tpm") is affirmed
    document["tpm"].pop("pcr08")
    assert not default_policy("tpm").evaluate(document, book(GOOD_VALUES["tpm"])).affirms("tpm")


def test_an_exact_configuration_is_better_than_one_without_known_flaws() -> None:
    exact: dict[str, Any] = {
        "snp_smt_enabled": True, "snp_tsme_enabled": False, "snp_smt_allowed": True, "snp_single_socket": False,
        "snp_guest_abi_major": 1, "snp_guest_abi_minor": 51,
    }  # fmt: skip
    from fastness.attestation.policy.cases import book_of_case

    policy = default_policy("snp")
    assert policy.evaluate(good_input("snp"), book(GOOD_VALUES["snp"])).value("configuration") == 3
    assert policy.evaluate(good_input("snp"), book_of_case({**GOOD_VALUES["snp"], **exact})).value("configuration") == 2


# The engine.


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "package policy", "package other\nhardware := 2", "hardware := 2",
        "package policy\npackage policy\nhardware := 2", HEAD + "hardware := {", HEAD + "hardware := nobody(1)",
        HEAD + "colour := 2", "package policy\n" + "#" * 262144, "package policy\nhardware := 2\0",
    ],
)  # fmt: skip
def test_a_text_that_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(BadPolicy) as refused:
        compile_policy(text)
    assert refused.value.code.startswith("policy-")
    assert refused.value.hint


@pytest.mark.parametrize(
    "body",
    [
        "opa.runtime()", "http.send({})", 'rand.intn("a", 2) == 1', 'uuid.rfc4122("a")', 'print("a")',
        'net.lookup_ip_addr("a")',
        'x := "#"; opa.runtime()', 'opa["runtime"]()', "opa.\nruntime()", "opa . runtime ()", "count([1 | opa.runtime()]) == 1",
        "count([]) == {} with count as opa.runtime", "every n in [1] { n < rand.intn(\"a\", 2) }", "`#` != opa.runtime()",
        "not opa.runtime()", "data[\"policy\"][\"around\"](1)", "no_such_function(1)",
    ],
)  # fmt: skip
def test_what_is_not_on_the_list_is_not_called_however_it_is_written(body: str) -> None:
    around = "around(x) if opa.runtime().env[x]\n" if "around" in body else ""
    with pytest.raises(BadPolicy) as refused:
        compile_policy(HEAD + f"hardware := 2 if {{ {body} }}\n{around}")
    assert refused.value.code == "policy-looks-outside"
    words = body.replace("\n", " ")
    compile_policy(
        HEAD
        + f"# not {words}\nhardware := 2 if {{ input.a != {json.encode(words).decode()}; `{words.replace('`', '')}` }}\n"
    )


@pytest.mark.parametrize(
    "head", ["default hardware := opa.runtime()", "hardware := opa.runtime()", "unused := opa.runtime()"]
)
def test_a_call_in_the_head_of_a_rule_or_where_nobody_asks_is_refused_too(head: str) -> None:
    with pytest.raises(BadPolicy) as refused:
        compile_policy(HEAD + f"{head}\nhardware := 2 if input.a\n")
    assert refused.value.code == "policy-looks-outside"


def test_every_function_on_the_list_exists_and_the_built_in_policies_use_no_other() -> None:
    assert [name for name in sorted(ALLOWED) if not is_built_in(name)] == []
    for tee in BUILT_IN:
        assert default_policy(tee).version == policy_version(built_in_text(tee)), (
            "it compiles, so it calls nothing else"
        )
    assert not {"opa.runtime", "http.send", "rand.intn", "internal.print", "io.jwt.encode_sign"} & ALLOWED


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(BadPolicy, match="line 4"):
        compile_policy(HEAD + "\nhardware := {\n")


def test_a_built_in_function_that_fails_is_an_error_and_not_a_yes() -> None:
    lax = compile_policy(HEAD + "hardware := 2 if not to_number(input.a) == 5\n")
    vector = lax.evaluate({"a": "five"}, EMPTY)
    assert vector.error
    assert not vector.affirms("snp")


def test_rules_that_contradict_each_other_affirm_nothing() -> None:
    torn = compile_policy(HEAD + "hardware := 2 if input.a\nhardware := 3 if input.b\n")
    assert torn.evaluate({"a": 1}, EMPTY).value("hardware") == 2
    assert torn.evaluate({"a": 1, "b": 1}, EMPTY).error


def test_a_rule_that_is_undefined_asserts_nothing_and_the_others_count() -> None:
    some = compile_policy(HEAD + "hardware := 2 if input.a\nexecutables := 3\n")
    assert dict(some.evaluate({}, EMPTY).claims) == {"executables": 3, "hardware": 0}


def test_an_undefined_vector_is_an_error() -> None:
    assert compile_policy(HEAD + 'trust_claims := {"hardware": 2} if input.a\n').evaluate({}, EMPTY).error


def test_claims_of_unknown_names_in_the_input_crash_nothing() -> None:
    document = {**good_input("tpm"), "nvidia": {"a": [1, {"b": None}]}, "ключ": "значение", "": {}}
    assert default_policy("tpm").evaluate(document, book(GOOD_VALUES["tpm"])).affirms("tpm")


def test_values_change_without_compiling_the_text_again() -> None:
    policy = compile_policy(HEAD + 'hardware := 2 if input.a in query_reference_value("a")\n')
    for number in range(12):
        assert policy.evaluate({"a": str(number)}, book({"a": [str(number)]})).value("hardware") == 2
        assert policy.evaluate({"a": "x"}, book({"a": [str(number)]})).value("hardware") == 0
    assert policy.evaluate({"a": "3"}, book({"a": ["4"]})).value("hardware") == 0, "never the values of another book"


@pytest.mark.parametrize(
    "rule",
    [
        'input.a in query_reference_value("gone")',
        'input.a == query_reference_value("gone")',
        'input.a >= query_reference_value("gone")',
        'query_reference_value("gone") <= input.a',
        'query_reference_value("gone") != input.a',
        'every value in query_reference_value("gone") { value == input.a }',
        'query_reference_value("gone")[_] == input.a',
        'count(query_reference_value("gone")) < 5',
    ],
)
def test_a_rule_that_asks_for_a_value_which_nobody_published_fails(rule: str) -> None:
    policy = compile_policy(HEAD + f"hardware := 2 if {{ {rule} }}\n")
    assert policy.evaluate({"a": 5}, book({"other": ["5"]})).value("hardware") == 0


def test_threads_never_share_an_engine() -> None:
    policy = compile_policy(HEAD + 'hardware := 2 if input.a in query_reference_value("a")\n')
    references, wrong = book({"a": ["1"]}), []

    def work(value: str) -> None:
        for _ in range(60):
            got = policy.evaluate({"a": value}, references).value("hardware")
            if got != (2 if value == "1" else 0):
                wrong.append((value, got))

    threads = [threading.Thread(target=work, args=(value,)) for value in "1212"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Policies of another service, in their own style.

FOREIGN = (
    HEAD
    + """
default executables := 33
default hardware := 97
default configuration := 36
default file_system := 0

trust_claims := {"executables": executables, "hardware": hardware, "configuration": configuration, "file-system": file_system}

executables := 3 if {
  input.snp
  input.snp.measurement in query_reference_value("snp_launch_measurement")
}
hardware := 2 if {
  input.snp
  input.snp.reported_tcb_bootloader in query_reference_value("snp_bootloader")
  input.snp.reported_tcb_microcode in query_reference_value("snp_microcode")
}
configuration := 2 if {
  input.snp
  input.snp.policy_debug_allowed == false
  input.snp.platform_smt_enabled == query_reference_value("snp_smt_enabled")
  input.snp.policy_abi_minor >= query_reference_value("minimum_abi_minor")
} else := 3 if {
  input.snp
  input.snp.policy_debug_allowed == false
}
hardware := 2 if {
  input.tpm
}
executables := 3 if {
  input.tpm
  input.tpm.pcr11 in query_reference_value("tpm_pcr11")
  input.tpm.ak_public in query_reference_value("trusted_aks")
}
extensions := [{"name": "ear.example", "key": -18, "value": ids}]
ids := [name | some name in input.init_data_claims.images]
"""
)


@pytest.mark.parametrize(
    ("values", "vector"),
    [
        ({}, {"executables": 33, "hardware": 97, "configuration": 3, "file-system": 0}),
        (
            {"snp_launch_measurement": [good_input("snp")["snp"]["measurement"]]},
            {"executables": 3, "hardware": 97, "configuration": 3, "file-system": 0},
        ),
        (
            {
                "snp_launch_measurement": [good_input("snp")["snp"]["measurement"]],
                "snp_bootloader": [3], "snp_microcode": [114, 115], "snp_smt_enabled": True, "minimum_abi_minor": 50,
            },
            {"executables": 3, "hardware": 2, "configuration": 2, "file-system": 0},
        ),
        (
            {"snp_bootloader": ["3"], "snp_microcode": [115], "snp_smt_enabled": ["true"], "minimum_abi_minor": 52},
            {"executables": 33, "hardware": 97, "configuration": 3, "file-system": 0},
        ),
    ],
    ids=["no-values", "measurement", "all", "wrong-types"],
)  # fmt: skip
def test_a_policy_in_the_style_of_trustee_gives_the_same_vector(values: JsonObject, vector: dict[str, int]) -> None:
    from fastness.attestation.policy.cases import book_of_case

    assert compile_policy(FOREIGN).evaluate(good_input("snp"), book_of_case(values)).claims == vector


def test_a_policy_that_calls_a_tpm_genuine_hardware_is_heard_and_not_believed() -> None:
    document = good_input("tpm")
    values = {"tpm_pcr11": [document["tpm"]["pcr11"]], "trusted_aks": [document["tpm"]["ak_public"]]}
    vector = compile_policy(FOREIGN).evaluate(document, book(values))
    assert (vector.value("hardware"), vector.value("executables")) == (2, 3)
    assert vector.seen_by("tpm").value("hardware") == 0
    assert not vector.seen_by("tpm").affirms("tpm"), "its configuration is not affirmed"


def test_a_policy_that_walks_events_gets_them() -> None:
    walks = compile_policy(HEAD + 'hardware := 2 if input.tdx.uefi_event_logs[_].digest == "aa"\n')
    assert walks.evaluate({"tdx": {"uefi_event_logs": [{"digest": "aa"}]}}, EMPTY).value("hardware") == 2


@pytest.mark.parametrize("name", ["nobody", "../policies/tpm", ""])
def test_there_is_no_built_in_policy_of_another_name(name: str) -> None:
    with pytest.raises(KeyError):
        built_in_text(name)


def test_the_policy_for_resources_judges_no_evidence() -> None:
    with pytest.raises(KeyError):
        default_policy(RESOURCE)


@pytest.mark.parametrize("reads", ["", "count(input) >= 0"], ids=["little", "everything"])
def test_a_caller_cannot_forge_values_through_its_claims(reads: str) -> None:
    policy = compile_policy(HEAD + f'hardware := 2 if {{ input.a in query_reference_value("a")\n{reads} }}\n')
    forged = {"a": "1", "fastness.dev/values": {"a": ["1"]}}
    assert policy.evaluate(forged, book({"a": ["1"]})).value("hardware") == 2
    assert policy.evaluate(forged, book({"a": ["2"]})).value("hardware") == 0
