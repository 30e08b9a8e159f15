package rows

import (
	"context"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Store is what a dataset is stored in: samples, which are rows numbered from 0, each with the same fields. A
// *catalog.Table is one, for catalogs, tables and directories; others are containers, arrays, and several datasets of
// scenes. It is safe for concurrent use.
type Store interface {
	Values
	// Len returns the number of samples, and Fields the number of fields.
	Len() int64
	Fields() int
	// Kind returns the kind of a field: a raster, or the type of a metadata column.
	Kind(field int) catalog.Kind
	// Fingerprint returns a hash of the ids and sizes of the samples.
	Fingerprint() string
	// ID returns the id of a sample, and ScanIDs visits the ids of all, in order.
	ID(ctx context.Context, row int64) (string, error)
	ScanIDs(ctx context.Context, visit func(row int64, id string) error) error
	// Column returns a column by its name, with a row for each sample. One that does not exist is fault.NotFound.
	Column(ctx context.Context, name string) (*Column, error)
	// Close closes the store. Assets that it has returned stay valid.
	Close() error
}

// Values are what fields have in each row.
type Values interface {
	// Asset returns the raster of a field.
	Asset(ctx context.Context, field int, row int64) (catalog.Asset, error)
	// Value returns the value of a metadata column or, for rasters, the path of the raster as the dataset has it.
	Value(ctx context.Context, field int, row int64) (catalog.Value, error)
}

// What some stores can do, beside what a *catalog.Table alone knows of rasters without opening their files.
type (
	queried interface { // all columns and rows, for queries
		Data(ctx context.Context) (*tables.Table, error)
	}
	banded interface { // see Table.BandNames
		BandNames() []string
	}
	centred interface { // the centroids of the samples in degrees, NaN for null
		Centroids(ctx context.Context, visit func(row int64, lon, lat float64) error) error
	}
	extents interface { // see Field.Extent
		Extent(field int) func(ctx context.Context, row int64) (at source.Extent, ok bool)
	}
	announced interface { // see Field.Announce
		Announces() bool
		Announce(field int, row int64) (over func())
	}
	sequences interface { // see Steps: the fields that have the steps of a field, nil of other fields
		Steps(field int) []int
		Padding(field, step int, row int64) bool
	}
)
