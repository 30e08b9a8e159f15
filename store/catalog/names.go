package catalog

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// NamesColumn is the column of a table in which each raster has the names of its bands, as NamesText writes them.
const NamesColumn = layout.Names

// NamesParser parses the texts of NamesText. It keeps the last one, because most files of a table have the same names.
// Its zero value is ready, and safe for concurrent use.
type NamesParser struct{ last atomic.Pointer[parsedNames] }

type parsedNames struct {
	text  string
	names []string
}

// names returns the names of the bands of the row's file, one for each, or nil if the catalog does not say them.
func (r *rowReader) names(f *field, bands int) (names []string) {
	if cell := r.cell(f.columns[layout.Names]); len(cell.Text) > 0 {
		names, r.err = f.names.Parse(r.row, cell.Text, bands)
	}
	return names
}

// Parse returns the names in the text of a row, one for each band: others are an error of kind corrupt.
func (n *NamesParser) Parse(row int64, text []byte, bands int) ([]string, error) {
	p := n.last.Load()
	if p == nil || p.text != string(text) {
		p = &parsedNames{text: string(text)}
		if err := json.Unmarshal(text, &p.names); err != nil {
			return nil, corruptNames(row, "%.60q is no JSON array of strings", text)
		}
		n.last.Store(p)
	}
	if len(p.names) != bands { // readers look for a band by its number
		return nil, corruptNames(row, "%d names of %d bands", len(p.names), bands)
	}
	return p.names, nil
}

func corruptNames(row int64, format string, args ...any) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("names of bands in row %d", row), fault.NoOffset, format, args...)
}

// NamesText returns names of bands as a catalog has them, a JSON array, or "" for no names.
func NamesText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	data, err := json.Marshal(names)
	if err != nil {
		panic("catalog: strings have no JSON: " + err.Error())
	}
	return string(data)
}
