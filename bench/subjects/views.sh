# What looking at a fleet takes of a processor, through the code behind HTTP:
# the most of the requests that a row names, with changes before each, and the
# same bytes written from lines that are ready.
# shellcheck shell=bash disable=SC2154
look_hosts=100000 look_pods=65535 look_rounds=15
[[ $quick ]] && look_hosts=1000 look_pods=640 look_rounds=5

say "Looking at $look_hosts hosts with $look_pods pods, as people do …"
"$bin/bench_views" "$look_hosts" "$look_pods" "$look_rounds" >"$work/views"

looking() { # TEXT REQUESTS…
    local text=$1 names got
    shift
    names=$(printf '|%s' "$@")
    got=$(awk -F'\t' -v names="^(${names:1})$" '
        $1 ~ names && $3 > most { most = $3; floor = $5 }
        END { printf "%.2f %.3f", most / 1000, floor / 1000 }' "$work/views")
    # shellcheck disable=SC2086 # two figures
    row "$text, CPU ms; floor" "<= 10" $got
}

looking "why: a pod that has a place" why-placed
looking "why: one that fits; one that does not; a job" why-fits why-not 'why-job.*'
looking "100 jobs: the first, in the middle, the last, of a namespace" \
    jobs-first jobs-middle jobs-last jobs-namespace
looking "100 jobs of a state, where there are many; none" jobs-running jobs-failed
looking "a job of 64 pairs" job
looking "100 nodes or cards: first, middle, last, of a status" \
    'nodes-.*' 'cards-.*'
looking "100 allocations: first, middle, last, namespace, node" 'allocations-.*'
looking "100 pods: the same, of a job, of a state" 'pods-.*'
looking "/metrics" metrics
looking "/readyz" readyz
looking "pages of jobs, a job, nodes, a leaf" 'ui-jobs.*' ui-job 'ui-nodes.*' ui-leaf
looking "what waits, each of it judged: /v1/pending; its page" pending ui-pending
looking "the map of the fleet; a search" ui-fleet ui-search
looking "by who sees two namespaces: 100 jobs; their page" \
    scoped-jobs scoped-ui-jobs
looking "the same: nodes, allocations, pods" \
    scoped-nodes scoped-allocations scoped-pods
table_data views what,hosts,cpu_p50_us,cpu_max_us,floor_us,bytes "$work/views"
