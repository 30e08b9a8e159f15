//go:build !invariants

package open

import (
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/azure"
	"github.com/chaski-eo/chaski/source/blobsource/gcs"
	"github.com/chaski-eo/chaski/source/remote"
)

// addClouds adds the clouds of Google and Microsoft.
func addClouds(schemes map[string]source.Opener, policy remote.Options) {
	schemes["gs"] = must(blobsource.New(gcs.New(gcs.Options{}), policy))
	schemes["az"] = must(blobsource.New(azure.New(), policy))
	schemes["abfs"] = schemes["az"]
}
