package columns

import "github.com/chaski-eo/chaski/format/tables"

// OfFiles returns the table of so many listed files. It stores no columns: whoever lists them makes columns of their
// paths.
func OfFiles(n int64) *Table {
	return &Table{memory: tables.New(int(n), nil, nil), begins: []int64{n}}
}
