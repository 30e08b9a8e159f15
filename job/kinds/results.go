package kinds

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// parseTally parses a tally.
func parseTally[T any](b json.RawMessage) (t T, err error) {
	if err := json.Unmarshal(b, &t); err != nil {
		return t, corrupt("tally: %v", err)
	}
	return t, nil
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "result", fault.NoOffset, format, args...)
}

// readBody reads the body of a result of at most most bytes.
func readBody(p *job.Part, most int64) ([]byte, error) {
	if p.Body.Size() > most {
		return nil, fault.New(fault.Limit, "result", fault.NoOffset, "%d bytes, at most %d", p.Body.Size(), most)
	}
	b, err := io.ReadAll(p.Body)
	return b, errors.Join(err, noMore(p.Body))
}

// noMore rewinds a body for the next pass.
func noMore(s *io.SectionReader) error {
	_, err := s.Seek(0, io.SeekStart)
	return err
}

// writeJSON writes v as one line, as commands print it.
func writeJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// opened returns options with an opener, by default of local files, and what ends its use.
func opened(o resources.Options) (resources.Options, func()) {
	if o.Opener != nil {
		return o, func() {}
	}
	files := &source.Files{}
	o.Opener = files
	return o, func() { _ = files.Close() } // they were read only
}
