# The forge of the demo of supervised runs: a Gitea of its own, at an address that
# pods reach. It comes after lib.sh.

forge_directory=$root/bin/demo-forge

# host_address prints where pods find this machine.
host_address() {
  if [ "$(cat "$root/bin/cluster/mode")" = kind ]; then
    docker network inspect kind --format '{{range .IPAM.Config}}{{println .Gateway}}{{end}}' | grep -F . | head -n 1
  else
    kubectl get nodes -o 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}'
  fi
}

# start_forge HOST:PORT starts an empty one and waits until it serves.
start_forge() {
  stop_forge
  mkdir -p "$forge_directory"
  setsid "$root/hack/forge/serve" "$forge_directory/data" "$1" </dev/null >"$forge_directory/log" 2>&1 &
  echo $! >"$forge_directory/pid"
  until curl --noproxy '*' -fs "http://$1/api/v1/version" >/dev/null; do
    forge_process >/dev/null || die "the forge ended: $(tail -n 5 "$forge_directory/log")"
    sleep 0.2
  done
}

# forge_process prints the process of the forge, if it runs: another one may have got
# its number meanwhile.
forge_process() {
  local process
  process=$(cat "$forge_directory/pid" 2>/dev/null) || return 1
  tr '\0' '\n' <"/proc/$process/cmdline" 2>/dev/null | grep -Fx "$forge_directory/data" >/dev/null || return 1
  echo "$process"
}

# stop_forge ends it and removes what it kept.
stop_forge() {
  local process
  if process=$(forge_process); then
    kill "$process"
    while kill -0 "$process" 2>/dev/null; do sleep 0.1; done
  fi
  rm -rf "$forge_directory"
}

# push DIRECTORY REPOSITORY makes a repository with what the directory has.
push() {
  local scratch out
  scratch=$(mktemp -d)
  cp -R "$1/." "$scratch"
  git -C "$scratch" init -q -b main
  git -C "$scratch" add .
  git -C "$scratch" -c user.name=Alice -c user.email=alice@example.com commit -qm "Begin"
  out=$(git -C "$scratch" -c credential.helper= \
    -c "credential.helper=!f() { echo username=axiom; echo password=\$(cat '$forge_directory/data/token'); }; f" \
    push -q "$2" main 2>&1) || die "$out"
  rm -rf "$scratch"
}
