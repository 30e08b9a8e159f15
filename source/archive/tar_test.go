package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
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
			content, _ := io.ReadAll(archive)
			linked, there := want[unpacked(header.Linkname)]
			switch {
			case header.Typeflag == tar.TypeReg || header.Typeflag == tar.TypeCont:
				want[unpacked(header.Name)] = string(content)
			case header.Typeflag == tar.TypeLink && there:
				want[unpacked(header.Name)] = linked
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

// unpacked returns where a member lies in the directory that it is unpacked to.
func unpacked(name string) string {
	rel, _ := filepath.Rel("/", filepath.Join("/", name))
	return strings.TrimPrefix(rel, ".")
}

// TestTarMembers: hard links are files, names stay below the tar, and members that are sparse, or larger than the tar,
// are errors instead of left out.
func TestTarMembers(t *testing.T) {
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	add := func(name string, kind byte, link, text string) {
		err := w.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Linkname: link, Size: int64(len(text))})
		if _, failed := w.Write([]byte(text)); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
	}
	add("/etc/a", tar.TypeReg, "", "one")
	add("../../b", tar.TypeReg, "", "two")
	add("http://host/c", tar.TypeReg, "", "three")
	add("d//./e/../f", tar.TypeCont, "", "four")
	add("hard", tar.TypeLink, "./etc/a", "")
	add("lost", tar.TypeLink, "nowhere", "")
	add("soft", tar.TypeSymlink, "/etc/passwd", "")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := file.Bytes()
	directory, err := readTar(t.Context(), &corpus.Mem{B: b})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, member := range directory.members {
		got[name] = string(b[member.data.Load():][:member.Size])
	}
	want := map[string]string{"etc/a": "one", "b": "two", "http:/host/c": "three", "d/f": "four", "hard": "one"}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	// A header of GNU tar --sparse, and ones of a size of 2^63-1 that is no file: the members behind were left out.
	for kind, want := range map[byte]fault.Kind{tar.TypeGNUSparse: fault.Unsupported, 'V': fault.Corrupt,
		'Z': fault.Corrupt} {
		header := bytes.Clone(b[:512])
		header[156] = kind
		copy(header[257:], "ustar  \x00")
		if kind != tar.TypeGNUSparse {
			copy(header[124:136], "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff")
		}
		copy(header[148:156], "        ")
		sum := 0
		for _, c := range header {
			sum += int(c)
		}
		copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
		if _, err := readTar(t.Context(), &corpus.Mem{B: slices.Concat(header, b)}); fault.KindOf(err) != want {
			t.Errorf("type %q: %v, want %v", kind, err, want)
		}
	}
}

// onlyReader hides the methods with which package tar seeks.
type onlyReader struct{ io.Reader }
