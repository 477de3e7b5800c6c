#!/bin/bash
# A setting that would do nothing beside the others is refused, by the name of
# it and of what it needs.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BIGA_BUILD:-build}
# shellcheck source=tests/lib/check.sh
. tests/lib/check.sh
trap 'rm -rf "$work"' EXIT
unset "${!BIGA_@}"

# what is wanted of it, then its options
advertiser() { # setting text option…
    local setting=$1 text=$2
    shift 2
    check "biga-advertiser $*" 2 "^biga-advertiser: --$setting: $text" \
        timeout "$HANGS" "$BUILD/biga-advertiser" "$@"
}
extender() {
    local setting=$1 text=$2
    shift 2
    check "biga-extender $*" 2 "^biga-extender: --$setting: $text" \
        timeout "$HANGS" "$BUILD/biga-extender" --read-listen 127.0.0.1:0 \
        --scheduler-listen 127.0.0.1:0 "$@"
}

file=dell-r7525-2bf2
for option in "--node h" "--card-file f" "--interval 5s" "--topology f" \
    "--fsroot d" "--hostfile f" "--print tree" "--actuate d" \
    "--kubelet-dir /d" "--metrics-listen 127.0.0.1:0"; do
    setting=${option%% *}
    # shellcheck disable=SC2086
    advertiser "${setting#--}" "cannot be combined with --fleet" --fleet 2 $option
done
for option in "--cluster c" "--host-runtime unix:///x" "--helper-image i" \
    "--card-dir /d" "--hooks d" "--allow ALL" "--host-devices none"; do
    setting=${option%% *}
    # shellcheck disable=SC2086
    advertiser "${setting#--}" "needs --actuate" $option
done
for setting in cert key client-ca; do
    advertiser "metrics-$setting" "needs --metrics-listen" \
        "--metrics-$setting" f
done
advertiser "metrics-cert, --metrics-key and --metrics-client-ca" "all three" \
    --metrics-listen 127.0.0.1:0 --metrics-cert f --metrics-key g
advertiser fleet-shapes "needs --fleet" --fleet-shapes "$file"
advertiser fleet-prefix "needs --fleet" --fleet-prefix lab
advertiser kubeconfig "needs --server kubernetes" --kubeconfig f
advertiser heartbeat-namespace "needs --server kubernetes" \
    --heartbeat-namespace n
advertiser kubelet-dir "needs --server kubernetes" --kubelet-dir /k
advertiser cdi-dir "needs --kubelet-dir" --server kubernetes --cdi-dir /c
advertiser claim-grace "needs --kubelet-dir" --server kubernetes \
    --claim-grace 5s
advertiser kubelet-dir 'is "k", must be an absolute path' \
    --server kubernetes --kubelet-dir k
advertiser cdi-dir 'is "c", must be an absolute path' \
    --server kubernetes --kubelet-dir /k --cdi-dir c
advertiser ca "cannot be combined with --server kubernetes" \
    --server kubernetes --ca f
advertiser cert "cannot be combined with --server kubernetes" \
    --server kubernetes --cert f --key g
advertiser ca "needs an https:// server" --ca f
advertiser cert "needs an https:// server" --cert f --key g
advertiser interval "cannot be combined with --topology" \
    --hostfile "$file" --interval 5s
advertiser actuate "cannot be combined with --print" --actuate d --print tree

check "--print beside what is about publishing" 0 "2 cards" \
    "$BUILD/biga-advertiser" --hostfile "$file" --node h --print tree \
    --server https://x:1 --ca f --interval 0s --heartbeat 1s --withdraw=false

extender namespace "needs --store kubernetes" --namespace n
extender heartbeat-namespace "needs --store kubernetes" --heartbeat-namespace n
extender identity "needs --store kubernetes" --identity i
extender elect "needs --store kubernetes" --elect=false
extender events "needs --store kubernetes" --events=false
extender kubeconfig "needs --store kubernetes, or" --kubeconfig f
extender fabric-labels "needs --fabric, or" --fabric-labels gke
extender scheduler-names "needs --tls-cert" --scheduler-names n
extender state "cannot be combined with --store kubernetes" \
    --store kubernetes --state d
extender publish-listen "cannot be combined with --store kubernetes" \
    --store kubernetes --publish-listen 127.0.0.1:1
extender namespace "cannot be combined with --elect=false" \
    --store kubernetes --elect=false --namespace n
exit $bad
