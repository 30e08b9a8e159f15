//go:build race

package far

import (
	"testing"

	"github.com/chaski-eo/chaski/source/remote"
)

func addBucket(testing.TB, map[string]Place, string, []byte, remote.Options) {}
