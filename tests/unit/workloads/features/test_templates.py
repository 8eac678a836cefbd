"""Templates: the part that is known, the refusal of everything else, and bounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.workloads.features.errors import BadTemplate
from fastness.workloads.features.templates import MAX_TEXT, run

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
        ("{{range $d := .pci.device}}{{$d.vendor}}=x\n{{end}}", {"10de": "x", "8086": "x"}),
        ("{{ range .kernel.loadedmodule }}x{{ else }}none=true{{ end }}", {"none": "true"}),
        ('{{ range .pci.device }}{{ if eq .vendor "10de" }}gpu=true{{ end }}\n{{ end }}', {"gpu": "true"}),
        ("{{ if not .kernel.loadedmodule }}a=1{{ else if true }}b=1{{ else }}c=1{{ end }}", {"a": "1"}),
        ("{{ if false }}a=1{{ else if (eq 1 1) }}b=1{{ else }}c=1{{ end }}", {"b": "1"}),
        ("n={{ len .pci.device }}", {"n": "2"}),
        ("n={{ (index .kernel.version 0).Value }}", {"n": "6"}),
        ('n={{ index .pci.device 0 "iommu/type" }}', {"n": "DMA"}),
        ("a=  {{- /* nothing */ -}}  b", {"a": "b"}),
        ("x={{ `}}` }}", {"x": "}}"}),
        ('x={{ "a\\"b" }}', {"x": 'a"b'}),
        ("x={{ or .kernel.loadedmodule \"z\" }}", {"x": "z"}),
        ("x={{ and 1 \"y\" }}", {"x": "y"}),
    ],
)  # fmt: skip
def test_the_known_part_works(template: str, expected: dict[str, str]) -> None:
    assert run(template, DATA) == expected


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ('{{ env "HOME" }}=x', "unknown-function"),
        ('{{ expandenv "x" }}=x', "unknown-function"),
        ('{{ upper "x" }}=x', "unknown-function"),
        ("{{ with .pci }}{{ end }}", "unknown-action"),
        ('{{ template "x" }}', "unknown-action"),
        ("{{ .pci.device | len }}=x", "bad-expression"),
        ("no line", "not-a-line"),
        ("{{ .no.such }}=x", "missing-key"),
        ("{{ range .pci.device }}{{ .serial }}=x{{ end }}", "missing-key"),
        ("{{ index .pci.device 9 }}=x", "missing-key"),
        ("{{ .pci.device }}=x", "not-text"),
        ("{{ range .kernel.version }}{{ range .Name }}{{ end }}{{ end }}", "not-a-list"),
        ("{{ $x }}=1", "unknown-variable"),
        ("{{ range .pci.device }}", "no-end"),
        ("{{ end }}", "stray-end"),
        ("{{ else }}", "stray-end"),
        ("{{ len }}", "bad-arguments"),
        ("{{ (len .pci.device }}", "open-parenthesis"),
        ("{{ x", "open-action"),
        ('{{ "a }}', "open-action"),
        ('x={{ "\\q" }}', "bad-escape"),
        ("{{ # }}", "bad-expression"),
        ("a" * (MAX_TEXT + 1), "template-too-large"),
        ("{{ if true }}" * 60 + "{{ end }}" * 60, "too-deep"),
    ],
)
def test_everything_else_is_refused_by_name(template: str, code: str) -> None:
    with pytest.raises(BadTemplate) as caught:
        run(template, DATA)
    assert caught.value.code == code
    assert caught.value.hint


def test_output_and_steps_are_bounded() -> None:
    data = {"pci": {"device": [{"v": "x" * 60}] * 2000}}
    with pytest.raises(BadTemplate, match="characters"):
        run("{{ range .pci.device }}{{ .v }}=1\n{{ end }}", data)
    with pytest.raises(BadTemplate, match="steps"):
        run("{{ range .pci.device }}{{ range $.pci.device }}{{ end }}{{ end }}", data)


_PIECES = st.sampled_from(
    ["{{", "}}", "{{ ", " }}", "-", "range ", "if ", "end", "else", ".pci.device", ".vendor", "$x", ":=", "eq", "index", "len",
     '"', "`", "\\", "(", ")", "|", ",", "a=b", "\n", "/*", "*/", " 1 ", "true", "{{ end }}", "{{ range .pci.device }}", "é"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=30).map("".join))
def test_any_text_gives_lines_or_one_kind_of_error(template: str) -> None:
    problem = None
    try:
        assert all(isinstance(value, str) for value in run(template, DATA).values())
    except BadTemplate as error:
        problem = error
    assert problem is None or (problem.code and problem.hint)
