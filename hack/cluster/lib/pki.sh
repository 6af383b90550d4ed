# shellcheck shell=bash
# A throw-away certificate authority, and who may call whom: one key pair for each part,
# with the user and groups that Kubernetes' own roles expect.

# make_credentials keeps the certificates that are there: running programs use them. They
# appear all at once, so an interrupted run leaves no half-made set.
make_credentials() {
	[[ -d $STATE/pki ]] || make_pki
	write_kubeconfigs
}

make_pki() (
	say "making certificates"
	umask 077
	scratch=$STATE/pki.partial
	rm -rf "$scratch"
	mkdir -p "$scratch"
	cd "$scratch" || exit
	make_certificates 2>"$STATE/openssl.log" || die "openssl: $(tail -n 3 "$STATE/openssl.log")"
	rm "$STATE/openssl.log"
	mv "$scratch" "$STATE/pki"
)

make_certificates() {
	openssl_request -keyout ca.key -out ca.crt -subj "/CN=axiom-cluster" \
		-addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"

	issue etcd "/CN=etcd" "IP:127.0.0.1"
	issue apiserver "/CN=kube-apiserver" \
		"IP:$NODE_IP,IP:$API_SERVICE_IP,IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
	issue kubelet "/CN=kubelet" "IP:$NODE_IP,DNS:$NODE_NAME"

	issue apiserver-kubelet-client "/O=system:masters/CN=kube-apiserver-kubelet-client"
	issue node "/O=system:nodes/CN=system:node:$NODE_NAME"
	issue kube-controller-manager "/CN=system:kube-controller-manager"
	issue kube-scheduler "/CN=system:kube-scheduler"
	issue kube-proxy "/CN=system:kube-proxy"
	issue admin "/O=system:masters/CN=axiom-admin"

	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out sa.key
	openssl pkey -in sa.key -pubout -out sa.pub
}

# issue NAME SUBJECT [SUBJECT_ALTERNATIVE_NAMES] writes NAME.key and NAME.crt.
issue() {
	local extensions=(-addext "basicConstraints=critical,CA:FALSE" -addext "extendedKeyUsage=serverAuth,clientAuth")
	[[ -n ${3:-} ]] && extensions+=(-addext "subjectAltName=$3")
	openssl_request -CA ca.crt -CAkey ca.key -keyout "$1.key" -out "$1.crt" -subj "$2" "${extensions[@]}"
}

# openssl_request makes a key and a certificate in one step. It has its own configuration,
# for the machine's would add extensions of its own.
openssl_request() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 365 \
		-config <(printf '[req]\ndistinguished_name = none\n[none]\n') "$@"
}

write_kubeconfigs() (
	umask 077
	mkdir -p "$STATE/kubeconfigs"
	for user in node kube-controller-manager kube-scheduler kube-proxy; do
		write_kubeconfig "$user" "$STATE/kubeconfigs/$user"
	done
	write_kubeconfig admin "$KUBECONFIG_ADMIN"
)

# write_kubeconfig USER FILE
write_kubeconfig() {
	kubeconfig "$1" >"$2.partial"
	mv "$2.partial" "$2"
}

# kubeconfig USER prints one that needs no other file.
kubeconfig() {
	cat <<-YAML
		apiVersion: v1
		kind: Config
		current-context: $CLUSTER_NAME
		clusters:
		- name: $CLUSTER_NAME
		  cluster:
		    server: https://$NODE_IP:$PORT_API
		    certificate-authority-data: $(base64 -w0 "$STATE/pki/ca.crt")
		users:
		- name: $1
		  user:
		    client-certificate-data: $(base64 -w0 "$STATE/pki/$1.crt")
		    client-key-data: $(base64 -w0 "$STATE/pki/$1.key")
		contexts:
		- name: $CLUSTER_NAME
		  context: {cluster: $CLUSTER_NAME, user: $1}
	YAML
}
