package formats_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestPagesOfStores: each store whose files have a name of their own has a page, which lists their extensions.
func TestPagesOfStores(t *testing.T) {
	kinds := store.Find[store.Files]()
	for _, kind := range kinds {
		format := kind.Format()
		if format.Class != magic.Store { // a picture, too
			continue
		}
		page := string(testfile.Read(t, filepath.Join("../../docs", format.Name+".md")))
		for _, end := range format.Ends {
			if !strings.Contains(page, "`"+end+"`") {
				t.Errorf("the page of %s does not say %s", format.Name, end)
			}
		}
	}
	if len(kinds) < 2 {
		t.Errorf("%d kinds", len(kinds))
	}
}
