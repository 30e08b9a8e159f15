package build_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// memory is a store in memory, whose requests fail from number fail on, as often as times says: before they have an
// effect or, if late, afterwards.
type memory struct {
	mu          sync.Mutex
	objects     map[string]string
	open        int // objects that are begun and not ended
	n           int
	fail, times int
	late        bool
	largest     int // of Put
}

var errStore = errors.New("the store failed")

// do makes a request.
func (m *memory) do(effect func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	fails := m.fail > 0 && m.n >= m.fail && m.n < m.fail+m.times
	if !fails || m.late {
		effect()
	}
	if fails {
		return errStore
	}
	return nil
}

func (m *memory) Create(_ context.Context, uri string, _ int64) (build.Object, error) {
	if err := m.do(func() { m.open++ }); err != nil {
		if m.late {
			m.open--
		}
		return nil, err
	}
	return &growing{m: m, uri: uri}, nil
}

func (m *memory) Put(_ context.Context, uri string, b []byte) error {
	return m.do(func() { m.objects[uri], m.largest = string(b), max(m.largest, len(b)) })
}

func (m *memory) Get(_ context.Context, uri string) (b []byte, err error) {
	have, ok := "", false
	if err := m.do(func() { have, ok = m.objects[uri] }); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "object", fault.NoOffset, "is not there")
	}
	return []byte(have), nil
}

func (m *memory) List(_ context.Context, prefix string, each func(uri string) error) error {
	var names []string
	if err := m.do(func() { names = slices.Sorted(maps.Keys(m.objects)) }); err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if err := each(name); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Delete(_ context.Context, uri string) error {
	return m.do(func() { delete(m.objects, uri) })
}

// growing is an object. It refuses what is not held, and what is held too long, as an upload in parts has to.
type growing struct {
	m     *memory
	uri   string
	b     bytes.Buffer
	held  [][2]int64
	ended bool
}

func (g *growing) Hold(at, n int64) {
	if at < int64(g.b.Len()) {
		panic("bytes are held after they are written")
	}
	g.held = append(g.held, [2]int64{at, n})
}

func (g *growing) Write(p []byte) (int, error) {
	if err := g.m.do(func() {}); err != nil {
		return 0, err
	}
	if len(g.held) > 8 {
		return 0, errors.New("more is held than memory has room for")
	}
	return g.b.Write(p)
}

func (g *growing) WriteAt(p []byte, at int64) (int, error) {
	i := slices.Index(g.held, [2]int64{at, int64(len(p))})
	if i < 0 || at+int64(len(p)) > int64(g.b.Len()) {
		return 0, errors.New("bytes are written again that are not held, or not written yet")
	}
	g.held = slices.Delete(g.held, i, i+1)
	if err := g.m.do(func() {}); err != nil {
		return 0, err
	}
	return copy(g.b.Bytes()[at:], p), nil
}

func (g *growing) Commit() error {
	if len(g.held) > 0 {
		return errors.New("bytes are still held")
	}
	err := g.m.do(func() { g.m.objects[g.uri] = g.b.String() })
	if !g.ended {
		g.m.open--
	}
	g.ended = true
	return err
}

func (g *growing) Abort() error {
	if !g.ended {
		g.m.open--
	}
	g.ended = true
	return nil
}

// opener opens the objects of the store, as an index of ZIPs needs it.
type opener struct {
	m     *memory
	files source.Files
	dir   string
}

func (o *opener) Open(ctx context.Context, uri string) (source.Reader, error) {
	if !source.IsRemote(uri) {
		return o.files.Open(ctx, uri)
	}
	o.m.mu.Lock()
	b, ok := o.m.objects[uri]
	o.m.mu.Unlock()
	if !ok {
		return nil, fault.New(fault.NotFound, "object", fault.NoOffset, "is not there")
	}
	f, err := os.CreateTemp(o.dir, "object")
	if err == nil {
		_, err = f.WriteString(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, err
	}
	return o.files.Open(ctx, f.Name())
}

// storeForms are the forms that a store can have, each with the object that is there when all others are.
var storeForms = map[string]struct {
	o    build.Options
	last string
}{
	"x.tacozip":   {build.Options{}, ""},
	"x.taco3.zip": {build.Options{}, ""},
	"x.taco3":     {build.Options{Form: build.CozipFolder}, "COLLECTION.json"},
	"parts3":      {build.Options{Form: build.Cozip, PartBytes: 1000}, ".tacocat/COLLECTION.json"},
	"x.tortilla":  {build.Options{}, ""},
	"folder":      {build.Options{Form: build.Folder}, "COLLECTION.json"},
	"parts":       {build.Options{Form: build.Folder, PartBytes: 1000}, ".tacocat/COLLECTION.json"},
	"tortillas":   {build.Options{Form: build.TortillaFile, PartBytes: 1000}, ""},
}

// large returns samples of which one file is copied in pieces.
func large() *build.Taco {
	set := tiles(1, 3)
	set.Samples.Samples[1].Children.Samples[0].Bytes = bytes.Repeat([]byte("chip"), 300_000)
	return set
}

// localFiles returns what Create writes to the local disk, by what follows the name.
func localFiles(t *testing.T, name string, set *build.Taco, o build.Options) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if _, err := build.Create(t.Context(), set, path, o); err != nil {
		t.Fatal(name, err)
	}
	out := map[string]string{}
	err := filepath.WalkDir(path, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(file)
		out[filepath.ToSlash(strings.TrimPrefix(file, path))] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStoreFails: whichever request to a store fails, with or without effect, a container of one object is the old one
// after an error that came before its end, and a folder has what makes it a container only if it has all the rest. No
// object stays begun, and another run then gives the bytes of a local container.
func TestStoreFails(t *testing.T) {
	for name, form := range storeForms {
		want := map[string]string{}
		uri := "s3://bucket/set/" + name
		for file, b := range localFiles(t, name, large(), form.o) {
			want[uri+file] = b
		}
		for _, late := range []bool{false, true} {
			for _, times := range []int{1, 1000} {
				step := 1 // all requests fail once, and of the other ways each third one
				switch {
				case testing.Short():
					step = 7
				case late || times > 1:
					step = 3
				}
				for fail := 1; ; fail += step {
					m := &memory{objects: map[string]string{}, fail: fail, times: times, late: late}
					if len(want) == 1 {
						m.objects[uri] = "old"
					}
					o := form.o
					o.Store, o.Opener, o.Workers = m, &opener{m: m, dir: t.TempDir()}, 2
					_, err := build.Create(t.Context(), large(), uri, o)
					failed := m.n >= fail
					m.checkState(t, uri, form.last, want, err)
					if m.fail = 0; err != nil {
						_, err := build.Create(t.Context(), large(), uri, o)
						m.checkAfter(t, uri, want, err)
					}
					if !failed {
						if err != nil || fail < 4 {
							t.Fatalf("%s: %d requests, %v", name, m.n, err)
						}
						break
					}
				}
			}
		}
	}
}

// has reports whether all objects are there.
func (m *memory) has(want map[string]string) bool {
	for uri, b := range want {
		if m.objects[uri] != b {
			return false
		}
	}
	return true
}

// checkState checks what is there after a run that ended with err.
func (m *memory) checkState(t *testing.T, uri, last string, want map[string]string, err error) {
	t.Helper()
	names := slices.Sorted(maps.Keys(m.objects))
	old, is := m.objects[uri]
	switch {
	case m.open != 0:
		t.Fatalf("%s, request %d: %d objects are begun and not ended", uri, m.fail, m.open)
	case err == nil && !maps.Equal(m.objects, want):
		t.Fatalf("%s, request %d: objects %v", uri, m.fail, names)
	case is && old != "old" && !m.has(want):
		t.Fatalf("%s, request %d: neither old nor new: %v", uri, m.fail, err)
	case last != "" && m.objects[uri+"/"+last] != "" && !m.has(want):
		t.Fatalf("%s, request %d: a container without its files %v: %v", uri, m.fail, names, err)
	}
}

// checkAfter checks what is there after another run, which may refuse a folder that was complete.
func (m *memory) checkAfter(t *testing.T, uri string, want map[string]string, err error) {
	t.Helper()
	if err != nil && !m.has(want) {
		t.Fatalf("%s, after a failure: %v", uri, err)
	}
	delete(m.objects, uri+"/.chaski-unfinished") // of a folder that was complete but for that
	if !maps.Equal(m.objects, want) {
		t.Fatalf("%s, after a failure: objects %v", uri, slices.Sorted(maps.Keys(m.objects)))
	}
}

// TestStoreFolderIsNew: what a run did not write itself stays: a folder with other objects is refused, and a run that
// another has overtaken ends with an error and removes nothing.
func TestStoreFolderIsNew(t *testing.T) {
	m := &memory{objects: map[string]string{"s3://bucket/set/note": "n"}}
	o := build.Options{Form: build.Folder, Store: m}
	if _, err := build.Create(t.Context(), tiles(1, 2), "s3://bucket/set", o); !errors.Is(err, fault.Unsupported) ||
		len(m.objects) != 1 {
		t.Errorf("%v, objects %v", err, m.objects)
	}
	delete(m.objects, "s3://bucket/set/note")
	o.Progress = func(done, total int) {
		if done == total {
			m.mu.Lock()
			m.objects["s3://bucket/set/.chaski-unfinished"] = "another run"
			m.mu.Unlock()
		}
	}
	if _, err := build.Create(t.Context(), tiles(1, 2), "s3://bucket/set", o); !errors.Is(err, fault.Unsupported) ||
		m.objects["s3://bucket/set/.chaski-unfinished"] == "" || m.objects["s3://bucket/set/COLLECTION.json"] != "" {
		t.Errorf("%v, objects %v", err, slices.Sorted(maps.Keys(m.objects)))
	}
	o.Progress = nil
	m.objects["s3://bucket/set/DATA/left"] = "of the run that was interrupted"
	if _, err := build.Create(t.Context(), tiles(1, 2), "s3://bucket/set", o); err != nil ||
		m.objects["s3://bucket/set/DATA/left"] != "" {
		t.Errorf("%v, objects %v", err, slices.Sorted(maps.Keys(m.objects)))
	}
	if _, err := build.Create(t.Context(), tiles(1, 2), "s3://bucket/set/", o); !errors.Is(err, fault.Unsupported) {
		t.Errorf("written over another: %v", err)
	}
}

// TestStoreKeepsComplete: a container that is complete but for the removal of .chaski-unfinished, as a kill leaves it,
// is not removed by a run of any other form.
func TestStoreKeepsComplete(t *testing.T) {
	for name, first := range storeForms {
		if first.last == "" {
			continue
		}
		for other, second := range storeForms {
			if second.o.Form == build.Auto { // one object, beside the folder
				continue
			}
			o := first.o
			m := &memory{objects: map[string]string{}}
			o.Store, o.Opener = m, &opener{m: m, dir: t.TempDir()}
			if _, err := build.Create(t.Context(), large(), "s3://bucket/set", o); err != nil {
				t.Fatal(name, err)
			}
			m.objects["s3://bucket/set/.chaski-unfinished"] = "a run that was killed"
			before := maps.Clone(m.objects)
			o = second.o
			o.Store, o.Opener = m, &opener{m: m, dir: t.TempDir()}
			_, err := build.Create(t.Context(), large(), "s3://bucket/set", o)
			if !errors.Is(err, fault.Unsupported) || !maps.Equal(m.objects, before) {
				t.Errorf("%s over %s: %v, %d of %d objects", other, name, err, len(m.objects), len(before))
			}
		}
	}
}

// together opens files once a second one is being opened, too.
type together struct {
	source.Files
	mu      sync.Mutex
	waiting chan struct{}
}

func (o *together) Open(ctx context.Context, uri string) (source.Reader, error) {
	o.mu.Lock()
	other := o.waiting
	if o.waiting = nil; other == nil {
		o.waiting = make(chan struct{})
		other = o.waiting
		o.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, errors.New("files are opened one after the other")
		}
		return o.Files.Open(ctx, uri)
	}
	o.mu.Unlock()
	close(other)
	return o.Files.Open(ctx, uri)
}

// TestStoreOpensTogether: files are opened by several workers also where only their sizes are asked for: each takes a
// request if they are in a store.
func TestStoreOpensTogether(t *testing.T) {
	set := &build.Taco{Collection: collection(), Samples: &build.Tortilla{}}
	for _, id := range []string{"a", "b", "c", "d"} {
		file := filepath.Join(t.TempDir(), id)
		if err := os.WriteFile(file, []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
		set.Samples.Samples = append(set.Samples.Samples, build.Sample{ID: id, File: file})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // reached only by what fails
	defer cancel()
	files := &together{}
	defer files.Close()
	m := &memory{objects: map[string]string{}}
	o := build.Options{Store: m, Opener: files, Workers: 2}
	if _, err := build.Create(ctx, set, "s3://bucket/x.tacozip", o); err != nil {
		t.Error(err)
	}
}

// TestStoreOvertaken: a run that another has overtaken soon stops to write among the objects of that one.
func TestStoreOvertaken(t *testing.T) {
	for name, most := range map[string]int{"folder": 120, "parts": 1} {
		m := &memory{objects: map[string]string{}}
		o := storeForms[name].o
		o.PartBytes *= 60
		o.Store, o.Opener = m, &opener{m: m, dir: t.TempDir()}
		o.Progress = func(done, _ int) {
			if done == 10 {
				m.mu.Lock()
				clear(m.objects)
				m.objects["s3://bucket/set/.chaski-unfinished"] = "another run"
				m.mu.Unlock()
			}
		}
		_, err := build.Create(t.Context(), tiles(1, 200), "s3://bucket/set", o)
		if !errors.Is(err, fault.Unsupported) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(m.objects) - 1; n > most {
			t.Errorf("%s: %d objects among those of another run", name, n)
		}
	}
}
