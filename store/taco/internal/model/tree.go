package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/store"
)

// Tree is the tree that all samples of level 0 have, as taco:pit_schema declares it.
type Tree struct {
	Root struct {
		N    int64  `json:"n"`
		Type string `json:"type"`
	} `json:"root"`
	// Hierarchy has for each level ("1", "2", …) the folders of the level above, each with its children.
	Hierarchy map[string][]TreeFolder `json:"hierarchy"`
}

// TreeFolder describes the children of the folders at one place of the tree. N counts the rows of all of them.
type TreeFolder struct {
	N    int64    `json:"n"`
	Type []string `json:"type"`
	ID   []string `json:"id"`
}

// Levels returns the number of levels of the tree, from the hierarchy.
func (t *Tree) Levels() int {
	n := 1
	for t.Hierarchy[strconv.Itoa(n)] != nil {
		n++
	}
	return n
}

// Same reports whether two trees have the same types and ids everywhere, but for placeholders. Counts may differ.
func (t *Tree) Same(o *Tree) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Root.Type == o.Root.Type && maps.EqualFunc(t.Hierarchy, o.Hierarchy, SameFolders)
}

// SameFolders is Same for the folders above one level.
func SameFolders(a, b []TreeFolder) bool {
	return slices.EqualFunc(a, b, func(a, b TreeFolder) bool {
		return slices.Equal(a.Type, b.Type) && slices.EqualFunc(a.ID, b.ID, SameID)
	})
}

// Node tells of a row of a level its id, whether it is a folder, and its children in the next level.
type Node func(level, row int) (id string, folder bool, below []int32)

// Sample returns the first row of level 0, which has n rows, that is not a placeholder, or the first of all.
func (node Node) Sample(n int) int {
	for row := range n {
		if id, _, _ := node(0, row); !IsPadding(id) {
			return row
		}
	}
	return 0
}

// Apart says how the tree below row b of a level differs from that below row a, or "". The ids of samples differ, and
// a placeholder stands for any file.
func (node Node) Apart(level, a, b int) string {
	first, folder, children := node(level, a)
	id, other, below := node(level, b)
	switch {
	case level > 0 && !SameID(first, id):
		return fmt.Sprintf("it has %q in place of %q", id, first)
	case folder != other:
		return fmt.Sprintf("%q is a %s in place of a %s", id, store.EntryType(other), store.EntryType(folder))
	case len(children) != len(below):
		return fmt.Sprintf("%q has %d children in place of %d", id, len(below), len(children))
	}
	for i := range below {
		if what := node.Apart(level+1, int(children[i]), int(below[i])); what != "" {
			return what
		}
	}
	return ""
}

// Tree returns the tree of samples that are alike, whose levels have these numbers of rows, in the order of their
// parents.
func (node Node) Tree(rows []int) *Tree {
	t := &Tree{Hierarchy: map[string][]TreeFolder{}}
	if rows[0] == 0 {
		return t
	}
	first := node.Sample(rows[0])
	_, folder, _ := node(0, first)
	t.Root.N, t.Root.Type = int64(rows[0]), store.EntryType(folder)
	// All folders at one place of the tree have the same children, so a level has the rows of the first folder as
	// often as there are folders at the top.
	times := 0
	for row := range rows[0] {
		if _, folder, _ := node(0, row); folder {
			times++
		}
	}
	folders := []int32{int32(first)}
	for depth := 1; depth < len(rows); depth++ {
		var next []int32
		for _, row := range folders {
			_, is, below := node(depth-1, int(row))
			if !is {
				continue
			}
			folder := TreeFolder{N: int64(times * len(below))}
			for _, child := range below {
				id, is, _ := node(depth, int(child))
				// In place of a placeholder, what another sample has there.
				for other := int(child); IsPadding(id) && other < rows[depth]; other += max(1, rows[depth]/times) {
					id, _, _ = node(depth, other)
				}
				folder.Type, folder.ID = append(folder.Type, store.EntryType(is)), append(folder.ID, id)
				if is {
					next = append(next, child)
				}
			}
			t.Hierarchy[strconv.Itoa(depth)] = append(t.Hierarchy[strconv.Itoa(depth)], folder)
		}
		folders = next
	}
	return t
}

// PadPrefix begins the ids of placeholders, which fill up a folder of TACO 2.
const PadPrefix = "__TACOPAD__"

// IsPadding reports whether a placeholder has this id.
func IsPadding(id string) bool {
	n, ok := strings.CutPrefix(id, PadPrefix)
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// SameID reports whether two samples can be at one place of a tree: a placeholder can be at any.
func SameID(a, b string) bool { return a == b || IsPadding(a) || IsPadding(b) }
