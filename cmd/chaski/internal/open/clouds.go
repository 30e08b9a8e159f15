//go:build !invariants

package open

import (
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/azure"
	"github.com/chaski-eo/chaski/source/blobsource/gcs"
	"github.com/chaski-eo/chaski/source/remote"
)

// clouds are the drivers of the clouds of Google and Microsoft.
var clouds = map[string]func() blobsource.Driver{
	"gs": func() blobsource.Driver { return gcs.New(gcs.Options{}) },
	"az": newAzure, "abfs": newAzure,
}

func newAzure() blobsource.Driver { return azure.New(azure.Options{}) }

// addClouds adds the clouds of Google and Microsoft.
func addClouds(schemes map[string]source.Opener) {
	schemes["gs"] = must(blobsource.New(clouds["gs"](), remote.Options{}))
	schemes["az"] = must(blobsource.New(newAzure(), remote.Options{}))
	schemes["abfs"] = schemes["az"]
}
