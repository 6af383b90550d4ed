# shellcheck shell=bash
# The programs of the node and how each is called. It runs inside the node, where the
# checkout's state and configuration have fixed paths.

readonly NODE_STATE=$RUN/state NODE_CONFIG=$RUN/config
readonly PKI=$NODE_STATE/pki KUBECONFIGS=$NODE_STATE/kubeconfigs

# The data is as lasting as the cluster, so it need not survive a loss of power.
run_etcd() {
	exec "$ASSETS/etcd" --name="$NODE_NAME" --data-dir="$NODE_STATE/etcd" --unsafe-no-fsync \
		--listen-client-urls="https://127.0.0.1:$PORT_ETCD" --advertise-client-urls="https://127.0.0.1:$PORT_ETCD" \
		--listen-peer-urls="https://127.0.0.1:$PORT_ETCD_PEER" --initial-advertise-peer-urls="https://127.0.0.1:$PORT_ETCD_PEER" \
		--initial-cluster="$NODE_NAME=https://127.0.0.1:$PORT_ETCD_PEER" \
		--client-cert-auth --trusted-ca-file="$PKI/ca.crt" --cert-file="$PKI/etcd.crt" --key-file="$PKI/etcd.key" \
		--peer-client-cert-auth --peer-trusted-ca-file="$PKI/ca.crt" --peer-cert-file="$PKI/etcd.crt" --peer-key-file="$PKI/etcd.key"
}

run_kube-apiserver() {
	exec "$ASSETS/kube-apiserver" \
		--bind-address="$NODE_IP" --advertise-address="$NODE_IP" --secure-port="$PORT_API" \
		--service-cluster-ip-range="$SERVICE_CIDR" --allow-privileged \
		--etcd-servers="https://127.0.0.1:$PORT_ETCD" \
		--etcd-cafile="$PKI/ca.crt" --etcd-certfile="$PKI/etcd.crt" --etcd-keyfile="$PKI/etcd.key" \
		--client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
		--anonymous-auth=false --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
		--service-account-issuer=https://kubernetes.default.svc \
		--service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key" \
		--kubelet-preferred-address-types=InternalIP --kubelet-certificate-authority="$PKI/ca.crt" \
		--kubelet-client-certificate="$PKI/apiserver-kubelet-client.crt" --kubelet-client-key="$PKI/apiserver-kubelet-client.key"
}

run_kube-controller-manager() {
	exec "$ASSETS/kube-controller-manager" --bind-address=127.0.0.1 --secure-port="$PORT_CONTROLLER_MANAGER" \
		--leader-elect=false --use-service-account-credentials --flex-volume-plugin-dir=/var/lib/kubelet/volume-plugins \
		--kubeconfig="$KUBECONFIGS/kube-controller-manager" \
		--authentication-kubeconfig="$KUBECONFIGS/kube-controller-manager" \
		--authorization-kubeconfig="$KUBECONFIGS/kube-controller-manager" \
		--root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/sa.key" \
		--cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key"
}

run_kube-scheduler() {
	exec "$ASSETS/kube-scheduler" --bind-address=127.0.0.1 --secure-port="$PORT_SCHEDULER" --leader-elect=false \
		--kubeconfig="$KUBECONFIGS/kube-scheduler" \
		--authentication-kubeconfig="$KUBECONFIGS/kube-scheduler" --authorization-kubeconfig="$KUBECONFIGS/kube-scheduler"
}

run_containerd() { exec containerd --config "$NODE_STATE/containerd.toml"; }

run_kubelet() {
	# A stub resolver on loopback, as systemd-resolved has, means another machine in a pod.
	local resolv_conf=/run/systemd/resolve/resolv.conf
	[[ -e $resolv_conf ]] || resolv_conf=/etc/resolv.conf
	exec "$ASSETS/kubelet" --config="$NODE_CONFIG/kubelet.yaml" --kubeconfig="$KUBECONFIGS/node" \
		--hostname-override="$NODE_NAME" --node-ip="$NODE_IP" --resolv-conf="$resolv_conf"
}

run_kube-proxy() { exec "$ASSETS/kube-proxy" --config="$NODE_CONFIG/kube-proxy.yaml"; }

# can_start COMPONENT tells whether what it needs at once is there. Anything later it
# waits for by itself, or ends and is started again.
can_start() {
	case $1 in
	etcd | containerd) true ;;
	kube-apiserver) port_open 127.0.0.1 "$PORT_ETCD" ;;
	kubelet) port_open "$NODE_IP" "$PORT_API" && [[ -S $CONTAINERD_SOCKET ]] ;;
	*) port_open "$NODE_IP" "$PORT_API" ;;
	esac
}
