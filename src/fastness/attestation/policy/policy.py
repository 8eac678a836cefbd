"""Policies: Rego on claims and reference values, for evidence and for resources.

    policy = compile_policy(text)
    policy.evaluate(policy_input(...), book)            # a trust vector
    gate = compile_resource_policy(text)
    gate.allow(token_claims, request)                   # may this request have this resource

A policy for evidence has the package `policy` and either a rule `trust_claims`, an object of AR4SI claims, or one rule per claim
(`executables`, `hardware`, …); `query_reference_value(name)` gives what the book has. A policy for resources has the package
`policy` and a rule `allow`; `data` holds `plugin`, `resource-path` and `query`. Policies written for Trustee have both shapes.

* Whatever goes wrong during an evaluation affirms nothing and allows nothing.
* A value that nobody published is undefined, so every rule that asks for it fails. Upstream gives null, and in Rego any number
  is greater than null: a missing minimum would let everybody in.
* A policy is a function of its input and the values: what it may call is a list (`builtins`).
* `allow` counts only when it is the value true.
* The built-in policies (`policies/*.rego`) affirm nothing unless every mandatory claim rests on a value or a check.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from fastness.attestation.policy.claims import CLAIMS, TrustVector
from fastness.attestation.policy.reading import QUERY, Reading, reading_of
from fastness.attestation.values.values import ReferenceValues
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.rego.engine import BadPolicy, NoAnswer, Program

MAX_TEXT: Final = 262144
MAX_KNOWN: Final = 512
REQUEST: Final = "fastness.dev/request"
VALUES: Final = "fastness.dev/values"
DATA: Final = "fastness_values"
RESOURCE: Final = "resource"
BUILT_IN: Final = ("tpm", "snp", "tdx")
_TEXT: Final = "policy.rego"
_PACKAGE: Final = re.compile(r"^[ \t]*package[ \t]+([A-Za-z0-9_.]+)", re.MULTILINE)
_SHIM: Final = f"package policy\nimport rego.v1\n{QUERY}(name) := {{source}}[name]\n"
_ALLOW: Final = (
    f'p := input["{REQUEST}"].plugin; r := input["{REQUEST}"]["resource-path"]; q := input["{REQUEST}"].query; '
    'x := data.policy.allow with data.plugin as p with data["resource-path"] as r with data.query as q'
)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: which plugin, the path below it, the query."""

    path: tuple[str, ...]
    plugin: str = RESOURCE
    query: Mapping[str, str] | None = None

    def as_json(self) -> JsonObject:
        """The data that a resource policy sees."""
        return {"plugin": self.plugin, "resource-path": list(self.path), "query": dict(self.query or {})}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a policy for evidence is shown: its part of the claims and of the values, which have a digest if it may want any."""

    input: Mapping[str, Any]
    values: Mapping[str, Any]
    digest: str = ""
    whole: bool = False

    @property
    def key(self) -> bytes | None:
        """What makes two questions the same; None when all was shown, since then no two are."""
        return None if self.whole else json.canonical([self.input, self.values])


def shown_to(reading: Reading, document: Mapping[str, Any], book: ReferenceValues) -> Shown:
    """What a policy that reads so is shown of claims and values."""
    part = reading.of_input(document)
    whole = reading.paths is None or reading.names is None
    return Shown(part, reading.of_values(book, part), book.digest if reading.names is None else "", whole)


class Policy:
    """A policy for evidence, compiled."""

    def __init__(self, text: str) -> None:
        self.version = policy_version(text)
        self._reading = reading_of(text)
        self._known: dict[bytes, TrustVector] = {}
        modules, rule = _vector_rule(text)
        shim = _SHIM.format(source=f'input["{VALUES}"]' if self._reading.names is not None else f"data.{DATA}")
        self._program = Program({_TEXT: text, "shim.rego": shim, **modules}, f"x := {rule}")
        _refuse_unknown_functions(self._program, {VALUES: {}}, {DATA: {}})

    def evaluate(self, document: Mapping[str, Any], book: ReferenceValues) -> TrustVector:
        """The trust vector for an input; an evaluation that fails gives a vector with an error. Total."""
        return self.answer(shown_to(self._reading, document, book))

    def recall(self, document: Mapping[str, Any], book: ReferenceValues) -> TrustVector:
        """The same, from memory where a machine showed the same before: a hundred machines boot one image."""
        shown = shown_to(self._reading, document, book)
        key = shown.key
        if key is None or self.reads_clock:
            return self.answer(shown)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = self.answer(shown)
        return known

    @property
    def reads_clock(self) -> bool:
        """Whether its answer may change although nothing that it is shown does."""
        return self._program.reads_clock

    def answer(self, shown: Shown) -> TrustVector:
        """The trust vector for what the policy is shown. Total."""
        try:
            if self._reading.names is not None:
                answer = self._program.ask({**shown.input, VALUES: shown.values}, {DATA: {}}, "")
            else:
                # Nobody knows which values it will ask for; they are the same for every machine, so they are compiled in.
                answer = self._program.ask(shown.input, {DATA: shown.values}, shown.digest)
        except (NoAnswer, BadPolicy) as error:
            return TrustVector(error=f"the policy gave no answer: {error}")
        return TrustVector.of(answer)


class ResourcePolicy:
    """A policy for resources, compiled."""

    def __init__(self, text: str) -> None:
        self.version = policy_version(text)
        self._reading = reading_of(text)
        self._program = Program({_TEXT: text}, _ALLOW)
        _refuse_unknown_functions(self._program, {REQUEST: Request(("a", "b", "c")).as_json()}, {})

    def allow(self, claims: Mapping[str, Any], request: Request) -> bool:
        """Whether the policy lets a caller with these claims have the resource. Total."""
        return self.answer(self._reading.of_input(claims), request.as_json())

    @property
    def reads_clock(self) -> bool:
        """Whether its answer may change although nothing that it is shown does."""
        return self._program.reads_clock

    def answer(self, shown: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
        """The same for the part of the claims that it reads. Total."""
        try:
            answer = self._program.ask({**shown, REQUEST: request}, {}, "")
        except (NoAnswer, BadPolicy):
            return False
        return answer is True


def compile_policy(rego: str) -> Policy:
    """A policy for evidence; raises BadPolicy."""
    _check_text(rego)
    return Policy(rego)


def compile_resource_policy(rego: str) -> ResourcePolicy:
    """A policy for resources; raises BadPolicy."""
    _check_text(rego)
    return ResourcePolicy(rego)


def policy_version(rego: str) -> str:
    """The version that verdicts name: it follows from the text."""
    return sha256(rego.encode()).hex[:16]


@cache
def built_in_text(name: str) -> str:
    """The text of a built-in policy: of a kind of evidence, or `resource`; raises KeyError for others."""
    if name not in (*BUILT_IN, RESOURCE):
        raise KeyError(name)
    return resources.files("fastness.attestation").joinpath("policies", f"{name}.rego").read_text("utf-8")


@cache
def default_policy(tee: str) -> Policy:
    """The built-in policy for a kind of evidence; raises KeyError where there is none, and then nothing is affirmed."""
    if tee not in BUILT_IN:
        raise KeyError(tee)
    return compile_policy(built_in_text(tee))


@cache
def default_resource_policy() -> ResourcePolicy:
    """The built-in policy for resources: every part of the machine must be affirmed."""
    return compile_resource_policy(built_in_text(RESOURCE))


def _check_text(rego: str) -> None:
    if not rego.strip() or len(rego.encode()) > MAX_TEXT or "\0" in rego:
        raise BadPolicy(
            "policy-size", f"a policy has between 1 and {MAX_TEXT} bytes of text", "Write a shorter policy."
        )
    packages = _PACKAGE.findall(rego)
    if packages != ["policy"]:
        named = ", ".join(packages) or "none"
        raise BadPolicy("policy-package", f"the package must be `policy`, not {named}", "Begin with `package policy`.")


def _vector_rule(text: str) -> tuple[dict[str, str], str]:
    """The modules beside the user's text, and the rule that is the whole vector."""
    if _declares(text, "trust_claims"):
        return {}, "data.policy.trust_claims"
    rules = [claim for claim in CLAIMS if _declares(text, claim.replace("-", "_"))]
    if not rules:
        raise BadPolicy(
            "policy-without-claims",
            "the policy has no rule that is a trust claim",
            f"Add `trust_claims`, or one of {', '.join(claim.replace('-', '_') for claim in CLAIMS)}.",
        )
    lines = ["package policy", "import rego.v1"]
    for claim in rules:
        rule = claim.replace("-", "_")
        # A rule that is undefined for this input asserts nothing; the others still count.
        lines += [f"default fastness_{rule} := 0", f"fastness_{rule} := value if {{ value := {rule} }}"]
    members = ", ".join(f'"{claim}": fastness_{claim.replace("-", "_")}' for claim in rules)
    lines.append(f"fastness_vector := {{{members}}}")
    return {"vector.rego": "\n".join(lines) + "\n"}, "data.policy.fastness_vector"


def _declares(text: str, rule: str) -> bool:
    """Whether a rule of that name begins a line: rules stand at the top level, and people do not indent those."""
    return re.search(rf"^(?:default[ \t]+)?{rule}[ \t]*(?::=|=|\[|if\b|contains\b|\{{)", text, re.MULTILINE) is not None


def _refuse_unknown_functions(program: Program, document: JsonObject, data: JsonObject) -> None:
    """Names are resolved when a program first runs; a policy that can never run is refused at once."""
    try:
        program.ask(document, data, "")
    except NoAnswer as error:
        if "not found" in str(error).lower() or "recurs" in str(error).lower():
            raise BadPolicy("policy-unreadable", str(error), "Correct the text and try it again.") from error
