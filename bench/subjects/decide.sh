# The decision alone, without a server.
# shellcheck shell=bash disable=SC2154
say "Deciding, and finding names, without a server …"
"$bin/bench_decide" >"$work/decide"
"$bin/bench_choose" bench/pod.json >"$work/choose"
sed '$d' "$work/choose" # its last line is the JSON

figure() { field "$work/decide" 3 "$@"; }
row "decision, ns per node at 100,000 nodes x 8 cards" "<= 4" \
    "$(figure decide 100000)"
row "decision, ns per node at 10,000 nodes" "" "$(figure decide 10000)"
row "decision, ns per node at 1,000 nodes" "" "$(figure decide 1000)"
row "finding a name, ns, 10,000 nodes in any order" "<= 15" \
    "$(figure find-shuffled 10000)"
row "finding a name, ns, 100,000 nodes in their order" "<= 2" \
    "$(figure find 100000)"
row "finding a name, ns, 100,000 nodes in any order" "" \
    "$(figure find-shuffled 100000)"
table_data decide what,nodes,ns "$work/decide"
printf ',\n"choose":%s' "$(tail -n 1 "$work/choose")" >>"$data"
