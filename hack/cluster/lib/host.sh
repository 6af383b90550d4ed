# shellcheck shell=bash
# What the node needs from the machine outside its own namespaces, in pairs: each thing
# that `up` puts there has one that `down` takes away. Both may be run again at any time.

readonly SYSCTLS=(
	net.ipv4.ip_forward=1
	net.bridge.bridge-nf-call-iptables=1
	# The kubelet sets these when it starts.
	vm.overcommit_memory=1
	vm.panic_on_oom=0
	kernel.panic=10
	kernel.panic_on_oops=1
	kernel.keys.root_maxkeys=1000000
	kernel.keys.root_maxbytes=25000000
)

# Fixed paths of containerd, the CNI plugins and the kubelet. The node mounts directories of
# its own over them, so that a real installation on the machine is neither seen nor changed.
# The last is made by mount(8) where it is missing.
readonly NODE_MOUNTPOINTS=(/run/containerd /var/lib/containerd /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /run/mount)

readonly NFT_TABLES=("ip axiom-cluster" "ip kube-proxy" "ip6 kube-proxy")

# --- packages -------------------------------------------------------------------------

install_packages() {
	local missing=()
	have containerd || missing+=(containerd)
	have runc || missing+=(runc)
	cni_plugins >/dev/null || missing+=(containernetworking-plugins)
	have nft || missing+=(nftables)
	{ have ip && have ss; } || missing+=(iproute2)
	have openssl || missing+=(openssl)
	have unshare && have flock || missing+=(util-linux)
	((${#missing[@]})) || return 0
	have apt-get || die "please install ${missing[*]} (these are Debian's names; there is no apt-get here)"
	say "installing Debian packages: ${missing[*]}"
	apt_install "${missing[@]}" || die "apt-get could not install ${missing[*]}; see above"
}

apt_install() {
	local log=$STATE/apt.log
	mkdir -p "$STATE"
	forbid_services
	if ! apt_get_install "$@" >"$log" 2>&1 && ! refresh_and_install "$@" >>"$log" 2>&1; then
		tail -n 20 "$log" >&2
		return 1
	fi
	rm -f "$log"
}

# refresh_and_install is for a machine whose package lists are missing or old.
refresh_and_install() { apt-get update && apt_get_install "$@"; }

# forbid_services keeps packages from starting a service: Debian's maintainer scripts ask
# this program first. The machine's own, if it has one, is left to decide.
forbid_services() {
	local policy=/usr/sbin/policy-rc.d
	[[ ! -e $policy ]] || return 0
	# shellcheck disable=SC2064
	trap "rm -f $policy" EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
}

apt_get_install() {
	DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
}

cni_plugins() {
	local directory
	for directory in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
		[[ -x $directory/bridge && -x $directory/host-local ]] && printf '%s\n' "$directory" && return
	done
	return 1
}

# --- is there room for us? ------------------------------------------------------------

# require_room refuses to share the machine with another cluster or another user of our
# ports. It is asked only while nothing of ours is there.
require_room() {
	local port table cgroups
	ip link show "$BRIDGE" >/dev/null 2>&1 && die "a network device $BRIDGE is already here, and this cluster did not make it"
	for table in "${NFT_TABLES[@]}"; do
		# shellcheck disable=SC2086
		nft list table $table >/dev/null 2>&1 && die "nftables has a table '$table': another cluster's node runs on this machine"
	done
	cgroups=$(pod_cgroups)
	[[ -z $cgroups ]] || die "there is a cgroup ${cgroups%%$'\n'*}: another kubelet runs on this machine"
	require_free_network "$POD_CIDR"
	require_free_network "$SERVICE_CIDR"
	for port in "$PORT_ETCD" "$PORT_ETCD_PEER" "$PORT_API" "$PORT_CONTROLLER_MANAGER" "$PORT_SCHEDULER" \
		"$PORT_KUBELET" "$PORT_KUBELET_HEALTH" "$PORT_PROXY_HEALTH" "$PORT_PROXY_METRICS"; do
		require_free_port "$port"
	done
}

require_free_network() {
	local routes
	routes=$(ip -4 route show root "$1")
	[[ -z $routes ]] || die "this machine already has a route into $1, which the cluster uses: ${routes%%$'\n'*}"
}

require_free_port() {
	local listener
	listener=$(ss --no-header --listening --tcp --numeric --processes "sport = :$1")
	[[ -z $listener ]] || die "TCP port $1, which the cluster uses, is taken: $(awk '{ print $4, $6 }' <<<"$listener" | head -n 1)"
}

# --- network --------------------------------------------------------------------------

# ensure_network makes the bridge that pods are plugged into. The node's own address is the
# bridge's, so the cluster does not depend on the machine's other networks. The route for
# Services gives connections from the machine that address as their source, and keeps a
# Service without kube-proxy rules from being looked for on another network.
ensure_network() {
	save_and_set_sysctls
	if ! ip link show "$BRIDGE" >/dev/null 2>&1; then
		# A fixed address: a bridge otherwise takes that of its ports, which come and go.
		ip link add "$BRIDGE" address 0a:58:0a:f4:00:01 type bridge
	fi
	ip address replace "$NODE_IP/${POD_CIDR#*/}" brd + dev "$BRIDGE"
	ip link set "$BRIDGE" up
	ip route replace "$SERVICE_CIDR" dev "$BRIDGE" src "$NODE_IP"
	masquerade
}

# masquerade lets pods reach what the machine reaches. `add` before `delete` makes the
# replacement of the table one transaction whether or not it is there.
masquerade() {
	nft -f - <<-NFT
		add table ip axiom-cluster
		delete table ip axiom-cluster
		table ip axiom-cluster {
			chain postrouting {
				type nat hook postrouting priority srcnat;
				ip saddr $POD_CIDR ip daddr != $POD_CIDR oifname != "$BRIDGE" masquerade
			}
		}
	NFT
}

remove_network() {
	local table
	for table in "${NFT_TABLES[@]}"; do
		# shellcheck disable=SC2086
		nft delete table $table 2>/dev/null || true
	done
	ip link delete "$BRIDGE" 2>/dev/null || true
	restore_sysctls
}

save_and_set_sysctls() {
	local setting name
	[[ -s $RUN/sysctls ]] || {
		for setting in "${SYSCTLS[@]}"; do
			name=${setting%%=*}
			printf '%s=%s\n' "$name" "$(<"$(sysctl_file "$name")")"
		done >"$RUN/sysctls.partial"
		mv "$RUN/sysctls.partial" "$RUN/sysctls"
	}
	for setting in "${SYSCTLS[@]}"; do set_sysctl "$setting"; done
}

restore_sysctls() {
	local setting
	[[ -s $RUN/sysctls ]] || return 0
	while read -r setting; do set_sysctl "$setting"; done <"$RUN/sysctls"
}

set_sysctl() {
	local file
	file=$(sysctl_file "${1%%=*}")
	[[ $(<"$file") == "${1#*=}" ]] || printf '%s\n' "${1#*=}" >"$file"
}

sysctl_file() { printf '/proc/sys/%s\n' "${1//.//}"; }

# --- mount points ---------------------------------------------------------------------

# ensure_mountpoints notes which ones it had to make. The note is written first: a
# directory that is noted and absent does no harm.
ensure_mountpoints() {
	local directory
	for directory in "${NODE_MOUNTPOINTS[@]}"; do
		[[ -d $directory ]] && continue
		printf '%s\n' "$directory" >>"$RUN/mountpoints"
		mkdir -p "$directory"
	done
}

remove_mountpoints() {
	local directory
	[[ -s $RUN/mountpoints ]] || return 0
	while read -r directory; do rmdir "$directory" 2>/dev/null || true; done <"$RUN/mountpoints"
}

# --- cgroups --------------------------------------------------------------------------

# pod_cgroups lists the kubelet's cgroups in every hierarchy (or the only one), children
# first. Deeper ones of that name are of clusters in containers.
pod_cgroups() { find /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods -depth -type d 2>/dev/null || true; }

# remove_cgroups is for when every process of the node has ended; the kernel may take a
# moment to let go of the last one.
remove_cgroups() {
	local attempt
	for attempt in {1..50}; do
		pod_cgroups | xargs --no-run-if-empty rmdir 2>/dev/null && return
		sleep 0.1
	done
	say "warning: some cgroups are still in use after $attempt attempts: $(pod_cgroups | head -n 3)"
}
