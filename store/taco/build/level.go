package build

import (
	"strconv"

	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// content says where the bytes of a file are.
type content struct {
	file  string
	bytes []byte
	entry *taco.Entry
	// padding marks a placeholder. Its id alone does not say so: in TACO 3 and Tortillas any sample may have it.
	padding bool
}

// placeholder is the content of padding.
var placeholder = content{bytes: []byte{}, padding: true}

// level is the rows of one level, in the order of their parents.
type level struct {
	ids     []string
	folders []bool
	parents []int32 // in the level above; at level 0 the row itself, as the original writers have it
	content []content
	// first has, for each row, the row of the next level that is its first child, and one more at the end. It
	// is nil at the deepest level.
	first   []int32
	columns *tables.Table
	spans   []span // of a ZIP, where the bytes of each row are
}

var int64Type = tables.Type{Kind: tables.Int64, Bits: 64}

// add adds a row to level k.
func (l *level) add(k int, row, parent int32, id string, folder bool, c content) {
	if k == 0 {
		parent = row
	}
	l.ids, l.folders = append(l.ids, id), append(l.folders, folder)
	l.parents, l.content = append(l.parents, parent), append(l.content, c)
}

// padding reports whether a row is a placeholder.
func (l *level) padding(row int) bool { return l.content[row].padding }

// kindName returns the type of a sample in the tables.
func kindName(folder bool) string {
	if folder {
		return "FOLDER"
	}
	return "FILE"
}

// path returns the ids from level 0 down to a row, joined by "/".
func path(levels []*level, k, row int) string {
	id := levels[k].ids[row]
	for ; k > 0; k-- {
		row = int(levels[k].parents[row])
		id = levels[k-1].ids[row] + "/" + id
	}
	return id
}

func levelName(k int) string { return "level" + strconv.Itoa(k) }
