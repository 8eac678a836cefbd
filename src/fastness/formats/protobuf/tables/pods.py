"""Pods and everything inside them except volumes.

Facts of the Kubernetes 1.36 API; `protobuf.schema` explains the notation.
"""

from typing import Final

MESSAGES: Final = """\
core.Affinity: 1 nodeAffinity core.NodeAffinity; 2 podAffinity core.PodAffinity;
  3 podAntiAffinity core.PodAntiAffinity
core.AppArmorProfile: 1 type string!; 2 localhostProfile string!
core.Capabilities: 1 add []string; 2 drop []string
core.ConfigMapEnvSource: 1 . core.LocalObjectReference; 2 optional bool!
core.ConfigMapKeySelector: 1 . core.LocalObjectReference; 2 key string!; 3 optional bool!
core.Container: 1 name string!; 2 image string; 3 command []string; 4 args []string; 5 workingDir string;
  6 ports []core.ContainerPort; 7 env []core.EnvVar; 8 resources core.ResourceRequirements;
  9 volumeMounts []core.VolumeMount; 10 livenessProbe core.Probe; 11 readinessProbe core.Probe;
  12 lifecycle core.Lifecycle; 13 terminationMessagePath string; 14 imagePullPolicy string;
  15 securityContext core.SecurityContext; 16 stdin bool; 17 stdinOnce bool; 18 tty bool;
  19 envFrom []core.EnvFromSource; 20 terminationMessagePolicy string; 21 volumeDevices []core.VolumeDevice;
  22 startupProbe core.Probe; 23 resizePolicy []core.ContainerResizePolicy; 24 restartPolicy string!;
  25 restartPolicyRules []core.ContainerRestartRule
core.ContainerExtendedResourceRequest: 1 containerName string!; 2 resourceName string!; 3 requestName string!
core.ContainerPort: 1 name string; 2 hostPort int; 3 containerPort int!; 4 protocol string; 5 hostIP string
core.ContainerResizePolicy: 1 resourceName string!; 2 restartPolicy string!
core.ContainerRestartRule: 1 action string; 2 exitCodes core.ContainerRestartRuleOnExitCodes
core.ContainerRestartRuleOnExitCodes: 1 operator string; 2 values []int
core.ContainerState: 1 waiting core.ContainerStateWaiting; 2 running core.ContainerStateRunning;
  3 terminated core.ContainerStateTerminated
core.ContainerStateRunning: 1 startedAt time
core.ContainerStateTerminated: 1 exitCode int!; 2 signal int; 3 reason string; 4 message string; 5 startedAt time;
  6 finishedAt time; 7 containerID string
core.ContainerStateWaiting: 1 reason string; 2 message string
core.ContainerStatus: 1 name string!; 2 state core.ContainerState; 3 lastState core.ContainerState; 4 ready bool!;
  5 restartCount int!; 6 image string!; 7 imageID string!; 8 containerID string; 9 started bool!;
  10 allocatedResources {}quantity; 11 resources core.ResourceRequirements; 12 volumeMounts []core.VolumeMountStatus;
  13 user core.ContainerUser; 14 allocatedResourcesStatus []core.ResourceStatus; 15 stopSignal string!
core.ContainerUser: 1 linux core.LinuxContainerUser
core.EnvFromSource: 1 prefix string; 2 configMapRef core.ConfigMapEnvSource; 3 secretRef core.SecretEnvSource
core.EnvVar: 1 name string!; 2 value string; 3 valueFrom core.EnvVarSource
core.EnvVarSource: 1 fieldRef core.ObjectFieldSelector; 2 resourceFieldRef core.ResourceFieldSelector;
  3 configMapKeyRef core.ConfigMapKeySelector; 4 secretKeyRef core.SecretKeySelector;
  5 fileKeyRef core.FileKeySelector
core.EphemeralContainer: 1 . core.EphemeralContainerCommon; 2 targetContainerName string
core.EphemeralContainerCommon: 1 name string!; 2 image string; 3 command []string; 4 args []string;
  5 workingDir string; 6 ports []core.ContainerPort; 7 env []core.EnvVar; 8 resources core.ResourceRequirements;
  9 volumeMounts []core.VolumeMount; 10 livenessProbe core.Probe; 11 readinessProbe core.Probe;
  12 lifecycle core.Lifecycle; 13 terminationMessagePath string; 14 imagePullPolicy string;
  15 securityContext core.SecurityContext; 16 stdin bool; 17 stdinOnce bool; 18 tty bool;
  19 envFrom []core.EnvFromSource; 20 terminationMessagePolicy string; 21 volumeDevices []core.VolumeDevice;
  22 startupProbe core.Probe; 23 resizePolicy []core.ContainerResizePolicy; 24 restartPolicy string!;
  25 restartPolicyRules []core.ContainerRestartRule
core.ExecAction: 1 command []string
core.FileKeySelector: 1 volumeName string!; 2 path string!; 3 key string!; 4 optional bool!
core.GRPCAction: 1 port int!; 2 service string!
core.HTTPGetAction: 1 path string; 2 port intorstring; 3 host string; 4 scheme string; 5 httpHeaders []core.HTTPHeader
core.HTTPHeader: 1 name string!; 2 value string!
core.HostAlias: 1 ip string!; 2 hostnames []string
core.HostIP: 1 ip string!
core.ImageVolumeStatus: 1 imageRef string
core.Lifecycle: 1 postStart core.LifecycleHandler; 2 preStop core.LifecycleHandler; 3 stopSignal string!
core.LifecycleHandler: 1 exec core.ExecAction; 2 httpGet core.HTTPGetAction; 3 tcpSocket core.TCPSocketAction;
  4 sleep core.SleepAction
core.LinuxContainerUser: 1 uid int!; 2 gid int!; 3 supplementalGroups []int
core.NodeAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution core.NodeSelector;
  2 preferredDuringSchedulingIgnoredDuringExecution []core.PreferredSchedulingTerm
core.NodeAllocatableResourceClaimStatus: 1 resourceClaimName string!; 2 containers []string; 3 resources {}quantity
core.NodeSelector: 1 nodeSelectorTerms []core.NodeSelectorTerm
core.NodeSelectorRequirement: 1 key string!; 2 operator string!; 3 values []string
core.NodeSelectorTerm: 1 matchExpressions []core.NodeSelectorRequirement; 2 matchFields []core.NodeSelectorRequirement
core.Pod: 1 metadata meta.ObjectMeta; 2 spec core.PodSpec; 3 status core.PodStatus
core.PodAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution []core.PodAffinityTerm;
  2 preferredDuringSchedulingIgnoredDuringExecution []core.WeightedPodAffinityTerm
core.PodAffinityTerm: 1 labelSelector meta.LabelSelector; 2 namespaces []string; 3 topologyKey string!;
  4 namespaceSelector meta.LabelSelector; 5 matchLabelKeys []string; 6 mismatchLabelKeys []string
core.PodAntiAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution []core.PodAffinityTerm;
  2 preferredDuringSchedulingIgnoredDuringExecution []core.WeightedPodAffinityTerm
core.PodCondition: 1 type string!; 2 status string!; 3 lastProbeTime time; 4 lastTransitionTime time; 5 reason string;
  6 message string; 7 observedGeneration int
core.PodDNSConfig: 1 nameservers []string; 2 searches []string; 3 options []core.PodDNSConfigOption
core.PodDNSConfigOption: 1 name string; 2 value string!
core.PodExtendedResourceClaimStatus: 1 requestMappings []core.ContainerExtendedResourceRequest;
  2 resourceClaimName string!
core.PodIP: 1 ip string!
core.PodOS: 1 name string!
core.PodReadinessGate: 1 conditionType string!
core.PodResourceClaim: 1 name string!; 3 resourceClaimName string!; 4 resourceClaimTemplateName string!
core.PodResourceClaimStatus: 1 name string!; 2 resourceClaimName string!
core.PodSchedulingGate: 1 name string!
core.PodSchedulingGroup: 1 podGroupName string!
core.PodSecurityContext: 1 seLinuxOptions core.SELinuxOptions; 2 runAsUser int!; 3 runAsNonRoot bool!;
  4 supplementalGroups []int; 5 fsGroup int!; 6 runAsGroup int!; 7 sysctls []core.Sysctl;
  8 windowsOptions core.WindowsSecurityContextOptions; 9 fsGroupChangePolicy string!;
  10 seccompProfile core.SeccompProfile; 11 appArmorProfile core.AppArmorProfile; 12 supplementalGroupsPolicy string!;
  13 seLinuxChangePolicy string!
core.PodSpec: 1 volumes []core.Volume; 2 containers []core.Container; 3 restartPolicy string;
  4 terminationGracePeriodSeconds int!; 5 activeDeadlineSeconds int!; 6 dnsPolicy string; 7 nodeSelector {}string;
  8 serviceAccountName string; 9 serviceAccount string; 10 nodeName string; 11 hostNetwork bool; 12 hostPID bool;
  13 hostIPC bool; 14 securityContext core.PodSecurityContext; 15 imagePullSecrets []core.LocalObjectReference;
  16 hostname string; 17 subdomain string; 18 affinity core.Affinity; 19 schedulerName string;
  20 initContainers []core.Container; 21 automountServiceAccountToken bool!; 22 tolerations []core.Toleration;
  23 hostAliases []core.HostAlias; 24 priorityClassName string; 25 priority int!; 26 dnsConfig core.PodDNSConfig;
  27 shareProcessNamespace bool!; 28 readinessGates []core.PodReadinessGate; 29 runtimeClassName string!;
  30 enableServiceLinks bool!; 31 preemptionPolicy string!; 32 overhead {}quantity;
  33 topologySpreadConstraints []core.TopologySpreadConstraint; 34 ephemeralContainers []core.EphemeralContainer;
  35 setHostnameAsFQDN bool!; 36 os core.PodOS; 37 hostUsers bool!; 38 schedulingGates []core.PodSchedulingGate;
  39 resourceClaims []core.PodResourceClaim; 40 resources core.ResourceRequirements; 41 hostnameOverride string!;
  43 schedulingGroup core.PodSchedulingGroup
core.PodStatus: 1 phase string; 2 conditions []core.PodCondition; 3 message string; 4 reason string; 5 hostIP string;
  6 podIP string; 7 startTime time; 8 containerStatuses []core.ContainerStatus; 9 qosClass string;
  10 initContainerStatuses []core.ContainerStatus; 11 nominatedNodeName string; 12 podIPs []core.PodIP;
  13 ephemeralContainerStatuses []core.ContainerStatus; 14 resize string;
  15 resourceClaimStatuses []core.PodResourceClaimStatus; 16 hostIPs []core.HostIP; 17 observedGeneration int;
  18 extendedResourceClaimStatus core.PodExtendedResourceClaimStatus; 19 allocatedResources {}quantity;
  20 resources core.ResourceRequirements;
  21 nodeAllocatableResourceClaimStatuses []core.NodeAllocatableResourceClaimStatus
core.PodTemplateSpec: 1 metadata meta.ObjectMeta; 2 spec core.PodSpec
core.PreferredSchedulingTerm: 1 weight int!; 2 preference core.NodeSelectorTerm
core.Probe: 1 . core.ProbeHandler; 2 initialDelaySeconds int; 3 timeoutSeconds int; 4 periodSeconds int;
  5 successThreshold int; 6 failureThreshold int; 7 terminationGracePeriodSeconds int!
core.ProbeHandler: 1 exec core.ExecAction; 2 httpGet core.HTTPGetAction; 3 tcpSocket core.TCPSocketAction;
  4 grpc core.GRPCAction
core.ResourceClaim: 1 name string!; 2 request string
core.ResourceHealth: 1 resourceID string!; 2 health string; 6 message string!
core.ResourceRequirements: 1 limits {}quantity; 2 requests {}quantity; 3 claims []core.ResourceClaim
core.ResourceStatus: 1 name string!; 2 resources []core.ResourceHealth
core.SELinuxOptions: 1 user string; 2 role string; 3 type string; 4 level string
core.SeccompProfile: 1 type string!; 2 localhostProfile string!
core.SecretEnvSource: 1 . core.LocalObjectReference; 2 optional bool!
core.SecretKeySelector: 1 . core.LocalObjectReference; 2 key string!; 3 optional bool!
core.SecurityContext: 1 capabilities core.Capabilities; 2 privileged bool!; 3 seLinuxOptions core.SELinuxOptions;
  4 runAsUser int!; 5 runAsNonRoot bool!; 6 readOnlyRootFilesystem bool!; 7 allowPrivilegeEscalation bool!;
  8 runAsGroup int!; 9 procMount string!; 10 windowsOptions core.WindowsSecurityContextOptions;
  11 seccompProfile core.SeccompProfile; 12 appArmorProfile core.AppArmorProfile
core.SleepAction: 1 seconds int!
core.Sysctl: 1 name string!; 2 value string!
core.TCPSocketAction: 1 port intorstring; 2 host string
core.Toleration: 1 key string; 2 operator string; 3 value string; 4 effect string; 5 tolerationSeconds int!
core.TopologySpreadConstraint: 1 maxSkew int!; 2 topologyKey string!; 3 whenUnsatisfiable string!;
  4 labelSelector meta.LabelSelector; 5 minDomains int!; 6 nodeAffinityPolicy string!; 7 nodeTaintsPolicy string!;
  8 matchLabelKeys []string
core.VolumeDevice: 1 name string!; 2 devicePath string!
core.VolumeMount: 1 name string!; 2 readOnly bool; 3 mountPath string!; 4 subPath string; 5 mountPropagation string!;
  6 subPathExpr string; 7 recursiveReadOnly string!
core.VolumeMountStatus: 1 name string!; 2 mountPath string!; 3 readOnly bool; 4 recursiveReadOnly string!;
  5 volumeStatus core.VolumeStatus
core.VolumeStatus: 1 image core.ImageVolumeStatus
core.WeightedPodAffinityTerm: 1 weight int!; 2 podAffinityTerm core.PodAffinityTerm
core.WindowsSecurityContextOptions: 1 gmsaCredentialSpecName string!; 2 gmsaCredentialSpec string!;
  3 runAsUserName string!; 4 hostProcess bool!
"""
