package archive

import (
	"context"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
)

// Numbers of a file of LMDB 0.9, as 64-bit little-endian machines write it (mdb.c). A file is pages: two with the roots
// of the trees, then nodes of trees, and values that are larger than a node.
const (
	dbMagic   = 0xbeefc0de
	dbVersion = 1
	dbHeader  = 16  // bytes in front of each page
	dbMeta    = 152 // bytes of the first page that are read
	dbNode    = 8   // bytes in front of each key

	pageBranch   = 1
	pageLeaf     = 2
	pageOverflow = 4

	nodeOverflow = 1 // the value lies in pages of its own
	nodeTree     = 2 // the value is the root of a tree of its own
	nodeSeveral  = 4 // the key has several values

	maxDepth  = 32      // of a tree, as LMDB has it
	maxPrefix = 511 + 1 // of keys in a tree of its own: the longest key of LMDB (MDB_MAXKEYSIZE), and a slash
	noPage    = 1<<64 - 1
)

// database is a file of LMDB that is being read.
type database struct {
	ctx     context.Context
	r       source.Reader
	page    int64 // bytes
	visited int64 // pages
	nodes   int64 // bytes of keys, and in front of them
	read    *zipDirectory
}

func (d *database) bad(page uint64, text string, args ...any) error {
	return fault.At(fault.Corrupt, "LMDB", int64(min(page, 1<<48))*d.page, text, args...)
}

// readDatabase reads the keys of a database and where their values lie, as if it were an archive. A key in a tree of
// its own, such as a named database, is TREE/KEY. Keys that are no texts are left out.
func readDatabase(ctx context.Context, r source.Reader) (*zipDirectory, error) {
	d := &database{ctx: ctx, r: r, page: 1, read: &zipDirectory{size: r.Size(), members: map[string]*zipMember{}}}
	le := binary.LittleEndian
	root, newest := uint64(noPage), uint64(0)
	for i := range int64(2) {
		off := i * d.page
		if i == 0 {
			off = 0
		}
		b, err := source.Read(ctx, r, off, min(dbMeta, r.Size()-off))
		if err != nil {
			return nil, err
		}
		if len(b) < dbMeta || le.Uint32(b[dbHeader:]) != dbMagic {
			return nil, fault.At(fault.Corrupt, "LMDB", off, "it does not begin like a database of LMDB")
		}
		meta := b[dbHeader:]
		if version := le.Uint32(meta[4:]); version != dbVersion {
			return nil, fault.At(fault.Unsupported, "LMDB", off, "version %d", version)
		}
		if i == 0 {
			d.page = int64(le.Uint32(meta[24:]))
			if d.page < 256 || d.page > 1<<16 || d.page&(d.page-1) != 0 || 2*d.page > r.Size() {
				return nil, fault.At(fault.Corrupt, "LMDB", 0, "pages of %d bytes in %d", d.page, r.Size())
			}
		}
		if txn := le.Uint64(meta[128:]); i == 0 || txn > newest {
			root, newest = le.Uint64(meta[72+40:]), txn
		}
	}
	if root == noPage {
		return d.read, nil // it is empty
	}
	return d.read, d.walk(root, 0, "")
}

// walk adds what lies below a page.
func (d *database) walk(page uint64, depth int, prefix string) error {
	if d.visited++; d.visited > d.r.Size()/d.page || depth >= maxDepth {
		return d.bad(page, "its tree leads back to itself, or has %d levels", maxDepth)
	}
	if page >= uint64(d.r.Size()/d.page) {
		return d.bad(page, "page %d of %d", page, d.r.Size()/d.page)
	}
	b, err := source.Read(d.ctx, d.r, int64(page)*d.page, d.page)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	kind, lower := le.Uint16(b[10:]), int(le.Uint16(b[12:]))
	if kind != pageBranch && kind != pageLeaf || lower < dbHeader || lower > len(b) {
		return d.bad(page, "page %d is of type %d, with %d bytes of places", page, kind, lower)
	}
	for pos := dbHeader; pos+2 <= lower; pos += 2 {
		place := int(le.Uint16(b[pos:]))
		if place < lower || place > len(b)-dbNode {
			return d.bad(page, "a node at %d", place)
		}
		node := b[place:]
		low, flags, keys := le.Uint32(node), le.Uint16(node[4:]), int(le.Uint16(node[6:]))
		if kind == pageBranch {
			if err := d.walk(uint64(low)|uint64(flags)<<32, depth+1, prefix); err != nil {
				return err
			}
			continue
		}
		if keys > len(node)-dbNode {
			return d.bad(page, "a key of %d bytes", keys)
		}
		if d.nodes += int64(dbNode + keys); d.nodes > d.r.Size() || len(prefix) > maxPrefix {
			return d.bad(page, "its keys overlap, or the name of a tree has over %d bytes", maxPrefix)
		}
		key, value := string(node[dbNode:dbNode+keys]), node[dbNode+keys:]
		if err := d.value(page, prefix+key, flags, int64(low), value, int64(place+dbNode+keys), depth); err != nil {
			return err
		}
	}
	return nil
}

// value adds a key, whose value has size bytes and begins at an offset of its page.
func (d *database) value(page uint64, key string, flags uint16, size int64, value []byte, at int64, depth int) error {
	le := binary.LittleEndian
	at += int64(page) * d.page
	switch {
	case flags&nodeSeveral != 0 && flags&nodeTree != 0, flags&nodeSeveral != 0:
		return fault.At(fault.Unsupported, "LMDB", at, "key %.80q has several values", key)
	case flags&nodeTree != 0 && len(value) >= 48:
		if root := le.Uint64(value[40:]); root != noPage {
			return d.walk(root, depth+1, key+"/")
		}
		return nil
	case flags&nodeOverflow != 0 && len(value) >= 8:
		first := le.Uint64(value)
		if first >= uint64(d.r.Size()/d.page) {
			return d.bad(page, "key %.80q: page %d of %d", key, first, d.r.Size()/d.page)
		}
		at = int64(first)*d.page + dbHeader
	case size > int64(len(value)):
		return d.bad(page, "key %.80q: %d bytes in %d", key, size, len(value))
	}
	if !source.Fits(at, size, d.r.Size()) {
		return d.bad(page, "key %.80q: %d bytes at %d of %d", key, size, at, d.r.Size())
	}
	name := memberName(key)
	if name == "" || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return nil
	}
	member := &zipMember{Entry: zipdir.Entry{Size: size, Bytes: size, Plain: true}}
	member.data.Store(at)
	d.read.members[name] = member
	return nil
}
