// Package open opens the arguments of a command: files, remote objects and members of containers.
package open

import (
	"context"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/azure"
	"github.com/chaski-eo/chaski/source/blobsource/gcs"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/source/sign"
)

// maxWhole is the largest file that Whole reads, in bytes. Specs and loose OpenZL frames are far
// smaller; a larger file is named by mistake.
const maxWhole = 1 << 31

// Whole reads all of a local or remote file.
func Whole(ctx context.Context, files source.Opener, path string) ([]byte, error) {
	return source.ReadAll(ctx, files, path, maxWhole)
}

// RemoteSchemes are the schemes of the URIs that commands read.
var RemoteSchemes = []string{"http", "https", "hf", "s3", "gs", "az", "abfs"}

// NewOpener returns an opener of local files and remote objects, which its caller closes. otherHosts
// allows HTTP redirects to other hosts. Commands allow them for what their user names; a server must
// not, because a redirect would lead its clients to hosts outside of --root. cache keeps ranges of remote objects.
// requesterPays is as of s3.Options.
func NewOpener(otherHosts bool, cache *diskcache.Ref, requesterPays bool) *openers.Mux {
	hub, token := httpsource.HubFromEnv()
	policy := remote.Options{Disk: cache}
	options := httpsource.Options{Options: policy, OtherHosts: otherHosts, HubURL: hub, HubToken: token,
		Sign: sign.FromEnv()}
	web, err := httpsource.New(options)
	if err != nil {
		// HF_ENDPOINT is not a URL. Only hf:// needs it, so all other paths still work.
		options.HubURL, options.HubToken = "", ""
		web = must(httpsource.New(options))
	}
	microsoft := must(blobsource.New(azure.New(), policy))
	return &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{
		"http": web, "https": web, "hf": web,
		"s3": must(blobsource.New(s3.New(s3.Options{RequesterPays: requesterPays}), policy)),
		"gs": must(blobsource.New(gcs.New(), policy)),
		"az": microsoft, "abfs": microsoft,
	}}
}

// must panics on an error, which valid options never give.
func must(o *remote.Opener, err error) *remote.Opener {
	if err != nil {
		panic("chaski: " + err.Error())
	}
	return o
}
