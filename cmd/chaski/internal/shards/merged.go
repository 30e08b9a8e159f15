package shards

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/pathname"
)

// record is what OUTPUT.merged says, as JSON: what the output was made of.
type record struct {
	Count    int    `json:"of"`
	Items    int64  `json:"items"`
	Version  string `json:"version"`
	Settings string `json:"settings"`
	Inputs   string `json:"inputs"`
	Marks    string `json:"marks"`  // a hash of the marks of all inputs
	Output   uint64 `json:"output"` // the mark of the output
	Outcome  string `json:"outcome,omitempty"`
}

// maxRecord bounds OUTPUT.merged, in bytes: it has about 300.
const maxRecord = 1 << 16

// mergedName is the name of OUTPUT.merged.
func (d *dividedWork) mergedName() string { return d.beside() + ".merged" }

// recordOf returns what a merge of the inputs as they are makes of the output as it is.
func (d *dividedWork) recordOf(ctx context.Context) (record, error) {
	made := record{Count: d.count, Items: d.Items, Version: d.version, Settings: d.settings, Inputs: d.Inputs}
	sum := digest.New()
	for k := range d.count {
		marks, err := d.marker.share(ctx, d.share(k, d.count))
		if err != nil {
			return made, err
		}
		_, _ = sum.Write(marks)
	}
	whole := sum.Sum()
	made.Marks = hex.EncodeToString(whole[:])
	var err error
	made.Output, err = d.marker.look(ctx, pathname.Trim(d.Output))
	return made, err
}

// tellMerged writes OUTPUT.merged, once the output is written.
func (d *dividedWork) tellMerged(ctx context.Context) error {
	made, err := d.recordOf(ctx)
	if err != nil {
		return err
	}
	if d.Outcome != nil {
		made.Outcome = *d.Outcome
	}
	return d.Env.WriteFile(ctx, d.mergedName(), func(file io.Writer) error {
		return json.NewEncoder(file).Encode(made)
	})
}

// merged reports whether the output is there, and is what a merge of the inputs as they are has made.
func (d *dividedWork) merged(ctx context.Context) bool {
	file, closed, err := d.Env.Copy(ctx, d.mergedName())
	if err != nil {
		return false
	}
	defer closed()
	var said record
	if err := json.NewDecoder(io.LimitReader(file, maxRecord)).Decode(&said); err != nil {
		return false
	}
	made, err := d.recordOf(ctx)
	if made.Outcome = said.Outcome; err != nil || made != said || made.Output == noFile {
		return false
	}
	if d.Outcome != nil {
		*d.Outcome = said.Outcome
	}
	return true
}
