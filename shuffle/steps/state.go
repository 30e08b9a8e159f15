package steps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Version is the version of the order. It is part of every state and spec hash.
const Version = 1

// State is all that is needed to resume a run. Samples counts the positions of Epoch that were handed
// to the user over all ranks; it is always a whole number of steps. Python writes the same JSON.
type State struct {
	Version int    `json:"version"`
	Spec    string `json:"spec"` // spec hash
	Seed    uint64 `json:"seed"`
	Epoch   uint64 `json:"epoch"`
	Samples int64  `json:"samples"`
	// Run holds the input of the spec hash, so another run can name the differences. States of
	// older versions lack it.
	Run Parts `json:"run,omitempty"`
	// Weights are those in force and those to come, in the order of their places. Python's Loader.reweight adds them.
	Weights []Change `json:"weights,omitempty"`
	// Scores names the file with the means of Python's Loader.scores. No batch depends on it.
	Scores *Means `json:"scores,omitempty"`
}

// Means names a file with a mean for each sample.
type Means struct {
	Path string `json:"path"`
	Hash string `json:"hash"` // SHA-256 of the file, in hexadecimal digits
}

// UnmarshalJSON implements json.Unmarshaler. The state of a dataset of PyTorch has a list of pairs, which may be empty.
func (m *Means) UnmarshalJSON(b []byte) error {
	var pairs [][2]string
	if json.Unmarshal(b, &pairs) == nil {
		members := make(map[string]string, len(pairs))
		for _, pair := range pairs {
			members[pair[0]] = pair[1]
		}
		b, _ = json.Marshal(members) // strings cannot fail
	}
	type means Means // without this method
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*means)(m))
}

// Change is weights that draw the samples of a run from a place on.
type Change struct {
	Path    string `json:"path"` // as in Weights
	Hash    string `json:"hash"`
	Once    bool   `json:"once"`
	Epoch   uint64 `json:"epoch"`   // the first epoch with them
	Samples int64  `json:"samples"` // its first position with them
}

// holds reports whether c holds at a place.
func (c Change) holds(epoch uint64, position int64) bool {
	return c.Epoch < epoch || c.Epoch == epoch && c.Samples <= position
}

// WeightsAt returns the weights that draw the samples from a position of an epoch on, or nil.
func (s State) WeightsAt(epoch uint64, position int64) *Weights {
	if c := s.ChangeAt(epoch, position); c != nil {
		return &Weights{Path: c.Path, Hash: c.Hash, Once: c.Once}
	}
	return nil
}

// ChangeAt returns the change since which the weights hold that draw the samples from a position of an epoch on, or
// nil.
func (s State) ChangeAt(epoch uint64, position int64) *Change {
	for i, c := range slices.Backward(s.Weights) {
		if c.holds(epoch, position) {
			return &s.Weights[i]
		}
	}
	return nil
}

// Forgotten reports whether a position lies before the first weights that a state knows, and others may have held
// there: a state has no weights from before those in force.
func (s State) Forgotten(epoch uint64, position int64) bool {
	return s.ChangeAt(epoch, position) == nil && s.ChangeAt(s.Epoch, s.Samples) != nil
}

// Forget drops weights that hold no more where the state stands.
func (s *State) Forget() {
	for len(s.Weights) > 1 && s.Weights[1].holds(s.Epoch, s.Samples) {
		s.Weights = s.Weights[1:]
	}
}

// Parts is the input of the spec hash of a run: a JSON object of strings, numbers and booleans, as
// NewParts writes it.
type Parts string

// maxParts bounds Parts in bytes. A spec has at most 1 MiB.
const maxParts = 4 << 20

// NewParts returns the parts of a run. Values are strings, booleans and numbers.
func NewParts(values map[string]any) (Parts, error) {
	b, err := json.Marshal(values) // with sorted names
	return Parts(b), err
}

// MarshalJSON implements json.Marshaler.
func (p Parts) MarshalJSON() ([]byte, error) {
	if p == "" {
		return []byte("{}"), nil
	}
	return []byte(p), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Parts) UnmarshalJSON(b []byte) error {
	if len(b) > maxParts {
		return fmt.Errorf("run: %d bytes, at most %d", len(b), maxParts)
	}
	var values map[string]any
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for name, value := range values {
		switch value.(type) {
		case string, bool, json.Number:
		default:
			return fmt.Errorf("run: %q is neither a string nor a number nor a boolean", name)
		}
	}
	text, err := json.Marshal(values)
	if *p = Parts(text); values == nil {
		*p = ""
	}
	return err
}

// values returns the parts by name, each as JSON.
func (p Parts) values() map[string]json.RawMessage {
	var m map[string]json.RawMessage
	// This cannot fail, because NewParts or UnmarshalJSON wrote p.
	_ = json.Unmarshal([]byte(p), &m)
	return m
}

// int returns a part that is a whole number, and whether there is one.
func (p Parts) int(name string) (n int64, ok bool) {
	err := json.Unmarshal(p.values()[name], &n)
	return n, err == nil
}

// Step returns the step that follows the state, for global batches of g over an epoch of n positions.
// It returns an error if the state has another version or does not lie between two steps.
func (s State) Step(n int64, g int) (int64, error) {
	switch {
	case s.Version != Version:
		return 0, fmt.Errorf("state of order version %d; this is version %d", s.Version, Version)
	case s.Samples < 0 || s.Samples > n:
		return 0, fmt.Errorf("state after %d samples of an epoch of %d", s.Samples, n)
	case s.Samples%int64(g) != 0 && s.Samples != n:
		return 0, fmt.Errorf("state after %d samples is not between two steps of %d", s.Samples, g)
	}
	return Count(s.Samples, g, false), nil
}

// Names of parts that Resume and Python's Loader look at.
const (
	PartSamples   = "samples"    // of an epoch
	PartBatchSize = "batch_size" // of the global batch
	PartLast      = "last"
	PartTake      = "take" // samples of an epoch, if it is given
)

// sameSamples are prefixes of the names of those parts that do not change which sample stands at a
// position.
var sameSamples = []string{"fields", PartBatchSize, PartLast, "bad_samples", "augment", "windows"}

// counts are prefixes of the names of those parts that say which samples a dataset has, beside PartSamples of epochs
// without PartTake.
var counts = []string{"rows", "selected", "sampler.kind", "sampler.per_asset", "sampler.stride"}

// maxDifferences bounds the parts that a message names, so it stays readable in a log.
const maxDifferences = 8

// Differences lists how the run of state s differs from the present run, whose initial state is now.
// The list is empty if they are the same run. otherOrder reports that the order of samples differs.
func (s State) Differences(now State) (out []string, otherOrder bool) {
	if s.Spec == now.Spec && s.Seed == now.Seed {
		return nil, false
	}
	if s.Seed != now.Seed {
		out, otherOrder = append(out, fmt.Sprintf("seed is %d, in the state %d", now.Seed, s.Seed)), true
	}
	if s.Run == "" || now.Run == "" {
		if s.Spec != now.Spec && len(out) == 0 { // another seed alone changes the hash too
			out = append(out,
				fmt.Sprintf("spec hash is %s, in the state %s: the dataset, the fields, the sampler, "+
					"batch_size, shuffle, last or bad_samples", now.Spec, s.Spec))
		}
		return out, true
	}
	was, is := s.Run.values(), now.Run.values()
	names := slices.Sorted(maps.Keys(is))
	for name := range was {
		if _, ok := is[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		after, before := is[name], was[name]
		if name == "seed" || bytes.Equal(after, before) {
			continue
		}
		otherOrder = otherOrder || !slices.ContainsFunc(sameSamples,
			func(p string) bool { return strings.HasPrefix(name, p) })
		switch {
		case after == nil:
			out = append(out, fmt.Sprintf("%s is not given, in the state it is %s", name, partText(before)))
		case before == nil:
			out = append(out, fmt.Sprintf("%s is %s, in the state it is not given", name, partText(after)))
		case bytes.HasPrefix(after, []byte(`"#`)) && bytes.HasPrefix(before, []byte(`"#`)):
			out = append(out, name+" differs")
		default:
			out = append(out, fmt.Sprintf("%s is %s, in the state %s", name, partText(after), partText(before)))
		}
	}
	if len(out) == 0 {
		out, otherOrder = []string{"the spec hash"}, true
	}
	if n := len(out); n > maxDifferences {
		out = append(out[:maxDifferences:maxDifferences], fmt.Sprintf("%d more", n-maxDifferences))
	}
	return out, otherOrder
}

// partText returns a part as messages print it. Values that begin with # are hashes of larger parts.
func partText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		if strings.HasPrefix(text, "#") {
			return "another one"
		}
		return text
	}
	return string(v)
}

// Resume returns the state from which a run continues that is given state s. now is the initial state
// of the run, which has global batches of g over epochs of n positions. With strict, the state of
// another run is an error that names the differences. Without it, note describes the differences and
// their consequences, as docs/order.md (State) defines.
func (s State) Resume(now State, n int64, g int, dropLast, strict bool) (next State, note string, err error) {
	differences, otherOrder := s.Differences(now)
	if len(differences) == 0 {
		next = now
		next.Epoch, next.Samples, next.Weights, next.Scores = s.Epoch, s.Samples, s.Weights, s.Scores
		_, err = s.Step(n, g)
		return next, "", err
	}
	what := strings.Join(differences, "; ")
	switch {
	case s.Version != Version:
		_, err = s.Step(n, g)
		return next, "", err
	case strict:
		return next, "", fmt.Errorf("the state is of another run: %s", what)
	case s.Samples < 0:
		return next, "", fmt.Errorf("state after %d samples", s.Samples)
	}
	if err := s.sameClasses(now); err != nil {
		return next, "", err
	}
	next = now
	next.Weights, next.Scores = s.Weights, s.Scores
	next.Epoch, next.Samples = s.Epoch, s.Samples/int64(g)*int64(g)
	if s.atEnd() || next.Samples/int64(g) >= Count(n, g, dropLast) {
		next.Epoch, next.Samples = s.Epoch+1, 0
	}
	note = fmt.Sprintf("the state is of another run: %s; this run goes on in epoch %d after %d of %d samples",
		what, next.Epoch, next.Samples, n)
	switch {
	case next.Samples == 0:
	case otherOrder:
		note += ", in its own order: the rest of this epoch may repeat samples that were given, " +
			"and others are left out of it"
	case next.Samples < s.Samples:
		note += fmt.Sprintf("; the last %d come again", s.Samples-next.Samples)
	}
	if (len(s.Weights) > 0 || s.Scores != nil) && s.countsOtherwise(now) {
		next.Weights, next.Scores = nil, nil
		note += "; its weights and means of losses are of other samples, and are left out"
	}
	return next, note, nil
}

// sameClasses returns an error about a class that has another number in the run that continues: the numbers that a
// model has learnt would mean other things. Lists of over 64 bytes are kept as hashes, so it cannot compare them.
func (s State) sameClasses(now State) error {
	was, is := s.Run.values(), now.Run.values()
	for _, name := range slices.Sorted(maps.Keys(is)) {
		before, after := namesOf(was[name]), namesOf(is[name])
		if !strings.HasSuffix(name, ".classes") {
			continue
		}
		for number, class := range after {
			if other := slices.Index(before, class); other >= 0 && other != number {
				return fmt.Errorf("%s: %q is number %d, in the state %d: give classes in the order of the state",
					name, class, number, other)
			}
		}
	}
	return nil
}

// namesOf returns the strings of a list in a part, nil of others.
func namesOf(part json.RawMessage) (names []string) {
	var text string
	if json.Unmarshal(part, &text) != nil || json.Unmarshal([]byte(text), &names) != nil {
		return nil
	}
	return names
}

// countsOtherwise reports whether sample i may be another one in the run that continues.
func (s State) countsOtherwise(now State) bool {
	was, is := s.Run.values(), now.Run.values()
	if len(was) == 0 || len(is) == 0 {
		return false
	}
	differ := func(name string) bool { return !bytes.Equal(was[name], is[name]) }
	for _, parts := range []map[string]json.RawMessage{was, is} {
		for name := range parts {
			if slices.ContainsFunc(counts, func(p string) bool { return strings.HasPrefix(name, p) }) && differ(name) {
				return true
			}
		}
	}
	return was[PartTake] == nil && is[PartTake] == nil && differ(PartSamples)
}

// atEnd reports whether the state is at the end of an epoch of its own run. It is false if the parts
// do not say.
func (s State) atEnd() bool {
	samples, ok := s.Run.int(PartSamples)
	batch, known := s.Run.int(PartBatchSize)
	isSize := known && batch >= 1 && batch <= 1<<31-1
	if !ok || samples < 0 || !isSize {
		return false
	}
	drops := string(s.Run.values()[PartLast]) == `"drop"`
	return Count(s.Samples, int(batch), false) >= Count(samples, int(batch), drops)
}

// ParseState reads the JSON of a state. Unknown members are an error, because a newer version may have
// added one that changes the order.
func ParseState(b []byte) (State, error) {
	var state State
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&state); err != nil {
		return state, fmt.Errorf("state: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return state, errors.New("state: more follows the JSON value")
	}
	if len(state.Weights) == 0 {
		state.Weights = nil
	}
	if state.Scores != nil && *state.Scores == (Means{}) {
		state.Scores = nil
	}
	return state, nil
}
