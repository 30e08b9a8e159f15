package budget

import (
	"context"
	"slices"
	"time"
)

// lane has the accounts of one kind that grow: questions, or all others. One account of a lane at a time has the turn,
// and may take from the reserve of the lane.
//
// Accounts that wait hold memory, so they may wait for each other. This is found without a timeout, because only memory
// of accounts that do not wait, and memory without an account, can come back. If the account with the turn would not
// find room even then, others that wait are refused at once, the youngest first, until it would. If that is not enough,
// it is refused itself. So after every change, in each lane in which accounts wait, either
//
//   - the account with the turn does not wait, or
//   - the memory it waits for is held by something that does not wait.
//
// Accounts that all wait and have all the memory together contradict both, so they never stop each other. Work goes on,
// too: the turn goes to the oldest account that waits, and the account with the turn is refused last. Questions are
// refused before other accounts, and others never for questions.
type lane struct {
	turn    *Account
	waiting []*want // the oldest account first
}

// want is an account that waits to grow, or to settle.
type want struct {
	account *Account
	n       int64
	settle  bool // it waits until all that it has fits outside of the reserve

	turned  chan struct{} // closed once the account has the turn
	short   chan struct{} // closed once there is too little for all, and not for questions alone
	ready   chan struct{} // closed once n is charged
	refused chan struct{} // closed when others need the memory of the account
}

// The lanes of a budget.
const (
	others = iota
	questions
	lanes
)

// wait charges n bytes to a, or waits until all that it has fits outside of the reserve.
func (b *Budget) wait(ctx context.Context, a *Account, n int64, settle bool) error {
	w := &want{account: a, n: n, settle: settle, turned: make(chan struct{}), short: make(chan struct{}),
		ready: make(chan struct{}), refused: make(chan struct{})}
	offered := b.offers()
	b.tryGive(w)
	short := w.short
	if isClosed(short) {
		short = nil
		defer b.relieve(b.press()) // engines give their memory back, and take no more
		b.reclaim(a.level(), func() bool { return b.tryGive(w) })
	}
	b.enlist(w)
	look := time.NewTicker(b.look)
	defer look.Stop()
	timer := time.NewTimer(b.queued)
	defer timer.Stop()
	turned := w.turned
	for {
		var err error
		select {
		case <-w.ready:
			return nil
		case <-w.refused:
			return a.full(n)
		case <-turned:
			turned = nil
			timer.Reset(b.grow)
			continue
		case <-short:
			short = nil
			defer b.relieve(b.press())
			offered = b.collectFor(w)
			continue
		case <-offered:
			offered = b.collectFor(w)
			continue
		case <-look.C:
			b.find()
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			err = a.full(n)
		}
		if b.withdraw(w) {
			return err
		}
	}
}

// collectFor asks holders for the memory that w waits for. It returns a channel that is closed when they have more to
// give.
func (b *Budget) collectFor(w *want) (offered chan struct{}) {
	offered = b.offers()
	b.reclaim(w.account.level(), func() bool {
		if isClosed(w.ready) || isClosed(w.refused) {
			return true
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		_, short := b.fits(w.account, w.n, w.settle)
		return !short
	})
	return offered
}

// enlist lets w wait, unless it has its memory already.
func (b *Budget) enlist(w *want) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isClosed(w.ready) {
		return
	}
	lane := w.account.lane()
	pos := slices.IndexFunc(lane.waiting, func(o *want) bool { return o.account.age > w.account.age })
	if pos < 0 {
		pos = len(lane.waiting)
	}
	lane.waiting = slices.Insert(lane.waiting, pos, w)
	b.serve()
}

// withdraw reports whether w waited until now, and ends that.
func (b *Budget) withdraw(w *want) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isClosed(w.ready) || isClosed(w.refused) {
		return false
	}
	w.account.lane().remove(w)
	b.serve()
	return true
}

func (l *lane) remove(w *want) {
	l.waiting = slices.DeleteFunc(l.waiting, func(o *want) bool { return o == w })
}

// first returns the account with the turn if it waits.
func (l *lane) first() *want {
	for _, w := range l.waiting {
		if w.account == l.turn {
			return w
		}
	}
	return nil
}

// room returns up to where an account may fill the budget, and the part of it that is for questions. It needs the lock.
func (b *Budget) room(a *Account, settle bool) (all, asked int64) {
	turn := a.lane().turn == a
	switch {
	case a.asks && turn:
		return b.open(), b.asks
	case a.asks:
		return b.open(), b.asks - b.asks/reserveShare
	case turn && !settle:
		return b.limit, 0
	}
	return b.open(), 0
}

// fits reports whether n bytes are free for an account, and whether there is too little for all, and not for questions
// alone. It needs the lock.
func (b *Budget) fits(a *Account, n int64, settle bool) (ok, short bool) {
	room, wanted := b.room(a, settle)
	short = n > room-b.used
	return !short && (!a.asks || n <= wanted-b.asked), short
}

// charge needs the lock.
func (b *Budget) charge(a *Account, n int64) {
	b.used += n
	a.held += n
	if a.asks {
		a.grown += n
		b.asked += n
	}
}

// give charges what w wants if it is free. It needs the lock.
func (b *Budget) give(w *want) bool {
	account := w.account
	ok, short := b.fits(account, w.n, w.settle)
	if !ok {
		if short && !isClosed(w.short) {
			close(w.short)
		}
		return false
	}
	b.charge(account, w.n)
	if l := account.lane(); w.settle && l.turn == account {
		l.turn = nil
	}
	close(w.ready)
	return true
}

// tryGive is give for a request that does not wait yet.
func (b *Budget) tryGive(w *want) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isClosed(w.ready) {
		return true
	}
	ok := b.give(w)
	if ok {
		b.serve() // it may have passed the turn on, or hold more while it waits in another goroutine
	}
	return ok
}

// grant gives free memory to the accounts of a lane: first to the one with the turn, and to no other while that waits,
// then to the oldest. It needs the lock.
func (b *Budget) grant(l *lane) {
	for len(l.waiting) > 0 {
		if l.turn == nil {
			l.turn = l.waiting[0].account
			close(l.waiting[0].turned)
		}
		want := l.first()
		if want == nil {
			want = l.waiting[0]
		}
		if !b.give(want) {
			return
		}
		l.remove(want)
	}
}

// untie refuses accounts that wait for each other: see lane. It needs the lock.
func (b *Budget) untie() {
	for i := range b.lanes {
		l := &b.lanes[i]
		for w := l.first(); w != nil && w.n > b.couldHave(w); w = l.first() {
			v := b.victim(w)
			v.account.lane().remove(v)
			close(v.refused)
		}
	}
}

// victim returns who is refused for w: the youngest question, then the youngest other account, then w itself. It needs
// the lock.
func (b *Budget) victim(w *want) *want {
	for _, l := range []*lane{&b.lanes[questions], w.account.lane()} {
		for _, v := range slices.Backward(l.waiting) {
			if v != w {
				return v
			}
		}
	}
	return w
}

// couldHave returns the bytes that w would find free if all came back that does not wait: of questions, what other
// accounts hold comes back, too, because they do not wait for questions. It needs the lock.
func (b *Budget) couldHave(w *want) int64 {
	room, wanted := b.room(w.account, w.settle)
	if room < b.limit { // what first seats have is not for w, whether they keep it or it is kept for others
		room = b.common()
	}
	for i := range b.lanes {
		for _, want := range b.lanes[i].waiting {
			if i == questions {
				wanted -= want.account.grown
			}
			if i == questions || !w.account.asks {
				room -= want.account.held
			}
		}
	}
	if w.account.asks {
		return min(room, wanted)
	}
	return room
}
