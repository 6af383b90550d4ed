# Shared by the demo's scripts: how it talks, and how it waits.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
namespace=${DEMO_NAMESPACE:-axiom-demo}
samples=config/samples/cve-triage
cd "$root"

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'
else
  bold='' dim='' red='' plain=''
fi

step_number=0

# step TITLE announces a step of the story.
step() {
  step_number=$((step_number + 1))
  printf '\n%s== %d. %s%s\n\n' "$bold" "$step_number" "$1" "$plain"
}

# say TEXT explains what happens, or what is waited for.
say() { printf '%s\n' "$*" | fold -s -w 100 | sed 's/ *$//'; }

# need PROGRAM WHAT notes a program that is missing, with what to install.
missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }

# prerequisites ends the demo if anything is missing.
prerequisites() {
  need go "go (1.26 or newer)"
  need git git
  need make make
  if ! docker info >/dev/null 2>&1; then
    [ "$(uname -s)" = Linux ] || missing+=("Docker, since this is not Linux")
    [ "$(id -u)" -eq 0 ] || missing+=("root, to run a node without Docker")
  fi
  if [ ${#missing[@]} -gt 0 ]; then
    printf 'missing: %s\n' "${missing[@]}" >&2
    die "install what is missing, then run this again"
  fi
  say "go $(go env GOVERSION | sed s/go//), git and make are here."
}

die() {
  printf '%s%s%s\n' "$red" "$*" "$plain" >&2
  exit 1
}

# quoted prints words as one would type them.
quoted() {
  local word out=''
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./=:,@%+-]*) out+=" '${word//\'/\'\\\'\'}'" ;;
      *) out+=" $word" ;;
    esac
  done
  printf '%s' "${out# }"
}

# show CMD... prints a command as a user would type it, runs it and prints what
# it prints. It fails when the command does.
show() {
  printf '%s$ %s%s\n' "$dim" "$(quoted "$@")" "$plain"
  "$@" 2>&1
  echo
}

# refused TEXT CMD... shows a command that must fail, and fail for this reason.
refused() {
  local reason=$1 out status=0
  shift
  printf '%s$ %s%s\n' "$dim" "$(quoted "$@")" "$plain"
  out=$("$@" 2>&1) || status=$?
  printf '%s\n\n' "$out"
  [ "$status" -ne 0 ] || die "this should have been refused"
  [[ $out == *"$reason"* ]] || die "this should have been refused with: $reason"
}

# await SECONDS WHAT CMD... repeats a command until it succeeds, and says what it
# waits for every ten seconds.
await() {
  local limit=$1 what=$2 started=$SECONDS told=$SECONDS
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ $((SECONDS - started)) -ge "$limit" ]; then
      "$@" || true
      die "gave up waiting for $what after ${limit}s"
    fi
    if [ $((SECONDS - told)) -ge 10 ]; then
      say "   … waiting for $what ($((SECONDS - started))s)"
      told=$SECONDS
    fi
    sleep 0.5
  done
}

# use_cluster points kubectl to the local cluster.
use_cluster() {
  "$root/hack/cluster/status" >/dev/null || die "the local cluster does not run: make cluster-up"
  KUBECONFIG=$root/bin/cluster/kubeconfig
  export KUBECONFIG
  PATH=$("$root/hack/cluster/build" --print-path envtest):$PATH
  export PATH
}
