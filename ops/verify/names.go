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

type nameList struct {
	shape, text string
	names       []string
	file        int
	row         int64
	raster      string
}

func (n *nameList) compare(o nameList) int {
	return cmp.Or(cmp.Compare(n.file, o.file), cmp.Compare(n.row, o.row))
}

// add takes the names of a raster in row of a file, or -1. Rasters may come in any order.
func (l *nameLists) add(file int, row int64, a *catalog.Asset) {
	if a.Names == nil {
		return
	}
	list := nameList{fmt.Sprint(a.Index.StepBands(), a.Index.DType), catalog.NamesText(a.Names), a.Names, file, row,
		a.Name()}
	k := slices.IndexFunc(l.lists, func(o nameList) bool { return o.shape == list.shape && o.text == list.text })
	if k >= 0 {
		if list.compare(l.lists[k]) >= 0 {
			return
		}
		l.lists = slices.Delete(l.lists, k, k+1)
	}
	k, _ = slices.BinarySearchFunc(l.lists, list, func(o, one nameList) int { return o.compare(one) })
	// The last ones make room, so that the same stay in whichever order rasters come.
	l.lists = slices.Insert(l.lists, k, list)
	l.lists = l.lists[:min(len(l.lists), maxNameLists)]
}

// notes returns a note for each list that contradicts the first one of its rasters.
func (l *nameLists) notes() (out []string) {
	for i, list := range l.lists {
		first := l.lists[slices.IndexFunc(l.lists[:i+1], func(o nameList) bool { return o.shape == list.shape })]
		if text := pixels.Disagreement(list.names, first.raster, first.names); text != "" {
			out = append(out, list.raster+": "+text)
		}
	}
	return out
}
