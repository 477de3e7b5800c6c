# Plans of whole jobs, and why there is none, without a server.
# shellcheck shell=bash disable=SC2154
say "Planning jobs of 512 pairs on 1,000 to 100,000 hosts …"
"$bin/bench_plan" >"$work/plan" 2>/dev/null
say "Explaining jobs of 512 pairs that cannot be had …"
"$bin/bench_why" >>"$work/plan" 2>/dev/null
say "Filtering every pod of a job of 512 pairs …"
"$bin/bench_job" >>"$work/plan"
# WHAT HOSTS COLUMN.  Of bench_plan p50 and p99 by the clock, p99 and p50 of
# the processor's time; of the others p50 and p99 of that.
planning() { field "$work/plan" "$3" "$1" "$2"; }

gate "plan of 512 pairs (card + GPU), 1,000 x 8 cards, p99 CPU us" "<= 10000" \
    "$(planning plan 1000 5)"
row "the same by the clock, p99 us; p50" "" \
    "$(planning plan 1000 4)" "$(planning plan 1000 3)"
gate "plan of 512 pairs (1 card), 1,000 x 8 cards, p99 CPU us" "<= 10000" \
    "$(planning plan-card 1000 5)"
gate "the same job in one leaf refused, p99 CPU us" "<= 20000" \
    "$(planning plan-one-leaf-refused 1000 5)"
gate "512 whole hosts refused, p99 CPU us" "<= 20000" \
    "$(planning plan-whole-hosts-refused 1000 5)"
gate "filter of each pod of a 512-pair job, 1,000 hosts, p99 CPU us" "<= 1000" \
    "$(planning job-pod 1000 4)"
gate "the same once its first pod is bound, p99 CPU us" "<= 1000" \
    "$(planning job-bound 1000 4)"
row "the first pod's filter, which plans the job, p50 CPU us" "" \
    "$(planning job-first 1000 3)"
n=100000 # processor time, p50
plan=$(planning plan $n 6) scan=$(planning scan $n 6)
gate "plan of 512 pairs, $n hosts, 1 % of them changed, CPU us" "<= 10000" \
    "$plan"
row "beside it: adding up all states, us; ratio" "" \
    "$scan" "$(ratio "$plan" "$scan")"
row "the same plan where no two hosts are alike, us" "" \
    "$(planning plan-apart $n 6)"
for why in whole-hosts one-leaf too-large; do
    plan=$(planning "why-$why" $n 3) no=$(planning "refuse-$why" $n 3)
    gate "512 pairs, $n hosts, $why: why, what would help, CPU us" \
        "<= 30000" "$plan"
    row "beside it: the refusal alone, us; ratio" "" \
        "$no" "$(ratio "$plan" "$no")"
done
for why in whole-hosts one-leaf aligned too-large; do
    gate "512 pairs, $why: why, and what would help, p99 CPU us" "<= 20000" \
        "$(planning "why-$why" 1000 4)"
    row "the same, p50; the refusal alone beside it, p50 us" "" \
        "$(planning "why-$why" 1000 3) $(planning "refuse-$why" 1000 3)"
done
row "beside it: filling nodes in the order of names, p50 CPU us" "" \
    "$(planning names 1000 6)"
row "beside it: adding up all states, p50 CPU us" "" "$(planning scan 1000 6)"
per_host() { # HOSTS → CPU time of a plan per host, over that of 1,000 hosts
    awk -v a="$(planning plan "$1" 6)" -v b="$(planning plan 1000 6)" \
        -v n="$1" 'BEGIN { if (a && b) printf "%.2f", a / b * 1000 / n }'
}
gate "growth of the plan to 10,000 hosts, 1 is linear" "<= 1" \
    "$(per_host 10000)"
gate "growth of the plan to 100,000 hosts, 1 is linear" "<= 1" \
    "$(per_host 100000)"
table_data plan what,hosts,p50_us,p99_us "$work/plan"
