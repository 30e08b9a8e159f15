package tables_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestMeta finds an entry of the metadata although another one is too large to be kept.
func TestMeta(t *testing.T) {
	type row struct{ A int64 }
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.KeyValueMetadata("big", strings.Repeat("x", 8<<20)),
		parquet.KeyValueMetadata("pointer", "NULL"))
	if _, err := w.Write([]row{{1}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tab, err := tables.Read(t.Context(), &corpus.Mem{B: b.Bytes()}, 0, int64(b.Len()), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := tab.Meta("pointer"); v != "NULL" || !ok {
		t.Errorf("%q, %t", v, ok)
	}
	if _, ok := tab.Meta("none"); ok {
		t.Error("an entry that is not there")
	}
}
