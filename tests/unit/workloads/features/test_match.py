"""Terms and rules: unions, instances, matchAny, matchName, absence."""

from __future__ import annotations

import pytest

from fastness.workloads.features.discovered import Features
from fastness.workloads.features.errors import BadExpression
from fastness.workloads.features.match import match_rule, match_term, trace
from fastness.workloads.features.operators import Expression
from fastness.workloads.features.rules import Rule, Term, read_rule

EXISTS, ABSENT = Expression("Exists"), Expression("DoesNotExist")
NODE = Features(
    {"cpu.cpuid": frozenset({"SSE42", "VMX"}), "empty.flags": frozenset()},
    {"cpu.cpuid": {"AVX10_VERSION": "2"}, "kernel.version": {"major": "6"}, "empty.attributes": {}},
    {"pci.device": ({"vendor": "10de", "class": "0302"}, {"vendor": "8086", "class": "0200"}), "usb.device": ()},
)


def _term(feature: str, name: Expression | None = None, **expressions: Expression) -> Term:
    return Term(feature, tuple(sorted(expressions.items())), name)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (_term("cpu.cpuid", VMX=EXISTS, SSE42=EXISTS), True),
        (_term("cpu.cpuid", VMX=EXISTS, SVM=EXISTS), False),
        (_term("cpu.cpuid", VMX=EXISTS, AVX10_VERSION=Expression("Ge", ("2",))), True),
        (_term("cpu.cpuid", VMX=ABSENT), False),
        (_term("cpu.cpuid", AVX10_VERSION=ABSENT), False),
        (_term("cpu.cpuid", SVM=ABSENT), True),
        (_term("cpu.cpuid", VMX=Expression("In", ("VMX",))), False),
        (_term("no.such"), False),
        (_term("no.such", X=ABSENT), False),
        (Term("no.such"), False),
        (Term("empty.flags"), True),
        (_term("empty.flags"), True),
        (_term("empty.attributes", X=ABSENT), True),
        (Term("usb.device"), True),
        (_term("usb.device"), False),
        (_term("pci.device"), True),
        (_term("pci.device", vendor=Expression("In", ("10de",)), **{"class": Expression("In", ("0302",))}), True),
        (_term("pci.device", vendor=Expression("In", ("10de",)), **{"class": Expression("In", ("0200",))}), False),
        (_term("pci.device", sriov=ABSENT), True),
        (Term("cpu.cpuid", None, Expression("InRegexp", ("^SSE",))), True),
        (Term("cpu.cpuid", None, Expression("In", ("SVM",))), False),
        (Term("pci.device", None, Expression("In", ("vendor",))), True),
        (Term("pci.device", None, Expression("In", ("serial",))), False),
        (Term("empty.flags", None, EXISTS), False),
        (_term("cpu.cpuid", Expression("In", ("VMX",)), SVM=EXISTS), False),
        (_term("cpu.cpuid", Expression("In", ("SVM",)), VMX=EXISTS), False),
        (_term("cpu.cpuid", Expression("In", ("SSE42",)), VMX=EXISTS), True),
    ],
)
def test_a_term_matches_what_it_says(term: Term, expected: bool) -> None:
    assert (match_term(term, NODE) is not None) is expected


def test_instances_are_collected_and_only_those_that_hold_as_a_whole() -> None:
    assert match_term(_term("pci.device", vendor=Expression("In", ("10de",))), NODE) == [
        NODE.instances["pci.device"][0]
    ]
    assert match_term(_term("pci.device", vendor=EXISTS), NODE) == list(NODE.instances["pci.device"])


def test_a_matched_absence_leaves_an_item_with_a_name_and_no_value() -> None:
    assert match_term(_term("cpu.cpuid", SVM=ABSENT), NODE) == [{"Name": "SVM", "Value": ""}]


@pytest.mark.parametrize(
    ("terms", "any_of", "expected"),
    [
        ([], [], True),
        (["cpu.cpuid"], [], True),
        (["cpu.cpuid", "no.such"], [], False),
        ([], [["no.such"], ["cpu.cpuid"]], True),
        ([], [["no.such"], ["cpu.cpuid", "no.such"]], False),
        (["no.such"], [["cpu.cpuid"]], False),
        (["pci.device"], [["cpu.cpuid"]], True),
    ],
)
def test_a_rule_needs_one_of_any_and_all_of_the_rest(terms: list[str], any_of: list[list[str]], expected: bool) -> None:
    rule = Rule(
        "r",
        terms=tuple(Term(feature) for feature in terms),
        any_of=tuple(tuple(Term(feature) for feature in branch) for branch in any_of),
    )
    assert (match_rule(rule, NODE) is not None) is expected


def test_the_first_matching_element_ends_the_look_unless_a_template_wants_all() -> None:
    broken = Term("kernel.version", (("major", Expression("Gt", ("x",))),))
    plain = Rule("r", any_of=((Term("cpu.cpuid"),), (broken,)))
    assert match_rule(plain, NODE) is not None
    with pytest.raises(BadExpression):
        match_rule(Rule("r", labels_template="a=b", any_of=plain.any_of), NODE)


def test_names_of_features_are_read_in_lower_case() -> None:
    rule = read_rule(
        {"name": "r", "matchFeatures": [{"feature": "CPU.CPUID", "matchExpressions": {"VMX": {"op": "Exists"}}}]}
    )
    assert match_rule(rule, NODE) is not None


def test_the_trace_tells_what_was_seen_also_behind_the_decision() -> None:
    rule = Rule(
        "r",
        terms=(
            _term("cpu.cpuid", SVM=EXISTS),
            _term("kernel.version", major=Expression("Lt", ("x",))),
            Term("no.such"),
        ),
        any_of=((_term("pci.device", vendor=Expression("In", ("1002",))),),),
    )
    traces = trace(rule, NODE)
    assert [(term.branch, term.feature, term.held) for term in traces] == [
        (0, "pci.device", False), (None, "cpu.cpuid", False), (None, "kernel.version", False), (None, "no.such", False),
    ]  # fmt: skip
    assert traces[1].checks[0].observed == "(absent)"
    assert traces[2].checks[0].observed == "6"
    assert "not an integer" in traces[2].checks[0].error
    assert traces[3].note


def test_ten_thousand_instances_are_searched_and_the_trace_shows_the_nearest() -> None:
    many = tuple({"vendor": f"{n:04x}", "class": "0200"} for n in range(10_000))
    node = Features(instances={"pci.device": many})
    rule = Rule(
        "r", terms=(_term("pci.device", vendor=Expression("In", ("270f",)), **{"class": Expression("In", ("0300",))}),)
    )
    assert match_rule(rule, node) is None
    assert {(check.element, check.held) for check in trace(rule, node)[0].checks} in (
        {("vendor", True), ("class", False)}, {("vendor", False), ("class", True)},
    )  # fmt: skip
