package build

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
)

// A container that is a folder is a prefix of a store. The object unfinishedName is written first and deleted last. The
// object that makes it a container, such as COLLECTION.json, is the last but that. unfinishedName holds a random number
// of its run: a run that no longer finds its own number was overtaken by another one, and ends with an error.

// unfinishedName is the object of a run that has not ended.
const unfinishedName = ".chaski-unfinished"

// clearing bounds the time in which the objects of a run that failed are removed. The rest is for the next run.
const clearing = time.Minute

// errFound ends a listing.
var errFound = errors.New("found")

// lastOf returns the name of the object that makes a folder a container, or "" if it has none.
func lastOf(form Form, parts bool) string {
	switch {
	case parts && form == TortillaFile:
		return ""
	case parts:
		return tacocatColl
	}
	return collName
}

// tacocatColl makes a folder an index of the parts beside it.
const tacocatColl = tacocatName + "/" + collName

// interrupted reports whether the objects below a prefix were left by an interrupted run. It returns an error for other
// objects, such as a container of any form that is complete except for the removal of unfinishedName.
func interrupted(ctx context.Context, s Store, prefix string) (bool, error) {
	exists := fault.WithFile(unsupported("folder", newFolder), prefix)
	switch _, err := s.Get(ctx, prefix+unfinishedName); {
	case err == nil:
		for _, last := range []string{collName, tacocatColl} {
			_, err := s.Get(ctx, prefix+last)
			if err == nil {
				err = exists
			}
			if !errors.Is(err, fault.NotFound) {
				return false, err
			}
		}
		return true, nil
	case !errors.Is(err, fault.NotFound):
		return false, err
	}
	err := s.List(ctx, prefix, func(string) error { return errFound })
	if errors.Is(err, errFound) {
		err = exists
	}
	return false, err
}

// objects are the objects of a container that is a folder.
type objects struct {
	w      *writer
	store  Store
	prefix string
	id     []byte // random number of the run, the content of unfinishedName
	last   string // the object that is written after all others
	doc    []byte // of last
	begun  int    // objects
	ctx    context.Context
	group  *errgroup.Group
}

// requests is how many objects are written at a time. They are files of up to wholeBytes, 64 MiB together.
const requests = 16

// inStore writes a container that is a folder: what fill puts.
func (w *writer) inStore(ctx context.Context, path string,
	fill func(ctx context.Context, t folderSink) error) (err error) {
	o := &objects{w: w, store: w.o.Store, prefix: prefixOf(path), id: []byte(rand.Text()),
		last: lastOf(w.o.Form, w.o.split())}
	stale, err := interrupted(ctx, o.store, o.prefix)
	if err != nil {
		return err
	}
	// Before all others, so that objects of an interrupted run can be told from a container.
	if err := o.store.Put(ctx, o.prefix+unfinishedName, o.id); err != nil {
		return err
	}
	defer func() {
		// The objects of a run that has overtaken this one must not be removed.
		if err != nil && !errors.Is(err, errOvertaken) {
			err = errors.Join(err, o.abort(ctx))
		}
	}()
	if stale {
		if err := o.clear(ctx); err != nil {
			return err
		}
	}
	o.group, o.ctx = errgroup.WithContext(ctx)
	o.group.SetLimit(requests)
	err = fill(o.ctx, o)
	// The error of the group counts, because fill has seen only that the context was canceled.
	if werr := o.group.Wait(); werr != nil {
		err = werr
	}
	// The last object would otherwise complete the folder of another run, which has removed what this one wrote.
	if err == nil {
		err = o.own(ctx)
	}
	if err == nil && o.last != "" {
		err = o.store.Put(ctx, o.prefix+o.last, o.doc)
	}
	if err != nil {
		return err
	}
	return o.store.Delete(ctx, o.prefix+unfinishedName)
}

var errOvertaken = unsupported("folder", "another run has begun to write it, and has removed what this one wrote")

// own returns an error if another run has begun.
func (o *objects) own(ctx context.Context) error {
	have, err := o.store.Get(ctx, o.prefix+unfinishedName)
	if errors.Is(err, fault.NotFound) || err == nil && !bytes.Equal(have, o.id) {
		return errOvertaken
	}
	return err
}

// clear removes all objects of the prefix but unfinishedName.
func (o *objects) clear(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requests)
	err := o.store.List(ctx, o.prefix, func(uri string) error {
		if uri != o.prefix+unfinishedName {
			group.Go(func() error { return o.store.Delete(ctx, uri) })
		}
		return ctx.Err()
	})
	return errors.Join(group.Wait(), err)
}

// abort removes the objects of a failed run, unless another run has begun.
func (o *objects) abort(ctx context.Context) error {
	// The run may have failed because ctx ended: its objects need to be removed all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearing)
	defer cancel()
	err := o.own(ctx)
	// What makes the folder a container goes first, because the store may hold it although the request failed.
	if err == nil && o.last != "" {
		err = o.store.Delete(ctx, o.prefix+o.last)
	}
	if err == nil {
		err = o.clear(ctx)
	}
	if err == nil {
		err = o.store.Delete(ctx, o.prefix+unfinishedName)
	}
	return err
}

// ownEvery is after how many objects a run looks whether another has begun: it must not go on to write among the
// objects of that one. It costs 1% more requests.
const ownEvery = 100

// next is called before each object.
func (o *objects) next() error {
	if o.begun++; o.begun%ownEvery == 0 {
		return o.own(o.ctx)
	}
	return o.ctx.Err()
}

func (o *objects) path(name string) string { return o.prefix + name }

// put keeps the last object in memory until all others are written.
func (o *objects) put(ctx context.Context, name string, l *loaded) (none span, err error) {
	// Such an object takes long, so that another run may have begun since the last one.
	if l.r != nil || l.made != nil {
		if err := o.own(ctx); err != nil {
			return none, err
		}
		return none, o.w.object(ctx, o.prefix+name, l)
	}
	b := l.keep()
	if name == o.last {
		o.doc = b
		return none, nil
	}
	if err := o.next(); err != nil {
		return none, err
	}
	o.group.Go(func() error { return o.store.Put(o.ctx, o.prefix+name, b) })
	return none, nil
}

// object writes an object in pieces.
func (w *writer) object(ctx context.Context, uri string, l *loaded) error {
	object, err := w.o.Store.Create(ctx, uri, l.size)
	if err != nil {
		return err
	}
	if err := l.writeTo(ctx, object); err != nil {
		return errors.Join(err, object.Abort())
	}
	return object.Commit()
}
