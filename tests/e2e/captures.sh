#!/bin/bash
# What real kube-schedulers sent, answered by biga-extender and taken by Go's
# own decoder.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need go
data=${BIGA_DATA:-../shared/data}
[ -d "$data/captures" ] || { echo "there is no $data/captures"; exit 77; }

(cd bench/go && go build -o "$dir/captures" ./captures) || exit 1
start_extender
"$dir/captures" "http://127.0.0.1:$(port scheduler)/v1/scheduler" \
    "$data/captures"
