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

// checkRoot checks that a --root is a directory, or a prefix of remote URIs that the server can read.
func checkRoot(root string) error {
	if !source.IsRemote(root) {
		if st, err := os.Stat(source.LocalPath(root)); err != nil || !st.IsDir() {
			return fault.WithFile(fault.New(fault.NotFound, "root", fault.NoOffset, "no such directory"), root)
		}
		return nil
	}
	given := root
	root, err := source.Resolve(root)
	if err != nil {
		return err
	}
	if s := source.Scheme(root); !slices.Contains(open.RemoteSchemes, s) || !strings.HasPrefix(root, s+"://") {
		return console.Usagef("--root is %q: it must be a directory or a URI of %s", given,
			strings.Join(open.RemoteSchemes, "://, ")+"://")
	}
	// The server compares URIs with roots as strings, so that patterns, escapes and ".." would make one URI
	// match in two ways.
	if strings.ContainsAny(root, "*?[%\\") || strings.Contains(root, "/..") {
		return console.UsageUnlessFault(fmt.Errorf("--root is %q: a remote root must be a plain prefix without "+
			"\"..\", patterns and escapes", given))
	}
	return nil
}
