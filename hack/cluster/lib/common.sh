# shellcheck shell=bash
# Names, paths and small helpers that every command of the local cluster shares.
# Sourcing it changes nothing on the machine.

# The constants below are read by the files that source this one.
# shellcheck disable=SC2034
true

CLUSTER_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
ROOT=$(cd -- "$CLUSTER_DIR/../.." && pwd -P)
readonly CLUSTER_DIR ROOT

# What survives a crash of the node: certificates, etcd's data, images, logs.
readonly STATE=$ROOT/bin/cluster
# What one machine has once: sockets (their paths must be short), the record of
# the running node, and the list of what `down` has to give back.
readonly RUN=/run/axiom-cluster
readonly KUBECONFIG_ADMIN=$STATE/kubeconfig
readonly CONTAINERD_SOCKET=$RUN/containerd.sock

readonly CLUSTER_NAME=axiom-dev
readonly NODE_NAME=axiom-dev
readonly BRIDGE=axiom0
readonly NODE_IP=10.244.0.1
readonly POD_CIDR=10.244.0.0/16
readonly SERVICE_CIDR=10.96.0.0/16
readonly API_SERVICE_IP=10.96.0.1

# The usual port with a 1 before it, so that a cluster that is already here keeps its own.
readonly PORT_ETCD=12379 PORT_ETCD_PEER=12380 PORT_API=16443 PORT_CONTROLLER_MANAGER=11257
readonly PORT_SCHEDULER=11259 PORT_KUBELET=11250 PORT_KUBELET_HEALTH=11248
readonly PORT_PROXY_HEALTH=11256 PORT_PROXY_METRICS=11249

readonly EXIT_USAGE=2 EXIT_ABSENT=3

say() { printf '%s\n' "$*" >&2; }

die() {
	say "error: $*"
	exit 1
}

usage_error() {
	say "error: $* (see --help)"
	exit "$EXIT_USAGE"
}

# help_of prints the comment block at the top of a script as its help text.
help_of() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$1"; }

have() { command -v "$1" >/dev/null 2>&1; }

need_root() {
	((EUID == 0)) || die "this needs root (it makes network devices, mounts and cgroups): sudo $0"
}

kubernetes_version() { awk '$1 == "require" && $2 == "k8s.io/kubernetes" { print $3 }' "$CLUSTER_DIR/go.mod"; }

# one_at_a_time makes concurrent commands of one checkout wait for each other. The
# lock is the directory itself, so that it leaves no file behind.
one_at_a_time() {
	exec 8<"$CLUSTER_DIR"
	flock --nonblock 8 && return
	say "waiting for another hack/cluster command to finish"
	flock 8
}

# port_open HOST PORT tells whether something accepts connections there.
port_open() { (exec 7<>"/dev/tcp/$1/$2") 2>/dev/null; }

# process_start PID prints when a process started, in clock ticks since boot: with the
# pid it names one process for ever, while a pid alone is used again. One that has ended and
# is only not yet collected by its parent counts as gone.
process_start() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	# The command's name, in parentheses, may hold blanks: the fields are counted after it.
	local -a fields
	read -r -a fields <<<"${stat##*) }"
	[[ ${fields[0]} != Z ]] && printf '%s\n' "${fields[19]}"
}

boot_id() { cat /proc/sys/kernel/random/boot_id; }

# node_pid prints the pid of the running node's first process; it fails when the one
# that was recorded is gone, whoever has its pid now.
node_pid() {
	local pid start boot
	{ read -r pid start boot <"$RUN/node.pid"; } 2>/dev/null || return 1
	[[ $boot == "$(boot_id)" && $start == "$(process_start "$pid")" ]] || return 1
	printf '%s\n' "$pid"
}

# stop_node kills the node's first process. The kernel kills its descendants and lets the
# process go only after the last of them. One that is just starting holds its lock before it
# is recorded, so it is waited for.
stop_node() {
	local pid attempt
	until pid=$(node_pid); do
		flock --nonblock "$RUN/node.lock" true && return
		sleep 0.1
	done
	kill -KILL "$pid"
	for ((attempt = 0; attempt < 300; attempt++)); do
		node_pid >/dev/null || return 0
		sleep 0.1
	done
	die "the node (process $pid) is still there 30 s after it was killed"
}

# owner prints the state directory of the checkout that the node belongs to, running or not.
owner() { cat "$RUN/owner" 2>/dev/null || true; }

# mode prints how this checkout's cluster runs: node, kind, or nothing when there is none.
# A node whose state somebody removed is still a node.
mode() {
	if [[ -s $STATE/mode ]]; then
		cat "$STATE/mode"
	elif [[ $(owner) == "$STATE" ]]; then
		echo node
	fi
}

# set_mode records it before anything is started, so that `down` knows what to undo.
set_mode() {
	mkdir -p "$STATE"
	printf '%s\n' "$1" >"$STATE/mode"
}

# admin ARGUMENT... is kubectl with all rights in this cluster, whatever the caller's is. It
# keeps nothing in the caller's home, and goes through no proxy.
admin() {
	NO_PROXY=$NODE_IP,${NO_PROXY:-} "$(kubectl_path)" --kubeconfig "$KUBECONFIG_ADMIN" --cache-dir "$STATE/cache" "$@"
}

kubectl_path() {
	local built
	built=$ROOT/bin/k8s/$(kubernetes_version)/kubectl
	if [[ -x $built ]]; then printf '%s\n' "$built"; else command -v kubectl; fi
}
