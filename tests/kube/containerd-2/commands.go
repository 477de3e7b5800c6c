//go:build commands

// Names the commands, so that go.mod lists what they need.
package commands

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
)
