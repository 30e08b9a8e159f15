package raster

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// badSample is a line of the list that verify --samples writes. Loaders with OnBad(quarantine=FILE) write the same.
type badSample struct {
	Dataset string `json:"dataset"`          // fingerprint
	Source  string `json:"source,omitempty"` // of a mixture
	ID      string `json:"id,omitempty"`     // of the sample; see catalog.Table.ID
	Row     *int64 `json:"row,omitempty"`    // of the source's table
	URI     string `json:"uri,omitempty"`
	Part    string `json:"part,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Kind    string `json:"kind"`
	Message string `json:"message"` // the whole error
	// FirstSeen is when the sample was read, and Count is 1.
	FirstSeen time.Time `json:"first_seen"`
	Count     int64     `json:"count"`
}

// newBadSample returns the line about a sample that was read now.
func newBadSample(dataset string, err error) badSample {
	line := badSample{Dataset: dataset, Kind: fault.KindOf(err).Error(), Message: fault.Line(err),
		FirstSeen: time.Now().UTC().Truncate(time.Second), Count: 1}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		line.URI, line.Part = f.File, f.Part
		if f.Off >= 0 {
			line.Offset = &f.Off
		}
	}
	return line
}

// writeBadSamples writes the list.
func writeBadSamples(w io.Writer, lines []badSample) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}
