// Package magic names files that chaski does not read, for errors: by their first bytes, or by the end of their name.
package magic

import (
	"path"
	"strings"
)

// Head is how many bytes of a file OfBytes needs: the longest prefix below has 15.
const Head = 16

// starts lists first bytes. A prefix of another one would have to follow it; today none is.
var starts = []struct{ prefix, name string }{
	{"\x89PNG\r\n\x1a\n", "a PNG image"},
	{"\xff\xd8\xff", "a JPEG image"},
	{"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"},
	{"\xff\x4f\xff\x51", "a JPEG 2000 codestream"},
	{"\x00\x00\x00\x0cJXL ", "a JPEG XL image"},
	{"GIF8", "a GIF image"},
	{"EHFA_HEADER_TAG", "an Erdas Imagine (HFA) raster"},
	{"PCIDSK", "a PCIDSK raster"},
	{"NITF", "a NITF file"},
	{"ENVI", "the header of an ENVI raster"},
	{"Lerc2 ", "a LERC raster"},
	{"<VRTDataset", "a GDAL virtual raster (VRT)"},
	{"SIMPLE  =", "a FITS file"},
	{"\x89HDF\r\n\x1a\n", "an HDF5 or NetCDF 4 file"},
	{"\x0e\x03\x13\x01", "an HDF4 file"},
	{"CDF\x01", "a NetCDF file"},
	{"CDF\x02", "a NetCDF file"},
	{"CDF\x05", "a NetCDF file"},
	{"GRIB", "a GRIB file"},
	{"SQLite format 3", "an SQLite database (GeoPackage, MBTiles)"},
	{"PAR1", "a Parquet file"},
	{"ARROW1", "an Arrow file"},
	{"\x93NUMPY", "a NumPy array"},
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
// files and for rasters that chaski reads.
func OfBytes(head []byte) string {
	s := string(head[:min(len(head), Head)])
	for _, m := range starts {
		if strings.HasPrefix(s, m.prefix) {
			return m.name
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

var ends = map[string]string{
	".geojson": "GeoJSON", ".geojsonl": "GeoJSON", ".json": "JSON", ".jsonl": "JSON", ".ndjson": "JSON",
	".xlsx": "an Excel file", ".xls": "an Excel file",
	".ods": "a spreadsheet", ".shp": "a shapefile", ".dbf": "a shapefile", ".gpkg": "a GeoPackage",
	".kml": "KML", ".gml": "GML", ".fgb": "FlatGeobuf",
	".feather": "a Feather file", ".arrow": "an Arrow file", ".orc": "an ORC file", ".avro": "an Avro file",
	".db": "a database", ".sqlite": "a database", ".duckdb": "a database",
	".txt": "a text file", ".xml": "XML", ".yaml": "YAML", ".yml": "YAML", ".pkl": "a pickle",
	".pt": "a PyTorch file", ".npy": "a NumPy array", ".npz": "NumPy arrays",
	".png": "a PNG image", ".jpg": "a JPEG image", ".jpeg": "a JPEG image", ".jp2": "a JPEG 2000 image",
	".j2k": "a JPEG 2000 image", ".webp": "a WebP image", ".gif": "a GIF image",
	".bmp": "a BMP image", ".vrt": "a GDAL virtual raster (VRT)", ".nc": "a NetCDF file", ".h5": "an HDF5 file",
	".hdf5": "an HDF5 file", ".hdf": "an HDF file", ".grib": "a GRIB file",
	".grib2": "a GRIB file", ".grb": "a GRIB file", ".zip": ZIP, ".tar": "a tar archive",
	".gz": "a gzip file", ".tgz": "a tar archive", ".bz2": "a bzip2 file",
	".xz": "an xz file", ".7z": "a 7-Zip archive", ".pdf": "a PDF file",
}

// OfName names the kind of a file by its extension, or returns "".
func OfName(name string) string { return ends[strings.ToLower(path.Ext(name))] }
