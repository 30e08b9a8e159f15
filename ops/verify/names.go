package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxNameLists bounds the lists of names that are kept. Files of one dataset have a few.
const maxNameLists = 64

// nameLists has the lists of names that rasters give their bands, each with the first raster that has it, and the first
// raster of each dtype. Rasters with other numbers of bands, such as images and their masks, are not compared, nor are
// names of other dtypes.
type nameLists struct {
	lists []nameList
}

// nameList is the names that a raster gives its bands.
type nameList struct {
	Bands  int      `json:"bands"`
	DType  string   `json:"dtype"`
	Names  []string `json:"names"` // nil if the bands have none
	File   int      `json:"file"`  // its number
	Row    int64    `json:"row"`   // in a catalog or container, or -1
	Raster string   `json:"raster"`
}

func (n *nameList) compare(o nameList) int {
	return cmp.Or(cmp.Compare(n.File, o.File), cmp.Compare(n.Row, o.Row))
}

// add takes the names of a raster in row of a file, or -1. Rasters may come in any order.
func (l *nameLists) add(file int, row int64, a *catalog.Asset) {
	l.insert(nameList{a.Index.StepBands(), a.Index.DType.String(), a.Names, file, row, a.Name()})
}

// insert adds a list, unless an earlier raster has it.
func (l *nameLists) insert(list nameList) {
	place := slices.IndexFunc(l.lists, func(o nameList) bool {
		return o.Bands == list.Bands && o.DType == list.DType && slices.Equal(o.Names, list.Names)
	})
	if place >= 0 {
		if list.compare(l.lists[place]) >= 0 {
			return
		}
		l.lists = slices.Delete(l.lists, place, place+1)
	}
	place, _ = slices.BinarySearchFunc(l.lists, list, func(o, one nameList) int { return o.compare(one) })
	// The last ones make room, so the same stay in whichever order rasters come.
	l.lists = slices.Insert(l.lists, place, list)
	l.lists = l.lists[:min(len(l.lists), maxNameLists)]
}

// notes returns a note for each list that contradicts the first one of its rasters, and for each dtype that the first
// raster of as many bands has not.
func (l *nameLists) notes() (out []string) {
	for i, list := range l.lists {
		before := l.lists[:i]
		first := func(like func(o nameList) bool) *nameList {
			place := slices.IndexFunc(before, func(o nameList) bool { return o.Bands == list.Bands && like(o) })
			if place < 0 {
				return nil
			}
			return &before[place]
		}
		named := first(func(o nameList) bool { return o.DType == list.DType && o.Names != nil })
		if named != nil && list.Names != nil {
			if text := pixels.Disagreement(list.Names, named.Raster, named.Names); text != "" {
				out = append(out, list.Raster+": "+text)
			}
		}
		other := first(func(nameList) bool { return true })
		known := first(func(o nameList) bool { return o.DType == list.DType })
		if other != nil && known == nil {
			out = append(out, fmt.Sprintf("%s: its dtype is %s, and %s has %s: a field of both needs another dtype "+
				`than "native"`, list.Raster, list.DType, other.Raster, other.DType))
		}
	}
	return out
}
