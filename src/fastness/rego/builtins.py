"""Which built-in functions a policy may call.

    refused_calls(calls, ALLOWED)          # of what a compiled program calls (`engine.calls_of`), that which is not on the list

A text can be written so that no look at it tells what it calls: `x := "#"; opa.runtime()`, `opa["runtime"]()`,
`count(x) with count as opa.runtime`. So the text is not looked at. The engine compiles it, without running anything, and the plan
that comes out names each function in its one and only spelling.

* The list holds what is a function of its arguments. The environment of the process (`opa.runtime`), dice and anything that the
  engine may learn to do one day are not on it; nor are signing and parsing of keys, which no policy has a use for.
* `regex` and `glob` are on it although a pattern may take long: policies of users run in a process with bounds on time.
* The clock is on it, because policies compare dates with it. What was answered by the clock is not remembered.
* A call that the plan leaves open until it runs is refused, and so is a plan of another shape: what is not understood is not run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CLOCK: Final = "time.now_ns"
OPEN_CALL: Final = "a function that is chosen while the policy runs"
_OPERATORS: Final = "and div equal gt gte lt lte minus mul neq or plus rem internal.member_2 internal.member_3"
_TEXTS: Final = (
    "concat contains endswith format_int indexof indexof_n internal.template_string lower replace split sprintf startswith "
    "strings.any_prefix_match strings.any_suffix_match strings.count strings.replace_n strings.reverse substring trim "
    "trim_left trim_prefix trim_right trim_space trim_suffix upper glob.match glob.quote_meta "
    "regex.find_all_string_submatch_n regex.find_n regex.is_valid regex.match regex.replace regex.split regex.template_match"
)
_COLLECTIONS: Final = (
    "array.concat array.flatten array.reverse array.slice count graph.reachable graph.reachable_paths intersection max min "
    "object.filter object.get object.keys object.remove object.subset object.union object.union_n product sort sum union walk "
    "json.filter json.patch json.remove"
)
_NUMBERS: Final = (
    "abs bits.and bits.lsh bits.negate bits.or bits.rsh bits.xor ceil floor numbers.range numbers.range_step round "
    "semver.compare semver.is_valid to_number units.parse units.parse_bytes"
)
_TYPES: Final = "is_array is_boolean is_null is_number is_object is_set is_string type_name"
_ENCODINGS: Final = (
    "base64.decode base64.encode base64.is_valid base64url.decode base64url.encode base64url.encode_no_pad hex.decode "
    "hex.encode json.is_valid json.marshal json.marshal_with_options json.unmarshal urlquery.decode urlquery.decode_object "
    "urlquery.encode urlquery.encode_object uri.is_valid uri.parse uuid.parse yaml.is_valid yaml.marshal yaml.unmarshal "
    "crypto.hmac.equal crypto.hmac.sha256 crypto.hmac.sha512 crypto.md5 crypto.sha1 crypto.sha256"
)
_TIME: Final = (
    f"{CLOCK} time.add_date time.clock time.date time.diff time.format time.parse_duration_ns time.parse_ns "
    "time.parse_rfc3339_ns time.weekday"
)
ALLOWED: Final = frozenset(" ".join((_OPERATORS, _TEXTS, _COLLECTIONS, _NUMBERS, _TYPES, _ENCODINGS, _TIME)).split())
# Policies of agents tell what they do; in the child that tries them nobody listens.
ALLOWED_TO_AGENTS: Final = ALLOWED | {"internal.print"}


def refused_calls(calls: Iterable[str], allowed: frozenset[str]) -> tuple[str, ...]:
    """The calls that are not on a list, in order."""
    return tuple(sorted(set(calls) - allowed))
