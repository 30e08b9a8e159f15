package text_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/text"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/source"
)

// valuesOf reads the column "y" of a text as want says, and returns its values as fmt prints them, and their kind.
func valuesOf(t *testing.T, name, content string, want texts.Want) (out []string, holds tables.Kind, err error) {
	t.Helper()
	tab, err := text.Read(t.Context(), source.Memory([]byte(content)), name, func(name string) texts.Want {
		if name == "y" {
			return want
		}
		return texts.Skipped
	})
	if err != nil {
		return nil, 0, err
	}
	values, err := tab.Column(t.Context(), "y")
	if err != nil {
		return nil, 0, err
	}
	if holds = values.Kind(); holds == tables.Bool {
		holds = tables.Int64
	}
	for row := range tab.Len() {
		switch {
		case values.Null(row):
			out = append(out, "null")
		case holds == tables.Int64:
			out = append(out, fmt.Sprint(values.Int(row)))
		case holds == tables.Float64:
			out = append(out, fmt.Sprint(values.Float(row)))
		default:
			out = append(out, values.Str(row))
		}
	}
	return out, holds, nil
}

// TestWordsOfCSV promises what the values of a column become, and that a whole number is never another one.
func TestWordsOfCSV(t *testing.T) {
	const large = "9223372036854775808"
	for _, c := range []struct {
		values string // separated by spaces; _ is empty
		asText bool   // the field wants strings
		kind   tables.Kind
		want   string // "" for as they are
	}{
		{values: "True False True", kind: tables.Int64, want: "1 0 1"},
		{values: "true _ FALSE", kind: tables.Int64, want: "1 null 0"},
		{values: "True False", asText: true, kind: tables.String},
		{values: "True 0", kind: tables.String},
		{values: "True Yes", kind: tables.String},
		{values: "tRue False", kind: tables.String},
		{values: "1 9223372036854775807", kind: tables.Int64},
		{values: "1 _ " + large},
		{values: "-9223372036854775809"},
		{values: "1 " + large, asText: true, kind: tables.String},
		{values: "1.5 " + large, kind: tables.Float64, want: "1.5 9.223372036854776e+18"},
		{values: large + " 1.5", kind: tables.Float64, want: "9.223372036854776e+18 1.5"},
		{values: "1 99999999999999999999x", kind: tables.String},
		{values: "#1 #2", kind: tables.String},
	} {
		values := strings.Fields(c.values)
		wanted := texts.Values
		if c.asText {
			wanted = texts.Words
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
	if got, _, err := valuesOf(t, "/t.csv", "x,y\n"+large+",7\n", texts.Values); err != nil || got[0] != "7" {
		t.Error(got, err)
	}
}

// TestCommentsAndEncodings promises that comments above a header are no header, and that all else which is no CSV in
// UTF-8 is said.
func TestCommentsAndEncodings(t *testing.T) {
	const table = "x,y\na,1\nb,2\n"
	encoded := func(order binary.AppendByteOrder, mark string) string {
		out := []byte(mark)
		for _, unit := range utf16.Encode([]rune(table)) {
			out = order.AppendUint16(out, unit)
		}
		return string(out)
	}
	for content, want := range map[string]string{
		table:                                 "",
		"\xef\xbb\xbf" + table:                "",
		"\n# by \"x\n\n#\n## y\n" + table:     "",
		"\xef\xbb\xbf# made by x\r\n" + table: "",
		"#! " + strings.Repeat("long ", 1<<15) + "\n" + table: "",
		"#x,y\na,1\nb,2\n":                                "",
		"#made by x\n" + table:                            "line 2: it has 2 values for 1 columns: the header begins",
		"x,y\na,1\n# note\nb,2\n":                         `line 3: it has 1 values for 2 columns: it begins with "#"`,
		"# only":                                          "no header line",
		encoded(binary.LittleEndian, "\xff\xfe"):          "it is UTF-16: save it as UTF-8",
		encoded(binary.BigEndian, "\xfe\xff"):             "it is UTF-16: save it as UTF-8",
		encoded(binary.LittleEndian, ""):                  "it is UTF-16: save it as UTF-8",
		encoded(binary.BigEndian, ""):                     "it is UTF-16: save it as UTF-8",
		"# " + strings.Repeat("x", 17<<20) + "\n" + table: "over 16777216 bytes",
	} {
		got, _, err := valuesOf(t, "/t.csv", content, texts.Values)
		switch {
		case want == "" && (err != nil || strings.Join(got, " ") != "1 2"):
			t.Errorf("%.40q: %v, %v", content, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40q: %v, want an error with %q", content, err, want)
		}
	}
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe"} {
		got, _, err := valuesOf(t, "/t.jsonl", mark+`{"file_name": "a", "y": 1}`, texts.Values)
		if mark == "\xff\xfe" != strings.Contains(fmt.Sprint(err), "UTF-16") || err == nil && got[0] != "1" {
			t.Errorf("%q: %v, %v", mark, got, err)
		}
	}
}
