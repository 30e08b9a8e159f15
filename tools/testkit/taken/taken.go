// Package taken bounds the memory that parsers of texts take: files are strangers', and a small one must not become
// large. Fuzz targets of parsers call Check, and tests parse the texts of XML, JSON, CSV and WKT.
package taken

import (
	"runtime"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// Room is what a parse may take, whatever it reads: 4 buffers of 64 KiB, which readers and decompressors have.
const Room = 256 << 10

// Factors: how many bytes a parse may take for each that it reads. Most of what encoding/xml and encoding/json allocate
// is garbage: they make a token of each tag of 4 bytes, and of each number.
const (
	Factor     = 16
	FactorXML  = 72
	FactorJSON = 72  // of token by token; of whole values Factor holds
	FactorRows = 160 // of tables: a row of two bytes, or an item of seven, has 8 in each of some slices that double
	FactorSQL  = 512 // a word of one byte becomes a node of 100 in a slice that doubles; questions have at most 2 MiB
)

// Check calls parse, and fails if it allocates more than factor bytes for each of the n bytes that it reads, and Room.
// What it frees counts, too, so that its memory is less at any time. Under the race detector nothing is checked.
func Check(t testing.TB, n int, factor uint64, parse func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parse()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > factor*uint64(n)+Room && !race.Enabled {
		t.Errorf("%d bytes take %d, %.1f for each, at most %d", n, got, float64(got)/float64(max(n, 1)), factor)
	}
}

// size is how long the texts are: the parts of each take far more than Room.
const size = 256 << 10

// form is how a text begins, and the part that it repeats.
type form [2]string

// texts returns texts of a beginning and as many parts as fit.
func texts(forms ...form) (out []string) {
	for _, f := range forms {
		out = append(out, f[0]+strings.Repeat(f[1], (size-len(f[0]))/len(f[1])))
	}
	return out
}

// XML returns texts of many parts inside an element, which may have attributes: "<a b='1'>".
func XML(element string) []string {
	open := strings.TrimSuffix(element, ">")
	return texts(form{open, " a"}, form{open, ` a=""`}, form{open, " a:b='1'"}, form{element, "<a>"},
		form{element, "<a/>"}, form{element, "<a>1</a>"}, form{element, "&amp;"}, form{element, "x"},
		form{element, "<!---->"}, form{element, "<![CDATA[]]>"}, form{element, "<?a?>"},
		form{"<!DOCTYPE a [", `<!ENTITY a "b">`}, form{"<", "a"}, form{element, "<"})
}

// JSON returns texts of many parts behind a beginning, which opens an array: `{"shapes":[`.
func JSON(array string) []string {
	object := strings.TrimSuffix(array, "[")
	return texts(form{array, "["}, form{object, `{"a":`}, form{array, "[],"}, form{array, "{},"},
		form{array, "0,"}, form{array, `"",`}, form{array, "null,"}, form{array, `{"":0},`},
		form{object + "{", `"":0,`}, form{object + `"`, `\u0000`}, form{object, "1"},
		form{object + `"`, "x"}, form{array, " "})
}

// CSV returns tables of many parts below the names of columns.
func CSV(names string) []string {
	return texts(form{names, ","}, form{names + "\n", ","}, form{names + "\n", "\n"},
		form{names + "\n", "1\n"}, form{names + "\n", ",\n"}, form{names + "\n\"", `""`},
		form{names + "\n", `"",`}, form{names + "\n", "x"}, form{names, ",a"})
}

// WKT returns texts of many parts, of coordinate systems and geometries.
func WKT() []string {
	return texts(form{"", "A["}, form{`GEOGCS["a",`, `UNIT["b",1],`}, form{`GEOGCS["`, `""`},
		form{"GEOGCS[", "1,"}, form{"", "("}, form{"POLYGON (", "("}, form{"MULTIPOINT (", "0 0,"},
		form{"GEOMETRYCOLLECTION (", "POINT EMPTY,"}, form{"", "GEOMETRYCOLLECTION ("},
		form{"POLYGON (", "(),"}, form{"POINT (", "1"}, form{"EPSG:", "1"}, form{"+proj=", "+a=1 "},
		form{"", " "})
}

// SQL returns conditions of many parts.
func SQL() []string {
	return texts(form{"", "("}, form{"", "not "}, form{"", "a=1 and "}, form{"", "-"},
		form{"", "1+"}, form{"", "a,"}, form{"a in (", "1,"}, form{"a = '", "''"},
		form{"", "case when "}, form{"a like '", "%"}, form{`"`, `""`}, form{"", "f("},
		form{"", "a."}, form{"", "1"}, form{"(", "select * from ("}, form{"--", "-"},
		form{"/*", "*"}, form{"", "["}, form{"", "a between 1 and "}, form{"1 union ", "select 1 union "})
}
