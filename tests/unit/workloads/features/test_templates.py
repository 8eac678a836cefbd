"""Templates of rules: what they make of matched elements, what is refused with line and column, and bounds.

That they mean what they mean to Go is compared in `tests/component/workloads/test_templates_like_go.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.workloads.features.errors import BadTemplate
from fastness.workloads.features.templates import FUNCTIONS, MAX_TEXT, run
from tests.component.workloads.template_table import TABLES, templates

DATA: dict[str, Any] = {
    "pci": {"device": [{"vendor": "10de", "device": "2331", "iommu/type": "DMA"}, {"vendor": "8086", "device": "1"}]},
    "kernel": {"version": [{"Name": "major", "Value": "6"}], "loadedmodule": []},
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("a=b\n\n  \nc = d=e", {"a": "b", "c": "d=e"}),
        ("{{ range .pci.device }}v-{{ .vendor }}={{ .device }}\n{{ end }}", {"v-10de": "2331", "v-8086": "1"}),
        ("{{range $i, $d := .pci.device}}{{$d.vendor}}={{$i}}\n{{end}}", {"10de": "0", "8086": "1"}),
        ("{{ range .kernel.loadedmodule }}x{{ else }}none=true{{ end }}", {"none": "true"}),
        ("{{ .pci.device | len | printf \"num-devices=%d\" }}", {"num-devices": "2"}),
        ("{{ with index .pci.device 0 }}first={{ .vendor | upper }}{{ end }}", {"first": "10DE"}),
        ("{{ $n := 0 }}{{ range .pci.device }}{{ $n = add $n 1 }}{{ end }}n={{ $n }}", {"n": "2"}),
        ("{{ range .kernel.version }}new={{ ge (atoi .Value) 6 }}{{ end }}", {"new": "true"}),
        ("kvm={{ if .kernel.loadedmodule }}yes{{ else }}no{{ end }}", {"kvm": "no"}),
        ("x={{ `}}` }}", {"x": "}}"}),
    ],
)  # fmt: skip
def test_lines_are_made_of_what_matched(template: str, expected: dict[str, str]) -> None:
    assert run(template, DATA) == expected


@pytest.mark.parametrize(
    ("template", "code", "place"),
    [
        ('{{ env "HOME" }}=x', "unknown-function", "line 1, column 4"),
        ("a=1\nb={{ now }}", "unknown-function", "line 2, column 6"),
        ('{{ getHostByName "x" }}=x', "unknown-function", "line 1, column 4"),
        ('{{ template "x" }}', "unknown-template", "line 1, column 1"),
        ("no line", "not-a-line", ""),
        ("{{ .no.such }}=x", "missing-key", "line 1, column 1"),
        ("{{ range .pci.device }}{{ .serial }}=x{{ end }}", "missing-key", "line 1, column 24"),
        ("{{ index .pci.device 9 }}=x", "bad-index", "line 1, column 1"),
        ("{{ range .kernel.version }}{{ range .Name }}{{ end }}{{ end }}", "not-a-list", "line 1, column 28"),
        ("{{ $x }}=1", "unknown-variable", "line 1, column 4"),
        ("{{ range .pci.device }}", "no-end", "line 1, column 24"),
        ("{{ end }}", "unexpected", "line 1, column 1"),
        ("{{ len }}", "bad-arguments", "line 1, column 1"),
        ("{{ (len .pci.device }}", "open-parenthesis", "line 1, column 21"),
        ("{{ len .pci) }}", "stray-parenthesis", "line 1, column 12"),
        ("{{ x", "open-action", "line 1, column 1"),
        ('{{ "a }}', "open-quote", "line 1, column 4"),
        ('x={{ "\\q" }}', "bad-literal", "line 1, column 6"),
        ("{{ # }}", "unexpected", "line 1, column 4"),
        ("{{ /* x */ }}", "unexpected", "line 1, column 4"),
        ("{{ lt 1 .pci }}", "bad-comparison", "line 1, column 1"),
        ("{{ upper 1 }}", "bad-argument", "line 1, column 1"),
        ('{{ fail "not here" }}', "failed", "line 1, column 1"),
        ("a" * (MAX_TEXT + 1), "template-too-large", "line 1, column 1"),
        ("{{ if true }}" * 60 + "{{ end }}" * 60, "too-deep", "line 1, column 521"),
        (f"{{{{ {'(' * 60}1{')' * 60} }}}}", "too-deep", "line 1, column 44"),
    ],
)
def test_what_cannot_be_read_or_run_is_refused_with_its_place(template: str, code: str, place: str) -> None:
    with pytest.raises(BadTemplate) as caught:
        run(template, DATA)
    assert caught.value.code == code
    assert caught.value.hint
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ range .pci.device }}{{ range $.pci.device }}{{ end }}{{ end }}",
        "{{ range .pci.device }}{{ .v }}=1\n{{ end }}",
        '{{ repeat 1000000000 "x" }}',
        "{{ until 1000000000 }}",
        "{{ seq 1000000000 }}",
        "{{ range 1000000000 }}{{ end }}",
        "{{ untilStep 0 1000000000 1 | len }}",
        '{{ indent 1000000000 "x" }}',
        '{{ printf "%1000000000d" 1 }}',
        '{{ $x := "xxxxxxxx" }}{{ range until 40 }}{{ $x = cat $x $x }}{{ end }}',
        '{{ $x := "xxxxxxxx" }}{{ range until 40 }}{{ $x = replace "x" $x $x }}{{ end }}',
        "{{ $x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ $x }}",
        "{{ $x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}",
        "{{ $x := list 1 }}{{ range until 30 }}{{ $x = list $x $x }}{{ end }}{{ deepEqual $x (deepCopy $x) }}",
        "{{ $x := list 1 }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}",
        '{{ $d := dict "a" 1 }}{{ $_ := set $d "self" $d }}{{ $d }}',
        '{{ $d := dict "a" 1 }}{{ $_ := set $d "self" $d }}{{ toJson $d }}',
        '{{ $d := dict "a" 1 }}{{ $_ := set $d "self" $d }}{{ deepEqual $d (deepCopy $d) }}',
        '{{ $d := dict }}{{ $e := dict }}{{ $_ := set $d "s" $d }}{{ $_ := set $e "s" $e }}{{ merge $d $e }}',
        '{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" 1 }}',
        '{{ define "a" }}{{ template "a" . }}{{ template "a" . }}{{ end }}{{ template "a" 1 }}',
        '{{ define "a" }}{{ range 9 }}{{ template "b" }}{{ end }}{{ end }}'
        '{{ define "b" }}{{ template "a" }}{{ end }}{{ template "a" }}',
    ],
)  # fmt: skip
def test_work_size_and_depth_are_bounded(template: str) -> None:
    data = {"pci": {"device": [{"v": "x" * 60}] * 2000}}
    with pytest.raises(BadTemplate) as caught:
        run(template, data)
    assert caught.value.code in ("too-many-steps", "result-too-large", "too-deep")


def test_functions_that_look_at_the_world_or_make_something_up_are_not_there() -> None:
    assert not FUNCTIONS.keys() & {
        "env", "expandenv", "getHostByName", "now", "ago", "randAlpha", "randInt", "shuffle", "uuidv4", "genCA", "bcrypt",
        "htpasswd", "encryptAES", "derivePassword",
    }  # fmt: skip


_PIECES = st.one_of(
    st.sampled_from([line for table in TABLES for line in templates(table)]),
    st.sampled_from(
        ["{{", "}}", "{{ ", " }}", "-", "range ", "if ", "with ", "end", "else", ".pci.device", ".vendor", "$x", ":=", "=", "eq ",
         '"', "`", "\\", "(", ")", "|", ",", "a=b", "\n", "/*", "*/", " 1 ", "nil", "{{ end }}", "{{ range .pci.device }}", "é",
         "{{ $x := 1 }}", "break", "define ", "template ", "'", ".", "0x", "1e", "\udc80", "\x00"]
    ),
)  # fmt: skip


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_any_text_gives_lines_or_one_kind_of_error(template: str) -> None:
    problem = None
    try:
        assert all(isinstance(value, str) for value in run(template, DATA).values())
    except BadTemplate as error:
        problem = error
    assert problem is None or (problem.code and problem.hint)
