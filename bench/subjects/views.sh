# What looking at a fleet takes of a processor, through the code behind HTTP:
# the most of the requests that a row names, with changes before each, and the
# same bytes written from lines that are ready.
# shellcheck shell=bash disable=SC2154
look_hosts=100000 look_pods=65535 look_rounds=15
[[ $quick ]] && look_hosts=1000 look_pods=640 look_rounds=5

say "Looking at $look_hosts hosts with $look_pods pods, as people do …"
"$bin/bench_views" "$look_hosts" "$look_pods" "$look_rounds" >"$work/views"

looking() { # KIND TEXT REQUESTS…: a row, or a gate
    local kind=$1 text=$2 names got
    shift 2
    names=$(printf '|%s' "$@")
    got=$(awk -F'\t' -v names="^(${names:1})$" '
        $1 ~ names && $3 > most { most = $3; floor = $5 }
        END { printf "%.2f %.3f", most / 1000, floor / 1000 }' "$work/views")
    # shellcheck disable=SC2086 # two figures
    "$kind" "$text, CPU ms; floor" "<= 10" $got
}

looking gate "why: a pod that has a place" why-placed
looking gate "why: one that fits; one that does not; a job" \
    why-fits why-not 'why-job.*'
looking row "the first 100 jobs, two of which wait" jobs-first
looking gate "100 jobs: in the middle, the last, of a namespace" \
    jobs-middle jobs-last jobs-namespace
looking gate "100 jobs of a state, where there are many; none" \
    jobs-running jobs-failed
looking gate "100 jobs, where the API server tells of pods; of a state" \
    'cluster-jobs-.*'
looking gate "a job of 64 pairs" job
looking gate "100 nodes or cards: first, middle, last, of a status" \
    'nodes-.*' 'cards-.*'
looking gate "100 allocations: first, middle, last, namespace, node" \
    'allocations-.*'
looking gate "100 pods: the same, of a job, of a state" 'pods-.*'
looking gate "/metrics" metrics
looking gate "/readyz" readyz
looking row "pages of jobs" 'ui-jobs.*'
looking gate "pages of a job, nodes, a leaf" ui-job 'ui-nodes.*' ui-leaf
looking gate "what waits, each of it judged: /v1/pending; its page" \
    pending ui-pending
looking gate "the map of the fleet; by who sees two namespaces" \
    ui-fleet scoped-ui-fleet
looking row "a search: a job, nodes, a serial number, nothing" 'ui-search.*'
looking gate "by who sees two namespaces: 100 jobs; their page" \
    scoped-jobs scoped-ui-jobs
looking gate "the same: nodes, allocations, pods" \
    scoped-nodes scoped-allocations scoped-pods
looking gate "kept ready for the next look: what has changed" keep
row "the same at the start, once: all; CPU ms" "" \
    "$(ms "$(awk -F'\t' '$1 == "keep" { printf "%d", $4 }' "$work/views")")"
table_data views what,hosts,cpu_p50_us,cpu_max_us,floor_us,bytes "$work/views"
