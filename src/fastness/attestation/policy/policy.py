"""Policies for evidence: Rego on claims and reference values, and which of them judge.

    policy = compile_policy(text)
    policy.evaluate(policy_input(...), book)                        # a trust vector
    policies = PolicySet.of(objects)
    opinion = yield from policies.judging("tpm", claims, values)    # of all that are active, and who refuses
    policies.version("tpm")                                         # what a verdict names

A policy for evidence has the package `policy` and either a rule `trust_claims`, an object of AR4SI claims, or one rule per claim
(`executables`, `hardware`, …); `query_reference_value(name)` gives what the book has. Policies written for Trustee have both
shapes. Those for resources are in `resource_policy`.

* Whatever goes wrong during an evaluation affirms nothing.
* A value that nobody published is undefined, so every rule that asks for it fails. Upstream gives null, and in Rego any number
  is greater than null: a missing minimum would let everybody in.
* A policy is a function of its input and the values: what it may call is a list (`rego.builtins`).
* The built-in policies (`policies/*.rego`) affirm nothing unless every mandatory claim rests on a value or a check.

Which judge: the built-in one, and the active text of every AppraisalPolicy beside it.

* What judges is `status.active`, never `spec`: only a controller that tried the text puts it there.
* Policies of users only take away. The built-in one judges too, and of each claim the worst value counts. One text may take the
  place of the built-in policy, where a person confirmed it (`replacesBuiltIn`).
* A kind of evidence without a built-in policy is affirmed by nobody, unless a text was confirmed to judge it alone.
* They are asked once for each image that the machine may have booted, with the values of that image alone (`tuples`), until they
  affirm it. `query_reference_value` never mixes what two images measure, in anybody's policy. Policies of users are asked about
  images that the built-in one affirms, and otherwise about the nearest: more cannot change the outcome.
* An active text that does not compile any more affirms nothing. Silence would fall back to another policy.
* One that goes beyond its bounds leaves the machine not assessed, unless another policy refuses it anyway.

Judging is a generator that yields questions to policies of users (`query`); the built-in policy is asked on the spot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from fastness.attestation.policy.claims import CLAIMS, TrustVector, worst_of
from fastness.attestation.policy.query import ActivePolicy, Decision, about_evidence, active_policy
from fastness.attestation.policy.reading import QUERY, PolicyView, reading_of, view_for
from fastness.attestation.values.measured import seen_values
from fastness.attestation.values.values import ReferenceValues
from fastness.crypto.digests import sha256
from fastness.kinds.fastness_dev import EVIDENCE_TYPES
from fastness.kinds.kind import JsonObject
from fastness.rego.engine import BadPolicy, NoAnswer, Program

MAX_TEXT: Final = 262144
MAX_REMEMBERED: Final = 512
VALUES: Final = "fastness.dev/values"
DATA: Final = "fastness_values"
RESOURCE: Final = "resource"
BUILT_IN: Final = ("tpm", "snp", "tdx")
TEXT: Final = "policy.rego"
_PACKAGE: Final = re.compile(r"^[ \t]*package[ \t]+([A-Za-z0-9_.]+)", re.MULTILINE)
_SHIM: Final = f"package policy\nimport rego.v1\n{QUERY}(name) := {{source}}[name]\n"


class Policy:
    """A policy for evidence, compiled."""

    def __init__(self, text: str) -> None:
        self.version = policy_version(text)
        self._reading = reading_of(text)
        self._vectors: dict[bytes, TrustVector] = {}
        modules, rule = _vector_rule(text)
        shim = _SHIM.format(source=f'input["{VALUES}"]' if self._reading.names is not None else f"data.{DATA}")
        self._program = Program({TEXT: text, "shim.rego": shim, **modules}, f"x := {rule}")
        refuse_unknown_functions(self._program, {VALUES: {}}, {DATA: {}})

    def evaluate(self, document: Mapping[str, Any], book: ReferenceValues) -> TrustVector:
        """The trust vector for an input; an evaluation that fails gives a vector with an error. Total."""
        return self.answer(view_for(self._reading, document, book))

    def recall(self, document: Mapping[str, Any], book: ReferenceValues) -> TrustVector:
        """The same, from memory where a machine showed the same before: a hundred machines boot one image."""
        part = view_for(self._reading, document, book)
        key = part.key
        if key is None or self.reads_clock:
            return self.answer(part)
        vector = self._vectors.get(key)
        if vector is None:
            if len(self._vectors) >= MAX_REMEMBERED:
                self._vectors.clear()
            vector = self._vectors[key] = self.answer(part)
        return vector

    @property
    def reads_clock(self) -> bool:
        """Whether its answer may change although nothing that it is shown does."""
        return self._program.reads_clock

    def answer(self, part: PolicyView) -> TrustVector:
        """The trust vector for what the policy is shown. Total."""
        try:
            if self._reading.names is not None:
                answer = self._program.ask({**part.input, VALUES: part.values}, {DATA: {}}, "")
            else:
                # Nobody knows which values it will ask for; they are the same for every machine, so they are compiled in.
                answer = self._program.ask(part.input, {DATA: part.values}, part.digest)
        except (NoAnswer, BadPolicy) as error:
            return TrustVector(error=f"the policy gave no answer: {error}")
        return TrustVector.of(answer)


def compile_policy(rego: str) -> Policy:
    """A policy for evidence; raises BadPolicy."""
    check_text(rego)
    return Policy(rego)


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


@dataclass(frozen=True, slots=True)
class Opinion:
    """What all policies together make of evidence: who does not affirm it, and why it could not be judged, if it could not."""

    vector: TrustVector
    refused_by: tuple[str, ...] = ()
    unassessed: str | None = None


class PolicySet:
    """The policies for evidence of a cluster at one moment; never changes."""

    def __init__(self, active: Iterable[ActivePolicy]) -> None:
        ordered = sorted(active, key=lambda policy: policy.name)
        self._evidence = {tee: tuple(policy for policy in ordered if policy.target == tee) for tee in EVIDENCE_TYPES}

    @classmethod
    def of(cls, objects: Iterable[Mapping[str, Any]]) -> PolicySet:
        """The active texts of these AppraisalPolicies; one that is being deleted judges no more."""
        return cls(policy for obj in objects if (policy := active_policy(obj)) is not None)

    def version(self, tee: str) -> str:
        """The policies that judge a kind of evidence, as verdicts name them; empty when there is none."""
        own = self._evidence.get(tee, ())
        built_in = [_built_in_label(tee)] if tee in BUILT_IN and not is_replaced(own) else []
        return ",".join([*built_in, *(policy.label for policy in own)])[:253]

    def judging(self, tee: str, document: Mapping[str, Any], values: ReferenceValues) -> Decision[Opinion]:
        """What the policies conclude, without what this kind of evidence can never prove.

        When no image satisfies them the answer is the one for the image that came nearest.
        """
        own = self._evidence.get(tee, ())
        nearest: tuple[ReferenceValues, TrustVector] | None = None
        closest: Opinion | None = None
        for book in values.books(tee, seen_values(tee, document)):
            built_in = None if is_replaced(own) else _built_in(tee, document, book)
            # Policies of users only take away, so an image that the built-in one does not affirm needs no question to them.
            if built_in is not None and not built_in.affirms(tee):
                nearest = nearest or (book, built_in)
                continue
            opinion = yield from _agreed(own, tee, document, book, built_in)
            if opinion.unassessed is not None or opinion.vector.affirms(tee):
                return opinion
            closest = closest or opinion
        if closest is None and nearest is not None:
            closest = yield from _agreed(own, tee, document, *nearest)
        return closest or Opinion(TrustVector(error="there is nothing to compare with"))


def _agreed(
    own: Iterable[ActivePolicy],
    tee: str,
    document: Mapping[str, Any],
    book: ReferenceValues,
    built_in: TrustVector | None,
) -> Decision[Opinion]:
    """What the policies make of one image together; `built_in` is None where a text takes its place."""
    judged = [(_built_in_label(tee), built_in)] if built_in is not None else []
    late: str | None = None
    for policy in own:
        answer = yield about_evidence(policy, document, book)
        if answer.exceeded is not None:
            late = late or f"{policy.label}: {answer.exceeded}"
        elif answer.error is not None:
            judged.append((policy.label, TrustVector(error=f"{policy.label}: {answer.error}")))
        else:
            judged.append((policy.label, TrustVector.of(answer.value).seen_by(tee)))
    refusing = tuple(label for label, vector in judged if not vector.affirms(tee))
    # A refusal of one policy stands whatever another would have said; without any, nobody knows.
    if late is not None and not refusing:
        return Opinion(TrustVector(error=late), unassessed=late)
    # The worst of all: policies only take away (decision 33), so no text of a user makes up for what another refused.
    return Opinion(worst_of(vector for _, vector in judged).seen_by(tee), refusing)


def is_replaced(own: Iterable[ActivePolicy]) -> bool:
    """Whether one of these judges without the built-in policy."""
    return any(policy.replaces for policy in own)


def _built_in(tee: str, document: Mapping[str, Any], book: ReferenceValues) -> TrustVector:
    if tee not in BUILT_IN:
        return TrustVector(error=f"there is no built-in policy for evidence of kind {tee}")
    return default_policy(tee).recall(document, book).seen_by(tee)


def _built_in_label(tee: str) -> str:
    return f"built-in-{tee}@{default_policy(tee).version}" if tee in BUILT_IN else f"built-in-{tee}"


def check_text(rego: str) -> None:
    """Refuse a text that is too large, empty or of another package; raises BadPolicy."""
    if not rego.strip() or len(rego.encode()) > MAX_TEXT or "\0" in rego:
        raise BadPolicy(
            "policy-size", f"a policy has between 1 and {MAX_TEXT} bytes of text", "Write a shorter policy."
        )
    # The package by its name: a text of another one would compile, define no rule that is asked, and so affirm nothing unnoticed.
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


def refuse_unknown_functions(program: Program, document: JsonObject, data: JsonObject) -> None:
    """Names are resolved when a program first runs; a policy that can never run is refused at once."""
    try:
        program.ask(document, data, "")
    except NoAnswer as error:
        if "not found" in str(error).lower() or "recurs" in str(error).lower():
            raise BadPolicy("policy-unreadable", str(error), "Correct the text and try it again.") from error
