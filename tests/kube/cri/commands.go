//go:build commands

// Names the commands, so that go.mod lists what they need; critest is a test
// of its own package, which imports these.
package cri

import (
	_ "sigs.k8s.io/cri-tools/cmd/crictl"
	_ "sigs.k8s.io/cri-tools/pkg/benchmark"
	_ "sigs.k8s.io/cri-tools/pkg/validate"
)
