"""The words of the conditions that several fields share, with a value that passes and one that fails."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.kinds.rules.cases import DIGEST, IMAGE

Row = tuple[str, Any, Any]

SUBDOMAIN: Final[Row] = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character.",
    "rendered-worker.1",
    "Rendered_worker",
)
STREAM: Final[Row] = (
    "a RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character.",
    "rhel-9",
    "rhel@9!",
)
LABEL: Final[Row] = (
    "the value must consist of only lowercase alphanumeric characters and hyphens",
    "openshift-machine-config-operator",
    "openshift.config",
)
RESOURCE: Final[Row] = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    "with an alphanumeric character",
    "machineosbuilds",
    "1jobs",
)
DIGEST_FORM: Final[Row] = (
    "the OCI Image reference must end with a valid '@sha256:<digest>' suffix, where '<digest>' is 64 characters long",
    IMAGE,
    "registry.example.com/os/rhcos@sha256:abc",
)
NAME_FORM: Final[Row] = (
    "the OCI Image name should follow the host[:port][/namespace]/name format, resembling a valid URL without the scheme",
    f"registry.example.com:5000/os/rhcos{DIGEST}",
    f"registry.example.com/a/b/c{DIGEST}",
)
IMAGE_ROWS: Final = (DIGEST_FORM, NAME_FORM)
LOCAL_NAME_FORM: Final[Row] = (
    "the OCI Image name should follow the host[:port][/namespace]/name format, resembling a valid URL without the scheme; host "
    "must be either 'localhost' or a dot-qualified domain name",
    f"localhost:5000/os/rhcos{DIGEST}",
    f"registry/os/rhcos{DIGEST}",
)
TAG_FORM: Final[Row] = (
    "the OCI Image name should follow the host[:port][/namespace]/name format, resembling a valid URL without the scheme. Or it "
    "must be a valid .svc followed by a port, repository, image name, and tag.",
    "registry.example.com/a/b/c:latest",
    "localhost:5000/os/rhcos:latest",
)
SUFFIX: Final[Row] = (
    "Invalid ${SERVICETYPE} in service name. Expected format is ${NAME}${SERVICETYPE}, where ${SERVICETYPE} must be one of "
    '".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer",".snapshot", ".slice" or '
    '".scope".',
    "crio.service",
    "serv.ice",
)
UNIT: Final[Row] = (
    "Invalid ${NAME} in service name. Expected format is ${NAME}${SERVICETYPE}, where {NAME} must be atleast 1 character long "
    'and can only consist of alphabets, digits, ":", "-", "_", ".", and "\\"',
    r"dev-disk\x2da:b_c.device",
    "a b.service",
)
UNIT_ROWS: Final = (SUFFIX, UNIT)
OCP_VERSION: Final[Row] = ("ocpVersion must match the OCP semver compatible format of x.y.z", "4.20.1", "4.20.x")
RHCOS_VERSION: Final[Row] = (
    "rhcosVersion must match format [major].[minor].[datestamp(YYYYMMDD)]-[buildnumber] or must match legacy format "
    "[major].[minor].[timestamp(YYYYMMDDHHmm)]-[buildnumber]",
    "9.6.20260101-0",
    "9.6.2026010111-0",
)
IP: Final[Row] = ("value must be a valid IP address", "192.0.2.1", "192.0.2.300")
CIDR: Final[Row] = ("value must be a valid CIDR network address", "192.0.2.0/24", "192.0.2.0/33")
DISTINCT: Final = "failed rule: self.all(entry, self.exists_one(other, other == entry))"
