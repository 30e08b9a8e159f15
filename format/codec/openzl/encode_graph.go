package openzl

import (
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Parts of a graph.
const (
	predictNone = iota
	predictDelta
	predictPlanar
)

// graphSpec describes a graph by its parts: the prediction, whether residuals are mapped to small numbers,
// whether their bytes are split into planes, and the last codec.
type graphSpec struct {
	predict   int
	zigzag    bool
	transpose bool
	end       string // store, zstd, entropy, bitpack, constant, pfor or pivco
}

// ends are the last codecs of a graph.
var ends = []string{"store", "zstd", "entropy", "bitpack", "constant", "pfor", "pivco"}

// fastGraph decodes faster than zstd, and takes about as many bytes for numbers that change little from pixel to pixel.
const fastGraph = "planar>zigzag>pfor"

func parseGraph(name string) (graphSpec, error) {
	var graph graphSpec
	parts := strings.Split(name, ">")
	take := func(part string) bool {
		if len(parts) > 1 && parts[0] == part {
			parts = parts[1:]
			return true
		}
		return false
	}
	if take("delta") {
		graph.predict = predictDelta
	} else if take("planar") {
		graph.predict = predictPlanar
	}
	graph.zigzag = take("zigzag")
	graph.transpose = take("transpose")
	graph.end = parts[0]
	switch {
	case len(parts) > 1, !slices.Contains(ends, graph.end),
		graph.transpose && slices.Contains([]string{"bitpack", "constant", "store", "pfor"}, graph.end),
		graph.end == "constant" && (graph.zigzag || graph.predict != predictNone):
		return graph, fault.New(fault.Unsupported, "graph", "%q at %q", name, strings.Join(parts, ">"))
	}
	return graph, nil
}

// Needs returns which release 0.N of geozl readers of frames of a graph need, and with it which OpenZL: 0 if they
// need none, as for auto and best, which keep to EncodeOptions.Geozl. It returns the same error as NewEncoder.
func Needs(graph string) (geozl int, err error) {
	switch graph {
	case "auto", "best":
		return 0, nil
	case "fast":
		graph = fastGraph
	}
	spec, err := parseGraph(graph)
	if err != nil {
		return 0, err
	}
	return spec.geozl(), nil
}

// geozl returns which release of geozl has the codecs of a graph. planar>zigzag of Geozl14 is two codecs.
func (g graphSpec) geozl() int {
	switch {
	case g.end == "pivco":
		return Geozl19
	case g.end == "pfor":
		return Geozl18
	case g.predict == predictPlanar:
		return Geozl14
	}
	return 0
}

// Graph returns the name of the graph: for auto, of the one it chose last.
func (e *Encoder) Graph() string {
	graph := &e.graph
	name := [...]string{"", "delta>", "planar>"}[graph.predict]
	if graph.zigzag {
		name += "zigzag>"
	}
	if graph.transpose {
		name += "transpose>"
	}
	if graph.end == "" {
		return "auto"
	}
	return name + graph.end
}
