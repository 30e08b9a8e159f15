package serve

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// checkRoot refuses a root that is no folder, and a remote one that is no prefix of URIs that are read.
func checkRoot(root string) error {
	if !source.IsRemote(root) {
		if st, err := os.Stat(source.LocalPath(root)); err != nil || !st.IsDir() {
			return fault.WithFile(fault.New(fault.NotFound, "root", fault.NoOffset, "no such folder"), root)
		}
		return nil
	}
	if s := source.Scheme(root); !slices.Contains(open.RemoteSchemes, s) || !strings.HasPrefix(root, s+"://") {
		return console.Usagef("--root %q is neither a folder nor a URI of %s", root, strings.Join(open.RemoteSchemes, "://, ")+"://")
	}
	if strings.ContainsAny(root, "*?[%\\") || strings.Contains(root, "/..") {
		return console.UsageUnlessFault(fmt.Errorf("--root %q: a remote root is a plain prefix, without \"..\", patterns and escapes", root))
	}
	return nil
}
