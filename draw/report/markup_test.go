package report

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// TestTextStaysText writes any text between tags and into an attribute. An HTML parser must find it there again, and
// the elements of the page and no others.
func TestTextStaysText(t *testing.T) {
	piece := rapid.SampledFrom([]string{"<script>", "</p>", "</title>", "</style>", "\"", "'", "&lt;", "&", "<!--",
		"-->", "]]>", "a", " ", "\x00", "\u202e", "\xff", "é", "\n", "{{", "`", "=", "onload=x"})
	rapid.Check(t, func(rt *rapid.T) {
		hostile := strings.Join(rapid.SliceOf(rapid.OneOf(piece, rapid.String())).Draw(rt, "text"), "")
		var b strings.Builder
		err := writePage(&b, hostile, "p{color:red}", el("p", attr("title", hostile), text(hostile)),
			el("table", el("tr", el("th", text(hostile)), el("td", text(hostile)))))
		if err != nil {
			rt.Fatal(err)
		}
		root, err := html.Parse(strings.NewReader(b.String()))
		if err != nil {
			rt.Fatal(err)
		}
		want, tags := clean(hostile), []string{}
		for n := range root.Descendants() {
			if n.Type == html.CommentNode {
				rt.Fatalf("the page has a comment: %q", n.Data)
			}
			if n.Type != html.ElementNode {
				continue
			}
			tags = append(tags, n.Data)
			switch n.Data {
			case "title", "p", "th", "td":
				if got := words(n); got != want {
					rt.Fatalf("<%s>: got %q, want %q", n.Data, got, want)
				}
			}
			if n.Data == "p" && (len(n.Attr) != 1 || n.Attr[0].Val != want) {
				rt.Fatalf("attributes: got %q, want title=%q alone", n.Attr, want)
			}
		}
		const all = "html head meta meta meta meta title style body p table tbody tr th td"
		if got := strings.Join(tags, " "); got != all {
			rt.Fatalf("elements: got %s, want %s", got, all)
		}
	})
}

func words(n *html.Node) string {
	if n.FirstChild == nil {
		return ""
	}
	return n.FirstChild.Data
}

// TestNothing checks that parts which are not there leave no trace.
func TestNothing(t *testing.T) {
	var b strings.Builder
	if err := writePage(&b, "", "", nil, when(false, text("x")), some("b", ""), parts{nil}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "<body></body>") {
		t.Errorf("got %q, want an empty body", b.String())
	}
}

// TestSecretsStay promises that no page shows what opens the files of a URI.
func TestSecretsStay(t *testing.T) {
	const uri = "https://user:SECRET@host/a.tif?sig=SECRET"
	var page strings.Builder
	err := writePage(&page, uri, "", el("b", attr("title", uri), text(uri)))
	if err != nil || strings.Contains(page.String(), "SECRET") {
		t.Errorf("%s, %v", page.String(), err)
	}
}
