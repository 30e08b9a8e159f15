// Package page makes the page about a job: how far it is, what failed, and which shards and hosts are slow.
package page

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/draw/markup"
	"github.com/chaski-eo/chaski/draw/report"
	"github.com/chaski-eo/chaski/job"
)

// Options have the title of a page.
type Options struct {
	Title     string // the name of the job
	Generator string // the program that makes the page, with its version
}

// maxRows bounds each list of the page. A job has up to job.MaxShards shards, and people read the first few.
const maxRows = 20

// Write writes the page as HTML, in one file that needs no other.
func Write(w io.Writer, s *job.Status, o Options) error {
	d := &document{Options: o, Kind: s.Kind}
	d.facts(s)
	d.states(s)
	d.errors(s)
	d.slowest(s)
	d.hosts(s)
	page := &markup.Page{Title: o.Title, Style: report.Style, Body: []markup.Part{d.part()}}
	return page.Write(w)
}

type document struct {
	Options
	Kind       string
	Facts      []report.Fact
	States     []report.Bar
	Errors     []report.Bar
	Failed     []job.Run
	MoreFailed int
	Slowest    []shard
	Hosts      []host
	MoreHosts  int
}

// shard is a row of the slowest shards.
type shard struct {
	Shard                                               int
	Seconds, Items, Rate, Read, Requests, Skipped, Host string
}

// host is a row of the hosts.
type host struct {
	Name                                                        string
	Done, Failed, Running, Items, Read, Requests, Seconds, Rate string
}

func number(n int) string { return report.Thousands(int64(n)) }

func (d *document) facts(s *job.Status) {
	d.Facts = []report.Fact{
		{ID: "done", Name: "Done", Value: number(s.Done), Note: fmt.Sprintf("of %s shards", number(s.Shards))},
		{ID: "failed", Name: "Failed", Value: number(len(s.Failed)), Note: "shards whose last run ended with an error"},
		{ID: "left", Name: "Left", Value: number(len(s.Missing)), Note: "shards without a result"},
		{ID: "items", Name: "Items", Value: report.Thousands(s.ItemsDone),
			Note: fmt.Sprintf("of %s; %s left out", report.Thousands(s.Items), report.Thousands(s.Skipped))},
	}
	if s.ItemsRate > 0 {
		d.Facts = append(d.Facts, report.Fact{ID: "rate", Name: "Rate", Value: draw.Number(s.ItemsRate),
			Note: "items a second since the first shard began"})
	}
	d.Facts = append(d.Facts,
		report.Fact{ID: "read", Name: "Read", Value: report.Bytes(s.Read), Note: "by the shards that are done"},
		report.Fact{ID: "requests", Name: "Requests", Value: report.Thousands(s.Requests),
			Note: "to stores and servers, and reads of local files"})
	if s.Bytes > 0 {
		d.Facts = append(d.Facts, report.Fact{ID: "bytes", Name: "Bytes", Value: report.Bytes(s.BytesDone),
			Note: "of the files, of " + report.Bytes(s.Bytes)})
	}
}

// newBar returns the bar of n of all.
func newBar(name string, n, all int) report.Bar {
	return report.Bar{Name: name, Count: number(n), Share: draw.Percent(uint64(n), uint64(all)),
		Width: 100 * float64(n) / float64(max(all, 1))}
}

func (d *document) states(s *job.Status) {
	for _, item := range []struct {
		name string
		n    int
	}{
		{"done", s.Done}, {"failed", len(s.Failed)}, {"running", len(s.Running)},
		{"not begun", len(s.Missing) - len(s.Failed) - len(s.Running)},
	} {
		d.States = append(d.States, newBar(item.name, item.n, s.Shards))
	}
}

func (d *document) errors(s *job.Status) {
	kinds := map[string]int{}
	for _, run := range s.Runs {
		if run.State != job.Failed {
			continue
		}
		// A record is from anyone, so that it may name any kind: the page lists no more than it has room for.
		kind := markup.Clean(cmp.Or(run.Kind, "network or system"))
		if _, known := kinds[kind]; !known && len(kinds) >= maxRows {
			kind = "other"
		}
		kinds[kind]++
		if len(d.Failed) < maxRows {
			d.Failed = append(d.Failed, run)
		} else {
			d.MoreFailed++
		}
	}
	for _, kind := range byCount(kinds, func(n int) int { return n }) {
		d.Errors = append(d.Errors, newBar(kind, kinds[kind], len(d.Failed)+d.MoreFailed))
	}
}

// byCount returns the keys of m, those with the largest counts first.
func byCount[V any](m map[string]V, count func(V) int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(count(m[b]), count(m[a])), cmp.Compare(a, b))
	})
}

// rate formats items a second.
func rate(items int64, seconds float64) string {
	if seconds <= 0 {
		return "–"
	}
	return draw.Number(float64(items) / seconds)
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) }

func (d *document) slowest(s *job.Status) {
	var done []job.Run
	for _, r := range s.Runs {
		if r.State == job.Done {
			done = append(done, r)
		}
	}
	slices.SortStableFunc(done, func(a, b job.Run) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, run := range done[:min(len(done), maxRows)] {
		d.Slowest = append(d.Slowest, shard{run.Shard, seconds(run.Seconds), report.Thousands(run.Items),
			rate(run.Items, run.Seconds), report.Bytes(run.Read), report.Thousands(run.Requests),
			report.Thousands(run.Skipped), run.Host})
	}
}

func (d *document) hosts(s *job.Status) {
	type sum struct {
		done, failed, running int
		items, read, requests int64
		seconds               float64
	}
	sums := map[string]*sum{}
	for _, run := range s.Runs {
		h := sums[run.Host]
		if h == nil {
			h = &sum{}
			sums[run.Host] = h
		}
		switch run.State {
		case job.Done:
			h.done++
			h.items += run.Items
			h.read += run.Read
			h.requests += run.Requests
			h.seconds += run.Seconds
		case job.Failed:
			h.failed++
		default:
			h.running++
		}
	}
	names := byCount(sums, func(h *sum) int { return h.done })
	for _, name := range names[:min(len(names), maxRows)] {
		h := sums[name]
		d.Hosts = append(d.Hosts, host{cmp.Or(name, "unknown"), number(h.done), number(h.failed), number(h.running),
			report.Thousands(h.items), report.Bytes(h.read), report.Thousands(h.requests), seconds(h.seconds),
			rate(h.items, h.seconds)})
	}
	d.MoreHosts = len(names) - len(d.Hosts)
}

func (d *document) part() markup.Part {
	return markup.El("main",
		markup.El("header", markup.El("p", markup.Class("kicker"), markup.Text("Job report")),
			markup.El("h1", markup.Text(d.Title)),
			markup.El("dl", markup.Class("origin"), report.Entry("Kind", markup.Text(d.Kind))), report.Facts(d.Facts)),
		list("shards", "Shards", report.Bars(d.States)),
		markup.If(len(d.Errors) > 0, list("errors", "Errors by kind", report.Bars(d.Errors),
			markup.Each(d.Failed, func(run job.Run) markup.Part {
				return markup.El("div", markup.Class("warning"),
					markup.El("p", markup.Textf("shard %d: %s", run.Shard, run.Error)))
			}), more(d.MoreFailed, "failed shards"))),
		markup.If(len(d.Slowest) > 0, list("slowest", "Slowest shards", report.Table("", []string{"Shard", "Seconds",
			"Items", "Items a second", "Bytes read", "Requests", "Left out", "Host"},
			markup.Each(d.Slowest, func(s shard) markup.Part {
				return markup.Headed(strconv.Itoa(s.Shard), s.Seconds, s.Items, s.Rate, s.Read, s.Requests, s.Skipped,
					s.Host)
			})))),
		markup.If(len(d.Hosts) > 0, list("hosts", "Hosts", report.Table("", []string{"Host", "Done", "Failed",
			"Running", "Items", "Bytes read", "Requests", "Seconds", "Items a second"},
			markup.Each(d.Hosts, func(h host) markup.Part {
				return markup.Headed(h.Name, h.Done, h.Failed, h.Running, h.Items, h.Read, h.Requests, h.Seconds,
					h.Rate)
			})), more(d.MoreHosts, "hosts"))),
		markup.El("footer", markup.Textf("%s. A shard that runs may also have been killed. Seconds are of the last "+
			"run of each shard.", d.Generator)))
}

// list returns a section with a title.
func list(id, title string, parts ...markup.Part) markup.Part {
	return markup.El("section", markup.Attr("id", id), markup.El("h2", markup.Text(title)),
		markup.Parts(parts))
}

// more says how many things a list leaves out, if any.
func more(n int, things string) markup.Part {
	if n == 0 {
		return nil
	}
	return markup.El("p", markup.Class("lead"), markup.Textf("%d more %s are not listed.", n, things))
}
