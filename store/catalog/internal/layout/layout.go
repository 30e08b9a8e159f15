package layout

// Names of a catalog's columns that readers look for. A file has its index in colIndex if it is a TIFF, in colHeader if it
// is a rumi file.
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
)

// Keys of a catalog's metadata in the Parquet footer.
const (
	VersionKey = "chaski:catalog"
	MasksKey   = "chaski:masks"  // indexes of TIFFs have their masks; older catalogs lack it
	FieldsKey  = "chaski:fields" // names of the fields of a catalog of pairs, a JSON array; the columns are the first one's
)

// Version of the catalogs that are written, and the only one that is read.
const Version = "1"

// MemberSeparator stands between the URI of a container and the path of a member in it.
const MemberSeparator = "::"

// FieldSeparator stands between the name of a field of a catalog of pairs and that of a column of a catalog.
const FieldSeparator = ":"

// MaxFields bounds the fields of a catalog of pairs: each has 20 columns.
const MaxFields = 64
