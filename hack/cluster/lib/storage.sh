# shellcheck shell=bash
# Volumes for claims, as directories of the node: what a provisioner does elsewhere. It runs
# inside the node, after components.sh.

readonly PROVISIONER=axiom.local/directories
readonly VOLUMES=$NODE_STATE/volumes

run_storage() {
	admin apply --filename "$NODE_CONFIG/storage.yaml"
	for_each persistentvolumeclaims answer_claim \
		'{.status.phase} {.metadata.uid} {.spec.resources.requests.storage} {.spec.accessModes} {.metadata.namespace} {.metadata.name} {.metadata.annotations.volume\.kubernetes\.io/storage-provisioner}' &
	for_each persistentvolumes remove_released \
		'{.status.phase} {.metadata.name} {.metadata.annotations.pv\.kubernetes\.io/provisioned-by}' &
	wait
}

# for_each KIND FUNCTION TEMPLATE calls the function with the words of the template for each
# object, and again whenever the object changes. A watch that ended or a call that failed
# begins anew with what there is.
for_each() {
	local kind=$1 call=$2 template=$3
	local -a words
	while true; do
		admin get "$kind" --all-namespaces --watch --output "jsonpath=$template{\"\\n\"}" |
			while read -r -a words; do "$call" "${words[@]}" </dev/null; done || true
		sleep 1
	done
}

# answer_claim PHASE UID SIZE ACCESS_MODES NAMESPACE NAME PROVISIONER
answer_claim() {
	[[ $1 == Pending && ${7:-} == "$PROVISIONER" ]] || return 0
	make_volume "pvc-$2" "$3" "$4" "{namespace: $5, name: $6, uid: $2}"
}

# make_volume NAME SIZE ACCESS_MODES CLAIM. The kubelet gives a local volume to the group that
# the pod names; a size is not enforced.
make_volume() {
	mkdir -p "$VOLUMES/$1"
	admin apply --filename - <<-YAML
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: $1, annotations: {pv.kubernetes.io/provisioned-by: $PROVISIONER}}
		spec:
		  capacity: {storage: $2}
		  accessModes: $3
		  storageClassName: directories
		  persistentVolumeReclaimPolicy: Delete
		  claimRef: $4
		  local: {path: $VOLUMES/$1}
		  nodeAffinity:
		    required:
		      nodeSelectorTerms:
		      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$NODE_NAME]}]
	YAML
}

# remove_released PHASE NAME PROVISIONER takes back what no claim has any more. A claim stays
# while a pod uses it.
remove_released() {
	[[ $1 == Released && ${3:-} == "$PROVISIONER" ]] || return 0
	rm -rf --one-file-system "${VOLUMES:?}/$2"
	admin delete persistentvolume "$2" --ignore-not-found --wait=false
}
