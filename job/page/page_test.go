package page

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/chaski-eo/chaski/job"
)

// parsed parses the page of a status.
func parsed(t *testing.T, s *job.Status) *html.Node {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s, Options{Title: "job", Generator: "chaski test"}); err != nil {
		t.Fatal(err)
	}
	n, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// find returns the elements below n with a name and, unless key is "", an attribute.
func find(n *html.Node, name, key, value string) (out []*html.Node) {
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && c.Data == name && (key == "" ||
			slices.Contains(c.Attr, html.Attribute{Key: key, Val: value})) {
			out = append(out, c)
		}
	}
	return out
}

// words returns the text below n.
func words(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// rowsOf returns the cells of the table in a section.
func rowsOf(t *testing.T, page *html.Node, section string) (out [][]string) {
	t.Helper()
	s := find(page, "section", "id", section)
	if len(s) != 1 {
		t.Fatalf("%d sections %s", len(s), section)
	}
	for _, row := range find(find(s[0], "tbody", "", "")[0], "tr", "", "") {
		var cells []string
		for c := range row.ChildNodes() {
			cells = append(cells, words(c))
		}
		out = append(out, cells)
	}
	return out
}

// status is a job of 8 shards: 4 are done on two hosts, 2 failed, one runs, and one did not begin.
func status() *job.Status {
	return &job.Status{Kind: "stats", Shards: 8, Done: 4, Failed: []int{4, 5}, Running: []int{6},
		Missing: []int{4, 5, 6, 7}, Items: 80, ItemsDone: 40, Skipped: 3, Bytes: 8000, BytesDone: 4000,
		Read: 8192, Requests: 28,
		Seconds:   24,
		ItemsRate: 2.5, Slowest: 2, Runs: []job.Run{
			{Shard: 0, Items: 10, Read: 2048, Requests: 7, State: job.Done, Host: "a", Seconds: 2},
			{Shard: 1, Items: 10, Read: 2048, Requests: 7, State: job.Done, Host: "b", Seconds: 4},
			{Shard: 2, Items: 10, Read: 2048, Requests: 7, State: job.Done, Host: "b", Seconds: 16, Skipped: 3},
			{Shard: 3, Items: 10, Read: 2048, Requests: 7, State: job.Done, Host: "b", Seconds: 2},
			{Shard: 4, State: job.Failed, Host: "a", Error: "<script>x</script>\u202e", Kind: "corrupt"},
			{Shard: 5, State: job.Failed, Host: "a", Error: "connection reset"},
			{Shard: 6, State: job.Running, Host: "b"},
		}}
}

// TestPage: the page says what the status does: counts, the slowest shards first, errors by kind, and each host.
func TestPage(t *testing.T) {
	p := parsed(t, status())
	for id, want := range map[string]string{
		"done": "4 of 8 shards", "failed": "2 shards", "left": "4 shards", "items": "40 of 80; 3 left out",
		"rate": "2.5 items a second", "bytes": "of", "read": "8.00 KiB by", "requests": "28 to stores",
	} {
		f := find(p, "div", "id", "fact-"+id)
		if len(f) != 1 || !strings.Contains(words(f[0]), want) {
			t.Errorf("fact %s is not %q", id, want)
		}
	}
	for name, want := range map[string]string{
		"done": "4", "failed": "2", "running": "1", "not begun": "1", "corrupt": "1", "network or system": "1",
	} {
		b := find(p, "div", "data-name", name)
		if len(b) != 1 || words(find(b[0], "span", "class", "count")[0]) != want {
			t.Errorf("bar %s is not %s", name, want)
		}
	}
	var shards []string
	for _, r := range rowsOf(t, p, "slowest") {
		shards = append(shards, r[0])
		if !slices.Equal(r[4:6], []string{"2.00 KiB", "7"}) {
			t.Errorf("shard %s read %q", r[0], r[4:6])
		}
	}
	if want := []string{"2", "1", "0", "3"}; !slices.Equal(shards, want) {
		t.Errorf("slowest %q, want %q", shards, want)
	}
	hosts := rowsOf(t, p, "hosts")
	if len(hosts) != 2 || !slices.Equal(hosts[0][:7], []string{"b", "3", "0", "1", "30", "6.00 KiB", "21"}) ||
		!slices.Equal(hosts[1][:7], []string{"a", "1", "2", "0", "10", "2.00 KiB", "7"}) {
		t.Errorf("hosts %q", hosts)
	}
	errs := words(find(p, "section", "id", "errors")[0])
	if len(find(p, "script", "", "")) != 0 || !strings.Contains(errs, "<script>x</script>") ||
		strings.Contains(errs, "\u202e") || !strings.Contains(errs, "shard 5: connection reset") {
		t.Errorf("errors %q", errs)
	}
}

// TestPageOfManyShards: the lists of a job whose runs all name other hosts and kinds end, and say how many are left
// out.
func TestPageOfManyShards(t *testing.T) {
	s := &job.Status{Kind: "index", Shards: 300, Items: 300}
	for i := range 300 {
		r := job.Run{Shard: i, Items: 1, State: job.Failed, Host: fmt.Sprint(i), Kind: fmt.Sprint("kind ", i)}
		s.Failed, s.Missing, s.Runs = append(s.Failed, i), append(s.Missing, i), append(s.Runs, r)
	}
	p := parsed(t, s)
	if n := len(rowsOf(t, p, "hosts")); n != maxRows {
		t.Errorf("%d hosts", n)
	}
	errs := find(p, "section", "id", "errors")[0]
	if n := len(find(errs, "div", "class", "bar")); n != maxRows+1 {
		t.Errorf("%d kinds", n)
	}
	if text := words(errs); !strings.Contains(text, "280 more failed shards") {
		t.Errorf("errors %q", text)
	}
	if len(find(p, "section", "id", "slowest")) != 0 {
		t.Error("there are slowest shards, and none is done")
	}
}
