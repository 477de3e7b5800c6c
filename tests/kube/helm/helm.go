//go:build commands

// Names the command, so that go.mod lists what it needs.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
