//go:build commands

// Names the command, so that go.mod lists what it needs.
package kueue

import (
	_ "sigs.k8s.io/kueue/cmd/kueue"
)
