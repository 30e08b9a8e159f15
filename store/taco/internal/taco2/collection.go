package taco2

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Collection is COLLECTION.json: the members that this package needs, and the whole document.
type Collection struct {
	Raw    json.RawMessage // the document as stored
	Tree   *model.Tree     // taco:pit_schema, or nil
	Fields json.RawMessage // taco:field_schema: pairs of name and type by "level0", …, or nil
	// Sources is taco:sources of a TACOLLECTION.json, or nil.
	Sources *Sources
}

// Sources lists the files of a TACOLLECTION.json.
type Sources struct {
	Files   []string `json:"files"`
	Extents []Extent `json:"extents"`
}

// Extent is the place and time of the samples of one file: a box of longitudes and latitudes, and a
// range of times. See spacetime.Filter for how far it can be trusted.
type Extent struct {
	File     string    `json:"file"`
	ID       string    `json:"id,omitempty"`
	Spatial  []float64 `json:"spatial"`
	Temporal []string  `json:"temporal"`
}

// parseCollection parses a COLLECTION.json at offset off of a file.
func parseCollection(b []byte, part string, off int64) (*Collection, error) {
	if err := model.CheckDocument(b, part, off); err != nil {
		return nil, err
	}
	var doc struct {
		ID      *string         `json:"id"`
		Version string          `json:"taco_version"`
		Later   json.RawMessage `json:"taco:version"` // its name since TACO 3
		PIT     json.RawMessage `json:"taco:pit_schema"`
		Fields  json.RawMessage `json:"taco:field_schema"`
		Sources *Sources        `json:"taco:sources"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fault.WrapAt(fault.Corrupt, part, off, err)
	}
	if v := cmp.Or(string(doc.Later), strconv.Quote(doc.Version)); doc.Later != nil || newer(doc.Version) {
		return nil, fault.At(fault.Unsupported, part, off, "its version is %.40s: TACO 2 and TACO 3.0.0 are read", v)
	}
	if doc.ID == nil || *doc.ID == "" {
		return nil, fault.At(fault.Corrupt, part, off, "has no id")
	}
	collection := &Collection{Raw: b, Fields: doc.Fields, Sources: doc.Sources}
	if Has(doc.PIT) {
		if err := json.Unmarshal(doc.PIT, &collection.Tree); err != nil {
			return nil, fault.WrapAt(fault.Corrupt, part+" taco:pit_schema", off, err)
		}
	}
	return collection, nil
}

// newer reports whether taco_version is later than 2.
func newer(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n > 2
}

// readCollection reads and parses the COLLECTION.json at a place of a file.
func readCollection(ctx context.Context, r source.Reader, at span, part string) (*Collection, error) {
	data, err := model.ReadDocument(ctx, r, at, part)
	if err != nil {
		return nil, err
	}
	return parseCollection(data, part, at.Off)
}

// ReadTacollection reads a TACOLLECTION.json. The files that it lists must be below its directory.
func ReadTacollection(ctx context.Context, r source.Reader) (*Collection, error) {
	const part = "TACOLLECTION.json"
	collection, err := readCollection(ctx, r, span{Off: 0, Size: r.Size()}, part)
	if err != nil {
		return nil, err
	}
	if collection.Sources == nil || len(collection.Sources.Files) == 0 {
		return nil, fault.New(fault.Corrupt, part, "has no taco:sources with files")
	}
	for _, f := range collection.Sources.Files {
		if model.BadSource(f) {
			return nil, fault.New(fault.Corrupt, part,
				"taco:sources has %q, which is not a file below its directory", f)
		}
	}
	return collection, nil
}

// Extent returns the extent of file i of a TACOLLECTION.json, or nil if none or several have its name.
func (s *Sources) Extent(i int) *Extent {
	var found *Extent
	for k := range s.Extents {
		if s.Extents[k].File != s.Files[i] {
			continue
		}
		if found != nil {
			return nil
		}
		found = &s.Extents[k]
	}
	return found
}

// Columns returns the columns of a level in taco:field_schema, or nil if it has none.
func (c *Collection) Columns(level int) []string {
	var levels map[string][][]string
	if json.Unmarshal(c.Fields, &levels) != nil {
		return nil
	}
	var names []string
	for _, f := range levels[model.LevelName(level)] {
		if len(f) > 0 {
			names = append(names, f[0])
		}
	}
	return names
}
