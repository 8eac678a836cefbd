"""Kinds of the named groups: apps, authentication, authorization, batch, certificates, coordination, events, networking,
policy, rbac, scheduling.

Facts of the Kubernetes 1.36 API; `protobuf.schema` explains the notation.
"""

from typing import Final

MESSAGES: Final = """\
apps.Deployment: 1 metadata meta.ObjectMeta; 2 spec apps.DeploymentSpec; 3 status apps.DeploymentStatus
apps.DeploymentCondition: 1 type string!; 2 status string!; 4 reason string; 5 message string; 6 lastUpdateTime time;
  7 lastTransitionTime time
apps.DeploymentSpec: 1 replicas int!; 2 selector meta.LabelSelector; 3 template core.PodTemplateSpec;
  4 strategy apps.DeploymentStrategy; 5 minReadySeconds int; 6 revisionHistoryLimit int!; 7 paused bool;
  9 progressDeadlineSeconds int!
apps.DeploymentStatus: 1 observedGeneration int; 2 replicas int; 3 updatedReplicas int; 4 availableReplicas int;
  5 unavailableReplicas int; 6 conditions []apps.DeploymentCondition; 7 readyReplicas int; 8 collisionCount int!;
  9 terminatingReplicas int!
apps.DeploymentStrategy: 1 type string; 2 rollingUpdate apps.RollingUpdateDeployment
apps.RollingUpdateDeployment: 1 maxUnavailable intorstring; 2 maxSurge intorstring
authentication.BoundObjectReference: 1 kind string; 2 apiVersion string; 3 name string; 4 uid string
authentication.SelfSubjectReview: 1 metadata meta.ObjectMeta; 2 status authentication.SelfSubjectReviewStatus
authentication.SelfSubjectReviewStatus: 1 userInfo authentication.UserInfo
authentication.TokenRequest: 1 metadata meta.ObjectMeta; 2 spec authentication.TokenRequestSpec;
  3 status authentication.TokenRequestStatus
authentication.TokenRequestSpec: 1 audiences []string; 3 boundObjectRef authentication.BoundObjectReference;
  4 expirationSeconds int!
authentication.TokenRequestStatus: 1 token string!; 2 expirationTimestamp time
authentication.TokenReview: 1 metadata meta.ObjectMeta; 2 spec authentication.TokenReviewSpec;
  3 status authentication.TokenReviewStatus
authentication.TokenReviewSpec: 1 token string; 2 audiences []string
authentication.TokenReviewStatus: 1 authenticated bool; 2 user authentication.UserInfo; 3 error string;
  4 audiences []string
authentication.UserInfo: 1 username string; 2 uid string; 3 groups []string; 4 extra {}strings
authorization.FieldSelectorAttributes: 1 rawSelector string; 2 requirements []meta.FieldSelectorRequirement
authorization.LabelSelectorAttributes: 1 rawSelector string; 2 requirements []meta.LabelSelectorRequirement
authorization.LocalSubjectAccessReview: 1 metadata meta.ObjectMeta; 2 spec authorization.SubjectAccessReviewSpec;
  3 status authorization.SubjectAccessReviewStatus
authorization.NonResourceAttributes: 1 path string; 2 verb string
authorization.NonResourceRule: 1 verbs []string; 2 nonResourceURLs []string
authorization.ResourceAttributes: 1 namespace string; 2 verb string; 3 group string; 4 version string;
  5 resource string; 6 subresource string; 7 name string; 8 fieldSelector authorization.FieldSelectorAttributes;
  9 labelSelector authorization.LabelSelectorAttributes
authorization.ResourceRule: 1 verbs []string; 2 apiGroups []string; 3 resources []string; 4 resourceNames []string
authorization.SelfSubjectAccessReview: 1 metadata meta.ObjectMeta; 2 spec authorization.SelfSubjectAccessReviewSpec;
  3 status authorization.SubjectAccessReviewStatus
authorization.SelfSubjectAccessReviewSpec: 1 resourceAttributes authorization.ResourceAttributes;
  2 nonResourceAttributes authorization.NonResourceAttributes
authorization.SelfSubjectRulesReview: 1 metadata meta.ObjectMeta; 2 spec authorization.SelfSubjectRulesReviewSpec;
  3 status authorization.SubjectRulesReviewStatus
authorization.SelfSubjectRulesReviewSpec: 1 namespace string
authorization.SubjectAccessReview: 1 metadata meta.ObjectMeta; 2 spec authorization.SubjectAccessReviewSpec;
  3 status authorization.SubjectAccessReviewStatus
authorization.SubjectAccessReviewSpec: 1 resourceAttributes authorization.ResourceAttributes;
  2 nonResourceAttributes authorization.NonResourceAttributes; 3 user string; 4 groups []string; 5 extra {}strings;
  6 uid string
authorization.SubjectAccessReviewStatus: 1 allowed bool!; 2 reason string; 3 evaluationError string; 4 denied bool
authorization.SubjectRulesReviewStatus: 1 resourceRules []authorization.ResourceRule;
  2 nonResourceRules []authorization.NonResourceRule; 3 incomplete bool!; 4 evaluationError string
batch.CronJob: 1 metadata meta.ObjectMeta; 2 spec batch.CronJobSpec; 3 status batch.CronJobStatus
batch.CronJobSpec: 1 schedule string!; 2 startingDeadlineSeconds int!; 3 concurrencyPolicy string; 4 suspend bool!;
  5 jobTemplate batch.JobTemplateSpec; 6 successfulJobsHistoryLimit int!; 7 failedJobsHistoryLimit int!;
  8 timeZone string!
batch.CronJobStatus: 1 active []core.ObjectReference; 4 lastScheduleTime time; 5 lastSuccessfulTime time
batch.Job: 1 metadata meta.ObjectMeta; 2 spec batch.JobSpec; 3 status batch.JobStatus
batch.JobCondition: 1 type string!; 2 status string!; 3 lastProbeTime time; 4 lastTransitionTime time;
  5 reason string; 6 message string
batch.JobSpec: 1 parallelism int!; 2 completions int!; 3 activeDeadlineSeconds int!; 4 selector meta.LabelSelector;
  5 manualSelector bool!; 6 template core.PodTemplateSpec; 7 backoffLimit int!; 8 ttlSecondsAfterFinished int!;
  9 completionMode string!; 10 suspend bool!; 11 podFailurePolicy batch.PodFailurePolicy;
  12 backoffLimitPerIndex int!; 13 maxFailedIndexes int!; 14 podReplacementPolicy string!; 15 managedBy string!;
  16 successPolicy batch.SuccessPolicy
batch.JobStatus: 1 conditions []batch.JobCondition; 2 startTime time; 3 completionTime time; 4 active int;
  5 succeeded int; 6 failed int; 7 completedIndexes string; 8 uncountedTerminatedPods batch.UncountedTerminatedPods;
  9 ready int!; 10 failedIndexes string!; 11 terminating int!
batch.JobTemplateSpec: 1 metadata meta.ObjectMeta; 2 spec batch.JobSpec
batch.PodFailurePolicy: 1 rules []batch.PodFailurePolicyRule
batch.PodFailurePolicyOnExitCodesRequirement: 1 containerName string!; 2 operator string!; 3 values []int
batch.PodFailurePolicyOnPodConditionsPattern: 1 type string!; 2 status string!
batch.PodFailurePolicyRule: 1 action string!; 2 onExitCodes batch.PodFailurePolicyOnExitCodesRequirement;
  3 onPodConditions []batch.PodFailurePolicyOnPodConditionsPattern
batch.SuccessPolicy: 1 rules []batch.SuccessPolicyRule
batch.SuccessPolicyRule: 1 succeededIndexes string!; 2 succeededCount int!
batch.UncountedTerminatedPods: 1 succeeded []string; 2 failed []string
certificates.CertificateSigningRequest: 1 metadata meta.ObjectMeta; 2 spec certificates.CertificateSigningRequestSpec;
  3 status certificates.CertificateSigningRequestStatus
certificates.CertificateSigningRequestCondition: 1 type string!; 2 reason string; 3 message string;
  4 lastUpdateTime time; 5 lastTransitionTime time; 6 status string!
certificates.CertificateSigningRequestSpec: 1 request bytes!; 2 username string; 3 uid string; 4 groups []string;
  5 usages []string; 6 extra {}strings; 7 signerName string!; 8 expirationSeconds int!
certificates.CertificateSigningRequestStatus: 1 conditions []certificates.CertificateSigningRequestCondition;
  2 certificate bytes
coordination.Lease: 1 metadata meta.ObjectMeta; 2 spec coordination.LeaseSpec
coordination.LeaseSpec: 1 holderIdentity string!; 2 leaseDurationSeconds int!; 3 acquireTime microtime;
  4 renewTime microtime; 5 leaseTransitions int!; 6 strategy string!; 7 preferredHolder string!
events.Event: 1 metadata meta.ObjectMeta; 2 eventTime microtime; 3 series events.EventSeries;
  4 reportingController string; 5 reportingInstance string; 6 action string; 7 reason string;
  8 regarding core.ObjectReference; 9 related core.ObjectReference; 10 note string; 11 type string;
  12 deprecatedSource core.EventSource; 13 deprecatedFirstTimestamp time; 14 deprecatedLastTimestamp time;
  15 deprecatedCount int
events.EventSeries: 1 count int!; 2 lastObservedTime microtime
networking.HTTPIngressPath: 1 path string; 2 backend networking.IngressBackend; 3 pathType string!
networking.HTTPIngressRuleValue: 1 paths []networking.HTTPIngressPath
networking.Ingress: 1 metadata meta.ObjectMeta; 2 spec networking.IngressSpec; 3 status networking.IngressStatus
networking.IngressBackend: 3 resource core.TypedLocalObjectReference; 4 service networking.IngressServiceBackend
networking.IngressLoadBalancerIngress: 1 ip string; 2 hostname string; 4 ports []networking.IngressPortStatus
networking.IngressLoadBalancerStatus: 1 ingress []networking.IngressLoadBalancerIngress
networking.IngressPortStatus: 1 port int!; 2 protocol string!; 3 error string!
networking.IngressRule: 1 host string; 2 . networking.IngressRuleValue
networking.IngressRuleValue: 1 http networking.HTTPIngressRuleValue
networking.IngressServiceBackend: 1 name string!; 2 port networking.ServiceBackendPort
networking.IngressSpec: 1 defaultBackend networking.IngressBackend; 2 tls []networking.IngressTLS;
  3 rules []networking.IngressRule; 4 ingressClassName string!
networking.IngressStatus: 1 loadBalancer networking.IngressLoadBalancerStatus
networking.IngressTLS: 1 hosts []string; 2 secretName string
networking.ServiceBackendPort: 1 name string; 2 number int
policy.Eviction: 1 metadata meta.ObjectMeta; 2 deleteOptions meta.DeleteOptions
policy.PodDisruptionBudget: 1 metadata meta.ObjectMeta; 2 spec policy.PodDisruptionBudgetSpec;
  3 status policy.PodDisruptionBudgetStatus
policy.PodDisruptionBudgetSpec: 1 minAvailable intorstring; 2 selector meta.LabelSelector;
  3 maxUnavailable intorstring; 4 unhealthyPodEvictionPolicy string!
policy.PodDisruptionBudgetStatus: 1 observedGeneration int; 2 disruptedPods {}time; 3 disruptionsAllowed int!;
  4 currentHealthy int!; 5 desiredHealthy int!; 6 expectedPods int!; 7 conditions []meta.Condition
rbac.AggregationRule: 1 clusterRoleSelectors []meta.LabelSelector
rbac.ClusterRole: 1 metadata meta.ObjectMeta; 2 rules []rbac.PolicyRule; 3 aggregationRule rbac.AggregationRule
rbac.ClusterRoleBinding: 1 metadata meta.ObjectMeta; 2 subjects []rbac.Subject; 3 roleRef rbac.RoleRef
rbac.PolicyRule: 1 verbs []string; 2 apiGroups []string; 3 resources []string; 4 resourceNames []string;
  5 nonResourceURLs []string
rbac.Role: 1 metadata meta.ObjectMeta; 2 rules []rbac.PolicyRule
rbac.RoleBinding: 1 metadata meta.ObjectMeta; 2 subjects []rbac.Subject; 3 roleRef rbac.RoleRef
rbac.RoleRef: 1 apiGroup string!; 2 kind string!; 3 name string!
rbac.Subject: 1 kind string!; 2 apiGroup string; 3 name string!; 4 namespace string
scheduling.PriorityClass: 1 metadata meta.ObjectMeta; 2 value int!; 3 globalDefault bool; 4 description string;
  5 preemptionPolicy string!
storage.CSINode: 1 metadata meta.ObjectMeta; 2 spec storage.CSINodeSpec
storage.CSINodeDriver: 1 name string!; 2 nodeID string!; 3 topologyKeys []string; 4 allocatable storage.VolumeNodeResources
storage.CSINodeSpec: 1 drivers []storage.CSINodeDriver!
storage.VolumeNodeResources: 1 count int!
"""
