package archive

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// FuzzTar reads tars of any bytes. Members have the bytes that package tar reads one after the other.
func FuzzTar(f *testing.F) {
	for _, format := range []tar.Format{tar.FormatGNU, tar.FormatPAX} {
		var file bytes.Buffer
		w := tar.NewWriter(&file)
		for _, name := range []string{strings.Repeat("a", 120), "a"} {
			err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Format: format, Size: 5})
			if _, failed := w.Write([]byte("hello")); err != nil || failed != nil {
				f.Fatal(err, failed)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		b := file.Bytes()
		f.Add(b)
		f.Add(b[:len(b)-1100])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		directory, err := readTar(t.Context(), &corpus.Mem{B: b})
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
		want := map[string]string{}
		for archive := tar.NewReader(onlyReader{bytes.NewReader(b)}); err == nil; {
			header, failed := archive.Next()
			if failed != nil {
				break
			}
			if content, _ := io.ReadAll(archive); header.Typeflag == tar.TypeReg {
				want[strings.TrimPrefix(header.Name, "./")] = string(content)
			}
		}
		if err != nil {
			return
		}
		if len(directory.members) != len(want) {
			t.Fatalf("%d members, want %d", len(directory.members), len(want))
		}
		for name, member := range directory.members {
			if got := string(b[member.data.Load():][:member.Size]); got != want[name] {
				t.Errorf("%q: %q, want %q", name, got, want[name])
			}
		}
	})
}

// onlyReader hides the methods with which package tar seeks.
type onlyReader struct{ io.Reader }
