package join

import (
	"iter"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Join says which samples the names of a list mean. A name means the samples that it is nearest to, which have one key.
type Join struct {
	*Names
	// Nearest says of each name how near it is to the nearest sample.
	Nearest []Near
	// Example is the key of the first sample, for errors.
	Example string

	hits     []hit
	first    []string         // of each name the key of the nearest sample
	other    map[int32]string // the key of another sample that a name is as near to
	doubtful Match            // with Several
	sample   string           // that it means
}

// hit is a sample that a name may mean.
type hit struct {
	row, name int32
	near      Near
}

// Of returns a join of names with the samples that it is given.
func Of(names *Names) *Join {
	return &Join{Names: names, Nearest: make([]Near, len(names.list)), first: make([]string, len(names.list)),
		other: map[int32]string{}}
}

// AddAll adds a sample with all names that mean it, by its key and a text.
func (j *Join) AddAll(row int64, key, text string) {
	if row == 0 && j.Example == "" {
		j.Example = key
	}
	for m := range j.All(key, text) {
		j.Add(row, key, m)
	}
}

// AddBest adds a sample with the name that is nearest to it, if it has one.
func (j *Join) AddBest(row int64, key, text string) (ok bool) {
	m, ok := j.Best(key, text)
	if m.Several && !j.doubtful.Several {
		j.doubtful, j.sample = m, key
	}
	if ok {
		j.Add(row, key, m)
	}
	return ok
}

// Add adds a sample with a name that means it.
func (j *Join) Add(row int64, key string, m Match) {
	switch i := m.Name; {
	case m.Near > j.Nearest[i]:
		j.Nearest[i], j.first[i] = m.Near, key
		delete(j.other, i)
	case m.Near == j.Nearest[i] && key != j.first[i]:
		j.other[i] = key
	}
	j.hits = append(j.hits, hit{int32(row), m.Name, m.Near})
}

// None reports whether the join is empty: all names failed to match.
func (j *Join) None() bool { return len(j.hits) == 0 }

// Matches yields the rows of the samples, and the names that mean them.
func (j *Join) Matches() iter.Seq2[int32, int32] {
	return func(yield func(row, name int32) bool) {
		for _, h := range j.hits {
			if h.near == j.Nearest[h.name] && !yield(h.row, h.name) {
				return
			}
		}
	}
}

// Err returns the error about names that mean several samples, or samples that several names mean. way says what to do.
func (j *Join) Err(part, way string) error {
	if j.doubtful.Several {
		return j.Several(j.doubtful, j.sample, part, way)
	}
	if len(j.other) == 0 {
		return nil
	}
	i := slices.Min(slices.Collect(maps.Keys(j.other)))
	return fault.New(fault.Corrupt, part, "%q names several samples, such as %q and %q: %s", j.list[i], j.first[i],
		j.other[i], way)
}

// Missing returns the names that mean no sample, and how many names there are, each once.
func (j *Join) Missing() (missing []string, all int) {
	for i, name := range j.list {
		if first, ok := j.Find(name); !ok || int(first) != i {
			continue
		}
		if all++; j.Nearest[i] == 0 {
			missing = append(missing, name)
		}
	}
	return missing, all
}
