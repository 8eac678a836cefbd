"""The feature gates that a kubelet knows and that may be set to either value.

A kubelet of plain Kubernetes does not start with a gate that it does not know, or with one that is locked and set the other way;
OpenShift's ignores both. So gates are filtered before they reach the kubelet of a plain cluster, and what was left out is told.

Two gates may not be turned off: a kubelet that is told to ask for its serving certificate, as all of ours are, does not start
without `RotateKubeletServerCertificate`, and `AllBeta` would turn that off with all others.

The names are those that `kubelet --help` of the release below lists: all of Kubernetes' gates that are compiled into it, whether
or not the kubelet looks at them, without those that are finished and locked. A test compares them with that program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RELEASE: Final = "v1.36"
_NAMES: Final = """
APIResponseCompression APIServerIdentity APIServingWithRoutine AllAlpha AllBeta AllowParsingUserUIDFromCertAuth
AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission CBORServingAndStorage
CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions CRDObservedGenerationTracking CRIListStreaming
CSIVolumeHealth ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowCBOR ClientsAllowTLSCacheGC
ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz ConcurrentWatchObjectDecode
ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContainerStopSignals ContextualLogging
ControllerManagerReleaseLeaderElectionLockOnExit CoordinatedLeaderElection CrossNamespaceVolumeDataSource
DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaintRules DRADeviceTaints DRAExtendedResource
DRAListTypeAttributes DRANodeAllocatableResources DRAPartitionableDevices DRAResourceClaimDeviceStatus
DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DRASchedulerFilterTimeout
DRAWorkloadResourceClaims DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency
EnvFiles EventedPLEG ExtendWebSocketsToKubelet GangScheduling GenericWorkload GracefulNodeShutdown
GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAScaleToZero HostnameOverride
ImageVolumeWithDigest InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
KubeletInUserNamespace KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions LoggingBetaOptions
ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
MaxUnavailableStatefulSet MemoryQoS MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs
MutableSchedulingDirectivesForSuspendedJobs NativeHistograms NodeDeclaredFeatures NominatedNodeNameForExpectation
OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime
PodAndContainerStatsFromCRI PodCertificateRequest PodDeletionCost PodLevelResourceManagers PodLevelResources
PodLogsQuerySplitStreams PodReadyToStartContainersCondition PodTopologyLabelsAdmission PodsAPI PortForwardWebsockets
PreventStaticPodAPIReferences QOSReserved ReduceDefaultCrashLoopBackOffDecay RelaxedServiceNameValidation
ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
RuntimeClassInImageCriApi SELinuxMount SchedulerAsyncAPICalls SchedulerAsyncPreemption SchedulerPopFromBackoffQ
ServiceAccountNodeAudienceRestriction ShardedListAndWatch SizeBasedListCostEstimate
StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageVersionAPI
StorageVersionHash StorageVersionMigrator StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
StructuredAuthenticationConfigurationJWKSMetrics TaintTolerationComparisonOperators
TokenRequestServiceAccountUIDValidation TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport VolumeLimitScaling
WatchCacheInitializationPostStartHook WatchList WatchListClient WindowsCPUAndMemoryAffinity
WindowsGracefulNodeShutdown WorkloadAwarePreemption WorkloadWithJob
"""
KUBELET_GATES: Final = frozenset(_NAMES.split())
NEEDED: Final = frozenset(("RotateKubeletServerCertificate", "AllBeta"))


def kubelet_gates(gates: Mapping[str, bool], *, filtered: bool) -> tuple[dict[str, bool], tuple[str, ...]]:
    """The gates that a kubelet is told, sorted, and the names of those that it is not."""
    accepted = {
        name: on
        for name, on in sorted(gates.items())
        if (not filtered or name in KUBELET_GATES) and (on or name not in NEEDED)
    }
    return accepted, tuple(sorted(set(gates) - set(accepted)))
