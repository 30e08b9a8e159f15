package columns

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// Summed returns the names of the columns of a catalog whose digests its footer has, in order.
func (t *Table) Summed() []string { return slices.Sorted(maps.Keys(t.sums)) }

// sumsOf returns the digests that the footer of a catalog has of its columns, nil of another file.
func sumsOf(f *File) (map[string]*column.Sums, error) {
	text := f.Meta[layout.SumsKey]
	if text == "" || !strings.HasPrefix(f.Creator, layout.Creator+" ") {
		return nil, nil
	}
	var stored layout.Sums
	bad := func() error { return fault.New(fault.Corrupt, "footer", "%s is not valid", layout.SumsKey) }
	if json.Unmarshal([]byte(text), &stored) != nil || stored.Rows != f.Rows {
		return nil, bad()
	}
	sums := make(map[string]*column.Sums, len(stored.Columns))
	for name, text := range stored.Columns {
		sum := &column.Sums{OfSizes: text.Sizes != ""}
		if !ofHex(&sum.Values, text.Values) || sum.OfSizes && !ofHex(&sum.Sizes, text.Sizes) {
			return nil, bad()
		}
		if text.Folder != nil {
			sum.Below, sum.Folder, sum.Repeats = true, []byte(*text.Folder), text.Repeats
		}
		sums[name] = sum
	}
	return sums, nil
}

// ofHex sets a digest to what hexadecimal digits say, and reports whether they are one.
func ofHex(to *[16]byte, text string) bool {
	digits, err := hex.DecodeString(text)
	return err == nil && copy(to[:], digits) == len(to) && len(digits) == len(to)
}
