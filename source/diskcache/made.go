package diskcache

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"
)

// Content that was made of an object, such as a chunk in a form that decodes fast, is an object of its own with one
// range. Nobody announces to read it, so that it makes room for announced ranges, and takes none of theirs.

// madeVersion is the version of all content that was made: its name says of what and how.
const madeVersion = 1

// mostMade bounds the length of what was made, in bytes. The name of a file says it, and memory is taken before the
// file is read. Chunks over 64 MiB are not made.
const mostMade = 96 << 20

// nameMade returns the object of what was made, under a name, of an object with the rights by which that was read.
// The zero Object stands for a local file.
func nameMade(of Object, name [16]byte) (o Object) {
	hash := sha256.Sum256(slices.Concat([]byte("made"), of.uri[:], of.version[:], name[:]))
	copy(o.uri[:], hash[:])
	o.version[0] = madeVersion
	return o
}

// KeepMade implements source.DiskCache.
func (r *Ref) KeepMade(object any, name [16]byte, content []byte) bool {
	folder, err := r.Get()
	o, ok := object.(Object)
	if folder == nil || err != nil || !ok && object != nil {
		return false
	}
	if len(content) == 0 || len(content) > mostMade {
		return false
	}
	made := nameMade(o, name)
	folder.Keep(made, content, 0)
	return folder.Has(made, Span{0, int64(len(content))})
}

// Made implements source.DiskCache.
func (r *Ref) Made(object any, name [16]byte, dst []byte) []byte {
	folder, err := r.Get()
	o, ok := object.(Object)
	if folder == nil || err != nil || !ok && object != nil {
		return dst
	}
	return folder.made(nameMade(o, name), dst)
}

// made appends the only range of an object to dst.
func (f *Folder) made(o Object, dst []byte) []byte {
	f.mu.Lock()
	found, unread := f.policy.spans.touching(o, Span{0, 1}), time.Now().Before(f.unread)
	f.mu.Unlock()
	if unread || len(found) == 0 || found[0].len() > mostMade {
		return dst
	}
	defer f.stats.since(time.Now())
	span, begin := found[0], len(dst)
	content := slices.Grow(dst, int(span.len()))[:begin+int(span.len())]
	if err := f.readSpan(o, span, content[begin:], 0); err != nil { // it is no hit or miss: those are of requests
		f.forget(o, span, errors.Is(err, errDamaged))
		return dst
	}
	return content
}
