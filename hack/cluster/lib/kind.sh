# shellcheck shell=bash
# The cluster where a Docker engine works: kind's, under a name of our own.

readonly KIND_MODULE=sigs.k8s.io/kind@v0.33.0

docker_works() { have docker && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

kind() { GOFLAGS='' go run "$KIND_MODULE" "$@"; }

kind_exists() { kind get clusters 2>/dev/null | grep -x "$CLUSTER_NAME" >/dev/null; }

# kind_up makes the cluster, or finds the one it made. A creation that was interrupted
# leaves a cluster nobody can use, which is told by the mark that is set last.
kind_up() {
	have go || die "kind is run with Go, which is not installed"
	if kind_exists; then
		[[ $(mode) == kind ]] || die "there is a kind cluster '$CLUSTER_NAME' that this checkout did not make; remove it with 'kind delete cluster --name $CLUSTER_NAME'"
		[[ ! -e $STATE/kind-made ]] || { kind_reconnect && return; }
		say "the kind cluster does not answer or was never finished; making it again"
		kind_down
	fi
	set_mode kind
	rm -rf "$STATE/kind-made" "$STATE/loaded"
	say "making the kind cluster '$CLUSTER_NAME' (kind fetches its node image the first time)"
	kind create cluster --name "$CLUSTER_NAME" --kubeconfig "$KUBECONFIG_ADMIN" --wait 5m >&2
	"$CLUSTER_DIR/build" envtest >/dev/null
	touch "$STATE/kind-made"
}

# kind_reconnect also starts containers that stopped with the machine.
kind_reconnect() {
	docker start "$CLUSTER_NAME-control-plane" >/dev/null &&
		kind export kubeconfig --name "$CLUSTER_NAME" --kubeconfig "$KUBECONFIG_ADMIN" 2>/dev/null &&
		admin wait --for=condition=Ready nodes --all --timeout=2m >/dev/null
}

kind_down() { kind delete cluster --name "$CLUSTER_NAME" --kubeconfig "$KUBECONFIG_ADMIN" >&2; }

kind_load() { kind load image-archive "$1" --name "$CLUSTER_NAME" >&2; }
