package peers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/bench"
)

// Options configure Run.
type Options struct {
	Shapes []Shape
	Peers  []Peer
	// Rounds is how often each peer is measured, for at least Seconds. The default is 3 rounds of 10 s.
	Rounds  int
	Seconds float64
	// Workers is the number of workers of each loader: processes of a DataLoader, or decoding
	// threads. The default is 2.
	Workers int
	// Quick makes the report say that the shapes are small, so that their figures mean little.
	Quick bool
	// Work is the directory of the samples. Samples that exist are used again.
	Work string
	// Imagery are directories with imagery to cut samples from: .npy files and files that GDAL reads, with s2, naip or
	// landsat in their names. The largest file of each kind is used.
	Imagery []string
	// Testdata is the directory of the imagery that is used if Imagery has none; "" for none.
	Testdata    string
	Environment *Environment
	// PythonPath is put before PYTHONPATH: the directory of the package chaski, if it is not installed.
	PythonPath string
	// Engine is the command chaski, Full the one with libzstd, or "".
	Engine, Full string
	// Progress is called before every step.
	Progress func(done, total int, what string)
	// Shaped is called with the report after every shape.
	Shaped func(*Report) error
}

func (o Options) withDefaults() Options {
	o.Rounds = cmp.Or(o.Rounds, 3)
	o.Seconds = cmp.Or(o.Seconds, 10)
	o.Workers = cmp.Or(o.Workers, 2)
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
	if o.Shaped == nil {
		o.Shaped = func(*Report) error { return nil }
	}
	return o
}

// Limits of time. The row of a loader that hangs says so.
const (
	makeTime  = time.Hour
	checkTime = 30 * time.Minute
)

// Run measures all peers on all shapes. The row of a peer says if it lacks something or fails. It is an error if there
// is no imagery, or if an interpreter does not run.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	if min(o.Rounds, o.Workers, len(o.Shapes), len(o.Peers)) < 1 || !(o.Seconds > 0) {
		return nil, fmt.Errorf("peers: %d rounds of %g s, %d workers, %d shapes, %d peers", o.Rounds, o.Seconds,
			o.Workers, len(o.Shapes), len(o.Peers))
	}
	if err := os.MkdirAll(o.Work, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(o.script(), script, 0o644); err != nil {
		return nil, err
	}
	report, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	s := &steps{total: len(o.Shapes) * (1 + len(o.formats()) + len(o.Peers)*(1+o.Rounds)), tell: o.Progress}
	for i, shape := range o.Shapes {
		s.done = i * s.total / len(o.Shapes)
		result, err := o.shape(ctx, shape, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shape.Name, err)
		}
		report.Shapes = append(report.Shapes, *result)
		report.Machine.LoadAfter = loadAverage()
		if err := o.Shaped(report); err != nil {
			return nil, err
		}
	}
	return report, nil
}

type steps struct {
	done, total int
	tell        func(done, total int, what string)
}

func (s *steps) next(what string) {
	s.tell(s.done, s.total, what)
	s.done++
}

// begin describes the machine and the installed packages.
func (o *Options) begin(ctx context.Context) (*Report, error) {
	report := &Report{
		Settings: Settings{o.Rounds, o.Seconds, o.Workers, o.Quick},
		Machine:  Machine{Machine: bench.ThisMachine(), Memory: totalMemory(), LoadBefore: loadAverage()},
		Date:     time.Now().UTC().Format("2006-01-02"),
	}
	var installed struct {
		Python   string            `json:"python"`
		Versions map[string]string `json:"versions"`
	}
	j := job{Verb: "versions", Packages: append(packages(requirements), "chaski")}
	if err := o.ask(ctx, o.Environment.Main, o.Engine, j, time.Minute, &installed); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Environment.Main.Path, err)
	}
	report.Machine.Python, report.Machine.Versions = installed.Python, installed.Versions
	if o.Environment.Rumi1.Path != "" {
		j.Packages = packages(requirementsRumi1)
		installed.Versions = nil
		if err := o.ask(ctx, o.Environment.Rumi1, o.Engine, j, time.Minute, &installed); ctx.Err() != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(installed.Versions)) {
			report.Machine.Versions[name+" (rumi1)"] = installed.Versions[name]
		}
	}
	return report, nil
}

// formats returns the formats that the peers read.
func (o *Options) formats() (formats []string) {
	for _, p := range o.Peers {
		if !slices.Contains(formats, p.Format) {
			formats = append(formats, p.Format)
		}
	}
	return formats
}

// shape makes the samples of a shape, checks every peer on them, and measures.
func (o *Options) shape(ctx context.Context, shape Shape, s *steps) (*ShapeResult, error) {
	w := &workload{Options: o, shape: shape, dir: filepath.Join(o.Work, shape.Name), absent: map[string]error{}}
	s.next(shape.Name + ": cutting samples")
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	for _, format := range o.formats() {
		s.next(shape.Name + ": writing " + format)
		if err := w.write(ctx, format); err != nil {
			return nil, err
		}
	}
	result := &ShapeResult{Shape: shape, Batch: shape.Batch, About: shape.String(), Imagery: w.Made.Imagery,
		Bytes: w.Made.Bytes}
	for _, peer := range o.Peers {
		s.next(shape.Name + ": checking " + peer.Name)
		row := Row{Peer: peer.Name, About: peer.About, Format: peer.Format, Status: OK, Rounds: make([]*Round,
			o.Rounds)}
		if err := w.check(ctx, peer); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			row.refuse(err)
		}
		result.Rows = append(result.Rows, row)
	}
	for round := range o.Rounds {
		turn := round * len(o.Peers) / o.Rounds // so that a slow minute does not hit the same peer in every round
		for i := range o.Peers {
			k := (turn + i) % len(o.Peers)
			peer, row := o.Peers[k], &result.Rows[k]
			s.next(fmt.Sprintf("%s: round %d, %s", shape.Name, round+1, peer.Name))
			if row.Status != OK {
				continue
			}
			got, err := w.measure(ctx, peer)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			} else if err != nil {
				row.refuse(err)
				continue
			}
			row.Rounds[round] = got
		}
	}
	result.summarise()
	return result, nil
}

// workload is a shape in its directory, which made.json describes.
type workload struct {
	*Options
	shape  Shape
	dir    string
	Made   made
	absent map[string]error // formats that are not written, and why
}

// made describes the contents of a directory. Run writes to, and removes, only directories that contain it.
type made struct {
	Script  string           `json:"script"` // hash of what wrote it
	Shape   Shape            `json:"shape"`
	Files   []string         `json:"files"`   // of imagery, with their sizes and times
	Imagery string           `json:"imagery"` // scenes that the data were made from; "" until they are made
	Bytes   map[string]int64 `json:"bytes"`   // of each format that is written
}

func (w *workload) job(verb string) job {
	return job{Verb: verb, Folder: w.dir, Shape: &w.shape, Batch: w.shape.Batch, Workers: w.Workers, Seconds: w.Seconds}
}

// prepare writes the scene, statistics and signatures to the directory, unless they exist for the same settings.
func (w *workload) prepare(ctx context.Context) error {
	files, err := w.imagery()
	if err != nil {
		return err
	}
	hash := sha256.Sum256(script)
	want := made{Script: hex.EncodeToString(hash[:8]), Shape: w.shape, Files: files, Bytes: map[string]int64{}}
	want.Shape.Batch = 0 // samples do not depend on it, nor is it stored
	b, err := os.ReadFile(w.madeFile())
	if err == nil && json.Unmarshal(b, &w.Made) == nil && w.Made.Imagery != "" {
		if w.Made.Script == want.Script && w.Made.Shape == want.Shape && slices.Equal(w.Made.Files, files) {
			return nil
		}
	}
	if entries, _ := os.ReadDir(w.dir); err != nil && len(entries) > 0 {
		return &fs.PathError{Op: "samples", Path: w.dir,
			Err: fmt.Errorf("the directory holds other files: %w", fs.ErrExist)}
	}
	if err := os.RemoveAll(w.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	w.Made = want
	if err := w.save(); err != nil {
		return err
	}
	job := w.job("imagery")
	for _, f := range files {
		path, _, _ := strings.Cut(f, "\t")
		job.Imagery = append(job.Imagery, path)
	}
	var scene struct {
		Imagery string `json:"imagery"`
	}
	if err := w.ask(ctx, w.Environment.Main, w.Engine, job, makeTime, &scene); err != nil {
		return err
	}
	if err := w.ask(ctx, w.Environment.Main, w.Engine, w.job("truth"), makeTime, &struct{}{}); err != nil {
		return err
	}
	w.Made.Imagery = scene.Imagery
	return w.save()
}

func (w *workload) madeFile() string { return filepath.Join(w.dir, "made.json") }

func (w *workload) save() error {
	data, err := json.MarshalIndent(&w.Made, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(w.madeFile(), data, 0o644)
}

// standIns are the files of testdata that replace missing imagery of a kind.
var standIns = map[string]string{
	"s2":      "demo/coast.tif",
	"naip":    "raster/tog/rel-lzw-u8-pixel.tif",
	"landsat": "raster/tog/tog-series-0.tif",
}

// imageryNames are parts of the names of files with imagery of a kind.
var imageryNames = map[string][]string{
	"s2":      {"s2", "sentinel"},
	"naip":    {"naip"},
	"landsat": {"landsat", "l8", "l9"},
}

// imagery returns the files with imagery of the shape's kind in the named directories or, if these have none, their
// stand-ins. Each is "PATH\\tSIZE\\tTIME".
func (w *workload) imagery() (files []string, err error) {
	add := func(path string) {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			files = append(files, fmt.Sprintf("%s\t%d\t%d", path, st.Size(), st.ModTime().Unix()))
		}
	}
	for _, dir := range w.Imagery {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := strings.ToLower(entry.Name())
			if slices.ContainsFunc(imageryNames[w.shape.Imagery], func(part string) bool {
				return strings.Contains(name, part)
			}) {
				add(filepath.Join(dir, entry.Name()))
			}
		}
	}
	if len(files) == 0 && w.Testdata != "" {
		add(filepath.Join(w.Testdata, filepath.FromSlash(standIns[w.shape.Imagery])))
	}
	if len(files) == 0 {
		return nil, &fs.PathError{Op: "imagery", Path: "*" + strings.Join(imageryNames[w.shape.Imagery], "* *") +
			"*", Err: fs.ErrNotExist}
	}
	return files, nil
}

// write writes a format, unless it exists.
func (w *workload) write(ctx context.Context, format string) error {
	if _, ok := w.Made.Bytes[format]; ok || !slices.ContainsFunc(w.Peers, func(p Peer) bool {
		return p.Format == format && p.reads(w.shape)
	}) {
		return nil
	}
	in := w.Environment.of(format, "")
	if why, ok := in.Missing[format]; ok {
		w.absent[format] = &absence{Missing, why}
		return nil
	}
	if in.Path == "" {
		w.absent[format] = &absence{Missing, "no interpreter for " + format}
		return nil
	}
	job := w.job("make")
	job.Format = format
	var answer struct {
		Bytes int64 `json:"bytes"`
	}
	err := w.ask(ctx, in, w.Engine, job, makeTime, &answer)
	if a := (*absence)(nil); errors.As(err, &a) {
		a.why = format + " is not written: " + a.why
		w.absent[format] = a
		return nil
	} else if err != nil {
		return err
	}
	w.Made.Bytes[format] = answer.Bytes
	return w.save()
}

// engine returns the engine of a peer.
func (w *workload) engine(p Peer) string {
	if p.full {
		return w.Full
	}
	return w.Engine
}

// check lets a peer yield an epoch and compares it with the samples that were written.
func (w *workload) check(ctx context.Context, p Peer) error {
	in := w.Environment.of(p.Format, p.loader)
	if !p.reads(w.shape) {
		return &absence{Missing, "reads no windows"}
	}
	if p.full && w.Full == "" {
		return &absence{Missing, "chaski-full is not installed"}
	}
	if err := w.absent[p.Format]; err != nil {
		return err
	}
	if why, ok := in.Missing[p.Name]; ok {
		return &absence{Missing, why}
	}
	if p.loader == "" {
		return nil // it has the engine of a peer with Python, which is checked
	}
	return w.ask(ctx, in, w.engine(p), w.jobOf("check", p), checkTime, &struct{}{})
}

func (w *workload) jobOf(verb string, p Peer) job {
	j := w.job(verb)
	j.Format, j.Loader, j.Transport = p.Format, p.loader, p.transport
	return j
}

// measure runs a peer once.
func (w *workload) measure(ctx context.Context, p Peer) (*Round, error) {
	round := &Round{Load: loadAverage()}
	timeout := 2*time.Minute + time.Duration(6*w.Seconds*float64(time.Second))
	err := w.load(ctx, p, timeout, round)
	if err == nil && p.decodes && w.shape.Scene == 0 {
		err = w.decode(ctx, p, timeout, round)
	}
	return round, err
}

// load measures the loader.
func (w *workload) load(ctx context.Context, p Peer, timeout time.Duration, r *Round) error {
	if p.loader != "" {
		return w.ask(ctx, w.Environment.of(p.Format, p.loader), w.engine(p), w.jobOf("one", p), timeout, r)
	}
	args := []string{"load", "--seconds", fmt.Sprint(w.Seconds), "--workers", strconv.Itoa(w.Workers), "--batch",
		strconv.Itoa(w.shape.Batch),
		"--normalize", "mean_std", "--stats", filepath.Join(w.dir, "stats.json")}
	if w.shape.Scene > 0 {
		per := (w.shape.Samples + w.shape.Images - 1) / w.shape.Images
		args = append(args, "--window", fmt.Sprintf("%dx%d", w.shape.Side, w.shape.Side),
			"--per-asset", strconv.Itoa(per))
	}
	return w.bench(ctx, p, timeout, r, append(args, filepath.Join(w.dir, p.Format, "*.tif"))...)
}

// decode measures decoding without a loader, in one thread.
func (w *workload) decode(ctx context.Context, p Peer, timeout time.Duration, r *Round) error {
	seconds := min(w.Seconds, 2)
	if p.loader != "" {
		j := w.jobOf("decode", p)
		j.Seconds = seconds
		return w.ask(ctx, w.Environment.of(p.Format, p.loader), w.engine(p), j, timeout, r)
	}
	files, err := filepath.Glob(filepath.Join(w.dir, p.Format, "*.tif"))
	if err != nil {
		return err
	}
	files = files[:min(len(files), 1024)] // so that the command line stays below the system's limit
	return w.bench(ctx, p, timeout, r,
		append([]string{"decode", "--seconds", fmt.Sprint(seconds), "--workers", "1"}, files...)...)
}

// bench runs one round of `chaski bench VERB`.
func (w *workload) bench(ctx context.Context, p Peer, timeout time.Duration, r *Round, args ...string) error {
	command := append([]string{w.engine(p), "bench", args[0], "--json", "--rounds", "1"}, args[1:]...)
	out, err := w.command(ctx, Interpreter{}, w.Engine, timeout, command...)
	if err != nil {
		return err
	}
	var b bench.Report
	if err := json.Unmarshal(out, &b); err != nil {
		return &absence{Failed, err.Error()}
	}
	return r.fromBench(&b)
}

// fromBench takes the figures from the report of `chaski bench load` or `chaski bench decode`.
func (r *Round) fromBench(b *bench.Report) error {
	for name, target := range map[string]struct {
		value *float64
		unit  float64
	}{
		"samples": {&r.SamplesPerS, 1}, "cpu": {&r.CPU, 1e-3}, "wait p50": {&r.WaitP50, 1e-3},
		"wait p99":    {&r.WaitP99, 1e-3},
		"first batch": {&r.FirstBatch, 1e-3}, "decoded": {&r.Decode, 1e6},
	} {
		if f := b.Figure(name); f != nil {
			*target.value = f.Median * target.unit
		}
	}
	if f := b.Figure("max rss"); f != nil && r.RSS == 0 {
		r.RSS = f.Median * 1e6
	}
	if r.SamplesPerS == 0 {
		return &absence{Failed, "the report of bench load has no samples a second"}
	}
	return nil
}

// loadAverage returns the load of the last minute, 0 if it is unknown.
func loadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return v
}

// totalMemory returns the memory of the machine in bytes, 0 if it is unknown.
func totalMemory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return kb << 10
			}
		}
	}
	return 0
}
