# Sourced by other scripts of tests/e2e.
# shellcheck shell=bash

# free_port FIRST: a port of the 700 from there on at which nobody listens.
# Those from 11000 to 20000 are given away neither by the kernel nor by
# tests/kube/proc.py: with a FIRST of its caller's own one stays free, also
# while what listens there is started again.
free_port() {
    local p
    while :; do
        p=$(($1 + RANDOM % 700))
        { : ; } 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$p" || { echo "$p"; return; }
    done
}
