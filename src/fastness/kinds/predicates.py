r"""Conditions that fields of several kinds share, each as a CEL rule with the words that users know.

A field names the rules that it obeys; the patterns are the facts, and the messages are what people search for:

    s.with_rules(s.string("Name of the pool.", maxLength=253), SUBDOMAIN)
    s.with_rules(s.string("The image.", maxLength=447), *DIGESTED)

* The rules stand in CEL and not in `pattern`, because a pattern cannot carry a message.
* Patterns are anchored and RE2. A rule costs what its field may hold, so every field with one has a `maxLength`: an API server
  refuses a definition whose rules could take too long.
* `holds` asks the same pattern in process: a loop leaves out what the API would refuse, instead of failing at it again and again.
"""

from __future__ import annotations

import re
from typing import Final

from fastness.kinds import schema as s

LONGEST_NAME: Final = 253
LONGEST_LABEL: Final = 63
LONGEST_IMAGE: Final = 447

_HOST: Final = r"([a-zA-Z0-9-]+\.)+[a-zA-Z0-9-]+"
_REPOSITORY: Final = r"(:[0-9]{2,5})?/([a-zA-Z0-9_-]{0,61}/)?[a-zA-Z0-9_.-]*(@|$)"
_TAGGED: Final = _HOST + r"(:[0-9]{2,5})?(/[a-zA-Z0-9_-]{1,61})*/[a-zA-Z0-9_.-]+:[a-zA-Z0-9._-]+"
# A registry in the cluster is named by its Service, and may be so without a dot in any other place.
_SERVICE: Final = r"[^.]+\.[^.]+\.svc:[0-9]+/[^/]+/[^/]+:[^/]+"
_SUFFIXES: Final = "service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope"

IMAGE_DIGEST: Final = r"^[^@]*@sha256:[a-f0-9]{64}$"
IMAGE_NAME: Final = f"^{_HOST}{_REPOSITORY}"


def pattern(regex: str, message: str) -> s.Fragment:
    """A rule that a text matches a regular expression, written as it reads."""
    return s.rule(f"self.matches(r'{regex}')", message)


def _no_longer(longest: int, regex: str, message: str) -> s.Fragment:
    return s.rule(f"self.size() <= {longest} && self.matches(r'{regex}')", message)


_MUST_CONSIST: Final = (
    "RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character."
)
SUBDOMAIN: Final = _no_longer(LONGEST_NAME, s.DNS_SUBDOMAIN, f"a lowercase {_MUST_CONSIST}")
STREAM_NAME: Final = _no_longer(LONGEST_NAME, s.DNS_SUBDOMAIN, f"a {_MUST_CONSIST}")
LABEL: Final = _no_longer(
    LONGEST_LABEL, s.DNS_LABEL, "the value must consist of only lowercase alphanumeric characters and hyphens"
)
RESOURCE_NAME: Final = _no_longer(
    LONGEST_LABEL,
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
)

_URL_LIKE: Final = "the OCI Image name should follow the host[:port][/namespace]/name format, resembling a valid URL"
_DIGEST: Final = pattern(
    IMAGE_DIGEST,
    "the OCI Image reference must end with a valid '@sha256:<digest>' suffix, where '<digest>' is 64 characters long",
)
DIGESTED: Final = (_DIGEST, pattern(IMAGE_NAME, f"{_URL_LIKE} without the scheme"))
DIGESTED_OR_LOCAL: Final = (
    _DIGEST,
    pattern(
        f"^(localhost|{_HOST}){_REPOSITORY}",
        f"{_URL_LIKE} without the scheme; host must be either 'localhost' or a dot-qualified domain name",
    ),
)
TAGGED: Final = pattern(
    f"^({_TAGGED}|{_SERVICE})$",
    f"{_URL_LIKE} without the scheme. Or it must be a valid .svc followed by a port, repository, image name, and tag.",
)

UNIT_NAME: Final = (
    pattern(
        rf"\.({_SUFFIXES})$",
        "Invalid ${SERVICETYPE} in service name. Expected format is ${NAME}${SERVICETYPE}, where ${SERVICETYPE} must be one of "
        '".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer",".snapshot", ".slice" '
        'or ".scope".',
    ),
    # systemd escapes what a name may not hold with a backslash: the unit of /dev/disk-a is dev-disk\x2da.device.
    pattern(
        r"^[a-zA-Z0-9:._\\-]+\..",
        "Invalid ${NAME} in service name. Expected format is ${NAME}${SERVICETYPE}, where {NAME} must be atleast 1 character "
        'long and can only consist of alphabets, digits, ":", "-", "_", ".", and "\\"',
    ),
)
HOST_PATH: Final = (
    pattern(
        r"^/[a-zA-Z0-9/._-]+$",
        "path must be absolute and contain only alphanumeric characters, '/', '.', '_', and '-'",
    ),
    s.rule("!self.contains('//')", "path must not contain consecutive forward slashes"),
)
OCP_VERSION: Final = pattern(
    r"^[0-9]+\.[0-9]+\.[0-9]+$", "ocpVersion must match the OCP semver compatible format of x.y.z"
)
RHCOS_VERSION: Final = pattern(
    r"^[0-9]+\.[0-9]+\.([0-9]{8}|[0-9]{12})-[0-9]+$",
    "rhcosVersion must match format [major].[minor].[datestamp(YYYYMMDD)]-[buildnumber] or must match legacy format "
    "[major].[minor].[timestamp(YYYYMMDDHHmm)]-[buildnumber]",
)
IP: Final = s.rule("isIP(self)", "value must be a valid IP address")
CIDR: Final = s.rule("isCIDR(self)", "value must be a valid CIDR network address")


def member_iff(member: str, discriminator: str, value: str, message: str) -> s.Fragment:
    """A rule on an object: `member` is there if the discriminator has the value, and only then."""
    return s.rule(
        f"has(self.{member}) == (has(self.{discriminator}) && self.{discriminator} == '{value}')",
        message,
    )


def not_less(message: str) -> s.Fragment:
    """A rule on a number: it never goes down."""
    return s.rule("self >= oldSelf", message)


def unchanged(message: str) -> s.Fragment:
    """A rule on a value that stays as it is."""
    return s.rule("self == oldSelf", message)


def settled(message: str) -> s.Fragment:
    """A rule on a text that stays as it is once it says something."""
    return s.rule("oldSelf.size() == 0 || self == oldSelf", message)


def distinct(message: str = "") -> s.Fragment:
    """A rule on a list: nothing comes twice. Without words an API server quotes the rule."""
    expression = "self.all(entry, self.exists_one(other, other == entry))"
    return s.rule(expression, message) if message else {"rule": expression}


def holds(value: str, *regexes: str, longest: int = LONGEST_IMAGE) -> bool:
    """Whether a text would pass patterns of this module, in a field of that length."""
    if not 0 < len(value) <= longest:
        return False
    # RE2 ends a text where it ends; for Python `$` also stands before a last line break.
    return all(re.search(regex.replace("$", r"\Z"), value, re.ASCII) is not None for regex in regexes)
