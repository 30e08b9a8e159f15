package container

import (
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
)

// TestExtractedPathsStayInside: no id of a container leads outside of the output directory.
func TestExtractedPathsStayInside(t *testing.T) {
	out := t.TempDir()
	folder := store.Entry{Path: "f"}
	for _, path := range []string{"f/../x", "f/..", "f//etc/x", "f/a/../../x"} {
		leaf := store.Entry{Path: path, URI: "any.tacozip", Offset: 0, Size: 1}
		if err := extractTo(t.Context(), out, &openers.Files{}, folder, leaf); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", path, err)
		}
	}
}
