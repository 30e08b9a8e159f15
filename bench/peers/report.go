package peers

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/draw"
)

// Status says whether a row has figures.
type Status string

// The statuses of a row.
const (
	OK      Status = "ok"
	Missing Status = "missing" // a package is not installed, or the files were not written
	Failed  Status = "failed"
	Wrong   Status = "wrong" // it yields other samples than were written, so that its time means nothing
)

// Report is the result of Run.
type Report struct {
	Date     string        `json:"date"` // of the beginning, UTC
	Settings Settings      `json:"settings"`
	Machine  Machine       `json:"machine"`
	Shapes   []ShapeResult `json:"shapes"`
}

// Settings hold for all rows.
type Settings struct {
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"` // of a round, at least
	Workers int     `json:"workers"`
	Quick   bool    `json:"quick"` // small shapes, to try whether everything works
}

func (s Settings) rounds() string {
	if s.Rounds == 1 {
		return fmt.Sprintf("one round of %g s", s.Seconds)
	}
	return fmt.Sprintf("%d rounds of %g s", s.Rounds, s.Seconds)
}

// Machine describes what figures depend on besides the settings.
type Machine struct {
	bench.Machine
	Memory     int64             `json:"memory"` // bytes
	Python     string            `json:"python"`
	Versions   map[string]string `json:"versions"`    // of Python packages
	LoadBefore float64           `json:"load_before"` // average of a minute
	LoadAfter  float64           `json:"load_after"`
}

// ShapeResult holds the figures of a shape.
type ShapeResult struct {
	Shape   Shape            `json:"shape"`
	Batch   int              `json:"batch"`
	About   string           `json:"about"`
	Imagery string           `json:"imagery"` // scenes that the samples were cut from
	Bytes   map[string]int64 `json:"bytes"`   // of the files of each format
	Rows    []Row            `json:"rows"`
}

// Row is a peer on a shape. If it has no figures, Status and Why say why; Rounds may then have those from
// before it failed.
type Row struct {
	Peer   string   `json:"peer"`
	About  string   `json:"about"`
	Format string   `json:"format"`
	Status Status   `json:"status"`
	Why    string   `json:"why,omitempty"`
	Rounds []*Round `json:"rounds"` // nil for rounds that were not run

	Samples *Spread `json:"samples_per_s,omitempty"`
	Ratio   *Spread `json:"ratio,omitempty"`            // to the baseline, round by round
	CPU     *Spread `json:"cpu_s_per_sample,omitempty"` // of all processes
	Wait50  *Spread `json:"wait_p50_s,omitempty"`       // of the consumer for a batch
	Wait99  *Spread `json:"wait_p99_s,omitempty"`
	First   *Spread `json:"first_batch_s,omitempty"`      // from making the loader, after importing PyTorch
	Decode  *Spread `json:"decode_bytes_per_s,omitempty"` // whole files in one thread, without a loader
	RSS     *Spread `json:"rss_bytes,omitempty"`          // the sum of the processes' peaks
	PSS     *Spread `json:"pss_bytes,omitempty"`          // of all processes at the end, shared pages counted once
}

// Round is one measurement. A figure of 0 is unknown.
type Round struct {
	SamplesPerS float64 `json:"samples_per_s"`
	CPU         float64 `json:"cpu_s_per_sample,omitempty"`
	WaitP50     float64 `json:"wait_p50_s,omitempty"`
	WaitP99     float64 `json:"wait_p99_s,omitempty"`
	FirstBatch  float64 `json:"first_batch_s,omitempty"`
	Decode      float64 `json:"decode_bytes_per_s,omitempty"`
	RSS         float64 `json:"rss_bytes,omitempty"`
	PSS         float64 `json:"pss_bytes,omitempty"`
	Load        float64 `json:"load"` // load average of the machine before the round
}

// Spread is the least, median and greatest of the rounds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// spread returns nil if there are no values.
func spread(values []float64) *Spread {
	if len(values) == 0 {
		return nil
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return &Spread{s[0], (s[(n-1)/2] + s[n/2]) / 2, s[n-1]}
}

// refuse records why a row has no figures.
func (r *Row) refuse(err error) {
	r.Status, r.Why = Failed, err.Error()
	if a, ok := err.(*absence); ok {
		r.Status, r.Why = a.status, a.why
	}
}

// summarise computes the spreads of the rows with Status OK.
func (s *ShapeResult) summarise() {
	var base []*Round
	for _, r := range s.Rows {
		if r.Peer == Baseline && r.Status == OK {
			base = r.Rounds
		}
	}
	for i := range s.Rows {
		s.Rows[i].summarise(base)
	}
}

func (r *Row) summarise(base []*Round) {
	if r.Status != OK {
		return
	}
	of := func(get func(*Round) float64) *Spread {
		var values []float64
		for _, round := range r.Rounds {
			if v := get(round); v > 0 {
				values = append(values, v)
			}
		}
		return spread(values)
	}
	r.Samples = of(func(m *Round) float64 { return m.SamplesPerS })
	r.CPU = of(func(m *Round) float64 { return m.CPU })
	r.Wait50 = of(func(m *Round) float64 { return m.WaitP50 })
	r.Wait99 = of(func(m *Round) float64 { return m.WaitP99 })
	r.First = of(func(m *Round) float64 { return m.FirstBatch })
	r.Decode = of(func(m *Round) float64 { return m.Decode })
	r.RSS = of(func(m *Round) float64 { return m.RSS })
	r.PSS = of(func(m *Round) float64 { return m.PSS })
	var ratios []float64
	for i, b := range base {
		if b.SamplesPerS > 0 {
			ratios = append(ratios, r.Rounds[i].SamplesPerS/b.SamplesPerS)
		}
	}
	r.Ratio = spread(ratios)
}

// ranked returns the rows with figures, fastest first, and the others.
func (s *ShapeResult) ranked() (with, without []Row) {
	for _, row := range s.Rows {
		if row.Samples != nil {
			with = append(with, row)
		} else {
			without = append(without, row)
		}
	}
	slices.SortStableFunc(with, func(a, b Row) int {
		switch {
		case a.Samples.Median > b.Samples.Median:
			return -1
		case a.Samples.Median < b.Samples.Median:
			return 1
		}
		return 0
	})
	return with, without
}

// WriteMarkdown writes the machine, and a table for each shape.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Side by side with other loaders\n\n%s\n", r.head())
	if r.Settings.Quick {
		b.WriteString("\n**Small files and short rounds, to try whether everything works: do not compare these " +
			"figures.**\n")
	}
	b.WriteString("\nSamples a second into a loop that takes batches: median of the rounds, least – most in " +
		"brackets. × is against " + Baseline + `, round by
round. CPU is of all processes of a loader. Waits are the consumer's, for a batch. First batch: from making the loader, PyTorch being
imported. Memory is what all processes have at the end, pages that they share counted once; peak RSS is the sum of what each had at most.
Decoding is of whole files into arrays, in one thread, without a loader.

`)
	for _, p := range r.peers() {
		fmt.Fprintf(&b, "- %s: %s (%s)\n", p.Peer, p.About, p.Format)
	}
	for i := range r.Shapes {
		r.Shapes[i].markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// peers returns a row of each peer.
func (r *Report) peers() (rows []Row) {
	for _, s := range r.Shapes {
		for _, row := range s.Rows {
			if !slices.ContainsFunc(rows, func(x Row) bool { return x.Peer == row.Peer }) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// head describes the date, the machine, the settings and the versions.
func (r *Report) head() string {
	machine, settings := r.Machine, r.Settings
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(machine.Versions)) {
		versions = append(versions, name+" "+machine.Versions[name])
	}
	return fmt.Sprintf(`%s on %s, %d cores, %.0f GB, %s/%s, %s, Python %s; zstd of the engine: %s.
%s in turns, %d workers each; load average %.2f before and %.2f after.

%s.`, r.Date, machine.CPU, machine.Cores, float64(machine.Memory)/1e9, machine.OS, machine.Arch, machine.Go, machine.Python, machine.Zstd,
		settings.rounds(), settings.Workers, machine.LoadBefore, machine.LoadAfter, strings.Join(versions, ", "))
}

func (s *ShapeResult) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s. From %s.\n", s.Shape.Name, s.About, s.Imagery)
	var sizes []string
	for _, f := range slices.Sorted(maps.Keys(s.Bytes)) {
		sizes = append(sizes, fmt.Sprintf("%s %.0f MB", f, float64(s.Bytes[f])/1e6))
	}
	fmt.Fprintf(b, "Files: %s.\n\n", strings.Join(sizes, ", "))
	b.WriteString("| peer | samples/s | × | CPU, ms a sample | wait p50 / p99, ms | first batch, s | memory / " +
		"peak RSS, MB | decoding, MB/s |\n")
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|\n")
	ranked, without := s.ranked()
	for _, row := range ranked {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s / %s | %s | %s / %s | %s |\n", row.Peer, row.Samples.text(1, 0),
			row.Ratio.text(1, 2), row.CPU.median(1e3, 2),
			row.Wait50.median(1e3, 1), row.Wait99.median(1e3, 1), row.First.median(1, 2), row.PSS.median(1e-6, 0),
			row.RSS.median(1e-6, 0), row.Decode.median(1e-6, 0))
	}
	for _, r := range without {
		why := strings.NewReplacer("|", "/", "\n", " ").Replace(r.Why)
		fmt.Fprintf(b, "| %s | %s: %s | | | | | | |\n", r.Peer, r.Status, shorten(why, 120))
	}
}

// shorten cuts a string to n runes.
func shorten(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// text formats median (least – greatest) times a scale.
func (s *Spread) text(scale float64, digits int) string {
	if s == nil {
		return "–"
	}
	if s.Min == s.Max {
		return s.median(scale, digits)
	}
	return fmt.Sprintf("%.*f (%.*f – %.*f)", digits, s.Median*scale, digits, s.Min*scale, digits, s.Max*scale)
}

func (s *Spread) median(scale float64, digits int) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, s.Median*scale)
}

// WriteFigure draws a panel for each shape with a bar for each peer. format is draw.PNG or draw.SVG.
func (r *Report) WriteFigure(w io.Writer, format string) error {
	var panels []draw.BarPanel
	for i := range r.Shapes {
		s := &r.Shapes[i]
		barPanel := draw.BarPanel{Name: s.Shape.Name, Caption: s.About}
		ranked, _ := s.ranked()
		for _, row := range ranked {
			bar := draw.Bar{Name: row.Peer, Value: row.Samples.Median, Low: row.Samples.Min, High: row.Samples.Max,
				Marked: strings.HasPrefix(row.Peer, "chaski")}
			if row.Ratio != nil {
				bar.Note = "× " + row.Ratio.median(1, 2)
			}
			barPanel.Bars = append(barPanel.Bars, bar)
		}
		panels = append(panels, barPanel)
	}
	machine, settings := r.Machine, r.Settings
	note := fmt.Sprintf("into a PyTorch loop (chaski-load: a Go one); median, least and most of %s; %d workers "+
		"each; × against %s; %s, %d cores, %s",
		settings.rounds(), settings.Workers, Baseline, machine.CPU, machine.Cores, r.Date)
	if settings.Quick {
		note = "small files and short rounds: do not compare; " + note
	}
	return draw.WriteBars(w, "Samples a second", note, panels, format)
}
