package report

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
)

// maker makes a report.
type maker struct {
	Options
	*Report
	table rows.Table
	bad   map[int64]string // the first samples that cannot be read, and why
	nBad  int64
	last  int64 // the last sample that was counted as bad
	// Pairs of a sample's first raster and another one: at different places, the first of these, and without a place.
	misplaced int64
	elsewhere []string
	unplaced  int64
}

// isBad records a sample that cannot be read. It returns errors that are not faults of a file, because they end
// the report.
func (m *maker) isBad(row int64, err error) error {
	if err == nil {
		return nil
	}
	if fault.KindOf(err) == 0 {
		return err
	}
	// A sample may fail in several fields and again in its footprint, but it must be counted once.
	if row == m.last {
		return nil
	}
	m.last = row
	m.nBad++
	if len(m.bad) < maxNamed {
		m.bad[row] = fault.Line(err)
	}
	return nil
}

func (m *maker) alarm(text string, items []string) {
	m.Warnings = append(m.Warnings, Warning{text, items})
}

func (m *maker) note(text string, items ...string) {
	m.Notes = append(m.Notes, Warning{text, items})
}
