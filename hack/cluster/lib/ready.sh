# shellcheck shell=bash
# The parts of the node, and how to see from outside that each one works: by what it is
# there for, where that can be asked.

readonly COMPONENTS=(etcd kube-apiserver containerd kube-controller-manager kube-scheduler kubelet kube-proxy storage)

# component_ready COMPONENT
component_ready() {
	case $1 in
	etcd) port_open 127.0.0.1 "$PORT_ETCD" ;;
	kube-apiserver) api_ready ;;
	containerd) node_ctr version >/dev/null 2>&1 ;;
	kube-controller-manager) port_open 127.0.0.1 "$PORT_CONTROLLER_MANAGER" && default_account_exists ;;
	kube-scheduler) port_open 127.0.0.1 "$PORT_SCHEDULER" ;;
	kubelet) port_open "$NODE_IP" "$PORT_KUBELET" && node_is_ready ;;
	kube-proxy) port_open 127.0.0.1 "$PORT_PROXY_HEALTH" && api_service_is_routed ;;
	storage) admin get storageclass directories >/dev/null 2>&1 ;;
	esac
}

# all_ready asks for what depends on everything else.
all_ready() {
	local component
	for component in "${COMPONENTS[@]}"; do
		component_ready "$component" || return 1
	done
}

api_ready() { admin get --raw /readyz >/dev/null 2>&1; }

# Pods cannot be made without it, and the controller manager makes it.
default_account_exists() { admin get serviceaccount default --namespace default >/dev/null 2>&1; }

node_is_ready() {
	local condition='jsonpath={.status.conditions[?(@.type=="Ready")].status}'
	[[ $(admin get node "$NODE_NAME" --output "$condition" 2>/dev/null) == True ]]
}

# grep reads to the end: with -q it would end the pipe under nft, which pipefail takes for a failure.
api_service_is_routed() { nft list map ip kube-proxy service-ips 2>/dev/null | grep -w "$API_SERVICE_IP" >/dev/null; }

# node_ctr ARGUMENT... talks to the node's containerd, where Kubernetes keeps its images.
node_ctr() { ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io "$@"; }
