package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/azure"
	"github.com/chaski-eo/chaski/source/blobsource/gcs"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// remoteSchemes are those of the URIs that the command reads beside local files.
var remoteSchemes = []string{"http", "https", "hf", "s3", "gs", "az"}

// newOpener opens local files and remote objects. otherHosts allows redirects of HTTP to any host: for commands that
// read what their user names, not for a server. Close it.
func newOpener(otherHosts bool) *source.Mux {
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

// checkRoot refuses a root that is no folder, and a remote one that is no prefix of URIs that are read.
func checkRoot(root string) error {
	if !source.IsRemote(root) {
		if st, err := os.Stat(source.LocalPath(root)); err != nil || !st.IsDir() {
			return fault.WithFile(fault.New(fault.NotFound, "root", fault.NoOffset, "no such folder"), root)
		}
		return nil
	}
	if s := source.Scheme(root); !slices.Contains(remoteSchemes, s) || !strings.HasPrefix(root, s+"://") {
		return usagef("--root %q is neither a folder nor a URI of %s", root, strings.Join(remoteSchemes, "://, ")+"://")
	}
	if strings.ContainsAny(root, "*?[%\\") || strings.Contains(root, "/..") {
		return usage(fmt.Errorf("--root %q: a remote root is a plain prefix, without \"..\", patterns and escapes", root))
	}
	return nil
}
