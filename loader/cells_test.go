package loader_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source/httpsource"
)

const (
	cellSide  = 64
	pageCells = 40
	cellPages = 10
)

// cellRow is a row of a table of rasters in cells.
type cellRow struct {
	Image []byte `parquet:"image,plain"`
	Label int64  `parquet:"label"`
}

// cellTable returns a Parquet file of pageCells × cellPages NumPy files of random pixels, in row groups of one page of
// so many cells each, and the pixels of each.
func cellTable(t *testing.T, cells, side int) (file []byte, pixels [][]byte) {
	t.Helper()
	head := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (1, %d, %d), }", side, side)
	head = "\x93NUMPY\x01\x00\x76\x00" + head + strings.Repeat(" ", 117-len(head)) + "\n"
	var b bytes.Buffer
	// A page ends where a row group does. The writer allocates so many bytes for each column at once.
	pageEnd := parquet.PageBufferSize(2 * cells * (side*side + len(head)))
	w := parquet.NewGenericWriter[cellRow](&b, pageEnd, parquet.DataPageStatistics(false))
	random := rand.NewChaCha8([32]byte{7})
	for k := range pageCells * cellPages {
		one := make([]byte, side*side)
		_, _ = random.Read(one)
		pixels = append(pixels, one)
		if _, err := w.Write([]cellRow{{append([]byte(head), one...), int64(k)}}); err != nil {
			t.Fatal(err)
		}
		if (k+1)%cells == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), pixels
}

// pageServer serves a file, and counts the requests that take at least so many bytes, half a page if that is 0, and
// their bytes. They wait at the gate.
type pageServer struct {
	file  []byte
	least int64
	gate  sync.RWMutex
	mu    sync.Mutex
	n     int
	sum   int64
}

func (s *pageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var first, last int64
	_, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
	least := cmp.Or(s.least, pageCells*cellSide*cellSide/2)
	if n := last - first + 1; err == nil && n >= least && n < int64(len(s.file))/2 {
		s.gate.RLock()
		defer s.gate.RUnlock()
		s.mu.Lock()
		s.n, s.sum = s.n+1, s.sum+n
		s.mu.Unlock()
	}
	http.ServeContent(w, r, "t.parquet", time.Unix(1e9, 0), bytes.NewReader(s.file))
}

// openCells opens a table of cells on a server, with a cache of so many bytes and so many workers.
func openCells(t *testing.T, server *pageServer, sampler loader.Sampler, cache int64, workers int) *loader.Engine {
	t.Helper()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	opener, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opener.Close() })
	e, err := loader.Open(t.Context(), loader.Spec{
		Source: web.URL + "/t.parquet", BatchSize: cellBatch, Shuffle: true, Seed: 3,
		Fields: []loader.Field{{Name: "image", DType: "native"}}, Sampler: sampler,
	}, loader.Options{CacheBytes: cache, Workers: workers, Fetchers: workers, Opener: opener})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	server.n, server.sum = 0, 0
	return e
}

const (
	cellBatch = 10
	pageBytes = pageCells * (cellSide*cellSide + 128 + 4)
)

// readTogether reads steps from first to end, which are all started before a page is read. It returns the samples,
// which must have the pixels, unless these are nil.
func (s *pageServer) readTogether(t *testing.T, e *loader.Engine, first, end int64, pixels [][]byte) (samples []int64) {
	t.Helper()
	s.gate.Lock()
	var pending []*loader.Pending
	for step := first; step < min(end, e.Steps()); step++ {
		ticket := steps.Ticket{First: step * cellBatch, Count: cellBatch, RowStride: 1}
		pending = append(pending, e.Start(t.Context(), ticket, false))
	}
	s.gate.Unlock()
	for _, p := range pending {
		b, err := p.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for k, sample := range b.Samples {
			const size = cellSide * cellSide
			if pixels != nil && !bytes.Equal(b.Tensors[0].Data[k*size:][:size], pixels[sample]) {
				t.Errorf("sample %d has other pixels", sample)
			}
		}
		samples = append(samples, b.Samples...)
		b.Release()
	}
	return samples
}

// TestCellsOfLargePages: samples of the batches that are in work together, and whose cells lie in one page, take one
// read of it, with a cache of one page and with one of less.
func TestCellsOfLargePages(t *testing.T) {
	file, pixels := cellTable(t, pageCells, cellSide)
	for _, cache := range []int64{640 << 10, 256 << 10} { // half of it is for pages
		server := &pageServer{file: file}
		e := openCells(t, server, loader.Sampler{}, cache, 4)
		const together = 3
		most := 0
		for first := int64(0); first < e.Steps(); first += together {
			pages := map[int64]bool{}
			for _, sample := range server.readTogether(t, e, first, first+together, pixels) {
				pages[sample/pageCells] = true
			}
			most += len(pages)
		}
		if server.n > most || server.sum > int64(most)*(pageBytes+100) {
			t.Errorf("cache %d: %d reads of %d bytes, at most %d of %d", cache, server.n, server.sum, most, pageBytes)
		}
	}
}

// TestMoreCellsThanTheCache: of batches in work whose cells are more than the cache has room for, those that are read
// first are kept. A raster of several windows is kept until the last of them.
func TestMoreCellsThanTheCache(t *testing.T) {
	for _, perRaster := range []int{1, 3} {
		file, pixels := cellTable(t, pageCells, cellSide)
		server := &pageServer{file: file}
		var sampler loader.Sampler
		if perRaster > 1 {
			pixels = nil
			sampler = loader.Sampler{Kind: spec.RandomWindow, PerAsset: perRaster, Height: 16, Width: 16}
		}
		const cache = 512 << 10
		e := openCells(t, server, sampler, cache, 1)
		order := server.readTogether(t, e, 0, e.Steps(), pixels)
		for i := range order {
			order[i] /= int64(perRaster)
		}
		// The slow way: after each read of a page, all cells of it that are still to come, and the copies, are put in
		// their order, and as many are copied as have room.
		const room = cache / 2 / (cellSide*cellSide + 128 + 400)
		copies, reads := map[int64]bool{}, 0
		for i, raster := range order {
			if copies[raster] {
				continue
			}
			reads++
			now := map[int64]bool{}
			for _, later := range order[i+1:] {
				if len(now) < room && (copies[later] || later/pageCells == raster/pageCells) {
					now[later] = true
				}
			}
			copies = now
		}
		t.Logf("%d reads for %d samples; %d counted", server.n, len(order), reads)
		if server.n > reads+reads/20 || server.n < cellPages {
			t.Errorf("%d reads, where %d are needed", server.n, reads)
		}
	}
}

// TestForecastOfPages: the forecast of a table of rasters in cells counts the pages that a run reads, by a server, for
// pages of many cells and of one, whole chips and windows, and several sizes of the cache. It reads no more than the
// first page.
func TestForecastOfPages(t *testing.T) {
	for name, c := range map[string]struct {
		cells, side int // of a page, and of a cell
		cache       int64
		perRaster   int
	}{
		"large":             {pageCells, 64, 640 << 10, 0},
		"larger than cache": {pageCells, 64, 256 << 10, 0},
		"several":           {10, 128, 1 << 20, 0},
		"light":             {10, 128, 3 << 20, 0},
		"of a block":        {1, 256, 1 << 20, 0},
		"windows":           {pageCells, 64, 640 << 10, 3},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "larger than cache" {
				t.Skip("the others run the same goroutines")
			}
			file, _ := cellTable(t, c.cells, c.side)
			server := &pageServer{file: file, least: 1}
			var sampler loader.Sampler
			if c.perRaster > 0 {
				sampler = loader.Sampler{Kind: spec.RandomWindow, PerAsset: c.perRaster, Height: 16, Width: 16}
			}
			e := openCells(t, server, sampler, c.cache, 1)
			f, err := e.Forecast(t.Context(), dryrun.Options{Prefetch: int(e.Steps())})
			if err != nil {
				t.Fatal(err)
			}
			if server.sum > int64(len(file))/5 {
				t.Errorf("the forecast read %d bytes of %d", server.sum, len(file))
			}
			e = openCells(t, server, sampler, c.cache, 1)
			server.readTogether(t, e, 0, e.Steps(), nil)
			ratio := float64(server.sum) / float64(f.Total.Bytes)
			t.Logf("%d requests of %d bytes, forecast %d of %d", server.n, server.sum, f.Total.Requests, f.Total.Bytes)
			if ratio < 1/1.05 || ratio > 1.05 {
				t.Errorf("a run reads %.3f times the bytes of the forecast", ratio)
			}
		})
	}
}
