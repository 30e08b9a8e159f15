package cli

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestTablesByTheirNames promises that info tells the rows and columns of CSV files, and that index writes a catalog
// into a file whose name says so.
func TestTablesByTheirNames(t *testing.T) {
	workplace(t)
	for name, text := range map[string]string{"a.csv": "path,label,score\nx,1,0.5\ny,2,1\n",
		"a.tsv": "path\tlabel\tscore\nx\t1\t0.5\ny\t2\t1\n"} {
		testfile.Write(t, name, []byte(text))
		r := chaski(t.Context(), "info", name)
		fields := strings.Join(strings.Fields(r.out), " ")
		want := "rows: 2 columns: - {name: path, type: text} - {name: label, type: int64} " +
			"- {name: score, type: float64}"
		if !strings.HasSuffix(fields, want) {
			t.Errorf("info %s: exit %d: %s%s; want %q", name, r.code, r.out, r.err, want)
		}
	}
	if r := chaski(t.Context(), "index", "-o", "new.parquet", "chips"); r.code != 0 {
		t.Fatalf("index: exit %d: %s", r.code, r.err)
	}
	if got := catalogRows(t, "new.parquet"); got != 3 {
		t.Errorf("%d rows, want 3", got)
	}
	if r := chaski(t.Context(), "index", "--format", "hex", "-o", "hex.parquet", "chip.tif"); r.code != 2 {
		t.Errorf("text under the name of a table: exit %d: %s", r.code, r.err)
	}
}
