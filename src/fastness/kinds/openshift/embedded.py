"""DNS and Infrastructure of `config.openshift.io` as other objects carry them, whole.

A ControllerConfig holds copies of both, and is refused what they would be refused. Fields with a rule, a default or a meaning
for lists are spelled out (`platform_spec`, `platform_status`); everything else of a copy is kept as it came, so that a copy of an
object that knows more than we do loses nothing.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.openshift.platform_spec import PLATFORM_SPEC
from fastness.kinds.openshift.platform_status import PLATFORM_STATUS

_TOPOLOGIES = ("HighlyAvailable", "HighlyAvailableArbiter", "SingleReplica", "DualReplica", "External")


def _copy(properties: dict[str, s.Fragment], description: str) -> s.Fragment:
    return s.obj(
        properties,
        description,
        required=("spec",),
        nullable=True,
        **{"x-kubernetes-embedded-resource": True},
        **s.KEEP,
    )


_ROLE = s.with_rules(
    s.string("Role to assume for changes to the private zone.", maxLength=2048),
    predicates.pattern(
        "^arn:(aws|aws-cn|aws-us-gov|aws-eusc):iam::[0-9]{12}:role/.*$",
        "privateZoneIAMRole must be a valid AWS IAM role ARN in the format: "
        "arn:<partition>:iam::<account-id>:role/<role-name>",
    ),
)

_DNS_PLATFORM = s.with_rules(
    s.obj(
        {
            "type": s.with_rules(
                s.string("The provider of names; empty where there is nothing to set.", maxLength=64),
                s.rule("self in ['', 'AWS']", "allowed values are '' and 'AWS'"),
            ),
            "aws": s.obj({"privateZoneIAMRole": _ROLE}, "Settings for AWS.", **s.KEEP),
        },
        "Settings that depend on the provider.",
        required=("type",),
        **s.KEEP,
    ),
    predicates.member_iff(
        "aws", "type", "AWS", "aws configuration is required when platform is AWS, and forbidden otherwise"
    ),
)

DNS = _copy(
    {"spec": s.obj({"platform": _DNS_PLATFORM}, "Domain and zones of the cluster.", **s.KEEP)},
    "The cluster's DNS object, embedded.",
)

_STATUS = s.obj(
    {
        "controlPlaneTopology": s.enum(
            *_TOPOLOGIES, description="Where the control plane runs.", default="HighlyAvailable"
        ),
        "infrastructureTopology": s.enum(
            "HighlyAvailable",
            "SingleReplica",
            description="What services beside the control plane can count on.",
            default="HighlyAvailable",
        ),
        "cpuPartitioning": s.enum(
            "None", "AllNodes", description="Whether workloads are bound to sets of processors.", default="None"
        ),
        "platformStatus": PLATFORM_STATUS,
    },
    "What the cluster stands on.",
    **s.KEEP,
)

_TOPOLOGY = "self.spec.controlPlaneTopology"
_OBSERVED = "self.status.controlPlaneTopology"

INFRASTRUCTURE = s.with_rules(
    _copy(
        {
            "spec": s.obj(
                {
                    "controlPlaneTopology": s.string("The topology to change to.", maxLength=64),
                    "platformSpec": PLATFORM_SPEC,
                },
                "What is wanted of the platform.",
                **s.KEEP,
            ),
            "status": _STATUS,
        },
        "The cluster's Infrastructure object, embedded.",
    ),
    s.rule(
        f"!has({_TOPOLOGY}) || (has(oldSelf.spec.controlPlaneTopology) && {_TOPOLOGY} == oldSelf.spec.controlPlaneTopology)"
        f" || (has(self.status) && has({_OBSERVED}) && ({_TOPOLOGY} == {_OBSERVED}"
        f" || ({_TOPOLOGY} == 'HighlyAvailable' && {_OBSERVED} == 'SingleReplica')))",
        "spec.controlPlaneTopology must match status.controlPlaneTopology or be set to HighlyAvailable when "
        "status.controlPlaneTopology is SingleReplica",
    ),
)
