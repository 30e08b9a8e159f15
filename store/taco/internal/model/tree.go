package model

import (
	"slices"
	"strconv"
	"strings"
)

// Tree is the tree that all samples of level 0 have, as taco:pit_schema declares it.
type Tree struct {
	Root struct {
		N    int64  `json:"n"`
		Type string `json:"type"`
	} `json:"root"`
	// Hierarchy has for each level ("1", "2", …) the folders of the level above, each with its
	// children.
	Hierarchy map[string][]TreeFolder `json:"hierarchy"`
}

// TreeFolder describes the children of the folders at one place of the tree. N counts the rows of
// all of them.
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
	if t.Root.Type != o.Root.Type || len(t.Hierarchy) != len(o.Hierarchy) {
		return false
	}
	for level, folders := range t.Hierarchy {
		if !slices.EqualFunc(folders, o.Hierarchy[level], func(a, b TreeFolder) bool {
			return slices.Equal(a.Type, b.Type) && slices.EqualFunc(a.ID, b.ID, SameID)
		}) {
			return false
		}
	}
	return true
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
