"""Native objects and the cells that they print, for the unit tests and for the comparison with a real server.

Each sample is (group, plural, name, body, cells): `body` is the object without type and metadata unless it gives some,
`cells` what follows the name. `AGE` stands for any age. Times are fixed in the far past, so that ages do not move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

AGE = "<age>"
LONG_AGO = "2001-01-01T00:00:00Z"


class Sample(NamedTuple):
    """One object and its row."""

    group: str
    plural: str
    name: str
    body: dict[str, Any]
    cells: list[Any]


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b", "image": "img:2"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}
CLAIM = {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
SUBJECTS = [
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"},
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"},
    {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "devs"},
    {"kind": "ServiceAccount", "namespace": "ns", "name": "sa"},
]
WEBHOOK: dict[str, Any] = {
    "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}],
}  # fmt: skip


def pod(name: str, status: dict[str, Any], cells: list[Any], **spec: Any) -> Sample:
    """A pod with two containers and whatever `spec` adds; `cells` are ready, status, restarts and the wide ones."""
    body = {"spec": {"containers": TEMPLATE["spec"]["containers"], **spec}, "status": status}
    ready, reason, restarts, *wide = cells
    return Sample("", "pods", name, body, [ready, reason, restarts, AGE, *(wide or ["<none>"] * 4)])


def container(name: str, ready: bool = False, restarts: int = 0, **state: Any) -> dict[str, Any]:
    """The status of a container."""
    last = state.pop("last", None)
    return {
        "name": name, "ready": ready, "restartCount": restarts, "image": "i", "imageID": "d", "state": state,
        **({"lastState": {"terminated": last}} if last else {}),
    }  # fmt: skip


RUNNING: dict[str, Any] = {"running": {"startedAt": LONG_AGO}}
ENDED = {"exitCode": 0, "reason": "Completed", "finishedAt": LONG_AGO}
FAILED = {"exitCode": 3, "finishedAt": LONG_AGO}
INIT: dict[str, Any] = {"initContainers": [{"name": "i", "image": "img"}, {"name": "j", "image": "img"}]}
SIDECAR: dict[str, Any] = {"initContainers": [{"name": "s", "image": "img", "restartPolicy": "Always"}]}
INITIALIZED = [{"type": "Initialized", "status": "True"}]
READY = [{"type": "Ready", "status": "True"}]

PODS = [
    pod("pending", {}, ["0/2", "Pending", "0"]),
    pod("running", {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "podIP": "10.0.0.1", "conditions": READY,
                    "containerStatuses": [container("a", True, **RUNNING), container("b", True, **RUNNING)]},
        ["2/2", "Running", "0", "10.0.0.1", "<none>", "<none>", "<none>"]),
    pod("waiting", {"phase": "Pending", "containerStatuses": [
        container("a", waiting={"reason": "ImagePullBackOff"}), container("b", True, **RUNNING)]},
        ["1/2", "ImagePullBackOff", "0"]),
    pod("restarted", {"phase": "Running", "containerStatuses": [
        container("a", True, 4, last=ENDED, **RUNNING), container("b", True, 1, **RUNNING)]},
        ["2/2", "Running", f"5 ({AGE} ago)"]),
    pod("failed", {"phase": "Failed", "containerStatuses": [
        container("a", terminated=FAILED), container("b", terminated=ENDED)]}, ["0/2", "ExitCode:3", "0"]),
    pod("done", {"phase": "Succeeded", "containerStatuses": [
        container("a", terminated=ENDED), container("b", terminated=ENDED)]}, ["0/2", "Completed", "0"]),
    pod("half", {"phase": "Running", "conditions": READY, "containerStatuses": [
        container("a", terminated=ENDED), container("b", True, **RUNNING)]}, ["1/2", "Running", "0"]),
    pod("half-not-ready", {"phase": "Running", "containerStatuses": [
        container("a", terminated=ENDED), container("b", True, **RUNNING)]}, ["1/2", "NotReady", "0"]),
    pod("signalled", {"phase": "Running", "containerStatuses": [
        container("a", terminated={"exitCode": 137, "signal": 9}), container("b", True, **RUNNING)]},
        ["1/2", "Signal:9", "0"]),
    pod("evicted", {"phase": "Failed", "reason": "Evicted"}, ["0/2", "Evicted", "0"]),
    pod("starting", {"phase": "Pending", "initContainerStatuses": [
        container("i", terminated=ENDED), container("j", waiting={"reason": "PodInitializing"})]},
        ["0/2", "Init:1/2", "0"], **INIT),
    pod("init-error", {"phase": "Pending", "initContainerStatuses": [container("i", restarts=2, terminated=FAILED)]},
        ["0/2", "Init:ExitCode:3", "2"], **INIT),
    pod("init-backoff", {"phase": "Pending", "initContainerStatuses": [
        container("i", waiting={"reason": "CrashLoopBackOff"})]}, ["0/2", "Init:CrashLoopBackOff", "0"], **INIT),
    pod("sidecar", {"phase": "Running", "conditions": INITIALIZED,
                    "initContainerStatuses": [{**container("s", True, 1, **RUNNING), "started": True}],
                    "containerStatuses": [container("a", True, **RUNNING), container("b", True, 2, **RUNNING)]},
        ["3/3", "Running", "3"], **SIDECAR),
    pod("gated", {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}, ["0/2", "SchedulingGated", "0"],
        schedulingGates=[{"name": "example.com/g"}]),
    pod("readiness", {"phase": "Running", "conditions": [{"type": "example.com/x", "status": "True"}]},
        ["0/2", "Running", "0", "<none>", "<none>", "<none>", "1/2"],
        readinessGates=[{"conditionType": "example.com/x"}, {"conditionType": "example.com/y"}]),
]  # fmt: skip

CORE = [
    Sample("", "configmaps", "cm", {"data": {"a": "1"}, "binaryData": {"b": "AA=="}}, [2, AGE]),
    Sample("", "configmaps", "empty", {}, [0, AGE]),
    Sample("", "secrets", "sec", {"data": {"a": "AA=="}, "type": "Opaque"}, ["Opaque", 1, AGE]),
    Sample("", "serviceaccounts", "account", {}, [AGE]),
    Sample("", "podtemplates", "template", {"template": TEMPLATE}, ["a,b", "img:1,img:2", "app=web"]),
    Sample("", "nodes", "bare", {}, ["Unknown", "<none>", AGE, "", "<none>", "<none>", *["<unknown>"] * 3]),
    Sample("", "nodes", "worker",
           {"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": "",
                                    "kubernetes.io/role": "old"}},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": "True"}],
                       "addresses": [{"type": "InternalIP", "address": "10.1.1.1"},
                                     {"type": "ExternalIP", "address": "192.0.2.1"}],
                       "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "OS", "kernelVersion": "6.1",
                                    "architecture": "amd64", "containerRuntimeVersion": "cri-o://1", "machineID": "",
                                    "systemUUID": "", "bootID": "", "kubeProxyVersion": "", "operatingSystem": "linux"}}},
           ["Ready,SchedulingDisabled", "infra,old,worker", AGE, "v1.36.0", "10.1.1.1", "192.0.2.1", "OS", "6.1 (amd64)",
            "cri-o://1"]),
    Sample("", "resourcequotas", "quota",
           {"spec": {"hard": {"pods": "10"}},
            "status": {"hard": {"pods": "10", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3", "limits.cpu": "1"}}},
           ["cpu: 0/1, pods: 3/10", "limits.cpu: 1/2", AGE]),
    Sample("", "limitranges", "limits", {"spec": {"limits": []}}, [AGE]),
    Sample("", "persistentvolumes", "pv",
           {"spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                     "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "slow", "hostPath": {"path": "/x"},
                     "claimRef": {"namespace": "ns", "name": "c"}},
            "status": {"phase": "Bound"}},
           ["5Gi", "RWO,RWX", "Retain", "Bound", "ns/c", "slow", "<unset>", "", AGE, "Filesystem"]),
    Sample("", "persistentvolumeclaims", "free", {"spec": {**CLAIM, "storageClassName": "slow"}},
           ["Pending", "", "", "", "slow", "<unset>", AGE, "Filesystem"]),
    Sample("", "persistentvolumeclaims", "bound",
           {"spec": {**CLAIM, "volumeName": "pv", "storageClassName": ""},
            "status": {"phase": "Bound", "accessModes": ["ReadWriteOncePod"], "capacity": {"storage": "2Gi"}}},
           ["Bound", "pv", "2Gi", "RWOP", "", "<unset>", AGE, "Filesystem"]),
]  # fmt: skip

WORKLOADS = [
    Sample("", "replicationcontrollers", "rc",
           {"spec": {"replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE}},
           [2, 0, 0, AGE, "a,b", "img:1,img:2", "app=web"]),
    Sample("apps", "deployments", "deploy",
           {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
            "status": {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}},
           ["2/3", 3, 1, AGE, "a,b", "img:1,img:2", "app=web"]),
    Sample("apps", "replicasets", "rs",
           {"spec": {"replicas": 3, "template": TEMPLATE, "selector": {"matchExpressions": [
               {"key": "tier", "operator": "NotIn", "values": ["z", "y"]},
               {"key": "app", "operator": "In", "values": ["web"]}, {"key": "gone", "operator": "DoesNotExist"}]}},
            "status": {"replicas": 2, "readyReplicas": 1}},
           [3, 2, 1, AGE, "a,b", "img:1,img:2", "app in (web),!gone,tier notin (y,z)"]),
    Sample("apps", "statefulsets", "sts", {"spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE,
                                                    "serviceName": "s"}},
           ["0/1", AGE, "a,b", "img:1,img:2"]),
    Sample("apps", "daemonsets", "ds",
           {"spec": {"selector": SELECTOR, "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"x": "y"}}}},
            "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                       "updatedNumberScheduled": 2, "numberAvailable": 1, "numberMisscheduled": 0}},
           [5, 4, 3, 2, 1, "x=y", AGE, "a,b", "img:1,img:2", "app=web"]),
    Sample("apps", "controllerrevisions", "rev-alone", {"revision": 1, "data": {}}, ["<none>", 1, AGE]),
    Sample("batch", "jobs", "job",
           {"spec": {"completions": 3, "parallelism": 2,
                     "template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}},
           ["Running", "0/3", "", AGE, "a,b", "img:1,img:2", "batch.kubernetes.io/controller-uid=<uid>"]),
    Sample("batch", "cronjobs", "cron",
           {"spec": {"schedule": "* * * * *", "timeZone": "Etc/UTC", "suspend": True, "jobTemplate": {"spec": {
               "template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}}},
            "status": {"lastScheduleTime": LONG_AGO}},
           ["* * * * *", "Etc/UTC", "True", 0, AGE, AGE, "a,b", "img:1,img:2", "<none>"]),
    Sample("policy", "poddisruptionbudgets", "pdb", {"spec": {"minAvailable": "50%", "selector": SELECTOR}},
           ["50%", "N/A", 0, AGE]),
    Sample("policy", "poddisruptionbudgets", "pdb-max", {"spec": {"maxUnavailable": 1, "selector": SELECTOR}},
           ["N/A", "1", 0, AGE]),
]  # fmt: skip

NETWORK = [
    Sample("", "services", "headless", {"spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [
        {"port": 80, "protocol": "TCP", "targetPort": 80}]}},
        ["ClusterIP", "None", "<none>", "80/TCP", AGE, "app=web"]),
    Sample("", "services", "name", {"spec": {"type": "ExternalName", "externalName": "example.com"}},
           ["ExternalName", "<none>", "example.com", "<none>", AGE, "<none>"]),
    Sample("", "services", "balanced",
           {"spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [
               {"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}, {"hostname": "lb.example.com"}]}}},
           ["LoadBalancer", "<ip>", "192.0.2.9,lb.example.com", "80/TCP,53/UDP", AGE, "<none>"]),
    Sample("", "services", "pending", {"spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False,
                                                "ports": [{"port": 80, "protocol": "TCP"}]}},
           ["LoadBalancer", "<ip>", "<pending>", "80/TCP", AGE, "<none>"]),
    Sample("", "endpoints", "ends", {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in (1, 2)],
                                                  "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}]},
           ["10.0.0.1:1,10.0.0.2:1,10.0.0.1:2 + 1 more...", AGE]),
    Sample("", "endpoints", "no-ends", {}, ["<none>", AGE]),
    Sample("discovery.k8s.io", "endpointslices", "slice",
           {"addressType": "IPv4", "ports": [{"port": 80, "name": "x"}, {"name": "y"}],
            "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(1, 6)]},
           ["IPv4", "80,y", "10.0.0.1,10.0.0.2,10.0.0.3 + 2 more...", AGE]),
    Sample("discovery.k8s.io", "endpointslices", "slice-empty", {"addressType": "IPv4", "ports": [], "endpoints": []},
           ["IPv4", "<unset>", "<unset>", AGE]),
    Sample("networking.k8s.io", "ingresses", "ing",
           {"spec": {"ingressClassName": "nginx", "tls": [{"hosts": ["a.example.com"]}],
                     "rules": [{"host": f"{letter}.example.com"} for letter in "abcde"]}},
           ["nginx", "a.example.com,b.example.com,c.example.com + 2 more...", "", "80, 443", AGE]),
    Sample("networking.k8s.io", "ingresses", "ing-any",
           {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}, ["<none>", "*", "", "80", AGE]),
    Sample("networking.k8s.io", "ingressclasses", "class",
           {"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            "spec": {"controller": "example.com/c", "parameters": {"apiGroup": "k8s.example.com", "kind": "P", "name": "n",
                                                                   "scope": "Cluster"}}},
           ["example.com/c", "P.k8s.example.com/n", AGE]),
    Sample("networking.k8s.io", "networkpolicies", "np", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
           ["<none>", AGE]),
]  # fmt: skip

OTHERS = [
    Sample("storage.k8s.io", "storageclasses", "sc",
           {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "example.com/p", "allowVolumeExpansion": True},
           ["example.com/p", "Delete", "Immediate", True, AGE]),
    Sample("storage.k8s.io", "csidrivers", "a.example.com",
           {"spec": {"attachRequired": False, "podInfoOnMount": True, "storageCapacity": True, "requiresRepublish": True,
                     "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
                     "volumeLifecycleModes": ["Persistent", "Ephemeral"]}},
           [False, True, True, "a,b", True, "Persistent,Ephemeral", AGE]),
    Sample("storage.k8s.io", "csinodes", "n",
           {"spec": {"drivers": [{"name": "a.example.com", "nodeID": "n", "topologyKeys": []}]}}, [1, AGE]),
    Sample("rbac.authorization.k8s.io", "rolebindings", "rb", {"roleRef": ROLE, "subjects": SUBJECTS},
           ["ClusterRole/view", AGE, "ann, bob", "devs", "ns/sa"]),
    Sample("rbac.authorization.k8s.io", "clusterrolebindings", "crb", {"roleRef": ROLE, "subjects": SUBJECTS[:1]},
           ["ClusterRole/view", AGE, "ann", "", ""]),
    Sample("rbac.authorization.k8s.io", "roles", "role", {"rules": []}, [AGE]),
    Sample("rbac.authorization.k8s.io", "clusterroles", "clusterrole", {"rules": []}, [AGE]),
    Sample("coordination.k8s.io", "leases", "lease", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 5}},
           ["me", AGE]),
    Sample("node.k8s.io", "runtimeclasses", "rtc", {"handler": "kata-snp"}, ["kata-snp", AGE]),
    Sample("scheduling.k8s.io", "priorityclasses", "prio", {"value": 7, "preemptionPolicy": "Never"},
           [7, False, AGE, "Never"]),
    Sample("admissionregistration.k8s.io", "validatingwebhookconfigurations", "vwc", {"webhooks": [WEBHOOK]}, [1, AGE]),
    Sample("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "mwc", {"webhooks": []}, [0, AGE]),
    Sample("admissionregistration.k8s.io", "validatingadmissionpolicies", "vap",
           {"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "true"}],
                     "matchConstraints": {"resourceRules": WEBHOOK["rules"]}}},
           [1, "v1/ConfigMap", AGE]),
    Sample("admissionregistration.k8s.io", "validatingadmissionpolicybindings", "vapb",
           {"spec": {"policyName": "vap", "validationActions": ["Deny"],
                     "paramRef": {"name": "cm", "namespace": "default", "parameterNotFoundAction": "Allow"}}},
           ["vap", "default/cm", AGE]),
]  # fmt: skip

# Not for a real server: its garbage collector removes what has an owner that does not exist.
OWNED = [
    Sample("apps", "controllerrevisions", "rev",
           {"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "u",
                                              "controller": True}]}, "revision": 4, "data": {}},
           ["daemonset.apps/ds", 4, AGE]),
]  # fmt: skip

SAMPLES = [*PODS, *CORE, *WORKLOADS, *NETWORK, *OTHERS]
