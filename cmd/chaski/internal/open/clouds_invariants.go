//go:build invariants

package open

import (
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/remote"
)

// addClouds adds nothing: the race detector, which the tests with this tag run with, would compile the SDKs of Google
// and Microsoft once more, and no test asks these clouds through the command. Their own packages have tests.
func addClouds(map[string]source.Opener, remote.Options) {}
