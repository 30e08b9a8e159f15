package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/store/catalog"
)

// TestMarksOfTimes promises that a local file with another time has other marks and the same fingerprint, and that a
// copy with the same times in another directory has the same marks.
func TestMarksOfTimes(t *testing.T) {
	picture, err := os.ReadFile("../../testdata/demo/coast.tif")
	if err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1700000000, 5)
	open := func(times ...time.Time) (marks, fingerprint string) {
		dir := t.TempDir()
		for i, changed := range times {
			name := filepath.Join(dir, string(rune('a'+i))+".tif")
			if err := os.WriteFile(name, picture, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(name, changed, changed); err != nil {
				t.Fatal(err)
			}
		}
		table, err := catalog.Open(t.Context(), dir, nil, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		return table.Marks(), table.Fingerprint()
	}
	one, print := open(when, when)
	same, _ := open(when, when)
	other, otherPrint := open(when, when.Add(time.Second))
	if one != same || one == other || print != otherPrint || !strings.HasPrefix(one, "mtime:") {
		t.Errorf("%s, %s, %s; fingerprints %s, %s", one, same, other, print, otherPrint)
	}
}
