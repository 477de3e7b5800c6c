# The decision alone, without a server.
# shellcheck shell=bash disable=SC2154
say "Deciding, and finding names, without a server …"
"$bin/bench_decide" >"$work/decide"
"$bin/bench_choose" bench/pod.json >"$work/choose"
sed '$d' "$work/choose" # its last line is the JSON

figure() { field "$work/decide" 3 "$@"; }
for n in 100000 10000 1000; do # processor time
    row "decision, ns per node at $n nodes x 8 cards; of a load; ratio" "" \
        "$(figure decide $n)" "$(figure decide-floor $n)" \
        "$(ratio "$(figure decide $n)" "$(figure decide-floor $n)")"
done
apart=$(figure apart 100000) one=$(figure classes-1 5000)
gate "the same, 100,000 nodes with as many different states" "<= 2" "$apart"
row "beside it: one load per node, ns; ratio" "" \
    "$(figure apart-floor 100000)" \
    "$(ratio "$apart" "$(figure apart-floor 100000)")"
row "beside it: adding up the states' numbers, ns; ratio" "" \
    "$(figure apart-states 100000)" \
    "$(ratio "$apart" "$(figure apart-states 100000)")"
for n in 300 1000; do
    gate "$n classes of demand in turn over one class; ns per node" "<= 1.5" \
        "$(ratio "$(figure classes-$n 5000)" "$one")" \
        "$(figure classes-$n 5000)"
done
gate "finding a name, ns, 10,000 nodes in any order" "<= 15" \
    "$(figure find-shuffled 10000)"
row "finding a name, ns, 100,000 nodes in their order" "<= 2" \
    "$(figure find 100000)"
row "finding a name, ns, 100,000 nodes in any order" "" \
    "$(figure find-shuffled 100000)"
table_data decide what,nodes,ns "$work/decide"
printf ',\n"choose":%s' "$(tail -n 1 "$work/choose")" >>"$data"
