"""Printer columns, short names, scopes and subresources are exactly those that users know."""

from __future__ import annotations

import pytest

from fastness.kinds import registry
from fastness.kinds.kind import Kind

MCO = "machineconfiguration.openshift.io"
TEC = "trusted-execution-clusters.io"
OURS = "fastness.dev"
OLM = "operators.coreos.com"
CONFIG = "config.openshift.io"

# resource, short names, scope, status subresource, columns after NAME; those of wide output behind "|"
TABLE = f"""
machineconfigs.{MCO}                 mc          Cluster     no   GENERATEDBYCONTROLLER IGNITIONVERSION AGE
machineconfigpools.{MCO}             mcp         Cluster     yes  CONFIG UPDATED UPDATING DEGRADED MACHINECOUNT READYMACHINECOUNT UPDATEDMACHINECOUNT DEGRADEDMACHINECOUNT AGE
controllerconfigs.{MCO}              -           Cluster     yes  AGE
kubeletconfigs.{MCO}                 -           Cluster     yes  AGE
containerruntimeconfigs.{MCO}        ctrcfg      Cluster     yes  AGE
machineconfignodes.{MCO}             -           Cluster     yes  POOLNAME DESIREDCONFIG CURRENTCONFIG UPDATED AGE | UPDATEPREPARED UPDATEEXECUTED UPDATEPOSTACTIONCOMPLETE UPDATECOMPLETE RESUMED UPDATEDFILESANDOS CORDONEDNODE DRAINEDNODE REBOOTEDNODE UNCORDONEDNODE
machineosconfigs.{MCO}               -           Cluster     yes  AGE
machineosbuilds.{MCO}                -           Cluster     yes  PREPARED BUILDING SUCCEEDED INTERRUPTED FAILED AGE
pinnedimagesets.{MCO}                -           Cluster     no   AGE
osimagestreams.{MCO}                 -           Cluster     yes  AGE
machineconfigurations.operator.openshift.io - Cluster yes AGE
trustedexecutionclusters.{TEC}       -           Namespaced  yes  AGE
machines.{TEC}                       -           Namespaced  yes  ID POOL ATTESTED REASON LASTVERDICT AGE|IDENTITY CHIP DISKS
approvedimages.{TEC}                 -           Namespaced  yes  AGE
attestationkeys.{TEC}                -           Namespaced  yes  AGE
kataconfigs.kataconfiguration.openshift.io - Cluster yes INPROGRESS COMPLETED TOTAL AGE
nodefeaturediscoveries.nfd.openshift.io -       Namespaced  yes  AGE
nodefeaturerules.nfd.openshift.io    nfr         Cluster     no   AGE
nodefeaturerules.nfd.k8s-sigs.io     nfr         Cluster     no   AGE
nodefeatures.nfd.openshift.io        -           Namespaced  no   AGE
nodefeatures.nfd.k8s-sigs.io         -           Namespaced  no   AGE
nodeproviders.management.loft.sh     -           Cluster     yes  PHASE AGE
fastnessconfigs.bootstrap.cluster.x-k8s.io - Namespaced yes POOL SECRET READY AGE
fastnessconfigtemplates.bootstrap.cluster.x-k8s.io - Namespaced no POOL AGE
nodetypes.management.loft.sh         -           Cluster     yes  AVAILABLE TOTAL PHASE
nodeclaims.management.loft.sh        -           Namespaced  yes  TYPE TENANT PHASE AGE
kbsconfigs.confidentialcontainers.org -          Namespaced  yes  AGE
trusteeconfigs.confidentialcontainers.org -      Namespaced  yes  AGE
confidentialclusters.{OURS}          -           Cluster     yes  MODE DELIVERY ATTESTED PENDING REFUSED SIMULATED AGE
jointickets.{OURS}                   -           Cluster     yes  POOL USES USED EXPIRES
verdicts.{OURS}                      -           Cluster     no   SUBJECT RESULT EVIDENCE REASON AGE
referencevaluesets.{OURS}            -           Cluster     yes  SOURCE VALUES STATE | PUBLISHED REASON
appraisalpolicies.{OURS}             -           Cluster     yes  FOR ACTIVE CASES
distrusts.{OURS}                     -           Cluster     yes  TARGET AFFECTED REASON
nodeoverlays.{OURS}                  -           Cluster     yes  PRIORITY MATCHED AGE
rolloutpolicies.{OURS}               -           Cluster     yes  WAVE AGE
resourcebindings.{OURS}              -           Cluster     no   RESOURCE AGE
auditbatches.{OURS}                  -           Cluster     no   DOOR SEQUENCE AGE
auditcheckpoints.{OURS}              -           Cluster     yes  ORIGIN SIZE WITNESSES AGE
spentchallenges.{OURS}               -           Cluster     no   EXPIRES AGE
seenlaunches.{OURS}                  -           Cluster     no   USE MACHINE AGE
evidenceblobs.{OURS}                 -           Cluster     no   TYPE AGE
tenantclusters.{OURS}                -           Namespaced  yes  AGE
projects.project.openshift.io        -           Cluster     no   DISPLAY_NAME STATUS
routes.route.openshift.io            -           Namespaced  yes  HOST/PORT PATH SERVICES PORT TERMINATION WILDCARD
proxies.{CONFIG}                     -           Cluster     yes  AGE
infrastructures.{CONFIG}             -           Cluster     yes  AGE
apiservers.{CONFIG}                  -           Cluster     yes  AGE
featuregates.{CONFIG}                -           Cluster     yes  AGE
nodes.{CONFIG}                       -           Cluster     yes  AGE
clusterversions.{CONFIG}             -           Cluster     yes  VERSION AVAILABLE PROGRESSING SINCE STATUS
clusteroperators.{CONFIG}            co          Cluster     yes  VERSION AVAILABLE PROGRESSING DEGRADED SINCE
images.{CONFIG}                      -           Cluster     yes  AGE
imagedigestmirrorsets.{CONFIG}       idms        Cluster     yes  AGE
imagetagmirrorsets.{CONFIG}          itms        Cluster     yes  AGE
clusterimagepolicies.{CONFIG}        -           Cluster     yes  AGE
imagepolicies.{CONFIG}               -           Namespaced  yes  AGE
imagecontentsourcepolicies.operator.openshift.io - Cluster no  AGE
operatorgroups.{OLM}                 og          Namespaced  yes  AGE
subscriptions.{OLM}                  sub,subs    Namespaced  yes  PACKAGE SOURCE CHANNEL
installplans.{OLM}                   ip          Namespaced  yes  CSV APPROVAL APPROVED
clusterserviceversions.{OLM}         csv,csvs    Namespaced  yes  DISPLAY VERSION REPLACES PHASE
catalogsources.{OLM}                 catsrc      Namespaced  yes  DISPLAY TYPE PUBLISHER AGE
securitycontextconstraints.security.openshift.io scc Cluster no PRIV CAPS SELINUX RUNASUSER FSGROUP SUPGROUP PRIORITY READONLYROOTFS VOLUMES
machinesets.machine.openshift.io     -           Namespaced  yes  DESIRED CURRENT READY AVAILABLE AGE
machines.machine.openshift.io        -           Namespaced  yes  PHASE TYPE REGION ZONE AGE | NODE PROVIDERID ERROR
controlplanemachinesets.machine.openshift.io - Namespaced  yes  DESIRED CURRENT READY UPDATED UNAVAILABLE STATE AGE
baremetalhosts.metal3.io             bmh,bmhost  Namespaced  yes  STATE CONSUMER ONLINE ERROR AGE | STATUS BMC HARDWARE_PROFILE
deploymentconfigs.apps.openshift.io  dc          Namespaced  yes  REVISION DESIRED CURRENT TRIGGERED_BY
clusterpolicies.nvidia.com           -           Cluster     yes  STATUS AGE
servicemonitors.monitoring.coreos.com smon       Namespaced  yes  AGE
prometheusrules.monitoring.coreos.com promrule   Namespaced  yes  AGE
"""  # noqa: E501 (a row is a row)

ROWS = [row.split(maxsplit=4) for row in TABLE.strip().splitlines()]


def kind_of(resource: str) -> Kind:
    """The stored version of a resource."""
    plural, _, group = resource.partition(".")
    return registry.versions_of(group, plural)[0]


def headings(kind: Kind, *, wide: bool) -> list[str]:
    """Column headings as kubectl prints them; a space shows as an underscore here."""
    return [column.name.upper().replace(" ", "_") for column in kind.columns if bool(column.priority) == wide]


@pytest.mark.parametrize(("resource", "short", "scope", "status", "columns"), ROWS, ids=[row[0] for row in ROWS])
def test_resource_looks_as_users_know_it(resource: str, short: str, scope: str, status: str, columns: str) -> None:
    kind = kind_of(resource)
    plain, _, wide = columns.partition("|")
    assert kind.short_names == (() if short == "-" else tuple(short.split(",")))
    assert kind.scope.value == scope
    assert kind.has_status == (status == "yes")
    assert headings(kind, wide=False) == plain.split()
    assert headings(kind, wide=True) == wide.split()


def test_table_names_every_resource() -> None:
    assert {row[0] for row in ROWS} == {kind.crd_name for kind in registry.custom_kinds()}


@pytest.mark.parametrize(
    ("resource", "column", "path"),
    [
        (f"machineconfigs.{MCO}", "GeneratedByController",
         r".metadata.annotations.machineconfiguration\.openshift\.io/generated-by-controller-version"),
        (f"machineconfigs.{MCO}", "IgnitionVersion", ".spec.config.ignition.version"),
        (f"machineconfigpools.{MCO}", "Config", ".status.configuration.name"),
        (f"machineconfigpools.{MCO}", "Degraded", '.status.conditions[?(@.type=="Degraded")].status'),
        (f"machineconfignodes.{MCO}", "PoolName", ".spec.pool.name"),
        (f"machineconfignodes.{MCO}", "DesiredConfig", ".spec.configVersion.desired"),
        (f"machineconfignodes.{MCO}", "CurrentConfig", ".status.configVersion.current"),
        (f"machineconfignodes.{MCO}", "UpdatedFilesAndOS", '.status.conditions[?(@.type=="AppliedFilesAndOS")].status'),
        (f"machineconfignodes.{MCO}", "CordonedNode", '.status.conditions[?(@.type=="Cordoned")].status'),
        ("kataconfigs.kataconfiguration.openshift.io", "InProgress",
         ".status.conditions[?(@.type=='InProgress')].status"),
        ("kataconfigs.kataconfiguration.openshift.io", "Completed", ".status.kataNodes.readyNodeCount"),
        ("kataconfigs.kataconfiguration.openshift.io", "Total", ".status.kataNodes.nodeCount"),
        (f"machines.{TEC}", "Reason", ".status.standingReason"),
        (f"jointickets.{OURS}", "Expires", ".spec.expires"),
    ],
)  # fmt: skip
def test_column_reads_the_field_that_it_should(resource: str, column: str, path: str) -> None:
    assert next(entry.path for entry in kind_of(resource).columns if entry.name == column) == path


def test_times_in_the_future_are_not_printed_as_ages() -> None:
    for kind in registry.custom_kinds():
        for column in kind.columns:
            assert not (column.type == "date" and "expires" in column.path), f"{kind.crd_name}: {column.name}"


def test_machine_configuration_definitions_are_marked_as_managed_by_an_operator() -> None:
    for kind in registry.custom_kinds():
        if kind.group == MCO:
            assert "openshift.io/operator-managed" in kind.labels
