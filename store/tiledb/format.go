package tiledb

import "github.com/chaski-eo/chaski/fault"

// Format versions.
const (
	// Version is the first format version that is read.
	Version = 3
	// Newest is the latest format version that is read. No release of TileDB writes it yet: releases of 2026 write 22.
	Newest = 23
)

// formatTraits has the properties of a format version. Version numbers are compared only here and, for the
// filters, in package filter.
type formatTraits struct {
	version uint32

	// of schemas
	dups       bool // whether cells may have the same coordinates
	dimTypes   bool // each dimension has a type and filters of its own
	fill       bool // fill values of attributes
	nullable   bool // cells without a value, and fragments have files that say which
	order      bool // of the values of an attribute
	labels     bool // labels of dimensions
	enums      bool // named lists of values
	current    bool // the part of the domain that is in use
	wholeTimes bool // filters of integers act on dates and times

	// of fragments
	numbered     bool // files have the numbers of attributes and dimensions, not their names
	escaped      bool // files have names in which some characters are escaped
	schemaName   bool // the footer names the schema
	footerSize   bool // the footer's length follows it, for all types of dimensions
	summaries    bool // smallest and largest values, sums, numbers of null cells
	totals       bool // the same of all tiles together
	times        bool // a fragment may have the time of each of its cells
	deletes      bool // and when and why each was deleted
	conditions   bool // a list of the delete conditions that were applied
	extensible   bool // sections that may be ignored at the end of the footer
	committed    bool // a separate file says that a fragment is complete
	commitsApart bool // in directories of their own: fragments and these files
}

// formatOf returns the properties of a format version. Versions 1 and 2 have no footers.
func formatOf(v uint32) (formatTraits, bool) {
	return formatTraits{
		version: v,
		dups:    v >= 5, dimTypes: v >= 5, committed: v >= 5,
		fill:       v >= 6,
		nullable:   v >= 7,
		escaped:    v == 8,
		numbered:   v >= 9,
		schemaName: v >= 10, footerSize: v >= 10,
		summaries:    v >= 11,
		totals:       v >= 12,
		commitsApart: v >= 12,
		times:        v >= 14,
		deletes:      v >= 15,
		conditions:   v >= 16,
		order:        v >= 17,
		labels:       v >= 18,
		enums:        v >= 20, wholeTimes: v >= 20,
		current:    v >= 22,
		extensible: v >= 23,
	}, v >= Version && v <= Newest
}

// errVersion is the error about a format version that is not read.
func errVersion(part string, off int64, v uint64) error {
	return fault.At(fault.Unsupported, part, off, "format version %d: %d to %d are read", v, Version, Newest)
}
