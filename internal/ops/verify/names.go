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

// nameLists has the lists of names that rasters give their bands, each with the first raster that has it. Rasters with
// other numbers of bands or other dtypes, such as images and their masks, are not compared.
type nameLists struct {
	lists []nameList
}

// nameList is the names that a raster gives its bands.
type nameList struct {
	Shape  string   `json:"shape"` // the number of bands and the dtype
	Names  []string `json:"names"`
	File   int      `json:"file"` // its number
	Row    int64    `json:"row"`  // in a catalog or container, or -1
	Raster string   `json:"raster"`
}

func (n *nameList) compare(o nameList) int {
	return cmp.Or(cmp.Compare(n.File, o.File), cmp.Compare(n.Row, o.Row))
}

// add takes the names of a raster in row of a file, or -1. Rasters may come in any order.
func (l *nameLists) add(file int, row int64, a *catalog.Asset) {
	if a.Names != nil {
		l.insert(nameList{fmt.Sprint(a.Index.StepBands(), a.Index.DType), a.Names, file, row, a.Name()})
	}
}

// insert adds a list, unless an earlier raster has it.
func (l *nameLists) insert(list nameList) {
	place := slices.IndexFunc(l.lists, func(o nameList) bool {
		return o.Shape == list.Shape && slices.Equal(o.Names, list.Names)
	})
	if place >= 0 {
		if list.compare(l.lists[place]) >= 0 {
			return
		}
		l.lists = slices.Delete(l.lists, place, place+1)
	}
	place, _ = slices.BinarySearchFunc(l.lists, list, func(o, one nameList) int { return o.compare(one) })
	// The last ones make room, so that the same stay in whichever order rasters come.
	l.lists = slices.Insert(l.lists, place, list)
	l.lists = l.lists[:min(len(l.lists), maxNameLists)]
}

// notes returns a note for each list that contradicts the first one of its rasters.
func (l *nameLists) notes() (out []string) {
	for i, list := range l.lists {
		first := l.lists[slices.IndexFunc(l.lists[:i+1], func(o nameList) bool { return o.Shape == list.Shape })]
		if text := pixels.Disagreement(list.Names, first.Raster, first.Names); text != "" {
			out = append(out, list.Raster+": "+text)
		}
	}
	return out
}
