// Package layout has the names and numbers of the catalog's format that its writer and its reader share.
package layout

// Columns of a catalog that readers look for. The header blob of a file is in Index if the file is
// a TIFF, in Header if it is a rumi file.
const (
	URI    = "uri"
	Index  = "chaski:index"
	Header = "rumi:header"
	Height = "height"
	Width  = "width"
	Size   = "size"
	MTime  = "mtime"
	ETag   = "etag"
	Offset = "chaski:offset"
	Length = "chaski:length"

	EPSG      = "epsg"
	CRS       = "chaski:crs"    // parameters of a CRS without a code, as epsg.Definition.String writes them
	Names     = "chaski:bands"  // names that the file gives its bands, a JSON array
	Beside    = "chaski:beside" // extensions of the files beside a raster, as catalog.Asset.Beside
	Transform = "transform"     // six numbers, in the order of catalog.Meta.Transform
	MinX      = "minx"
	MinY      = "miny"
	MaxX      = "maxx"
	MaxY      = "maxy"
)

// Keys of a catalog's metadata in the Parquet footer.
const (
	VersionKey = "chaski:catalog"
	MasksKey   = "chaski:masks" // MasksVersion: chunk indexes include masks and alpha; older catalogs have less
	// the names of the fields of a catalog of pairs, a JSON array; plain columns are the first
	// field's
	FieldsKey = "chaski:fields"
	// the Listed of the directory that the catalog was made of, in JSON
	ListedKey = "chaski:listed"
	// the Sums of the catalog, in JSON. Programs that change a file may copy its metadata, so they count only in a file
	// that says Creator.
	SumsKey = "chaski:sums"
)

// Creator is what the footer of a catalog says that wrote it, before the version.
const Creator = "chaski"

// Sums are the digests from which the fingerprint of a catalog is made, so that opening it does not read its columns.
type Sums struct {
	Rows    int64          `json:"rows"`
	Columns map[string]Sum `json:"columns"`
}

// Sum has the digests of a column in hexadecimal digits, as the fingerprint takes them: of all of its values, which
// are below Folder if the column has URIs, and of its numbers as the sizes of files. Repeats says that some URIs come
// several times.
type Sum struct {
	Values  string  `json:"values"`
	Folder  *string `json:"folder,omitempty"`
	Repeats bool    `json:"repeats,omitempty"`
	Sizes   string  `json:"sizes,omitempty"`
}

// Listed says how the samples of a catalog were called in the directory that it was made of.
type Listed struct {
	Root     string   `json:"root,omitempty"`     // the beginning of the URIs of all files
	Patterns []string `json:"patterns,omitempty"` // of the fields, below it
}

// MasksVersion is the value of MasksKey. 1 came before alpha and files beside rasters.
const MasksVersion = "2"

// Version is the version of the catalogs that are written, and the only one that is read.
const Version = "1"

// MemberSeparator separates the URI of a container from the path of a member in it.
const MemberSeparator = "::"

// FieldSeparator separates the name of a field from the name of a column in a catalog of pairs.
const FieldSeparator = ":"

// MaxFields bounds the fields of a catalog of pairs: each has 23 columns, so 64 have 1,472.
const MaxFields = 64
