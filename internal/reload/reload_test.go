package reload

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	testfile.Write(t, path, []byte(text))
}

func joined(b [][]byte) (string, error) {
	if string(b[0]) == "bad" {
		return "", errors.New("is bad")
	}
	return string(b[0]) + string(b[1]), nil
}

// TestFiles promises that a change of any of the files is seen, also with equal size within one tick of the clock; and
// that a file that is broken or gone keeps the last value and is told once.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "1")
	write(t, b, "2")
	told := 0
	f, err := Open(joined, -1, func(error) { told++ }, a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, text, want string
		told             int
	}{
		{a, "1", "12", 0}, {a, "3", "32", 0}, {b, "4", "34", 0}, {a, "bad", "34", 1}, {a, "bad", "34", 1},
		{a, "5", "54", 1},
		{a, "bad", "54", 2},
	} {
		write(t, c.path, c.text)
		if got := f.Get(); got != c.want || told != c.told {
			t.Errorf("after %q: %q, told %d times; want %q, %d", c.text, got, told, c.want, c.told)
		}
	}
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	if got := f.Get(); got != "54" || told != 3 {
		t.Errorf("without the file: %q, told %d times", got, told)
	}
	write(t, a, string(make([]byte, maxBytes+1)))
	write(t, b, "4")
	if got := f.Get(); got != "54" || told != 4 {
		t.Errorf("with a huge file: %d bytes, told %d times", len(got), told)
	}
	if _, err := Open(joined, 0, func(error) {}, b, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// TestFilesAreReadAtIntervals promises that many calls read the files as seldom as one.
func TestFilesAreReadAtIntervals(t *testing.T) {
	a := filepath.Join(t.TempDir(), "a")
	write(t, a, "1")
	f, err := Open(func(b [][]byte) (string, error) { return string(b[0]), nil }, time.Hour, func(error) {}, a)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a, "2")
	if got := f.Get(); got != "1" {
		t.Errorf("the file was read within the interval: %q", got)
	}
}
