package corpus

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// Container is one line of the manifest of containers: a case, a query or a bad one.
type Container struct {
	Dir    string `json:"-"` // folder of the manifest
	Type   string
	Family string
	Path   Paths // relative to Dir; several for operations on several containers

	// Of type case. Leaves are [path, offset, size, sha256].
	Container string
	Levels    map[string]int
	Padding   map[string]int
	NLeaves   int     `json:"n_leaves"`
	Leaves    [][]any // at most 80
	ByZIP     [][]any `json:"leaves_by_zip_directory"`
	SHA256    string  `json:"leaves_sha256"`

	// Of type query.
	Op, Reader, Range, Error string
	BBox                     []float64
	Level                    int
	GeometryCol              string `json:"geometry_col"`
	Column                   string
	Mode                     string `json:"column_mode"`
	N                        int
	IDs                      Paths
	IDsSHA256                string `json:"ids_sha256"`
	Keys                     []any
	VSI                      string
	FrameIDs                 []string `json:"frame_ids"`
	// Of pooled statistics, of a chunk, of a decoded sample.
	Component           string
	Mean, Std, Min, Max []float64
	Root, ID            string
	Offset, Size        int64
	Bytes               string `json:"sha256"`
	Pixels              string `json:"sha256_le_bands_rows_cols"` // little-endian, (bands, rows, columns)
	Shape               []int
	DType               string

	// Of type bad.
	Base, Wrong, Expect string
}

// Paths is one string or several.
type Paths []string

// UnmarshalJSON takes a string or a list of them; an object leaves nothing.
func (p *Paths) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) > 0 && b[0] == '[':
		return json.Unmarshal(b, (*[]string)(p))
	case len(b) > 0 && b[0] == '{':
		return nil
	}
	*p = make([]string, 1)
	return json.Unmarshal(b, &(*p)[0])
}

// At returns the paths of the files.
func (c *Container) At() []string {
	var paths []string
	for _, p := range c.Path {
		paths = append(paths, filepath.Join(c.Dir, p))
	}
	return paths
}

// Containers returns the rows of the corpus's manifest of containers or, without a corpus, the rows of
// the module's testdata, which are some of them.
func Containers(t testing.TB) []Container {
	t.Helper()
	dir := filepath.Join(folder(t), "containers")
	if !exists(dir) {
		dir = filepath.Join(Testdata(t), "containers")
	}
	var rows []Container
	for i, line := range Rows[json.RawMessage](t, dir) {
		var row struct{ Type string }
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s row %d: %v", dir, i, err)
		}
		if row.Type != "case" && row.Type != "query" && row.Type != "bad" {
			continue
		}
		container := Container{Dir: dir}
		if err := json.Unmarshal(line, &container); err != nil {
			t.Fatalf("%s row %d: %v", dir, i, err)
		}
		rows = append(rows, container)
	}
	return rows
}
