package rows_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
)

// counted opens local files and counts the bytes that are read of them.
type counted struct {
	source.Files
	bytes atomic.Int64
}

func (c *counted) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := c.Files.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	return countedReader{r, c}, nil
}

type countedReader struct {
	source.Reader
	of *counted
}

func (r countedReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.of.bytes.Add(int64(len(p)))
	return r.Reader.ReadAt(ctx, p, off)
}

// TestWeightsOfAnyFile: of a file that is not one of weights no more is read than its begin, however long it is.
func TestWeightsOfAnyFile(t *testing.T) {
	for name, begin := range map[string]string{
		"zeros": "", "long header": rows.WeightsMagic + "\xff\xff\xff\x3f{}",
		"no JSON": rows.WeightsMagic + "\x02\x00\x00\x00[]",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "weights")
			if err := os.WriteFile(file, []byte(begin), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, 1<<30); err != nil {
				t.Skip(err) // the file system has no sparse files
			}
			files := &counted{}
			defer files.Close()
			o := resources.Options{Opener: files}
			if _, err := rows.OpenWeights(t.Context(), file, o, nil); fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%v", err)
			}
			if n := files.bytes.Load(); n > 1<<10 {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
}
