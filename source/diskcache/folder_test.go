//go:build unix

package diskcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// contentOf returns the bytes of a version of an object, which no other has.
func contentOf(object, version int) []byte { return contents()[object][version] }

var contents = sync.OnceValue(func() (all [8][2][]byte) {
	for object := range all {
		for version := range all[object] {
			var out []byte
			for k := range objectBytes / 4 {
				out = binary.LittleEndian.AppendUint32(out, uint32(k<<8|object<<4|version))
			}
			all[object][version] = out
		}
	}
	return all
})

// objectBytes lets a range have several pages, and an object several buckets of the index.
const objectBytes = 3 * bucketBytes / 2

func openFolder(t rapid.TB, path string, quota int64) *Folder {
	f, err := Open(path, quota)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// onDisk returns the bytes of all blocks of a folder's files, without those that are always there.
func onDisk(t rapid.TB, path string) (n int64) {
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Dir(name) == path {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // an engine removed it meanwhile
			return nil
		}
		if err == nil {
			n += (info.Size() + blockBytes - 1) / blockBytes * blockBytes
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// damage flips a bit of a file, cuts it, empties it, or removes it.
func damage(t *rapid.T, path string) {
	var files []string
	_ = filepath.WalkDir(path, func(name string, e fs.DirEntry, _ error) error {
		if !e.IsDir() && filepath.Dir(name) != path {
			files = append(files, name)
		}
		return nil
	})
	if len(files) == 0 {
		return
	}
	name := rapid.SampledFrom(files).Draw(t, "file")
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		return
	}
	switch rapid.IntRange(0, 2).Draw(t, "damage") {
	case 0:
		b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	case 1:
		b = b[:rapid.IntRange(0, len(b)-1).Draw(t, "bytes")]
	case 2:
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAnyUse: whatever two engines read, keep, close and open, and whatever happens to the files, bytes from the folder
// are those of the object's version, and all files fit into the quota.
func TestAnyUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp("", "diskcache")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		quota := int64(rapid.IntRange(0, 3*objectBytes).Draw(t, "quota"))
		engines := make([]*Folder, 2)
		defer func() {
			for _, f := range engines {
				_ = f.Close()
			}
		}()
		damaged := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			k := rapid.IntRange(0, 1).Draw(t, "engine")
			if engines[k] == nil {
				if engines[k], err = Open(path, quota); err != nil {
					t.Fatal(err)
				}
			}
			f := engines[k]
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				engines[k] = nil
			case 1:
				damage(t, path)
				damaged = true
			default:
				id, version := rapid.IntRange(0, 2).Draw(t, "object"), rapid.IntRange(0, 1).Draw(t, "version")
				content := contentOf(id, version)
				from := rapid.IntRange(0, objectBytes-1).Draw(t, "from")
				end := rapid.IntRange(from+1, min(objectBytes, from+3*pageBytes)).Draw(t, "end")
				object := NameObject(string(rune('a'+id)), "", string(rune('0'+version)), objectBytes)
				got := make([]byte, end-from)
				missing := f.Read(object, got, int64(from))
				if missing.From < missing.End {
					if missing.From < int64(from) || missing.End > int64(end) {
						t.Fatalf("%v is missing of %d to %d", missing, from, end)
					}
					copy(got[missing.From-int64(from):], content[missing.From:missing.End])
				}
				if !bytes.Equal(got, content[from:end]) {
					t.Fatalf("wrong bytes of %d to %d, where %v was missing", from, end, missing)
				}
				f.Keep(object, got, int64(from))
			}
			// A file that lost bytes by damage is counted with those that it had.
			if n := onDisk(t, path); n > quota {
				t.Fatalf("%d bytes on disk, the quota is %d", n, quota)
			} else if f := engines[k]; f != nil && !damaged && f.Used() != n {
				t.Fatalf("%d bytes on disk, counted %d", n, f.Used())
			}
		}
	})
}

// TestSimulation: a simulation has the hits of a folder that one engine uses.
func TestSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp("", "diskcache")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		quota := int64(rapid.IntRange(0, 3*objectBytes).Draw(t, "quota"))
		f, simulation := openFolder(t, path, quota), NewSimulation(quota)
		defer f.Close()
		want := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "reads") {
			id := rapid.IntRange(0, 1).Draw(t, "object")
			from := rapid.IntRange(0, objectBytes-1).Draw(t, "from")
			end := rapid.IntRange(from+1, min(objectBytes, from+3*pageBytes)).Draw(t, "end")
			object := NameObject(string(rune('a'+id)), "", "tag", objectBytes)
			got := make([]byte, end-from)
			missing := f.Read(object, got, int64(from))
			f.Keep(object, contentOf(id, 0)[from:end], int64(from))
			want += int64(end-from) - missing.len()
			simulation.Read(object, Span{int64(from), int64(end)})
		}
		if simulation.HitBytes != want || f.Stats().HitBytes != want {
			t.Fatalf("the simulation has %d bytes of hits, the folder's counts %d, its reads %d",
				simulation.HitBytes, f.Stats().HitBytes, want)
		}
	})
}

// TestPinned: of a set three times the cache, read in any order again and again, the folder has a third.
func TestPinned(t *testing.T) {
	const chips, size = 60, 50_000
	f := openFolder(t, t.TempDir(), chips/3*costOf(size))
	defer f.Close()
	buffer := make([]byte, size)
	for epoch := range 3 {
		before := f.Stats().Hits
		for _, chip := range rand.New(rand.NewPCG(1, uint64(epoch))).Perm(chips) {
			object := NameObject(string(rune(chip)), "", "tag", size)
			if missing := f.Read(object, buffer, 0); missing.From < missing.End {
				f.Keep(object, buffer, 0)
			}
		}
		want := int64(chips / 3)
		if epoch == 0 {
			want = 0
		}
		if hits := f.Stats().Hits - before; hits != want {
			t.Errorf("epoch %d has %d hits, want %d", epoch, hits, want)
		}
	}
}

// TestOnlyACache: a folder that is none is not used, and nothing in it is touched.
func TestOnlyACache(t *testing.T) {
	path := t.TempDir()
	file := filepath.Join(path, "thesis.tex")
	testfile.Write(t, file, []byte("the only copy"))
	_, err := Open(path, 1<<30)
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("Open: %v", err)
	}
	if _, err := List(path); fault.KindOf(err) != fault.NotFound {
		t.Errorf("List: %v", err)
	}
	if err := Trim(path, 0); fault.KindOf(err) != fault.NotFound {
		t.Errorf("Trim: %v", err)
	}
	if entries, err := os.ReadDir(path); len(entries) != 1 || err != nil {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	testfile.Write(t, filepath.Join(path, marker), []byte(`{"version": 2}`))
	if _, err := Open(path, 1<<30); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("Open of another version: %v", err)
	}
}

// TestLinks: a folder that links into another one is refused, and nothing is removed there.
func TestLinks(t *testing.T) {
	path, other := t.TempDir(), t.TempDir()
	if err := openFolder(t, path, 1<<20).Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(other, partPrefix+"thesis")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(other, filepath.Join(path, "00"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, 1<<20); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("Open: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// plants put something into the place of a file of the cache, and return a check that nobody else's file has changed.
var plants = map[string]func(t *testing.T, name string) (check func() error){
	"link": func(t *testing.T, name string) func() error {
		victim := filepath.Join(t.TempDir(), "thesis.tex")
		const text = "the only copy"
		if err := errors.Join(os.WriteFile(victim, []byte(text), 0o600), os.Symlink(victim, name)); err != nil {
			t.Fatal(err)
		}
		return func() error {
			if b, err := os.ReadFile(victim); string(b) != text {
				return fmt.Errorf("the victim's file has %q, %w", b, err)
			}
			return nil
		}
	},
	"second name": func(t *testing.T, name string) func() error {
		victim := filepath.Join(filepath.Dir(filepath.Dir(name)), "thesis.tex")
		const text = "the only copy"
		if err := errors.Join(os.WriteFile(victim, []byte(text), 0o600), os.Link(victim, name)); err != nil {
			t.Fatal(err)
		}
		return func() error {
			if b, err := os.ReadFile(victim); string(b) != text {
				return fmt.Errorf("the victim's file has %q, %w", b, err)
			}
			return nil
		}
	},
	"dangling link": func(t *testing.T, name string) func() error {
		victim := filepath.Join(t.TempDir(), "autostart")
		if err := os.Symlink(victim, name); err != nil {
			t.Fatal(err)
		}
		return func() error {
			if _, err := os.Lstat(victim); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the victim has a new file, %w", err)
			}
			return nil
		}
	},
	"pipe": func(t *testing.T, name string) func() error {
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() error { return nil }
	},
	"3 GiB": func(t *testing.T, name string) func() error {
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 3<<30)); err != nil {
			t.Skip(err)
		}
		return func() error { return nil }
	},
	"cut": func(t *testing.T, name string) func() error {
		testfile.Write(t, name, nil)
		return func() error { return nil }
	},
}

// TestPlanted: whatever stands in the place of a file of the cache, no file of others is read or written, nothing
// waits, and the cache is used, listed and cleared without a hand.
func TestPlanted(t *testing.T) {
	object := NameObject("a", "", "tag", 5)
	for _, name := range []string{marker, usedName, liveName, readsName, nameOf(object, Span{0, 5})} {
		for what, plant := range plants {
			t.Run(name+" "+what, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "cache")
				f := openFolder(t, path, 1<<20)
				f.Keep(object, []byte("bytes"), 0)
				if err := errors.Join(f.Close(), os.Remove(filepath.Join(path, name))); err != nil {
					t.Fatal(err)
				}
				check := plant(t, filepath.Join(path, name))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if _, err := List(path); err != nil {
					t.Errorf("List: %v", err)
				}
				f, err := Open(path, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]byte, 5)
				for range 2 {
					if err := f.Fill(t.Context(), object, got, 0, func(p []byte, _ int64) error {
						copy(p, "bytes")
						return nil
					}); err != nil || string(got) != "bytes" {
						t.Errorf("%q, %v", got, err)
					}
				}
				if s := f.Stats(); s.Hits == 0 {
					t.Errorf("the cache is not used: %+v", s)
				}
				_, _, verify := Verify(path, func(int64) {})
				if err := errors.Join(verify, f.Close(), Trim(path, 0), check()); err != nil {
					t.Error(err)
				}
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
					t.Errorf("%d bytes were allocated", n)
				}
				if n := onDisk(t, path); n != 0 {
					t.Errorf("%d bytes are left", n)
				}
			})
		}
	}
}

// TestOthersFolder: a folder of another user is refused, and others lose the right to write to one's own.
func TestOthersFolder(t *testing.T) {
	path := t.TempDir()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := openFolder(t, path, 1<<20).Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		t.Skip("the rest needs root")
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	_, opened := Open(path, 1<<20)
	_, listed := List(path)
	for _, err := range []error{opened, listed, Trim(path, 0)} {
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Error(err)
		}
	}
}

// TestUnusable: a folder that the disk does not let be made or written does not end a run at its start.
func TestUnusable(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"below a folder that is gone", "/proc/chaski"} {
		var ref Ref
		ref.Set(path, 1<<20)
		f, err := ref.Get()
		if err != nil {
			t.Fatal(err)
		}
		object, got, asked := NameObject("a", "", "tag", 5), make([]byte, 5), 0
		for range 2 {
			err := f.Fill(t.Context(), object, got, 0, func(p []byte, _ int64) error {
				asked++
				copy(p, "bytes")
				return nil
			})
			if err != nil || string(got) != "bytes" {
				t.Errorf("%q, %v", got, err)
			}
		}
		if s := f.Stats(); asked != 2 || s.Failed != 1 || s.Misses == 0 || f.Used() != 0 || f.Has(object, Span{0, 5}) {
			t.Errorf("%d requests, %+v", asked, s)
		}
		if err := ref.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRights: a range that was read with other rights is not to be had.
func TestRights(t *testing.T) {
	f := openFolder(t, t.TempDir(), 1<<20)
	defer f.Close()
	f.Keep(NameObject("s3://bucket/a", "", "tag", 5), []byte("bytes"), 0)
	for _, o := range []Object{
		NameObject("s3://bucket/a", `["s3://bucket/b"]`, "tag", 5), NameObject("s3://bucket/b", "", "tag", 5),
		NameObject("s3://bucket/a", "", "other", 5), NameObject("s3://bucket/a", "", "tag", 6),
	} {
		if missing := f.Read(o, make([]byte, 5), 0); missing != (Span{0, 5}) {
			t.Errorf("of another object only %v is missing", missing)
		}
	}
}

// TestDiskFails: a disk that takes nothing costs hits, and no error.
func TestDiskFails(t *testing.T) {
	path := t.TempDir()
	f := openFolder(t, path, 1<<20)
	defer f.Close()
	object := NameObject("a", "", "tag", 5)
	dir := filepath.Dir(filepath.Join(path, nameOf(object, Span{0, 5})))
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no folder can be made there
		t.Fatal(err)
	}
	f.Keep(object, []byte("bytes"), 0)
	if s := f.Stats(); s.Failed != 1 || s.StoredBytes != 0 || f.Used() != 0 {
		t.Errorf("%+v, %d bytes used", s, f.Used())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	f.Keep(object, []byte("bytes"), 0)
	if s := f.Stats(); s.Failed != 1 || s.StoredBytes != 0 {
		t.Errorf("it was tried again at once: %+v", s)
	}
	f.paused = time.Time{}
	f.Keep(object, []byte("bytes"), 0)
	got := make([]byte, 5)
	if missing := f.Read(object, got, 0); missing != (Span{}) || string(got) != "bytes" {
		t.Errorf("%v is missing, got %q", missing, got)
	}
	all := Span{0, 5}
	if !f.Has(object, all) || f.Has(object, Span{0, 6}) {
		t.Error("it does not have what was read, or more")
	}
	if f.unread = time.Now().Add(time.Hour); f.Has(object, all) {
		t.Error("it has what may not be read")
	}
}

// TestIdleRangesMakeRoom: a full cache drops what nobody has read for a week, and nothing else.
func TestIdleRangesMakeRoom(t *testing.T) {
	path := t.TempDir()
	f := openFolder(t, path, 2*blockBytes)
	defer f.Close()
	idleOne, fresh, next := NameObject("a", "", "tag", 5), NameObject("b", "", "tag", 5), NameObject("c", "", "tag", 5)
	f.Keep(idleOne, []byte("aaaaa"), 0)
	f.Keep(fresh, []byte("bbbbb"), 0)
	f.Keep(next, []byte("ccccc"), 0)
	if s := f.Stats(); s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	old := time.Now().Add(-idle - time.Minute)
	if err := os.Chtimes(filepath.Join(path, nameOf(idleOne, Span{0, 5})), old, old); err != nil {
		t.Fatal(err)
	}
	f.reclaimed = time.Time{}
	f.Keep(next, []byte("ccccc"), 0)
	for o, want := range map[Object]bool{idleOne: false, fresh: true, next: true} {
		if missing := f.Read(o, make([]byte, 5), 0); (missing == Span{}) != want {
			t.Errorf("%x: missing is %v", o.uri, missing)
		}
	}
}

// TestSmallerQuota: a folder that is opened with a smaller quota keeps to it at once.
func TestSmallerQuota(t *testing.T) {
	path := t.TempDir()
	f := openFolder(t, path, 1<<30)
	for k := range 10 {
		f.Keep(NameObject(string(rune('a'+k)), "", "tag", 5), []byte("bytes"), 0)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFolder(t, path, 3*blockBytes)
	defer f.Close()
	if n := onDisk(t, path); n != 3*blockBytes || f.Used() != n {
		t.Errorf("%d bytes on disk, counted %d", n, f.Used())
	}
	c, err := List(path)
	if err != nil || c.Ranges != 3 || c.Objects != 3 || c.Bytes != 15 || c.Disk != 3*blockBytes {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestClear: nothing stays, whatever times the files have.
func TestClear(t *testing.T) {
	path := t.TempDir()
	f := openFolder(t, path, 1<<30)
	defer f.Close()
	object := NameObject("a", "", "tag", 5)
	f.Keep(object, []byte("bytes"), 0)
	later := time.Now().Add(24 * time.Hour) // as of a clock that was set back
	if err := os.Chtimes(filepath.Join(path, nameOf(object, Span{0, 5})), later, later); err != nil {
		t.Fatal(err)
	}
	if err := Trim(path, 0); err != nil || f.Used() != 0 || onDisk(t, path) != 0 {
		t.Errorf("%d bytes on disk, counted %d, %v", onDisk(t, path), f.Used(), err)
	}
}

// TestVerify: damaged ranges are found and removed, others stay.
func TestVerify(t *testing.T) {
	path := t.TempDir()
	f := openFolder(t, path, 1<<30)
	defer f.Close()
	content := contentOf(0, 0)
	good, bad := NameObject("good", "", "tag", objectBytes), NameObject("bad", "", "tag", objectBytes)
	f.Keep(good, content, 0)
	f.Keep(bad, content, 0)
	name := filepath.Join(path, nameOf(bad, Span{0, objectBytes}))
	b := testfile.Read(t, name)
	b[objectBytes/2] ^= 1
	testfile.Write(t, name, b)
	read := time.Now().Add(-2 * touchAfter)
	if err := os.Chtimes(filepath.Join(path, nameOf(good, Span{0, objectBytes})), read, read); err != nil {
		t.Fatal(err)
	}
	ranges, damaged, err := Verify(path, func(int64) {})
	if ranges != 2 || damaged != 1 || err != nil {
		t.Errorf("%d ranges, %d damaged, %v", ranges, damaged, err)
	}
	if c, err := List(path); err != nil || !c.Newest.Equal(read) {
		t.Errorf("the good range was read at %v, %v; a check is no read", c.Newest, err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the damaged range is still there: %v", err)
	}
	if n := onDisk(t, path); f.Used() != n || n != costOf(objectBytes) {
		t.Errorf("%d bytes on disk, counted %d", n, f.Used())
	}
}

// TestTogether: engines that read and keep the same ranges at the same time keep each once.
func TestTogether(t *testing.T) {
	path := t.TempDir()
	var engines sync.WaitGroup
	for range 4 {
		f := openFolder(t, path, 1<<30)
		defer f.Close()
		for range 2 {
			engines.Go(func() {
				got := make([]byte, objectBytes)
				for k := range 8 {
					object, content := NameObject(string(rune('a'+k)), "", "tag", objectBytes), contentOf(k, 0)
					missing := f.Read(object, got, 0)
					copy(got[missing.From:missing.End], content[missing.From:missing.End])
					if !bytes.Equal(got, content) {
						t.Errorf("wrong bytes, %v was missing", missing)
					}
					f.Keep(object, got, 0)
				}
			})
		}
	}
	engines.Wait()
	f := openFolder(t, path, 1<<30)
	defer f.Close()
	if n := onDisk(t, path); f.Used() != n || n != 8*costOf(objectBytes) {
		t.Errorf("%d bytes on disk, counted %d, want %d", n, f.Used(), 8*costOf(objectBytes))
	}
}

// TestRangesOfOthers: an engine has what another stored after both had opened the folder, also when it is full.
func TestRangesOfOthers(t *testing.T) {
	path := t.TempDir()
	first, second := openFolder(t, path, blockBytes), openFolder(t, path, blockBytes)
	defer first.Close()
	defer second.Close()
	object, got := NameObject("a", "", "tag", 5), make([]byte, 5)
	first.Keep(object, []byte("bytes"), 0)
	if missing := second.Read(object, got, 0); missing != (Span{}) || string(got) != "bytes" {
		t.Errorf("%v is missing, got %q", missing, got)
	}
}

// TestDeleted: an engine whose folder was deleted stores nothing into one that others have made there.
func TestDeleted(t *testing.T) {
	path := t.TempDir()
	old := openFolder(t, path, 2*blockBytes)
	defer old.Close()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	next := openFolder(t, path, 2*blockBytes)
	defer next.Close()
	for k, f := range []*Folder{next, next, old} {
		f.Keep(NameObject(string(rune('a'+k)), "", "tag", 5), []byte("bytes"), 0)
	}
	if n := onDisk(t, path); n != 2*blockBytes || next.Used() != n {
		t.Errorf("%d bytes on disk, counted %d", n, next.Used())
	}
	if s := old.Stats(); s.Failed != 1 {
		t.Errorf("the old engine has %+v", s)
	}
}

// TestKilled: what a killed engine left half written is gone, and its bytes do not count.
func TestKilled(t *testing.T) {
	path := t.TempDir()
	f := openFolder(t, path, 1<<20)
	f.Keep(NameObject("a", "", "tag", 5), []byte("bytes"), 0)
	if !f.used.take(1<<19, 1<<20) { // as store does before it writes
		t.Fatal("no room")
	}
	name := filepath.Join(path, nameOf(NameObject("a", "", "tag", 5), Span{0, 5}))
	part := filepath.Join(filepath.Dir(name), partPrefix+"1")
	testfile.Write(t, part, make([]byte, 100))
	_ = f.live.Close() // the system closes the files of a killed process
	_ = f.used.file.Close()
	f = openFolder(t, path, 1<<20)
	defer f.Close()
	if n := onDisk(t, path); f.Used() != n || n != blockBytes {
		t.Errorf("%d bytes on disk, counted %d", n, f.Used())
	}
}

// FuzzParseName: a file of any name in the folder is a range with that name, or none.
func FuzzParseName(f *testing.F) {
	f.Add(filepath.Base(nameOf(NameObject("a", "b", "c", 1), Span{1, 2})))
	f.Add("00-0-0-0")
	f.Add(strings.Replace(filepath.Base(nameOf(NameObject("a", "b", "c", 1), Span{1, 2})), "-1-2", "-+1-02", 1))
	f.Fuzz(func(t *testing.T, name string) {
		s, ok := parseName(name)
		if ok && (s.From < 0 || s.len() < 1 || s.len() > maxRange || filepath.Base(nameOf(s.Object, s.Span)) != name) {
			t.Errorf("%q is %v", name, s.Span)
		}
	})
}
