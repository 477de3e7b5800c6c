//go:build commands

// Names the command, so that go.mod lists what it needs.
package jobset

import (
	_ "sigs.k8s.io/jobset"
)
