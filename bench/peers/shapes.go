package peers

import (
	"fmt"
	"slices"
	"strings"
)

// Shape says what samples look like and how many there are. They are whole files ("chips") or windows of larger ones
// ("windows").
type Shape struct {
	Name    string `json:"name"`
	Imagery string `json:"imagery"` // scenes they are cut from: s2, naip or landsat
	Bands   int    `json:"bands"`
	Side    int    `json:"side"` // pixels of a sample along y and x
	DType   string `json:"dtype"`
	Tile    int    `json:"tile"`    // pixels of a tile along y and x
	Images  int    `json:"images"`  // files
	Scene   int    `json:"scene"`   // pixels of a file along y and x; 0: a file is a sample
	Samples int    `json:"samples"` // in an epoch
	Batch   int    `json:"-"`       // samples in a batch
}

// Shapes returns all shapes, in the order in which they are measured. Their files decode to 100 to 450 MB: more than
// the caches of decoded tiles hold, and little enough for the page cache.
func Shapes() []Shape {
	chips := func(name, imagery string, bands, side int, dtype string, tile, images, batch int) Shape {
		return Shape{Name: name, Imagery: imagery, Bands: bands, Side: side, DType: dtype, Tile: tile,
			Images: images, Samples: images, Batch: batch}
	}
	windows := func(name, imagery string, bands, side int, dtype string, tile, images, scene int) Shape {
		return Shape{Name: name, Imagery: imagery, Bands: bands, Side: side, DType: dtype, Tile: tile,
			Images: images, Scene: scene,
			Samples: 4096, Batch: 32}
	}
	return []Shape{
		chips("chips", "s2", 6, 256, "uint16", 128, 512, 32),
		windows("windows", "s2", 6, 256, "uint16", 256, 6, 2048),
		chips("s2-13x256", "s2", 13, 256, "uint16", 64, 192, 16),
		chips("s2-13x512", "s2", 13, 512, "uint16", 256, 64, 8),
		chips("s2-6x512", "s2", 6, 512, "uint16", 512, 128, 16),
		windows("s2-13x128-windows", "s2", 13, 128, "uint16", 512, 4, 2048),
		chips("naip-3x256", "naip", 3, 256, "uint8", 256, 1024, 32),
		windows("naip-3x256-windows", "naip", 3, 256, "uint8", 512, 6, 4096),
		chips("landsat-7x256", "landsat", 7, 256, "uint16", 128, 384, 32),
		chips("index-1x256", "s2", 1, 256, "float32", 256, 1024, 32),
		chips("index-1x64", "s2", 1, 64, "float32", 64, 8192, 64),
	}
}

// ShapesNamed returns the shapes with these names, or all if there are no names.
func ShapesNamed(names []string) ([]Shape, error) {
	shapes := Shapes()
	if len(names) == 0 {
		return shapes, nil
	}
	var out []Shape
	for _, name := range names {
		i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("shape %q does not exist: choose from %s", name,
				strings.Join(shapeNames(shapes), ", "))
		}
		out = append(out, shapes[i])
	}
	return out, nil
}

func shapeNames(shapes []Shape) (names []string) {
	for _, s := range shapes {
		names = append(names, s.Name)
	}
	return names
}

// Small returns the shape with fewer files and samples, for a quick try of all peers.
func (s Shape) Small() Shape {
	if s.Scene > 0 {
		s.Images, s.Scene, s.Samples = 2, max(1024, 2*s.Tile), 4*s.Batch
		return s
	}
	s.Batch = min(s.Batch, 16)
	// GDAL takes 20 ms of a processor to compress one as the full shapes are, however small it is.
	s.Images = max(4*s.Batch, s.Images/64/s.Batch*s.Batch)
	s.Samples = s.Images
	return s
}

// String describes the shape.
func (s Shape) String() string {
	sample := fmt.Sprintf("(%d, %d, %d) %s", s.Bands, s.Side, s.Side, s.DType)
	if s.Scene > 0 {
		return fmt.Sprintf("windows %s of %d files of %d x %d, tiles of %d, batches of %d", sample, s.Images,
			s.Scene, s.Scene, s.Tile, s.Batch)
	}
	return fmt.Sprintf("%d files %s, tiles of %d, batches of %d", s.Images, sample, s.Tile, s.Batch)
}

// Peer is a loader, with the files that it reads.
type Peer struct {
	Name      string
	About     string
	Format    string // of its files
	loader    string // of the script; "" for the engine alone
	transport string // of chaski's batches
	full      bool   // the engine is the one with libzstd
	chips     bool   // reads whole files only
	decodes   bool   // its decoding is also measured alone
}

// Baseline is the peer that ratios compare with.
const Baseline = "rasterio"

// Peers returns all loaders.
func Peers() []Peer {
	return []Peer{
		{Name: "chaski", About: "the package chaski, batches in shared memory", Format: "tog",
			loader: "chaski", transport: "auto"},
		{Name: "chaski-grpc", About: "the same, batches over gRPC", Format: "tog", loader: "chaski", transport: "grpc"},
		{Name: "chaski-connect", About: "chaski.connect: a server without shared memory, a local engine as its client",
			Format: "tog", loader: "chaski", transport: "connect"},
		{Name: "chaski-full", About: "chaski with the engine that has libzstd", Format: "tog", loader: "chaski",
			transport: "auto", full: true},
		{Name: "chaski-rumi1", About: "chaski on rumi files of generation 1", Format: "rumi1",
			loader: "chaski", transport: "auto"},
		{Name: "chaski-load", About: "the engine by itself in a Go process, no Python", Format: "tog", decodes: true},
		{Name: "chaski-load-full", About: "the same with libzstd", Format: "tog", full: true, decodes: true},
		{Name: "chaski-load-rumi1", About: "the engine by itself on rumi files of generation 1",
			Format: "rumi1", decodes: true},
		{Name: "rasterio", About: "rasterio (GDAL) and a DataLoader", Format: "tog", loader: "rasterio", decodes: true},
		{Name: "tifffile", About: "tifffile with imagecodecs and a DataLoader", Format: "tog", loader: "tifffile",
			chips: true, decodes: true},
		{Name: "mds", About: "MosaicML streaming, shards that the first epoch has decompressed", Format: "mds",
			loader: "mds", chips: true},
		{Name: "zarr", About: "zarr (Blosc, zstd) and a DataLoader", Format: "zarr", loader: "zarr"},
		{Name: "rumi", About: "rumi-eo, the current generation, and a DataLoader", Format: "rumi",
			loader: "rumi", decodes: true},
		{Name: "rumi-many", About: "rumi-eo, a read a batch in threads", Format: "rumi", loader: "rumi-many"},
		{Name: "rumi1", About: "rumi-eo 0.8.3, generation 1, and a DataLoader", Format: "rumi1",
			loader: "rumi1", decodes: true},
	}
}

// PeersNamed returns the peers with these names, or all if there are no names.
func PeersNamed(names []string) ([]Peer, error) {
	peers := Peers()
	if len(names) == 0 {
		return peers, nil
	}
	var out []Peer
	for _, name := range names {
		i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
		if i < 0 {
			var known []string
			for _, p := range peers {
				known = append(known, p.Name)
			}
			return nil, fmt.Errorf("peer %q does not exist: choose from %s", name, strings.Join(known, ", "))
		}
		out = append(out, peers[i])
	}
	return out, nil
}

// reads reports whether the peer can load a shape.
func (p Peer) reads(s Shape) bool { return s.Scene == 0 || !p.chips }
