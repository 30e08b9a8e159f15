//go:build !invariants

package open

import (
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/azure"
	"github.com/chaski-eo/chaski/source/blobsource/gcs"
	"github.com/chaski-eo/chaski/source/remote"
)

// clouds are the drivers that write to the clouds of Google and Microsoft.
var clouds = map[string]func() blobsource.Driver{
	"gs": func() blobsource.Driver { return gcs.New(gcs.Options{Uploads: true}) },
	"az": azure.New, "abfs": azure.New,
}

// addClouds adds the clouds of Google and Microsoft.
func addClouds(schemes map[string]source.Opener, policy remote.Options) {
	schemes["gs"] = must(blobsource.New(gcs.New(gcs.Options{}), policy))
	schemes["az"] = must(blobsource.New(azure.New(), policy))
	schemes["abfs"] = schemes["az"]
}
