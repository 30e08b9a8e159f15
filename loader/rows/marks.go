package rows

import (
	"context"
	"strings"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// JoinMarks returns the marks of several tables as one text: "etag:" or "mtime:" and the marks of each, or "" unless
// all have marks of one kind.
func JoinMarks(of []string) string {
	var all []string
	kind := ""
	for i, one := range of {
		mine, marks, _ := strings.Cut(one, ":")
		if i == 0 {
			kind = mine
		}
		if mine == "" || mine != kind {
			return ""
		}
		all = append(all, marks)
	}
	return kind + ":" + strings.Join(all, ",")
}

// ofFolder reports whether a kind is of stores that are folders. To open a remote one as a file costs a request, which
// fails.
func ofFolder(kind store.Kind) bool {
	if _, isArrays := kind.(store.Arrays); !isArrays {
		return false
	}
	files, ok := kind.(store.Files)
	return !ok || files.Format().Folder
}

// mark sets the marks of a table that is one file, such as a container or an HDF5 file, if it has none.
func (t *Table) mark(ctx context.Context, o source.Opener, uri string) {
	if t.Marks != "" {
		return
	}
	file, err := o.Open(ctx, source.FileOf(uri))
	if err != nil { // a folder, or a table of several files
		return
	}
	t.Marks = source.Marks(file)
	_ = file.Close() // it was only opened
}
