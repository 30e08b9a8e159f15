package columns_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// valuesOf opens a table of one field "y" and returns its values, as fmt prints them.
func valuesOf(t *testing.T, name, text string, kind catalog.Kind) (out []string, holds catalog.Kind, err error) {
	t.Helper()
	tab, err := catalog.Open(t.Context(), name, []catalog.Source{{Field: "y", Kind: kind}},
		catalog.Options{Opener: folder.Memory{Name: name, Data: []byte(text)}})
	if err != nil {
		return nil, 0, err
	}
	defer tab.Close()
	for row := range tab.Len() {
		v, err := tab.Value(t.Context(), 0, row)
		if err != nil {
			return nil, 0, err
		}
		text := map[catalog.Kind]string{catalog.Int: fmt.Sprint(v.Int), catalog.Float: fmt.Sprint(v.Float),
			catalog.Text: v.Text}[tab.Kind(0)]
		if v.Null {
			text = "null"
		}
		out = append(out, text)
	}
	return out, tab.Kind(0), nil
}

// TestWordsOfCSV promises what the values of a column become, and that a whole number is never another one.
func TestWordsOfCSV(t *testing.T) {
	const large = "9223372036854775808"
	for _, c := range []struct {
		values string // separated by spaces; _ is empty
		asText bool   // the field wants strings
		kind   catalog.Kind
		want   string // "" for as they are
	}{
		{values: "True False True", kind: catalog.Int, want: "1 0 1"},
		{values: "true _ FALSE", kind: catalog.Int, want: "1 null 0"},
		{values: "True False", asText: true, kind: catalog.Text},
		{values: "True 0", kind: catalog.Text},
		{values: "True Yes", kind: catalog.Text},
		{values: "tRue False", kind: catalog.Text},
		{values: "1 9223372036854775807", kind: catalog.Int},
		{values: "1 _ " + large},
		{values: "-9223372036854775809"},
		{values: "1 " + large, asText: true, kind: catalog.Text},
		{values: "1.5 " + large, kind: catalog.Float, want: "1.5 9.223372036854776e+18"},
		{values: large + " 1.5", kind: catalog.Float, want: "9.223372036854776e+18 1.5"},
		{values: "1 99999999999999999999x", kind: catalog.Text},
		{values: "#1 #2", kind: catalog.Text},
	} {
		values := strings.Fields(c.values)
		wanted := catalog.Kind(0)
		if c.asText {
			wanted = catalog.Text
		}
		var lines, items strings.Builder
		for _, v := range values {
			fmt.Fprintf(&lines, "0,%s\n", strings.Replace(v, "_", "", 1))
			fmt.Fprintf(&items, `{"file_name": "a", "y": %s}`+"\n", strings.Replace(v, "_", "null", 1))
		}
		got, kind, err := valuesOf(t, "/t.csv", "x,y\n"+lines.String(), wanted)
		if c.kind == 0 {
			row := fmt.Sprintf("column y row %d: %s", len(values)-1, values[len(values)-1])
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), row) {
				t.Errorf("%s: %v, want an error about %s", c.values, err, row)
			}
			_, _, err = valuesOf(t, "/t.jsonl", items.String(), wanted)
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), row) {
				t.Errorf("items of %s: %v, want an error about %s", c.values, err, row)
			}
			continue
		}
		want := c.want
		if want == "" {
			want = c.values
		}
		if err != nil || kind != c.kind || strings.Join(got, " ") != want {
			t.Errorf("%s: %v of %v, %v; want %s of %v", c.values, got, kind, err, want, c.kind)
		}
	}
	// A column that nothing asks for hides no other one.
	if got, _, err := valuesOf(t, "/t.csv", "x,y\n"+large+",7\n", 0); err != nil || got[0] != "7" {
		t.Error(got, err)
	}
}

// TestCommentsAndEncodings promises that comments above a header are no header, and that all else which is no CSV in
// UTF-8 is said.
func TestCommentsAndEncodings(t *testing.T) {
	const text = "x,y\na,1\nb,2\n"
	encoded := func(order binary.AppendByteOrder, mark string) string {
		out := []byte(mark)
		for _, unit := range utf16.Encode([]rune(text)) {
			out = order.AppendUint16(out, unit)
		}
		return string(out)
	}
	for content, want := range map[string]string{
		text:                                 "",
		"\xef\xbb\xbf" + text:                "",
		"# made, by \"x\n#\n## y\n" + text:   "",
		"\xef\xbb\xbf# made by x\r\n" + text: "",
		"#! " + strings.Repeat("long ", 1<<15) + "\n" + text: "",
		"#x,y\na,1\nb,2\n":                               "",
		"#made by x\n" + text:                            "line 2: it has 2 values for 1 columns: the header begins",
		"x,y\na,1\n# note\nb,2\n":                        `line 3: it has 1 values for 2 columns: it begins with "#"`,
		"# only":                                         "no header line",
		encoded(binary.LittleEndian, "\xff\xfe"):         "it is UTF-16: save it as UTF-8",
		encoded(binary.BigEndian, "\xfe\xff"):            "it is UTF-16: save it as UTF-8",
		encoded(binary.LittleEndian, ""):                 "it is UTF-16: save it as UTF-8",
		encoded(binary.BigEndian, ""):                    "it is UTF-16: save it as UTF-8",
		"# " + strings.Repeat("x", 17<<20) + "\n" + text: "over 16777216 bytes",
	} {
		got, _, err := valuesOf(t, "/t.csv", content, 0)
		switch {
		case want == "" && (err != nil || strings.Join(got, " ") != "1 2"):
			t.Errorf("%.40q: %v, %v", content, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40q: %v, want an error with %q", content, err, want)
		}
	}
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe"} {
		got, _, err := valuesOf(t, "/t.jsonl", mark+`{"file_name": "a", "y": 1}`, 0)
		if mark == "\xff\xfe" != strings.Contains(fmt.Sprint(err), "UTF-16") || err == nil && got[0] != "1" {
			t.Errorf("%q: %v, %v", mark, got, err)
		}
	}
}
