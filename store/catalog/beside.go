package catalog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/internal/epsg"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
	"github.com/chaski-eo/chaski/tiff"
)

// NAME.tif.msk is a mask, NAME.tif.aux.xml the persistent auxiliary metadata (PAM) of GDAL. Asset.Beside has these
// extensions, and the extension of a world file.
const (
	maskExt = ".msk"
	pamExt  = ".aux.xml"
)

// BesideVariable is an environment variable: "no", "false", "off" or "0" stop the search for files beside a raster.
const BesideVariable = "CHASKI_BESIDE"

// sidecarNames are the names of the files beside a raster, "" for those that are not there.
type sidecarNames struct {
	folder, raster, mask, pam, world string
}

// uri returns the path of a file beside the raster.
func (b *sidecarNames) uri(name string) string {
	if source.IsRemote(b.folder) {
		return b.folder + "/" + name
	}
	return pathname.Join(b.folder, name)
}

// siblingFiles are the names of files in a directory that may belong to a raster.
type siblingFiles struct {
	mtime time.Time // zero if the directory had changed just before
	until time.Time // the names count till then, even if it changes
	names sidecar.Names
}

// listings keeps the names of directories, so each is listed once for all its files and again after a change.
// 64 MiB are about 500,000 names.
var listings = lru.New[string, siblingFiles](64 << 20)

// listers has one lister of a directory at a time. A directory that hangs holds up those that ask for it, no others.
var listers keylock.Locks[string]

const listedBytes = 160 // of a name

// settled is the age of a directory from which its names are kept: a change within the resolution of a file system's
// clock leaves no trace.
const settled = 2 * time.Second

// listingShare bounds the share of time that listing takes of a large directory that others write to meanwhile: it is
// listed again after 20 times as long as that took, so for at most 5 % of the time. Others are listed after each
// change: a directory of fewer names takes a millisecond, unless its file system is slow.
const (
	listingShare = 20
	manyNames    = 1000
	slowListing  = 100 * time.Millisecond
)

// BesideOf finds the files beside a raster that is opened by o; for a remote one, among the names of WithBeside. It
// returns the extensions of Asset.Beside, "" for none. Openers of single objects have none, as for rasters in
// containers.
func BesideOf(ctx context.Context, o source.Opener, uri string) string {
	b := besideOf(ctx, o, uri)
	return b.extensions()
}

// FilesBeside returns the paths of the files that count beside a raster, as for BesideOf.
func FilesBeside(ctx context.Context, o source.Opener, uri string) (paths []string) {
	b := besideOf(ctx, o, uri)
	for _, name := range []string{b.mask, b.pam, b.world} {
		if name != "" {
			paths = append(paths, b.uri(name))
		}
	}
	return paths
}

func (b *sidecarNames) extensions() string {
	var out []string
	if b.mask != "" {
		mask, ok := strings.CutPrefix(b.mask, b.raster)
		if !ok {
			mask = url.PathEscape(mask)
		}
		out = append(out, mask)
	}
	if b.pam != "" {
		out = append(out, pamExt)
	}
	if b.world != "" {
		out = append(out, strings.ToLower(path.Ext(b.world)))
	}
	return strings.Join(out, " ")
}

func besideOf(ctx context.Context, o source.Opener, uri string) (b sidecarNames) {
	if opensOne(o) || source.IsPart(uri) || ignored() {
		return b
	}
	local := source.LocalPath(uri)
	folder, name := pathname.Dir(local), filepath.Base(local)
	if source.IsRemote(uri) {
		cut := strings.LastIndexByte(uri, '/')
		folder, name = uri[:cut], uri[cut+1:]
	}
	names := namesFor(ctx, openers.RootsOf(o), folder)
	if len(names) == 0 {
		return b
	}
	b = sidecarNames{folder: folder, raster: name, mask: names.Find(name + maskExt)}
	if pam := name + pamExt; names[pam] == pam { // as GDAL, not in another case
		b.pam = pam
	}
	stem := strings.TrimSuffix(name, path.Ext(name))
	for _, ext := range sidecar.World(name) {
		b.world = cmp.Or(b.world, names.Find(stem+ext))
	}
	return b
}

// broken are the directories in which a file beside a raster was broken, the last few.
var broken = lru.New[string, bool](1 << 20)

// ignored reports whether the environment says that files beside rasters do not count.
func ignored() bool {
	switch strings.ToLower(os.Getenv(BesideVariable)) {
	case "no", "false", "off", "0":
		return true
	}
	return false
}

// namesKey is the key of the names, by directory, that a table has seen: within a table a directory is not looked at
// again.
type namesKey struct{}

// listedKey is the key of the names that WithBeside has.
type listedKey struct{}

// WithBeside returns a context in which rasters have the files beside them that a listing found, by directory. Without
// one, local directories are looked at, and remote ones left alone: each would cost a request or many.
func WithBeside(ctx context.Context, listed map[string]sidecar.Names) context.Context {
	return context.WithValue(ctx, listedKey{}, listed)
}

type tableNames = lru.Cache[string, sidecar.Names]

// namesFor returns the names in a directory that a listing found. Otherwise it returns the names of namesIn, and
// keeps them for the table of a context.
func namesFor(ctx context.Context, r *openers.Roots, dir string) sidecar.Names {
	listed, _ := ctx.Value(listedKey{}).(map[string]sidecar.Names)
	if names, ok := listed[dir]; ok || source.IsRemote(dir) {
		return names
	}
	table, _ := ctx.Value(namesKey{}).(*tableNames)
	if table == nil {
		return namesIn(ctx, r, dir)
	}
	names, ok := table.Get(dir)
	if !ok {
		names = namesIn(ctx, r, dir)
		if ctx.Err() != nil {
			return nil
		}
		table.Add(dir, names, namesBytes(dir, names))
	}
	return names
}

// namesBytes is the memory of the names of a directory.
func namesBytes(dir string, names sidecar.Names) int64 {
	return int64(len(dir) + (1+len(names))*listedBytes)
}

// namesIn returns the names of files in a directory that may belong to rasters. A directory whose listing fails, or
// takes longer than ctx, counts as empty.
func namesIn(ctx context.Context, r *openers.Roots, dir string) sidecar.Names {
	st, err := r.Stat(dir)
	if err != nil {
		return nil
	}
	if names, ok := knownNames(dir, st.ModTime()); ok {
		return names
	}
	unlock, err := listers.Lock(ctx, dir)
	if err != nil {
		return nil
	}
	result := make(chan sidecar.Names, 1)
	go func() { // a system call that hangs cannot be stopped
		defer unlock()
		names, ok := knownNames(dir, st.ModTime()) // by another lister meanwhile
		if !ok {
			names = listNames(r, dir, st.ModTime())
		}
		result <- names
	}()
	select {
	case names := <-result:
		return names
	case <-ctx.Done():
		return nil
	}
}

// knownNames returns the names in a directory that were listed before, if they count still.
func knownNames(dir string, mtime time.Time) (sidecar.Names, bool) {
	known, ok := listings.Get(dir)
	return known.names, ok && (known.mtime.Equal(mtime) || time.Now().Before(known.until))
}

// listNames lists a directory.
func listNames(r *openers.Roots, dir string, mtime time.Time) sidecar.Names {
	began := time.Now()
	entries, err := r.ReadDir(dir)
	if err != nil {
		return nil
	}
	found := siblingFiles{names: sidecar.Names{}}
	if took := time.Since(began); len(entries) >= manyNames || took > slowListing {
		found.until = began.Add(listingShare * took)
	}
	for _, e := range entries {
		if !e.IsDir() {
			found.names.Add(e.Name())
		}
	}
	if began.Sub(mtime) > settled {
		found.mtime = mtime
	}
	listings.Add(dir, found, namesBytes(dir, found.names))
	return found.names
}

// AddBeside adds what the files beside a raster say to its asset, as GDAL ranks them: PAM before the raster's own
// metadata, and that before a world file; the raster's own mask before the one beside it.
func AddBeside(ctx context.Context, o source.Opener, a *Asset, m *Meta, maxChunk int) error {
	files := besideOf(ctx, o, a.URI)
	switch {
	case m.Format == magic.VRT: // GDAL keeps all but masks in it
		files.pam, files.world = "", ""
	case m.Format == magic.Rumi || a.Index.Codec == chunk.Turned || a.Index.OfArray(): // it places stored pixels
		return nil
	}
	if files.mask+files.pam+files.world == "" {
		return nil
	}
	x := *a.Index
	a.Index = &x
	if files.pam != "" {
		if err := files.addPAM(ctx, o, a, m); err != nil {
			return fault.WithFile(err, files.uri(files.pam))
		}
	}
	if files.world != "" && m.Transform == nil {
		data, err := source.ReadAll(ctx, o, files.uri(files.world), sidecar.MaxWorld)
		if fault.KindOf(err) == fault.Limit { // something else with that name
			data, err = nil, nil
		}
		if err != nil {
			return fault.WithFile(err, files.uri(files.world))
		}
		m.Transform = sidecar.ParseWorld(data)
	}
	if m.Format != magic.VRT {
		m.Blob = blob.Append(nil, &x)
	}
	if files.mask != "" {
		if err := files.addMask(ctx, o, a, maxChunk); err != nil {
			return fault.WithFile(err, files.uri(files.mask))
		}
	}
	m.apart, a.Beside = a.MaskFile != nil && m.Blob != nil, files.extensions()
	a.Place = m.Place(x.Height, x.Width)
	return nil
}

// addPAM adds what NAME.aux.xml says.
func (b *sidecarNames) addPAM(ctx context.Context, o source.Opener, a *Asset, m *Meta) error {
	data, err := source.ReadAll(ctx, o, b.uri(b.pam), sidecar.MaxPAM)
	if err != nil {
		return err
	}
	pam, err := sidecar.ParsePAM(ctx, data)
	if err != nil && fault.KindOf(err) == 0 {
		return err
	} else if err != nil { // GDAL, too, reads on without it
		if _, known := broken.Get(b.folder); !known {
			broken.Add(b.folder, true, int64(len(b.folder)+listedBytes))
			slog.Warn("a file beside a raster is broken, and is ignored; others of the directory are not mentioned",
				"file", b.uri(b.pam), "error", err)
		}
		b.pam = ""
		return nil
	}
	if pam.SRS != "" {
		m.EPSG, m.CRS = epsg.Described(pam.SRS)
	}
	m.Transform = cmp.Or(pam.Transform, m.Transform)
	bands := a.Index.StepBands()
	nodata := make([]string, bands)
	for i := range pam.Bands {
		band := &pam.Bands[i]
		number := band.Number()
		if number < 1 || number > bands {
			continue
		}
		nodata[number-1] = cmp.Or(band.NoData.String(), nodata[number-1])
		if scale, offset := band.Numbers(); scale != nil || offset != nil {
			if m.Bands == nil {
				m.Bands = make([]tiff.Band, bands)
			}
			m.Bands[number-1] = tiff.Band{Scale: scale, Offset: offset}
		}
		if x := a.Index; band.Colours != nil && bands == 1 && x.DType.Integer() && !x.LowBits {
			x.Classes = true
		}
		if colour := strings.TrimSpace(band.Colour); colour != "" && number == a.Index.Bands {
			a.Index.Alpha = tiff.IsAlpha(colour, a.Index)
		}
		if band.Description != "" {
			names := make([]string, bands)
			copy(names, a.Names)
			names[number-1] = band.Description
			a.Names = names
		}
	}
	a.Index.Physical = tiff.Physical(a.Index, m.Bands)
	return addNoData(a.Index, nodata)
}

// addNoData sets the nodata values that PAM gives to the bands, "" for none. Bands without one keep the value of the
// raster.
func addNoData(x *chunk.Index, texts []string) error {
	bands := make([][]chunk.NoData, len(texts))
	for band, text := range texts {
		value, bits := x.NoData, x.NoDataBits
		if text != "" {
			value, bits = tiff.NoData(text, x.DType)
		}
		if value != nil || bits != nil {
			bands[band] = []chunk.NoData{{Value: value, Bits: bits}}
		}
	}
	err := x.SetEachNoData(bands)
	if sparse := func(r chunk.Range) bool { return r.Len == 0 }; err == nil && !x.OneNoData() &&
		slices.ContainsFunc(x.Ranges, sparse) {
		err = fault.New(fault.Unsupported, "PAM", "bands have different nodata values, and some chunks were not "+
			"written: %s=no ignores files beside rasters, and Field(nodata=...) gives bands their own", BesideVariable)
	}
	return err
}

// addMask adds the mask of NAME.msk, unless the raster has one of its own. Only a TIFF that says that it is a mask
// counts.
func (b *sidecarNames) addMask(ctx context.Context, o source.Opener, a *Asset, maxChunk int) (err error) {
	uri, x := b.uri(b.mask), a.Index
	if x.Mask != nil {
		b.mask = ""
		return nil
	}
	file, err := o.Open(ctx, uri)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if format, err := FormatOf(ctx, file); err != nil {
		return err
	} else if format.Class != magic.Raster {
		b.mask = ""
		return nil
	}
	image, err := tiff.Open(ctx, file, tiff.Limits{MaxChunk: maxChunk})
	if err != nil {
		return err
	}
	if !sidecar.IsMask(image.Meta.GDALMetadata) {
		b.mask = ""
		return nil
	}
	if a.Axes.Pages != "" {
		return fault.New(fault.Unsupported, "mask", "the raster's pages are %s of one image, which have no mask "+
			"beside it: %s=no ignores files beside rasters", a.Axes.Pages, BesideVariable)
	}
	mask := image.Index
	mask.Alpha = false
	mask.SetNoData(nil)
	x.Mask = mask
	if err := x.Validate(-1, cmp.Or(maxChunk, chunk.DefaultMaxBytes)); err != nil {
		return err
	}
	a.MaskFile = &Asset{URI: uri, Index: mask, Size: file.Size(), ETag: source.ETag(file),
		MTime: source.ModTime(file)}
	return nil
}

// unstamped is the time of a mask in catalogs, which do not keep one. No file has it: readers compare the index that
// the catalog has with the index of the file.
var unstamped = time.Unix(0, 1)

// fromCatalog sets what a catalog says about the files beside a raster: its index has the mask.
func (a *Asset) fromCatalog(extensions string) {
	if a.Beside = extensions; a.Index.Mask != nil && a.hasBeside(maskExt) {
		mask := a.maskURI(strings.Fields(extensions)[0]) // masks come first
		a.MaskFile = &Asset{URI: mask, Index: a.Index.Mask, MTime: unstamped}
	}
}

// maskURI returns the path of the mask that Beside has as an extension or, of another case, as a name.
func (a *Asset) maskURI(mask string) string {
	name, err := url.PathUnescape(mask)
	if strings.HasPrefix(mask, ".") || err != nil {
		return a.URI + mask
	}
	return a.URI[:len(a.URI)-len(filepath.Base(a.URI))] + name
}

// hasBeside reports whether a file with an extension, in any case, lies beside the raster.
func (a *Asset) hasBeside(ext string) bool {
	return slices.ContainsFunc(strings.Fields(strings.ToLower(a.Beside)), func(name string) bool {
		return strings.HasSuffix(name, ext)
	})
}
