package openers_test

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// tarred returns a tar of headers, whose sizes follow from their texts.
func tarred(t testing.TB, format tar.Format, headers []tar.Header, texts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i, header := range headers {
		header.Mode, header.Format, header.Size = 0o600, format, int64(len(texts[i]))
		err := w.WriteHeader(&header)
		if err == nil {
			_, err = w.Write([]byte(texts[i]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTars: members are read and listed, of the formats of GNU and of POSIX, with names of any length, and ZIPs in
// them. Of two with one name the last one counts.
func TestTars(t *testing.T) {
	long := strings.Repeat("long/", 50) + "a.txt"
	for _, format := range []tar.Format{tar.FormatGNU, tar.FormatPAX} {
		dir := t.TempDir()
		b := tarred(t, format, []tar.Header{{Name: "./a.txt"}, {Name: "d/", Typeflag: tar.TypeDir}, {Name: "d/b.txt"},
			{Name: long}, {Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a.txt"}, {Name: "in.zip"},
			{Name: "d/b.txt"}, {Name: "empty"}}, "hello", "", "old", "far", "",
			string(zipped(t, map[string]string{"x": "inmost"})), "new", "")
		err := os.WriteFile(filepath.Join(dir, "a.tar"), b, 0o600)
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, "folder.tar"), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "folder.tar/a.tar"), b, 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "folder.tar/a.txt"), []byte("plain"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		var files openers.Files
		defer files.Close()
		want := map[string]string{"a.txt": "hello", "d/b.txt": "new", long: "far", "empty": ""}
		for name, text := range want {
			if got, err := contents(&files, "/vsitar/"+dir+"/a.tar/"+name); err != nil || got != text {
				t.Errorf("%s: %q, want %q: %v", name, got, text, err)
			}
		}
		for name, text := range map[string]string{"/vsizip/{/vsitar/{" + dir + "/a.tar}/in.zip}/x": "inmost",
			source.InTar(dir+"/folder.tar/a.txt", os.Stat):       "plain",
			source.InTar(dir+"/folder.tar/a.tar/a.txt", os.Stat): "hello",
			source.InTar(dir+"/a.tar/a.txt", os.Stat):            "hello"} {
			if got, err := contents(&files, name); err != nil || got != text {
				t.Errorf("%s: %q, want %q: %v", name, got, text, err)
			}
		}
		var names []string
		err = openers.List(t.Context(), &files, source.TarName(dir+"/a.tar"), func(e source.Entry) error {
			if text, ok := want[e.Path]; ok && int64(len(text)) != e.Size {
				t.Errorf("%s: %d bytes", e.Path, e.Size)
			}
			names = append(names, e.Path)
			return nil
		})
		if all := slices.Sorted(maps.Keys(want)); err != nil || !slices.Equal(names, slices.Sorted(
			slices.Values(append(all, "in.zip")))) {
			t.Errorf("%q: %v", names, err)
		}
	}
}

// TestTarsThatAreNotRead: damaged and remote ones, and members that are not there.
func TestTarsThatAreNotRead(t *testing.T) {
	b := tarred(t, tar.FormatGNU, []tar.Header{{Name: "a"}, {Name: "b"}}, strings.Repeat("x", 600), "y")
	flipped := bytes.Clone(b)
	flipped[0] ^= 1
	var files openers.Files
	defer files.Close()
	for _, c := range []struct {
		bytes []byte
		name  string
		kind  fault.Kind
	}{{b, "c", fault.NotFound}, {b[:700], "a", fault.Corrupt}, {flipped, "a", fault.Corrupt},
		{b[:1537], "a", fault.Corrupt}, {b[:1200], "a", fault.Corrupt}} {
		path := filepath.Join(t.TempDir(), "a.tar")
		testfile.Write(t, path, c.bytes)
		if got, err := contents(&files, "/vsitar/"+path+"/"+c.name); fault.KindOf(err) != c.kind {
			t.Errorf("%d bytes: %q, %v, want %v", len(c.bytes), got, err, c.kind)
		}
	}
	_, err := contents(inStore(b), "/vsitar//vsis3/b/a.zip/a")
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "download it") {
		t.Errorf("a remote one: %v", err)
	}
}
