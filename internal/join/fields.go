package join

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/internal/num"
)

// Separator joins the values of several names in a key: no value has a slash.
const Separator = "/"

// Field has the files of a field by their keys.
type Field struct {
	Keys []string // of each file: the values of its names
	Rows []int64  // of the files in a list of all files, unless they are Beside
	// Names has the numbers of the names in its keys, counted among the names of a sample; nil: all of them.
	Names    []int
	Optional bool // samples may lack a file
	Beside   bool // its files make no samples
	// Of has for each leading file the number of the file of its sample, -1 without one.
	Of []int32

	index *Names
}

// Index makes the index of the keys. It returns a key that two files have, or "".
func (f *Field) Index() (twice string) {
	if f.index == nil {
		f.index = New(f.Keys)
	}
	return append(f.index.twice, "")[0]
}

// find returns the number of the file of a sample, -1 without one.
func (f *Field) find(sample string) int32 {
	if f.Names != nil {
		sample = strings.Join(num.Pick(strings.Split(sample, Separator), f.Names), Separator)
	}
	if i, ok := f.index.Find(sample); ok {
		return i
	}
	return -1
}

// row returns the row of the file of sample k, -1 without one.
func (f *Field) row(k int32) int64 {
	if i := f.Of[k]; i >= 0 {
		return f.Rows[i]
	}
	return -1
}

// SampleRows returns the rows of the files of samples. Without one it is -1 or, of files Beside, the row behind all
// others.
func (f *Field) SampleRows(samples []int32) []int64 {
	rows := make([]int64, len(samples))
	for i, k := range samples {
		if rows[i] = f.row(k); rows[i] < 0 && f.Beside {
			rows[i] = int64(len(f.Keys))
		}
	}
	return rows
}

// Fields are the fields of samples, each a file of the leading field with the files that have its key in the others.
type Fields struct {
	All  []*Field // nil: it has no files
	Lead int      // the field whose files are samples: it has all names
	// Samples are the numbers of the leading files that are samples.
	Samples []int32

	Incomplete int // samples that lack a file
	Missing    int // files that are not there
	// The first of these: the field that lacks it, the key of the sample, and the field whose names that has.
	Where, From int
	Key         string

	incomplete []bool // for each leading file
}

// followers yields the fields that have files, but for the leading one.
func (p *Fields) followers() iter.Seq2[int, *Field] {
	return func(yield func(int, *Field) bool) {
		for i, f := range p.All {
			if f != nil && i != p.Lead && !yield(i, f) {
				return
			}
		}
	}
}

// Join finds the files of all samples. A leading file is no sample if it lacks files of its own and is a file of
// another sample: with {id}.tif and {id}_mask.tif, a_mask.tif is the mask of a, and not an image whose mask would be
// a_mask_mask.tif.
func (p *Fields) Join() {
	lead := p.All[p.Lead]
	p.Samples = num.Range[int32](0, len(lead.Keys))
	lacks := make([]bool, len(lead.Keys))
	for _, f := range p.followers() {
		f.Of = make([]int32, len(lead.Keys))
		for k, key := range lead.Keys {
			f.Of[k] = f.find(key)
			lacks[k] = lacks[k] || f.Of[k] < 0
		}
	}
	if !slices.Contains(lacks, true) {
		return
	}
	owned, _ := p.owned()
	p.Samples = slices.DeleteFunc(p.Samples, func(k int32) bool {
		// A file that is also the file of its own sample is a sample: a scene of one date that others refer to.
		isOwn := false
		for _, f := range p.followers() {
			isOwn = isOwn || f.Names != nil && !f.Beside && f.row(k) == lead.Rows[k]
		}
		return lacks[k] && owned[lead.Rows[k]] && !isOwn
	})
}

// owned returns the rows of the files that samples have beside their leading files, and the rows of these samples.
func (p *Fields) owned() (files, samples map[int64]bool) {
	files, samples = map[int64]bool{}, map[int64]bool{}
	for _, f := range p.followers() {
		for _, k := range p.Samples {
			lead := p.All[p.Lead].Rows[k]
			if row := f.row(k); !f.Beside && row >= 0 && row != lead {
				files[row], samples[lead] = true, true
			}
		}
	}
	return files, samples
}

// Count counts the files that samples lack, and the files that belong to no sample, which lack the leading one.
func (p *Fields) Count() {
	lead, used := p.All[p.Lead], make([][]bool, len(p.All))
	p.incomplete = make([]bool, len(lead.Keys))
	further := false // files of no sample
	for i, f := range p.followers() {
		used[i] = make([]bool, len(f.Keys))
		for _, k := range p.Samples {
			if number := f.Of[k]; number >= 0 {
				used[i][number] = true
			} else if !f.Optional {
				p.note(i, lead.Keys[k], p.Lead)
				p.incomplete[k] = true
			}
		}
		further = further || !f.Beside && slices.Contains(used[i], false)
	}
	for _, lacks := range p.incomplete {
		if lacks {
			p.Incomplete++
		}
	}
	if further {
		p.countFurther(used)
	}
}

// Drop leaves out the samples that Count found to lack a file.
func (p *Fields) Drop() {
	p.Samples = slices.DeleteFunc(p.Samples, func(k int32) bool { return p.incomplete[k] })
}

// countFurther counts the files that lack for the files of no sample. used says which files have one.
func (p *Fields) countFurther(used [][]bool) {
	owned, samples := p.owned()
	seen := map[string]bool{}
	for i, f := range p.followers() {
		for number := 0; number < len(f.Keys) && !f.Beside; number++ {
			key, row := f.Keys[number], f.Rows[number]
			if used[i][number] || owned[row] || samples[row] {
				continue
			}
			if !seen[key] {
				p.Incomplete++
			}
			if seen[key] = true; f.Names != nil {
				p.note(p.Lead, key, i)
				continue
			}
			p.note(p.Lead, key, p.Lead)
			for j, other := range p.followers() {
				if number := other.find(key); number >= 0 {
					used[j][number] = true
				} else if !other.Optional {
					p.note(j, key, p.Lead)
				}
			}
		}
	}
}

// note counts a missing file of a field. The key has the names of the field from.
func (p *Fields) note(field int, key string, from int) {
	if p.Missing++; p.Missing == 1 || cmp.Or(cmp.Compare(field, p.Where), cmp.Compare(key, p.Key)) < 0 {
		p.Where, p.Key, p.From = field, key, from
	}
}
