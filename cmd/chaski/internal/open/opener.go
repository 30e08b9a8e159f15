// Package open opens what the arguments of a command name: files, remote objects, members of containers and TileDB
// arrays.
package open

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/azure"
	"github.com/chaski-eo/chaski/source/blobsource/gcs"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// maxWhole bounds a file that is read as a whole, in bytes.
const maxWhole = 1 << 31

func Whole(ctx context.Context, path string) ([]byte, error) {
	files := NewOpener(true)
	defer files.Close()
	r, err := files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() > maxWhole {
		return nil, fault.New(fault.Limit, "file", fault.NoOffset, "%d bytes, at most %d", r.Size(), maxWhole)
	}
	b := make([]byte, r.Size())
	return b, r.ReadAt(ctx, b, 0)
}

// RemoteSchemes are those of the URIs that the command reads beside local files.
var RemoteSchemes = []string{"http", "https", "hf", "s3", "gs", "az"}

// NewOpener opens local files and remote objects. otherHosts allows redirects of HTTP to any host: for commands that
// read what their user names, not for a server. Close it.
func NewOpener(otherHosts bool) *source.Mux {
	hub, token := httpsource.HubFromEnv()
	web, err := httpsource.New(httpsource.Options{OtherHosts: otherHosts, HubURL: hub, HubToken: token})
	if err != nil { // HF_ENDPOINT is none: then hf:// is what does not work
		web = must(httpsource.New(httpsource.Options{OtherHosts: otherHosts}))
	}
	return &source.Mux{Files: &source.Files{}, Schemes: map[string]source.Opener{
		"http": web, "https": web, "hf": web,
		"s3": must(blobsource.New(s3.New(s3.Options{}), remote.Options{})),
		"gs": must(blobsource.New(gcs.New(gcs.Options{}), remote.Options{})),
		"az": must(blobsource.New(azure.New(azure.Options{}), remote.Options{})),
	}}
}

// must is for options that are valid.
func must(o *remote.Opener, err error) *remote.Opener {
	if err != nil {
		panic("chaski: " + err.Error())
	}
	return o
}
