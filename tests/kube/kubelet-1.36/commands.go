//go:build commands

// Names the command, so that go.mod lists what it needs.
package commands

import _ "k8s.io/kubernetes/cmd/kubelet"
