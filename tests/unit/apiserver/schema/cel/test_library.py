"""The language and the functions that Kubernetes adds to it, one expression at a time."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.apiserver.schema.cel.engine import RuleError, compile_rule
from fastness.apiserver.schema.cel.library import entries

SELF: dict[str, Any] = {
    "a": 2,
    "l": [1, 2, 3],
    "s": "hello",
    "m": {"a": 1},
    "d": 1.0,
    "n": None,
    "w": ["x", "y"],
    "b": b"abc",
}

TRUE = [
    "has(self.a) && self.a > 1", "!has(self.zz)", "self.l.all(x, x > 0)", "self.l.exists(x, x == 2)",
    "self.l.exists_one(x, x == 2)",
    "self.l.map(x, x * 2) == [2, 4, 6]", "self.l.map(x, x > 1, x * 2) == [4, 6]", "self.l.filter(x, x > 1).size() == 2",
    "size(self.s) == 5", "self.s.matches('^h.*o$')",
    "self.s.startsWith('he') && self.s.endsWith('lo') && self.s.contains('ell')",
    "'a' in self.m && 2 in self.l", "self.n == null", "self.?x.orValue('d') == 'd'", "self.?a.orValue(7) == 2",
    "self.?m.?a.hasValue()",
    "self.m[?'a'].orValue(3) == 1", "optional.of(1).value() == 1", "self.?a.optMap(v, v + 1).orValue(0) == 3",
    "type(self.a) == int",
    "type(self.s) == string", "int('3') == 3 && double('1.5') == 1.5 && string(3) == '3'", "self.d == 1",
    "self.d >= 1 && 1 < 1.5 && self.a > 0.5",
    "-7 / 2 == -3 && -7 % 3 == -1",
    "self.nokey == 1 || self.a == 2", "duration('1h') > duration('30m')",
    "timestamp('2020-01-01T00:00:00Z').getFullYear() == 2020",
    "self.b == b'abc'", "self.m.all(k, self.m[k] == 1)",
    # texts
    "self.s.split('l') == ['he', '', 'o']", "self.s.split('') == ['h', 'e', 'l', 'l', 'o']",
    "self.s.split('l', 2) == ['he', 'lo']",
    "self.s.split('l', 0) == []", "'abc'.split('', 2) == ['a', 'bc']",
    "self.w.join('-') == 'x-y' && self.w.join() == 'xy'",
    "'HeLLo É'.lowerAscii() == 'hello É' && 'aé'.upperAscii() == 'Aé'", "self.s.replace('l', 'L') == 'heLLo'",
    "self.s.replace('l', 'L', 1) == 'heLlo'",
    "' x '.trim() == 'x'", "self.s.indexOf('l') == 2 && self.s.indexOf('l', 3) == 3 && self.s.indexOf('z') == -1",
    "self.s.lastIndexOf('l') == 3 && self.s.lastIndexOf('l', 2) == 2",
    "self.s.substring(1, 3) == 'el' && self.s.substring(3) == 'lo'",
    "self.s.charAt(1) == 'e' && self.s.charAt(5) == ''", "'%s-%d-%.2f-%x'.format(['a', 3, 1.5, 255]) == 'a-3-1.50-ff'",
    "'%s %s %s'.format([true, [1, 'a'], {'k': null}]) == 'true [1, a] {k: null}'", "'100%%'.format([]) == '100%'",
    "'%X'.format(['hi']) == '6869'",
    "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'", "'a1b2'.find('[0-9]') == '1' && 'x'.find('[0-9]') == ''",
    "'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
    # lists and sets
    "self.l.isSorted() && ![2, 1].isSorted() && self.w.isSorted()",
    "self.l.sum() == 6 && [1.5, 1.5].sum() == 3.0 && [].sum() == 0",
    "self.l.min() == 1 && self.l.max() == 3 && self.w.max() == 'y'",
    "self.l.indexOf(2) == 1 && self.w.indexOf('y') == 1 && self.l.indexOf(9) == -1",
    "[1, 2, 1].lastIndexOf(1) == 2", "[[1], [2]].indexOf([2]) == 1 && [{'a': 1}].indexOf({'a': 1}) == 0",
    "[1, 2, 1].distinct() == [1, 2]",
    "self.l.slice(1, 3) == [2, 3]", "[[1], [2, [3]]].flatten() == [1, 2, [3]] && [[1, [2]]].flatten(2) == [1, 2]",
    "[3, 1, 2].sort() == [1, 2, 3]",
    "self.l.reverse() == [3, 2, 1]", "lists.range(3) == [0, 1, 2]",
    "sets.contains([1, 2], [1]) && !sets.contains([1], [2])",
    "sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2])",
    "[duration('1s'), duration('2s')].sum() == duration('3s')",
    "[timestamp('2020-01-01T00:00:00Z')].max().getFullYear() == 2020",
    "[duration('2s'), duration('1s')].sort()[0] == duration('1s')",
    # quantities
    "isQuantity('3Mi') && isQuantity('1.5e3') && !isQuantity('3X')", "quantity('3Mi').isGreaterThan(quantity('1Mi'))",
    "quantity('1Ki') == quantity('1024')",
    "quantity('1k').isLessThan(quantity('1Ki')) && quantity('1').compareTo(quantity('1000m')) == 0",
    "sign(quantity('-1')) == -1 && sign(quantity('0')) == 0",
    "quantity('1Ki').isInteger() && quantity('1Ki').asInteger() == 1024 && !quantity('1m').isInteger()",
    "quantity('500m').asApproximateFloat() == 0.5",
    "quantity('1').add(quantity('500m')) == quantity('1.5') && quantity('1').add(2) == quantity('3')",
    "quantity('3').sub(1).compareTo(quantity('2').sub(quantity('0'))) == 0",
    # addresses, networks, URLs, versions
    "isIP('1.2.3.4') && isIP('::1') && !isIP('1.2.3') && !isIP('01.2.3.4')",
    "ip('1.2.3.4').family() == 4 && ip('::1').family() == 6", "ip('::1') == ip('0:0::1')",
    "ip.isCanonical('::1') && !ip.isCanonical('0:0::1')",
    "ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback() && ip('169.254.1.1').isLinkLocalUnicast()",
    "ip('224.0.0.1').isLinkLocalMulticast()",
    "ip('ff02::1').isLinkLocalMulticast() && ip('1.2.3.4').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast()",
    "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/33')",
    "cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
    "cidr('10.1.2.3/8').prefixLength() == 8 && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
    "!cidr('10.0.0.0/8').containsIP('::1')",
    "isURL('https://a/b') && !isURL('a b') && url('https://a:80/b?x=1&x=2').getHostname() == 'a'",
    "url('https://a:80/b').getPort() == '80' && url('https://a').getPort() == ''",
    "url('https://[::1]:80/').getHost() == '[::1]:80' && url('https://[::1]:80/').getHostname() == '::1'",
    "url('https://a/b c'.replace(' ', '%20')).getEscapedPath() == '/b%20c'",
    "url('/p?x=1&x=2').getQuery() == {'x': ['1', '2']} && url('https://u@a').getScheme() == 'https'",
    "isSemver('1.2.3-rc.1+b') && !isSemver('v1.2') && isSemver('v1.2', true)",
    "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
    "semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
    "semver('1.10.0').isGreaterThan(semver('1.9.0')) && semver('1.0.0-2').compareTo(semver('1.0.0-10')) == -1",
    "semver('v1.2', true) == semver('1.2.0')",
]  # fmt: skip

FAILING = [
    "self.a / 0 == 1", "9223372036854775807 + self.a > 0", "self.nokey == 1", "self.l[9] == 1",
    "self.s.charAt(9) == ''", "self.s.indexOf('l', 9) == 1",
    "self.s.lastIndexOf('l', 9) == 1", "self.s.substring(3, 1) == ''", "[].min() == 1", "[1, 'a'].isSorted()",
    "[1, 'a'].max() == 1", "self.l.join() == ''",
    "'%d'.format(['x']) == ''", "'%s'.format([]) == ''", "'%y'.format([1]) == ''", "self.l.slice(2, 9) == []",
    "[[1]].flatten(-1) == []",
    "sign(quantity('x')) == 1", "quantity('1m').asInteger() == 1", "quantity('1').compareTo(ip('::1')) == 0",
    "ip('x').family() == 4",
    "cidr('x').prefixLength() == 1", "url('a b').getPort() == ''", "semver('x').major() == 1", "'a'.find('(') == ''",
    "duration(self.s) == duration('1s')",
]  # fmt: skip


def value_of(expression: str) -> Any:
    program = compile_rule(expression, "dyn")
    return program.run(program.variables({"self": SELF}))


@pytest.mark.parametrize("expression", TRUE)
def test_expression_is_true(expression: str) -> None:
    assert value_of(expression) is True


@pytest.mark.parametrize("expression", FAILING)
def test_expression_fails_with_a_reason(expression: str) -> None:
    with pytest.raises(RuleError) as error:
        value_of(expression)
    assert str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "expression", ["self.a ===", "nothing == 1", "1 + 'a' == 2", "self.shout()", "self.l.all(x)", ""]
)
def test_expression_does_not_compile(expression: str) -> None:
    with pytest.raises(RuleError):
        compile_rule(expression, "dyn")


@pytest.mark.parametrize(
    ("kind", "expression"), [("int", "self == 'x'"), ("list(string)", "self.all(x, x > 1)"), ("string", "self.a == 1")]
)
def test_types_of_the_schema_are_checked(kind: str, expression: str) -> None:
    with pytest.raises(RuleError, match=r"overload|select"):
        compile_rule(expression, kind)


def test_every_function_of_ours_appears_in_an_expression() -> None:
    text = " ".join([*TRUE, *FAILING])
    assert [name for name, *_ in entries() if f"{name}(" not in text] == []
