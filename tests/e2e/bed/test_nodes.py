"""Pods on real kubelets: they run, they are heard and entered, they find each other by the address of a Service."""

from __future__ import annotations

from tests.bed.kubectl import Kubectl, pod


def test_both_nodes_are_ready_and_a_pod_on_each_is_heard_and_entered(kubectl: Kubectl) -> None:
    for node in ("bed-0", "bed-1"):
        command = ["sh", "-c", f"echo written on {node}; exec sleep 3600"]
        kubectl.apply(pod(f"heard-on-{node}", node, command))
    for node in ("bed-0", "bed-1"):
        kubectl.wait(f"pod/heard-on-{node}", "condition=Ready")
        assert kubectl.ok("logs", f"heard-on-{node}") == f"written on {node}\n"
        assert kubectl.ok("exec", f"heard-on-{node}", "--", "hostname") == f"heard-on-{node}\n"


def test_a_pod_reaches_another_node_by_the_address_of_a_service(kubectl: Kubectl) -> None:
    """The server runs in the second runtime, so that runtime classes are tried as well."""
    kubectl.apply(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "crun"}, "handler": "crun"}
    )
    page = ["sh", "-c", "mkdir /tmp/www; echo served by crun > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www"]
    server = pod("server", "bed-1", page)
    server["metadata"]["labels"] = {"app": "server"}
    server["spec"]["runtimeClassName"] = "crun"
    service = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}
    kubectl.apply(server)
    kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": service})
    address = kubectl.ok("get", "service", "server", "-o", "jsonpath={.spec.clusterIP}")
    ask = ["sh", "-c", f"until timeout 5 wget -q -O - http://{address}/; do sleep 0.2; done"]
    kubectl.apply(pod("caller", "bed-0", ask))
    kubectl.wait("pod/caller", "jsonpath={.status.phase}=Succeeded")
    assert kubectl.ok("logs", "caller").endswith("served by crun\n")


def test_a_pod_runs_python(kubectl: Kubectl, python_image: str) -> None:
    kubectl.apply(pod("python", "bed-1", ["python3", "-c", "print(6 * 7)"], python_image))
    kubectl.wait("pod/python", "jsonpath={.status.phase}=Succeeded")
    assert kubectl.ok("logs", "python") == "42\n"
