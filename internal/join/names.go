// Package join finds the samples that names mean: the ids of a list, the keys of a table, the images of a file of
// labels, the files of a field.
//
// One rule holds for all of them. A name means the sample that it is equal to, or whose path ends in it from a slash
// on; then, with or without the ending of an image; then, as a whole number, the one with zeros in front. Names that
// were written elsewhere are paths of another machine: see Elsewhere.
package join

import (
	"cmp"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
)

// Names are the names of a list, numbered from 0. Empty ones mean nothing.
type Names struct {
	list  []string
	apart bool // the last part of a name suffices
	exact *index
	loose func() *index
	twice []string // the first names that come several times, up to four
}

// Near says how near a name is to a sample: larger is nearer, and 0 is not the sample.
type Near uint32

// A Near has the spelling in its highest bits, then the number of the last parts in common, then what is equal.
const (
	number  Near = 1 << 28 // it has the number, without the zeros in front
	stem    Near = 2 << 28 // it has the name, but for the ending of an image
	written Near = 3 << 28
	part    Near = 1 << 2
	isText  Near = 1 // the name is the whole text of the sample, such as a path
	isKey   Near = 2 // it is the key of the sample

	maxParts = 1 << 20
)

// Match is a name that means a sample.
type Match struct {
	Name int32
	Near Near
	// Several says that another name is as near, or has more of the last parts in common and is not as near otherwise.
	Several bool

	end   string // that both have
	other int32  // 1 more than the number of the other name, 0 if end tells it
}

// New returns names. It keeps the list.
func New(list []string) *Names { return newNames(list, 0, false) }

// Apart returns names whose last part suffices, whatever the folders: a sample is the one that has most of the
// last parts of its path in common with the name.
func Apart(list []string) *Names { return newNames(list, 0, true) }

func newNames(list []string, skip int, apart bool) *Names {
	ends := len(list)
	for _, name := range list {
		if apart {
			ends += min(strings.Count(name, "/")+strings.Count(name, `\`), maxEnds)
		}
	}
	asIs := func(name string) string { return name }
	n := &Names{list: list, apart: apart, exact: newIndex(list, skip, ends, asIs)}
	for i, name := range list {
		if name == "" {
			continue
		}
		if !n.put(n.exact, int32(i), name) && len(n.twice) < 4 && !slices.Contains(n.twice, name) {
			n.twice = append(n.twice, name)
		}
	}
	n.loose = sync.OnceValue(func() *index {
		loose := newIndex(list, skip, ends, looseOf)
		for i, name := range list {
			if text := looseOf(name); apart || text != name { // at looks for the others in exact
				n.put(loose, int32(i), text)
			}
		}
		return loose
	})
	return n
}

// looseOf returns a name without the ending of an image, with slashes in place of the separators of Windows.
func looseOf(name string) string { return magic.WithoutEnding(strings.ReplaceAll(name, `\`, "/")) }

// maxEnds bounds the parts of a name that are compared alone, because each takes memory. A name that is the whole end
// of a path has more.
const maxEnds = 8

// put adds a name, in a spelling, to an index: from the shared folders on, or with apart each of its ends. It returns
// false if another name has the same spelling.
func (n *Names) put(x *index, i int32, text string) (first bool) {
	first = x.put(text[min(x.skip, len(text)):], i, true)
	for parts, begin := 0, len(text); n.apart && parts < maxEnds; parts++ {
		if begin = strings.LastIndexByte(text[:begin], '/'); begin < 0 {
			break
		}
		x.put(text[begin+1:], i, false)
	}
	return first
}

// Unique returns an error, which ends in another way, if a key comes several times in a column of a table.
func (n *Names) Unique(column, way string) error {
	if len(n.twice) == 0 {
		return nil
	}
	return fault.New(fault.Corrupt, "column "+column, "several rows have the key %q%s: a table has one row for each "+
		"key%s", n.twice[:min(3, len(n.twice))], []string{"", ", and there are more"}[len(n.twice)/4], way)
}

// Find returns the number of the name that is equal to a text, the first of several.
func (n *Names) Find(text string) (i int32, ok bool) {
	s, ok := n.exact.get(text)
	return s.name(), ok && n.list[s.name()] == text
}

// All yields the names that mean a sample, by its key and a text, which is the key or a path of it: those in which the
// text ends, the longest first.
func (n *Names) All(key, text string) iter.Seq[Match] {
	return func(yield func(Match) bool) {
		loose := magic.WithoutEnding(text)
		for end, found := text, true; found; _, end, found = strings.Cut(end, "/") {
			if m, ok := n.at(end, loose[len(text)-len(end):]); ok && !yield(n.measured(m, key, text, loose)) {
				return
			}
		}
	}
}

// at returns the name that an end of a text has, in the nearest spelling. loose is the end without the ending of an
// image.
func (n *Names) at(end, loose string) (Match, bool) {
	if s, ok := n.exact.get(end); ok {
		return Match{Name: s.name(), Near: written, Several: s&several != 0, end: end}, true
	}
	var s slot
	ok := false
	if !n.apart {
		s, ok = n.exact.get(loose)
	}
	if !ok {
		s, ok = n.loose().get(loose)
	}
	if ok {
		return Match{Name: s.name(), Near: stem, Several: s&several != 0, end: loose}, true
	}
	short := strings.TrimLeft(loose, "0")
	if short == loose || strings.Trim(short, "0123456789") != "" {
		return Match{}, false
	}
	s, ok = n.exact.get(cmp.Or(short, "0"))
	return Match{Name: s.name(), Near: number, Several: s&several != 0, end: short}, ok
}

// measured returns a match with what the name and the text have in common.
func (n *Names) measured(m Match, key, text, loose string) Match {
	name := n.list[m.Name]
	switch m.Near {
	case written:
		if name[min(n.exact.skip, len(name)):] == key {
			m.Near |= isKey
		} else if name == text {
			m.Near |= isText
		}
	case stem:
		name, text = looseOf(name), loose
	}
	m.Near += part * Near(min(common(name, text), maxParts))
	return m
}

// parts returns how many of their last parts the name and the sample have in common.
func (m Match) parts() Near { return m.Near % number / part }

// common returns how many of their last parts two paths have in common.
func common(a, b string) (parts int) {
	for {
		i, j := strings.LastIndexByte(a, '/'), strings.LastIndexByte(b, '/')
		if a[i+1:] != b[j+1:] {
			return parts
		}
		if parts++; i < 0 || j < 0 {
			return parts
		}
		a, b = a[:i], b[:j]
	}
}

// Best returns the name that is nearest to a sample.
func (n *Names) Best(key, text string) (best Match, ok bool) {
	for m := range n.All(key, text) {
		if m.Near > best.Near {
			if other := best; m.parts() < other.parts() && m.Near&(isKey|isText) == 0 {
				m.Several, m.other = true, other.Name+1
			}
			best = m
		}
		if best.Near >= written { // shorter ends are not nearer
			break
		}
	}
	return best, best.Near > 0
}

// Several returns the error about a match with Several. way says what to do.
func (n *Names) Several(m Match, key, part, way string) error {
	other := int(m.other) - 1
	if other < 0 {
		other = slices.IndexFunc(n.list, func(name string) bool {
			return name != n.list[m.Name] && (endsIn(name, m.end) || endsIn(looseOf(name), m.end))
		})
	}
	return fault.New(fault.Corrupt, part, "%q and %q are both the sample %q: %s", n.list[m.Name], n.list[max(0, other)],
		key, way)
}

// Elsewhere returns the names as paths of another machine: with slashes in place of the separators of Windows, and
// without the folders that all names share, as long as each keeps one. So val/1 does not become train/1. It returns nil
// if there are no names, or if two become the same.
func (n *Names) Elsewhere() *Names {
	list, shared, first := make([]string, len(n.list)), "", true
	for i, name := range n.list {
		if name == "" {
			continue
		}
		list[i] = path.Clean(strings.ReplaceAll(name, `\`, "/"))
		folders := list[i][:strings.LastIndexByte(list[i], '/')+1]
		folders = folders[:strings.LastIndexByte(strings.TrimSuffix(folders, "/"), '/')+1] // but for the last
		if first {
			shared, first = folders, false
		}
		for !strings.HasPrefix(folders, shared) {
			shared = shared[:strings.LastIndexByte(shared[:len(shared)-1], '/')+1]
		}
	}
	out := newNames(list, len(shared), false)
	if first || len(out.twice) > 0 && len(n.twice) == 0 {
		return nil
	}
	return out
}
