package rows_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/tools/testkit/counted"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestWeightsOfAnyFile: only the beginning of a file that holds no weights is read, however long it is.
func TestWeightsOfAnyFile(t *testing.T) {
	for name, begin := range map[string]string{
		"zeros": "", "long header": rows.WeightsMagic + "\xff\xff\xff\x3f{}",
		"no JSON": rows.WeightsMagic + "\x02\x00\x00\x00[]",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "weights")
			testfile.Write(t, file, []byte(begin))
			if err := os.Truncate(file, 1<<30); err != nil {
				t.Skip(err) // the file system has no sparse files
			}
			files := &counted.Files{}
			defer files.Close()
			o := resources.Options{Opener: files}
			if _, err := rows.OpenWeights(t.Context(), file, o, nil); fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%v", err)
			}
			if n := files.Bytes.Load(); n > 1<<10 {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
}
