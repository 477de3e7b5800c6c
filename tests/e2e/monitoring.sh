#!/bin/bash
# Metrics, alerts and dashboard, by a real Prometheus that scrapes the extender
# of a demo.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/free_port.sh
. tests/lib/free_port.sh
for tool in python3 openssl prometheus promtool; do
    command -v $tool >/dev/null ||
        { echo "there is no $tool: scripts/setup --ci"; exit 77; }
done
# not the usual ones, which e2e/demo.sh takes, and wants to find taken
exec "${BUILD:-build}/biga" demo --once \
    --read-listen "127.0.0.1:$(free_port 13800)" \
    --scheduler-listen "127.0.0.1:$(free_port 14500)" \
    --publish-listen "127.0.0.1:$(free_port 15200)" \
    --then "python3 -B tests/e2e/monitoring.py"
