package shuffle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// State is all that resuming needs. Samples counts the positions of Epoch that were handed to the
// user over all ranks, always a whole number of steps. The JSON is the same in Python.
type State struct {
	Version int    `json:"version"`
	Spec    string `json:"spec"` // spec hash
	Seed    uint64 `json:"seed"`
	Epoch   uint64 `json:"epoch"`
	Samples int64  `json:"samples"`
}

// Step returns the step that follows the state, for global batches of g over an epoch of n
// positions. It is an error if the state is of another version, or not between two steps.
func (s State) Step(n int64, g int) (int64, error) {
	switch {
	case s.Version != Version:
		return 0, fmt.Errorf("state of order version %d; this is version %d", s.Version, Version)
	case s.Samples < 0 || s.Samples > n:
		return 0, fmt.Errorf("state after %d samples of an epoch of %d", s.Samples, n)
	case s.Samples%int64(g) != 0 && s.Samples != n:
		return 0, fmt.Errorf("state after %d samples is not between two steps of %d", s.Samples, g)
	}
	return Steps(s.Samples, g, false), nil
}

// ParseState reads the JSON of a state; unknown members are an error.
func ParseState(b []byte) (State, error) {
	var s State
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("state: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return s, errors.New("state: more follows the JSON value")
	}
	return s, nil
}
