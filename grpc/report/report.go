// Package report says what the ranks that train with an engine wait for: figures that can be subtracted, and a table
// of them for people. The command top and Loader.report of Python show that table.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Stages are what the time of a rank goes to. All but the last are waits for data.
var Stages = [...]string{"read", "decode", "cache", "memory", "transport", "trainer"}

// Indexes of Stages.
const (
	Read = iota
	Decode
	Cache
	Memory
	Transport
	Trainer
)

// Times are seconds by stage.
type Times [len(Stages)]float64

// Bound is the share of waiting from which on training counts as bound by data: with less, the best loader could not
// make it 5 % faster.
const Bound = 0.05

// Figures are what an engine has counted about its ranks, since it started or since other figures.
type Figures struct {
	Seconds float64    `json:"seconds"`
	Ranks   []Rank     `json:"ranks"`
	Sources []Source   `json:"sources"`
	Slowest []Raster   `json:"slowest"` // the slowest first, since the data were opened
	Cache   *DiskCache `json:"cache"`   // since the engine started; nil: it has none
	Recoded []Recoded  `json:"recoded"` // of each data whose engine keeps chunks in a form that decodes fast
}

// Recoded is what an engine keeps in a form that decodes fast.
type Recoded struct {
	Data   string `json:"data"`
	Bytes  int64  `json:"bytes"`  // that it takes in memory
	Used   int64  `json:"used"`   // chunks that were decoded from it
	Missed int64  `json:"missed"` // chunks that were decoded from their files: it lacks them
}

// DiskCache is what the cache on disk of an engine did for all its ranks, in bytes.
type DiskCache struct {
	FromCache int64 `json:"from_cache"` // were read from it
	FromStore int64 `json:"from_store"` // were read from stores
	Used      int64 `json:"used"`       // its ranges take on disk, also what other engines put there
	Quota     int64 `json:"quota"`      // they may take
}

// Rank is one rank of one run. Times are in seconds.
type Rank struct {
	Client  string `json:"client"`
	Data    string `json:"data"`   // names it
	Source  string `json:"source"` // where it lies
	Rank    uint32 `json:"rank"`
	World   uint32 `json:"world"` // 0: its batches name their samples
	Batches int64  `json:"batches"`
	Samples int64  `json:"samples"`
	Bytes   int64  `json:"bytes"`
	// Engine is for what the engine's next batch was waited for: Read, Decode, Cache or Memory. Of an engine that is
	// the client of servers, it is also Transport.
	Engine Times `json:"engine"`

	Sent float64 `json:"sent"` // batches were passed on
	Idle float64 `json:"idle"` // the engine waited for the rank to ask
	// Waited and Stepped are what the rank says: how long it waited for batches, and was busy with them. 0 and 0: it
	// does not say.
	Waited  float64 `json:"waited"`
	Stepped float64 `json:"stepped"`
}

// Source is what the workers spent on the rasters of one source.
type Source struct {
	Data    string  `json:"data"`
	Name    string  `json:"name"`
	Rasters int64   `json:"rasters"`
	Read    float64 `json:"read"`
	Decode  float64 `json:"decode"`
}

// Raster is what a worker spent on one raster.
type Raster struct {
	ID     string  `json:"id"`
	Field  string  `json:"field"`
	Read   float64 `json:"read"`
	Decode float64 `json:"decode"`
}

// Parse returns the figures in an answer of an engine.
func Parse(b []byte) (f Figures, err error) {
	if len(b) > 0 {
		err = json.Unmarshal(b, &f)
	}
	return f, err
}

// ParseAll returns the figures in the answers of several engines by their addresses, with the error of asking them.
func ParseAll(answers map[string][]byte, err error) (map[string]Figures, error) {
	figures := map[string]Figures{}
	for address, answer := range answers {
		var broken error
		figures[address], broken = Parse(answer)
		err = cmp.Or(err, broken)
	}
	return figures, err
}

// Times returns how the time of the rank divides. While it waits and the engine has a batch ready, the batch is on its
// way. What the engine waits for while the rank is busy costs nothing.
func (r Rank) Times() (out Times) {
	for i, t := range r.Engine {
		r.Engine[i] = max(t, 0) // of servers that have divided a wait in another way since
	}
	engine := r.Engine.sum()
	if r.Waited+r.Stepped == 0 {
		out = r.Engine
		out[Transport] += r.Sent
		out[Trainer] = r.Idle
		return out
	}
	waited := min(engine, r.Waited)
	for i, t := range r.Engine {
		if engine > 0 {
			out[i] = t / engine * waited
		}
	}
	out[Transport] += r.Waited - waited
	out[Trainer] = r.Stepped
	return out
}

// sum returns all of the time.
func (t Times) sum() (all float64) {
	for _, v := range t {
		all += v
	}
	return all
}

// Shares returns the part of each stage.
func (t Times) Shares() Times {
	if total := t.sum(); total > 0 {
		for i := range t {
			t[i] /= total
		}
	}
	return t
}

// waits returns the part of waiting.
func (t Times) waits() float64 {
	if t.sum() == 0 {
		return 0
	}
	return 1 - t.Shares()[Trainer]
}

// Since returns the figures of the time after old, of the same engine. It leaves out ranks that had no batch in that
// time.
func (f Figures) Since(old Figures) Figures {
	out := Figures{Seconds: f.Seconds - old.Seconds, Slowest: f.Slowest}
	if out.Seconds < 0 { // another engine has taken its place
		return f
	}
	for _, now := range f.Ranks {
		same := func(r Rank) bool {
			return r.Client == now.Client && r.Data == now.Data && r.Rank == now.Rank && r.World == now.World
		}
		if i := slices.IndexFunc(old.Ranks, same); i >= 0 && old.Ranks[i].Batches <= now.Batches {
			was := old.Ranks[i]
			now.Batches, now.Samples, now.Bytes = now.Batches-was.Batches, now.Samples-was.Samples, now.Bytes-was.Bytes
			for stage := range now.Engine {
				now.Engine[stage] -= was.Engine[stage]
			}
			now.Sent, now.Idle = now.Sent-was.Sent, now.Idle-was.Idle
			now.Waited, now.Stepped = now.Waited-was.Waited, now.Stepped-was.Stepped
		}
		if now.Batches > 0 {
			out.Ranks = append(out.Ranks, now)
		}
	}
	for _, now := range f.Sources {
		same := func(s Source) bool { return s.Data == now.Data && s.Name == now.Name }
		if i := slices.IndexFunc(old.Sources, same); i >= 0 && old.Sources[i].Rasters <= now.Rasters {
			was := old.Sources[i]
			now.Rasters, now.Read, now.Decode = now.Rasters-was.Rasters, now.Read-was.Read, now.Decode-was.Decode
		}
		if now.Rasters > 0 {
			out.Sources = append(out.Sources, now)
		}
	}
	for _, now := range f.Recoded {
		same := func(r Recoded) bool { return r.Data == now.Data }
		if i := slices.IndexFunc(old.Recoded, same); i >= 0 && old.Recoded[i].Used <= now.Used {
			now.Used, now.Missed = now.Used-old.Recoded[i].Used, now.Missed-old.Recoded[i].Missed
		}
		if now.Used+now.Missed > 0 {
			out.Recoded = append(out.Recoded, now)
		}
	}
	return out
}

// Through says what the servers waited for from which the batches of a rank come: part of its waits for them, Transport
// of Engine, is theirs.
func (r *Rank) Through(servers Figures) {
	var theirs Times
	for _, rank := range servers.Ranks {
		if rank.Rank == r.Rank && rank.World == r.World {
			for stage, t := range rank.Times() {
				theirs[stage] += t
			}
		}
	}
	theirs[Trainer] = 0 // that is the engine, while it has enough
	if theirs.sum() == 0 {
		return
	}
	waited := r.Engine[Transport]
	r.Engine[Transport] = 0
	for stage, share := range theirs.Shares() {
		r.Engine[stage] += waited * share
	}
}

// Join adds the figures of another engine.
func (f *Figures) Join(other Figures) {
	f.Seconds = max(f.Seconds, other.Seconds)
	f.Ranks = append(f.Ranks, other.Ranks...)
	f.Sources = append(f.Sources, other.Sources...)
	f.Slowest = append(f.Slowest, other.Slowest...)
	f.Recoded = append(f.Recoded, other.Recoded...)
	slices.SortStableFunc(f.Slowest, func(a, b Raster) int { return cmp.Compare(b.Read+b.Decode, a.Read+a.Decode) })
}

// Answers are the answers to the four questions.
type Answers struct {
	Bound bool   // training is bound by data
	Waits Times  // shares of the time of all ranks
	Stage string // of the waits the longest or, if training is not bound by data, "trainer"
	Rank  *Rank  // that waits most; nil: they all wait alike
}

// Answers answers the questions.
func (f Figures) Answers() (a Answers) {
	var all Times
	lowest, highest := 1.0, 0.0
	for i := range f.Ranks {
		rank := f.Ranks[i].Times()
		for stage, t := range rank {
			all[stage] += t
		}
		if share := rank.waits(); share >= highest {
			a.Rank, highest = &f.Ranks[i], share
		}
		lowest = min(lowest, rank.waits())
	}
	if highest-lowest < Bound {
		a.Rank = nil
	}
	a.Waits, a.Bound, a.Stage = all.Shares(), all.waits() >= Bound, Stages[Trainer]
	if a.Bound {
		waits := a.Waits[:Trainer]
		a.Stage = Stages[slices.Index(waits, slices.Max(waits))]
	}
	return a
}

// Table returns the answers and the figures as text.
func (f Figures) Table() string {
	var b strings.Builder
	if len(f.Ranks) == 0 {
		fmt.Fprintf(&b, "no rank had a batch within %.1f s\n", f.Seconds)
		return b.String()
	}
	answers := f.Answers()
	verdict := "no"
	if answers.Bound {
		verdict = "yes"
	}
	fmt.Fprintf(&b, "Is training bound by data?  %s: ranks wait for %s of their time\n", verdict,
		percent(1-answers.Waits[Trainer]))
	fmt.Fprintf(&b, "Which stage takes longest?  %s: %s of the time\n", answers.Stage,
		percent(answers.Waits[slices.Index(Stages[:], answers.Stage)]))
	switch {
	case len(f.Ranks) == 1:
		fmt.Fprintln(&b, "Which rank waits most?      there is one")
	case answers.Rank == nil:
		fmt.Fprintln(&b, "Which rank waits most?      all alike")
	default:
		fmt.Fprintf(&b, "Which rank waits most?      %s: %s of its time\n", answers.Rank.name(),
			percent(answers.Rank.Times().waits()))
	}
	f.slow(&b)
	f.recoded(&b)
	fmt.Fprintln(&b)
	f.ranks(&b)
	f.details(&b)
	return b.String()
}

// slow answers which source or file is slow.
func (f Figures) slow(b *strings.Builder) {
	if len(f.Slowest) == 0 {
		fmt.Fprintln(b, "Which file is slowest?      not known here")
		return
	}
	if len(f.Sources) > 1 {
		s := slices.MaxFunc(f.Sources, func(a, b Source) int { return cmp.Compare(a.mean(), b.mean()) })
		fmt.Fprintf(b, "Which source is slowest?    %s: %s a raster\n", s.Name, duration(s.mean()))
	}
	first := f.Slowest[0]
	fmt.Fprintf(b, "Which file is slowest?      %s: %s once\n", first.ID, duration(first.Read+first.Decode))
}

// recoded answers whether all chunks decode fast.
func (f Figures) recoded(b *strings.Builder) {
	var all Recoded
	for _, r := range f.Recoded {
		all.Bytes, all.Used, all.Missed = all.Bytes+r.Bytes, all.Used+r.Used, all.Missed+r.Missed
	}
	switch {
	case all.Used+all.Missed == 0:
		return
	case all.Missed == 0:
		fmt.Fprint(b, "Which chunks are recoded?   all")
	default:
		fmt.Fprintf(b, "Which chunks are recoded?   %s", percent(float64(all.Used)/float64(all.Used+all.Missed)))
	}
	fmt.Fprintf(b, " of those that were needed; %.1f MB are held\n", float64(all.Bytes)/1e6)
}

// ranks writes a row for each rank.
func (f Figures) ranks(b *strings.Builder) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "rank\tsamples/s\twaits\t%s\t  data\n", strings.Join(Stages[:], "\t"))
	for _, rank := range f.Ranks {
		times := rank.Times()
		rate := float64(rank.Samples) / max(times.sum(), 1e-9)
		fmt.Fprintf(table, "%s\t%.1f\t%s\t", rank.name(), rate, percent(times.waits()))
		for _, share := range times.Shares() {
			fmt.Fprintf(table, "%s\t", percent(share))
		}
		fmt.Fprintf(table, "  %s\n", rank.Source)
	}
	table.Flush()
}

// details writes the sources and the slowest rasters.
func (f Figures) details(b *strings.Builder) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nrasters\tread\tdecode\t  source")
	for _, source := range f.Sources {
		n := float64(max(source.Rasters, 1))
		read, decode := duration(source.Read/n), duration(source.Decode/n)
		fmt.Fprintf(table, "%d\t%s\t%s\t  %s\n", source.Rasters, read, decode, source.Name)
	}
	fmt.Fprintln(table, "\nslowest\tread\tdecode\t  file")
	for i, raster := range f.Slowest[:min(len(f.Slowest), 5)] {
		read, decode := duration(raster.Read), duration(raster.Decode)
		fmt.Fprintf(table, "%d\t%s\t%s\t  %s (%s)\n", i+1, read, decode, raster.ID, raster.Field)
	}
	if len(f.Sources) > 0 {
		table.Flush()
	}
}

// name returns what a table calls the rank.
func (r Rank) name() string {
	if r.World == 0 {
		return "fetch"
	}
	return fmt.Sprintf("%d of %d", r.Rank, r.World)
}

// mean returns the seconds a raster takes.
func (s Source) mean() float64 { return (s.Read + s.Decode) / float64(max(s.Rasters, 1)) }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func duration(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.1f ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.1f s", seconds)
}
