#!/bin/bash
# Metrics, alerts and dashboard, by a real Prometheus that scrapes the extender
# of a demo.
set -u
cd "$(dirname "$0")/../.." || exit 1
for tool in python3 openssl prometheus promtool; do
    command -v $tool >/dev/null ||
        { echo "there is no $tool: scripts/setup --ci"; exit 77; }
done
exec "${BUILD:-build}/biga" demo --once --then "python3 -B tests/e2e/monitoring.py"
