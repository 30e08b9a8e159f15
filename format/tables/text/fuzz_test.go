package text_test

import (
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/text"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/source"
)

// FuzzText reads texts of each ending, with all columns and with the last one as the rest of each line: each is a
// table, all of whose columns have a value for each row, or an error with a kind.
func FuzzText(f *testing.F) {
	endings := []string{".csv", ".tsv", ".txt", ".json", ".jsonl", ".geojson", ".xml"}
	for i, content := range []string{
		"image,caption\na.jpg,a dog, a cat\nb.jpg,\"c, \"\"d\"\"\"\r\n", "\n\na.jpg\tx\ty\n", "# made\na.jpg a  dog\n",
		`{"images":[{"id":1,"raw":["x","y"]},{"id":2}]}`, "{\"a\":1}\n{\"a\":[2,null]}\n",
		`{"type":"FeatureCollection","features":[{"properties":{"a":1}}]}`, "<a><b c='1'>x</b><b/></a>",
	} {
		f.Add(content, uint8(i), "caption+")
		f.Add(content, uint8(i), "1+")
	}
	f.Fuzz(func(t *testing.T, content string, ending uint8, rest string) {
		name := "a" + endings[int(ending)%len(endings)]
		for _, want := range []func(string) texts.Want{
			func(string) texts.Want { return texts.Written },
			func(name string) texts.Want {
				if name == rest || name == "0" {
					return texts.Written
				}
				return texts.Skipped
			},
		} {
			table, err := text.Read(t.Context(), source.Memory([]byte(content)), name, want)
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatalf("%s: %v has no kind", name, err)
				}
				continue
			}
			for _, column := range []string{rest, "0"} {
				values, err := table.Column(t.Context(), column)
				if err != nil {
					continue // no such column, or one of several kinds
				}
				for row := range table.Len() {
					_ = values.Str(row)
				}
			}
		}
	})
}
