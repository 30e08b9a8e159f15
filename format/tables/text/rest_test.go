package text_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/text"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/source"
)

// columnsOf reads columns of a text as they are written.
func columnsOf(t *testing.T, name, content string, columns ...string) (out [][]string, err error) {
	t.Helper()
	tab, err := text.Read(t.Context(), source.Memory([]byte(content)), name, func(name string) texts.Want {
		if slices.Contains(columns, name) {
			return texts.Written
		}
		return texts.Skipped
	})
	if err != nil {
		return nil, err
	}
	for _, name := range columns {
		values, err := tab.Column(t.Context(), name)
		if err != nil {
			return nil, err
		}
		var column []string
		for row := range tab.Len() {
			column = append(column, values.Str(row))
		}
		out = append(out, column)
	}
	return out, nil
}

// TestRestOfTheLine: a column with "+" behind its name has the rest of each line, whatever separates values, and lines
// whose values do not fit are refused with their number.
func TestRestOfTheLine(t *testing.T) {
	for _, c := range []struct{ name, content, columns, want string }{
		{"a.csv", "image,caption\na.jpg,a dog, a cat and a tree\n\nb.jpg,one\r\n", "image caption+",
			"[[a.jpg b.jpg] [a dog, a cat and a tree one]]"},
		{"a.csv", "image, caption\na.jpg, a dog, a cat\nb.jpg, \"c, \"\"d\"\"\"\n", "image caption+",
			`[[a.jpg b.jpg] [a dog, a cat c, "d"]]`},
		{"a.csv", "image,caption\n\"a,b.jpg\",a \"big\" dog, 5\" tall", "image caption+",
			`[[a,b.jpg] [a "big" dog, 5" tall]]`},
		{"a.csv", "id,image,caption\n1,a.jpg,x,y,\n2,b.jpg,\n", "caption+ image", "[[x,y, ] [a.jpg b.jpg]]"},
		{"a.csv", "a.jpg,a dog, a cat\nb.jpg,one\n", "0 1+", "[[a.jpg b.jpg] [a dog, a cat one]]"},
		{"a.tsv", "\n\na.jpg\ta dog\ta cat\nb.jpg\tone", "1+", "[[a dog\ta cat one]]"},
		{"a.csv", "\r\n\na.jpg,a dog, a cat\nb.jpg,\"c, d\"", "0 1+", "[[a.jpg b.jpg] [a dog, a cat c, d]]"},
		{"a.csv", "\n\na.jpg,\"a b\"\n", "0 1", "[[a.jpg] [a b]]"},
		{"a.csv", "\nimage;caption\na.jpg;x\n", "caption", "[[x]]"},
		{"a.tsv", "image\tcaption\na.jpg\ta, b\tc\n", "image caption+", "[[a.jpg] [a, b\tc]]"},
		{"a.csv", "image;caption\na.jpg;a, b;c\n", "image caption+", "[[a.jpg] [a, b;c]]"},
		{"a.txt", "a.jpg a dog  and a cat\nb.jpg one, two\n", "0 1+", "[[a.jpg b.jpg] [a dog and a cat one, two]]"},
		{"a.csv", "# made\nimage,caption\na.jpg,x,y\n", "caption+", "[[x,y]]"},
		{"a.csv", "image,caption+\na.jpg,x\n", "caption+", "[[x]]"},
		{"a.csv", "image,caption\na.jpg,x,y\n", "caption", `line 2: it has 3 values for 2 columns: if "caption" ` +
			`has texts with ',' in them and no quotes, name it "caption+", the rest of each line`},
		{"a.csv", "image,caption+\na.jpg,x,y\n", "caption+", "line 2: it has 3 values for 2 columns"},
		{"a.csv", "image,caption,split\na.jpg,x,y\n", "caption+", `column caption+: it is the rest of each line, and ` +
			`the column "split" stands behind it`},
		{"a.csv", "image,caption\na.jpg,x\nb.jpg\n", "caption+", "line 3: it has 1 values for 2 columns"},
		{"a.csv", "image,caption\na.jpg,\"x\" y, z\n", "caption+", "line 2: text stands behind a value in quotes"},
		{"a.csv", "image,caption\na.jpg,\"x\ny\"\n", "caption+", "line 2: a value in quotes does not end in its line"},
		{"a.csv", "image,caption\n\"a.jpg\"b,x\n", "caption+", "line 2: it has 1 values for 2 columns, or text behind"},
		{"a.csv", "a.jpg," + strings.Repeat("long word, ", 1<<12) + "\n", "1+", "line 1: over 32768 bytes"},
	} {
		got, err := columnsOf(t, c.name, c.content, strings.Fields(c.columns)...)
		if said := fmt.Sprint(got); err == nil && said != c.want {
			t.Errorf("%q: %s, want %s", c.content, said, c.want)
		}
		if err != nil && (!strings.Contains(err.Error(), c.want) || fault.KindOf(err) == 0) {
			t.Errorf("%.99q: %v, want %s", c.content, err, c.want)
		}
	}
}

// TestRestOfRandomLines: values without separators are those of strings.SplitN, and values in quotes those that
// encoding/csv has written.
func TestRestOfRandomLines(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	word := func(letters string) string {
		out := make([]byte, r.IntN(12))
		for i := range out {
			out[i] = letters[r.IntN(len(letters))]
		}
		return string(out)
	}
	for range 200 {
		var b bytes.Buffer
		quoted := csv.NewWriter(&b)
		var want [3][]string
		lines := "a,b,c\n"
		for range 20 {
			if r.IntN(2) == 0 {
				line := "x" + word(`ab "`) + ",y" + word("ab'") + ",z" + word(`a," '`)
				lines += line + "\n"
				for i, v := range strings.SplitN(line, ",", 3) {
					want[i] = append(want[i], v)
				}
				continue
			}
			record := []string{word(`a," `), word(`a,"`), word(`a,"`)}
			b.Reset()
			if err := quoted.Write(record); err != nil {
				t.Fatal(err)
			}
			quoted.Flush()
			lines += b.String()
			for i, v := range record {
				want[i] = append(want[i], v)
			}
		}
		got, err := columnsOf(t, "a.csv", lines, "a", "b", "c+")
		if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%s: %q, want %q, %v", lines, got, want, err)
		}
	}
}
