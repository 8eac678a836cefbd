"""Metadata and the messages that every group shares, and kinds of the core group, without pods.

Facts of the Kubernetes 1.36 API; `protobuf.schema` explains the notation.
"""

from typing import Final

MESSAGES: Final = """\
meta.Condition: 1 type string!; 2 status string!; 3 observedGeneration int; 4 lastTransitionTime time;
  5 reason string!; 6 message string!
meta.DeleteOptions: 1 gracePeriodSeconds int!; 2 preconditions meta.Preconditions; 3 orphanDependents bool!;
  4 propagationPolicy string!; 5 dryRun []string; 6 ignoreStoreReadErrorWithClusterBreakingPotential bool!
meta.FieldSelectorRequirement: 1 key string!; 2 operator string!; 3 values []string
meta.LabelSelector: 1 matchLabels {}string; 2 matchExpressions []meta.LabelSelectorRequirement
meta.LabelSelectorRequirement: 1 key string!; 2 operator string!; 3 values []string
meta.ManagedFieldsEntry: 1 manager string; 2 operation string; 3 apiVersion string; 4 time time; 6 fieldsType string;
  7 fieldsV1 rawjson; 8 subresource string
meta.ObjectMeta: 1 name string; 2 generateName string; 3 namespace string; 4 selfLink string; 5 uid string;
  6 resourceVersion string; 7 generation int; 8 creationTimestamp time; 9 deletionTimestamp time;
  10 deletionGracePeriodSeconds int!; 11 labels {}string; 12 annotations {}string;
  13 ownerReferences []meta.OwnerReference; 14 finalizers []string; 17 managedFields []meta.ManagedFieldsEntry
meta.OwnerReference: 1 kind string!; 3 name string!; 4 uid string!; 5 apiVersion string!; 6 controller bool!;
  7 blockOwnerDeletion bool!
meta.Preconditions: 1 uid string!; 2 resourceVersion string!
core.AttachedVolume: 1 name string!; 2 devicePath string!
core.Binding: 1 metadata meta.ObjectMeta; 2 target core.ObjectReference
core.ClientIPConfig: 1 timeoutSeconds int!
core.ConfigMap: 1 metadata meta.ObjectMeta; 2 data {}string; 3 binaryData {}bytes; 4 immutable bool!
core.ConfigMapNodeConfigSource: 1 namespace string!; 2 name string!; 3 uid string; 4 resourceVersion string;
  5 kubeletConfigKey string!
core.ContainerImage: 1 names []string; 2 sizeBytes int
core.DaemonEndpoint: 1 Port int!
core.Event: 1 metadata meta.ObjectMeta; 2 involvedObject core.ObjectReference; 3 reason string; 4 message string;
  5 source core.EventSource; 6 firstTimestamp time; 7 lastTimestamp time; 8 count int; 9 type string;
  10 eventTime microtime; 11 series core.EventSeries; 12 action string; 13 related core.ObjectReference;
  14 reportingComponent string!; 15 reportingInstance string!
core.EventSeries: 1 count int; 2 lastObservedTime microtime
core.EventSource: 1 component string; 2 host string
core.LoadBalancerIngress: 1 ip string; 2 hostname string; 3 ipMode string!; 4 ports []core.PortStatus
core.LoadBalancerStatus: 1 ingress []core.LoadBalancerIngress
core.Namespace: 1 metadata meta.ObjectMeta; 2 spec core.NamespaceSpec; 3 status core.NamespaceStatus
core.NamespaceCondition: 1 type string!; 2 status string!; 4 lastTransitionTime time; 5 reason string;
  6 message string
core.NamespaceSpec: 1 finalizers []string
core.NamespaceStatus: 1 phase string; 2 conditions []core.NamespaceCondition
core.Node: 1 metadata meta.ObjectMeta; 2 spec core.NodeSpec; 3 status core.NodeStatus
core.NodeAddress: 1 type string!; 2 address string!
core.NodeCondition: 1 type string!; 2 status string!; 3 lastHeartbeatTime time; 4 lastTransitionTime time;
  5 reason string; 6 message string
core.NodeConfigSource: 2 configMap core.ConfigMapNodeConfigSource
core.NodeConfigStatus: 1 assigned core.NodeConfigSource; 2 active core.NodeConfigSource;
  3 lastKnownGood core.NodeConfigSource; 4 error string
core.NodeDaemonEndpoints: 1 kubeletEndpoint core.DaemonEndpoint
core.NodeFeatures: 1 supplementalGroupsPolicy bool!
core.NodeRuntimeHandler: 1 name string!; 2 features core.NodeRuntimeHandlerFeatures
core.NodeRuntimeHandlerFeatures: 1 recursiveReadOnlyMounts bool!; 2 userNamespaces bool!
core.NodeSpec: 1 podCIDR string; 2 externalID string; 3 providerID string; 4 unschedulable bool;
  5 taints []core.Taint; 6 configSource core.NodeConfigSource; 7 podCIDRs []string
core.NodeStatus: 1 capacity {}quantity; 2 allocatable {}quantity; 3 phase string; 4 conditions []core.NodeCondition;
  5 addresses []core.NodeAddress; 6 daemonEndpoints core.NodeDaemonEndpoints; 7 nodeInfo core.NodeSystemInfo;
  8 images []core.ContainerImage; 9 volumesInUse []string; 10 volumesAttached []core.AttachedVolume;
  11 config core.NodeConfigStatus; 12 runtimeHandlers []core.NodeRuntimeHandler; 13 features core.NodeFeatures;
  14 declaredFeatures []string
core.NodeSwapStatus: 1 capacity int!
core.NodeSystemInfo: 1 machineID string!; 2 systemUUID string!; 3 bootID string!; 4 kernelVersion string!;
  5 osImage string!; 6 containerRuntimeVersion string!; 7 kubeletVersion string!; 8 kubeProxyVersion string!;
  9 operatingSystem string!; 10 architecture string!; 11 swap core.NodeSwapStatus
core.ObjectReference: 1 kind string; 2 namespace string; 3 name string; 4 uid string; 5 apiVersion string;
  6 resourceVersion string; 7 fieldPath string
core.PortStatus: 1 port int!; 2 protocol string!; 3 error string!
core.ResourceQuota: 1 metadata meta.ObjectMeta; 2 spec core.ResourceQuotaSpec; 3 status core.ResourceQuotaStatus
core.ResourceQuotaSpec: 1 hard {}quantity; 2 scopes []string; 3 scopeSelector core.ScopeSelector
core.ResourceQuotaStatus: 1 hard {}quantity; 2 used {}quantity
core.ScopeSelector: 1 matchExpressions []core.ScopedResourceSelectorRequirement
core.ScopedResourceSelectorRequirement: 1 scopeName string!; 2 operator string!; 3 values []string
core.Secret: 1 metadata meta.ObjectMeta; 2 data {}bytes; 3 type string; 4 stringData {}string; 5 immutable bool!
core.Service: 1 metadata meta.ObjectMeta; 2 spec core.ServiceSpec; 3 status core.ServiceStatus
core.ServiceAccount: 1 metadata meta.ObjectMeta; 2 secrets []core.ObjectReference;
  3 imagePullSecrets []core.LocalObjectReference; 4 automountServiceAccountToken bool!
core.ServicePort: 1 name string; 2 protocol string; 3 port int!; 4 targetPort intorstring; 5 nodePort int;
  6 appProtocol string!
core.ServiceSpec: 1 ports []core.ServicePort; 2 selector {}string; 3 clusterIP string; 4 type string;
  5 externalIPs []string; 7 sessionAffinity string; 8 loadBalancerIP string; 9 loadBalancerSourceRanges []string;
  10 externalName string; 11 externalTrafficPolicy string; 12 healthCheckNodePort int;
  13 publishNotReadyAddresses bool; 14 sessionAffinityConfig core.SessionAffinityConfig; 17 ipFamilyPolicy string!;
  18 clusterIPs []string; 19 ipFamilies []string; 20 allocateLoadBalancerNodePorts bool!;
  21 loadBalancerClass string!; 22 internalTrafficPolicy string!; 23 trafficDistribution string!
core.ServiceStatus: 1 loadBalancer core.LoadBalancerStatus; 2 conditions []meta.Condition
core.SessionAffinityConfig: 1 clientIP core.ClientIPConfig
core.Taint: 1 key string!; 2 value string; 3 effect string!; 4 timeAdded time
"""
