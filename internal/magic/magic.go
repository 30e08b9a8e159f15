// Package magic has the one list of the formats of files: how their names end, how their first bytes begin, and what
// chaski reads them as. Formats that are not read have names, for errors.
package magic

import (
	"bytes"
	"encoding/binary"
	"path"
	"slices"
	"strings"
)

// Class is what chaski reads the files of a format as.
type Class uint8

// The classes. The zero Class is of files that are not read.
const (
	// Raster is a TIFF or a rumi file: a raster wherever it lies.
	Raster Class = iota + 1
	// Picture is a PNG, JPEG or NumPy file, or a virtual raster. It is a raster only where a glob or a pattern says so,
	// because directories of scenes have previews and mosaics of them.
	Picture
	Parquet
	// CSV is a table as lines of values, with commas or tabs between them.
	CSV
	// Items is JSON, which may hold STAC items. The name does not tell: containers and specs are JSON, too.
	Items
	Records // of TensorFlow, a table
	Frame   // of OpenZL
	Container
	// Store is a store of arrays, which a package below store reads: it adds its format, if that is not listed here.
	Store
)

// Pixels reports whether files are rasters or pictures.
func (c Class) Pixels() bool { return c == Raster || c == Picture }

// Table reports whether files are tables.
func (c Class) Table() bool { return c == Parquet || c == CSV || c == Items || c == Records }

// Format is a format that chaski reads.
type Format struct {
	Name  string // as reports and catalogs say it
	Class Class
	Noun  string // for errors, or ""
	// Folder is set if a directory with the extension is one of the format, too, and so one path.
	Folder bool

	Starts []string // the shortest that tell its files from others
	Ends   []string // extensions, the usual one first
}

// Formats of rasters and pictures.
var (
	TIFF = &Format{Name: "tiff", Class: Raster, Starts: []string{"II*\x00", "II+\x00", "MM\x00*", "MM\x00+"},
		Ends: []string{".tif", ".tiff", ".geotiff"}}
	// Rumi is of generation 3. Files of earlier generations begin like a BigTIFF.
	Rumi = &Format{Name: "rumi", Class: Raster, Starts: []string{"RUMI"}, Ends: []string{".rumi"}}
	PNG  = &Format{Name: "png", Class: Picture, Noun: "a PNG image", Starts: []string{"\x89PNG"},
		Ends: []string{".png"}}
	JPEG = &Format{Name: "jpeg", Class: Picture, Noun: "a JPEG image", Starts: []string{"\xff\xd8\xff"},
		Ends: []string{".jpg", ".jpeg"}}
	BMP = &Format{Name: "bmp", Class: Picture, Noun: "a BMP image", Ends: []string{".bmp"}} // see function bitmap
	NPY = &Format{Name: "npy", Class: Picture, Noun: "a NumPy array", Starts: []string{"\x93NUM"},
		Ends: []string{".npy"}}
	// NPZ is a ZIP of arrays. None of them is the raster that it stands for: SplitArray of package source names one.
	NPZ = &Format{Name: "npz", Class: Picture, Noun: "an archive of NumPy arrays", Ends: []string{".npz"}}
	VRT = &Format{Name: "vrt", Class: Picture, Noun: "a GDAL virtual raster (VRT)", Starts: []string{"<VRT"},
		Ends: []string{".vrt"}} // function virtual has other starts
	// ENVI is a file of samples with a header beside it, which tells it.
	ENVI = &Format{Name: "envi", Class: Picture, Noun: "an ENVI raster",
		Ends: []string{".dat", ".bsq", ".bil", ".bip"}}
	// MAT has the starts of level 5. Files of MATLAB 7.3 begin like HDF5, behind a user block.
	MAT = &Format{Name: "matlab", Class: Store, Noun: "a MATLAB file", Starts: []string{"MATLAB 5.0"},
		Ends: []string{".mat"}}
)

// formats are those that chaski reads. A new one is one entry.
var formats = []*Format{TIFF, Rumi, PNG, JPEG, BMP, NPY, NPZ, VRT, ENVI, MAT,
	{Name: "parquet", Class: Parquet, Noun: "a Parquet file", Starts: []string{"PAR1"},
		Ends: []string{".parquet", ".pq", ".geoparquet"}},
	{Name: "csv", Class: CSV, Noun: "a CSV file", Ends: []string{".csv", ".tsv"}},
	{Name: "csv", Class: CSV, Noun: "a text file", Ends: []string{".txt"}},
	{Name: "items", Class: Items, Noun: "JSON", Ends: []string{".json", ".jsonl", ".ndjson"}},
	{Name: "items", Class: Items, Noun: "GeoJSON", Ends: []string{".geojson"}},
	{Name: "items", Class: Items, Noun: "XML", Ends: []string{".xml"}},
	{Name: "tfrecord", Class: Records, Noun: "a TFRecord file", Ends: []string{".tfrecord", ".tfrecords", ".tfrec"}},
	{Name: "openzl frame", Class: Frame, Ends: []string{".zl"}},
	{Name: "container", Class: Container, Noun: "a Tortilla or TACO container", Starts: []string{"#y", "WX"},
		Ends: []string{".tacozip", ".taco", ".tortilla", ".tacocat"}},
	{Name: "zarr", Class: Store, Folder: true, Noun: "a Zarr store", Ends: []string{".zarr", zarrZIP}},
	{Name: "hdf5", Class: Store, Noun: "an HDF5 or NetCDF-4 file", Starts: []string{"\x89HDF\r\n\x1a\n"},
		Ends: []string{".h5", ".hdf5", ".he5", ".nc", ".nc4", ".hdf"}},
}

// Add adds a format of a store, unless it is listed.
func Add(f *Format) {
	if !slices.Contains(formats, f) {
		formats = append(formats, f)
	}
}

// zarrZIP is the one extension of two parts.
const zarrZIP = ".zarr.zip"

// other is a format that is not read, or an unknown one.
var other = &Format{}

// frameMagic is the magic number of OpenZL frames minus the version of their format, which is 1 to 64.
const frameMagic = 0xD7B1A5C0

// Of returns the format of a file by its first bytes. The Class of a format that chaski cannot read is 0.
func Of(head []byte) *Format {
	if virtual(head) {
		return VRT
	}
	if bitmap(head) {
		return BMP
	}
	text := string(head[:min(len(head), longestStart)]) // head may be a whole file
	for _, format := range formats {
		if slices.ContainsFunc(format.Starts, func(start string) bool { return strings.HasPrefix(text, start) }) {
			return format
		}
		if format.Class == Frame && len(head) >= 4 {
			if version := binary.LittleEndian.Uint32(head) - frameMagic; version > 0 && version <= 64 {
				return format
			}
		}
	}
	return other
}

// virtual reports whether a virtual raster begins with head. A byte order mark, white space, an XML declaration and
// comments may come before its element, as for GDAL, which looks for that in as many bytes.
func virtual(head []byte) bool {
	text := bytes.TrimPrefix(head[:min(len(head), Head)], []byte("\ufeff"))
	text = bytes.TrimLeft(text, " \t\r\n")
	starts := func(start string) bool { return bytes.HasPrefix(text, []byte(start)) }
	return starts("<VRT") || (starts("<?") || starts("<!")) && bytes.Contains(text, []byte("<VRTDataset"))
}

// bitmap reports whether a BMP begins with head: two letters, a size, and four bytes of 0, which tell it from others.
func bitmap(head []byte) bool {
	return len(head) >= 10 && head[0] == 'B' && head[1] == 'M' && binary.LittleEndian.Uint32(head[6:]) == 0
}

// Named returns the format of a file by its extension. The Class of a format that chaski cannot read is 0.
func Named(name string) *Format {
	ext := strings.ToLower(path.Ext(name))
	if file, array, ok := strings.Cut(name, "::"); ok && array != "" && Named(file) == NPZ {
		return NPY
	}
	if strings.HasPrefix(ext, ".tfrec") { // NAME.tfrecord-00000-of-00016
		ext, _, _ = strings.Cut(ext, "-")
	}
	if ext == ".zip" && strings.HasSuffix(strings.ToLower(name), zarrZIP) {
		ext = zarrZIP
	}
	for _, format := range formats {
		if slices.Contains(format.Ends, ext) {
			return format
		}
	}
	return other
}

// End returns the usual extension of files, such as ".tif".
func (f *Format) End() string { return append(f.Ends, "")[0] }

// Head is how many bytes of a file Of and OfBytes need: a virtual raster may begin with comments.
const Head = 1024

// longestStart is more than the longest of all first bytes: those below have 15.
const longestStart = 16

// starts lists the first bytes of formats that are not read. A prefix of another one would have to follow it; today
// none is.
var starts = []struct{ prefix, name string }{
	{"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"},
	{"\xff\x4f\xff\x51", "a JPEG 2000 codestream"},
	{"\x00\x00\x00\x0cJXL ", "a JPEG XL image"},
	{"GIF8", "a GIF image"},
	{"EHFA_HEADER_TAG", "an Erdas Imagine (HFA) raster"},
	{"PCIDSK", "a PCIDSK raster"},
	{"NITF", "a NITF file"},
	{"ENVI", "the header of an ENVI raster"},
	{"Lerc2 ", "a LERC raster"},
	{"SIMPLE  =", "a FITS file"},
	{"\x0e\x03\x13\x01", "an HDF4 file"},
	{"CDF\x01", "a NetCDF file"},
	{"CDF\x02", "a NetCDF file"},
	{"CDF\x05", "a NetCDF file"},
	{"GRIB", "a GRIB file"},
	{"SQLite format 3", "an SQLite database (GeoPackage, MBTiles)"},
	{"ARROW1", "an Arrow file"},
	{"PK\x03\x04", ZIP},
	{"\x1f\x8b", "a gzip file"},
	{"\x28\xb5\x2f\xfd", "a zstd file"},
	{"BZh", "a bzip2 file"},
	{"\xfd7zXZ\x00", "an xz file"},
	{"%PDF", "a PDF file"},
}

// HTML is the name of a page, which a server may send in place of a file, and ZIP of an archive.
const (
	HTML = "an HTML page"
	ZIP  = "a zip archive"
)

// OfBytes names the kind of a file by its first bytes, such as "a PNG image". It returns "" for unknown
// files, for TIFF and rumi files, and for containers.
func OfBytes(head []byte) string {
	if format := Of(head); format.Class != Container && format.Noun != "" {
		return format.Noun
	}
	s := string(head[:min(len(head), longestStart)])
	for _, start := range starts {
		if strings.HasPrefix(s, start.prefix) {
			return start.name
		}
	}
	// Servers send such pages in place of files, also with the status of success.
	if text := strings.ToLower(strings.TrimSpace(s)); strings.HasPrefix(text, "<!doctype html") ||
		strings.HasPrefix(text, "<html") {
		return HTML
	}
	if len(s) >= 12 && s[:4] == "RIFF" && s[8:12] == "WEBP" {
		return "a WebP image"
	}
	return ""
}

// ends has the extensions of files that are not read as rasters or tables. Archives hold such files.
var ends = map[string]string{
	".geojsonl": "GeoJSON", ".xlsx": "an Excel file", ".xls": "an Excel file",
	".ods": "a spreadsheet", ".shp": "a shapefile", ".dbf": "a shapefile", ".gpkg": "a GeoPackage",
	".kml": "KML", ".gml": "GML", ".fgb": "FlatGeobuf",
	".feather": "a Feather file", ".arrow": "an Arrow file", ".orc": "an ORC file", ".avro": "an Avro file",
	".db": "a database", ".sqlite": "a database", ".duckdb": "a database",
	".yaml": "YAML", ".yml": "YAML", ".pkl": "a pickle",
	".mdb": "an LMDB file", ".lmdb": "an LMDB file",
	".jp2": "a JPEG 2000 image", ".j2k": "a JPEG 2000 image",
	".img": "an Erdas Imagine (HFA) raster", ".ntf": "a NITF file", ".nitf": "a NITF file", ".ecw": "an ECW image",
	".hgt": "an SRTM raster", ".asc": "an ASCII grid", ".dem": "a DEM raster",
	".fits": "a FITS file",
	".webp": "a WebP image", ".gif": "a GIF image",
	".grib":  "a GRIB file",
	".grib2": "a GRIB file", ".grb": "a GRIB file", ".zip": ZIP, ".tar": "a tar archive",
	".gz": "a gzip file", ".tgz": "a tar archive", ".bz2": "a bzip2 file",
	".xz": "an xz file", ".7z": "a 7-Zip archive", ".pdf": "a PDF file",
}

// OfName names the kind of a file by its extension. It returns "" for unknown ones, and for rasters, Parquet and
// containers, whose extensions say no more than that chaski reads the file.
func OfName(name string) string {
	if format := Named(name); format.Class != Parquet && format.Class != Container && format.Noun != "" {
		return format.Noun
	}
	return ends[strings.ToLower(path.Ext(name))]
}

// Refusal says that the format of a file, by the extension of its name, is not read, and what makes it readable. It
// returns "" for formats that are read, and for files that hold neither rasters nor a table.
func Refusal(name string) string {
	if way := Way(name); way != "" {
		return OfName(name) + " is not read: " + way
	}
	return ""
}

// Way says how files of a format that is not read, by the extension of their name, become readable: a clause such as
// "unpack it", or "" for files that hold neither rasters nor a table.
func Way(name string) string {
	base := path.Base(name)
	switch noun := OfName(name); {
	case Named(name).Class != 0:
		return ""
	case noun == "an Excel file" || noun == "a spreadsheet":
		return "in Python, open it with pandas.read_excel and give the DataFrame"
	case slices.Contains(programNouns, noun):
		return "write its images to files, such as .npy by numpy.save"
	case noun == ends[".mdb"]:
		return "name its values in patterns, as in \"" + base + "/{id}\" or, of safetensors, \"" + base + "/{id}::KEY\""
	case strings.HasSuffix(base, ".tar"):
		return "unpack it, or name its members in patterns, as in \"" + base + "/{id}.tif\""
	case noun == ZIP, strings.Contains(noun, "archive"), noun == ends[".gz"], noun == ends[".bz2"], noun == ends[".xz"]:
		return "unpack it"
	case slices.ContainsFunc(gdalNouns, func(part string) bool { return strings.Contains(noun, part) }):
		return "convert it, as by 'gdal_translate -of COG " + base + " " +
			strings.TrimSuffix(base, path.Ext(base)) + ".tif'"
	}
	return ""
}

// programNouns are formats that programs keep samples in, and that only their libraries read.
var programNouns = []string{"a pickle", "a Feather file",
	"an Arrow file"}

// gdalNouns are parts of the names of formats of rasters, which GDAL reads.
var gdalNouns = []string{"image", "raster", "grid", "GRIB", "FITS", "NITF"}

// WithoutEnding returns a path without the ending of an image.
func WithoutEnding(name string) string {
	if class := Named(name).Class; !class.Pixels() && class != Store {
		return name
	}
	name = strings.TrimSuffix(name, ".zip") // NAME.zarr.zip
	return strings.TrimSuffix(name, path.Ext(name))
}
