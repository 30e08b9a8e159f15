package budget

import (
	"context"
	"slices"
)

// queue has the requests that wait for memory. Clients take turns: of those that wait, next is the oldest request of
// the client that would have received the fewest bytes, this request included. So the number of requests of a client
// makes no difference, and a client with small requests does not wait behind one with large requests until it has
// received as much. A client alone is served first come, first served.
//
// Bytes count only while requests wait, because at other times nobody lacks memory. A client that joins the queue
// begins with the count of the client served last, so it saves nothing up while it is away.
//
// No request is passed over for ever. Each request that passes it raises the count of its own client, and new clients
// begin with ever higher counts: see newcomers.
type queue struct {
	by      func(context.Context) any // returns the client of a request; nil: all requests are of one client
	clients map[any]*client           // that wait, or were given memory while others did
	turns   []*client                 // those that wait, in the order in which they came
	waiting int                       // requests
	begin   int64                     // bytes that clients which come count as having
	purge   int                       // clients at which those that are owed no less than newcomers are forgotten
}

// client is one of the clients that share a queue.
type client struct {
	key     any
	given   int64     // bytes
	waiters []*waiter // the oldest first
}

// kind says what memory is for.
type kind int

const (
	plain kind = iota
	firstSeat
)

const (
	// newcomers is how many new clients, one after the other, may pass a request for each time that its client received
	// as much as they do. It exceeds the number of clients of most servers, so that new clients are not at a
	// disadvantage.
	newcomers = 64
	// fewClients is how many clients there may be before those that are gone are looked for.
	fewClients = 64
)

func newQueue(by func(context.Context) any) queue {
	return queue{by: by, clients: map[any]*client{}, purge: fewClients}
}

// push adds a request.
func (q *queue) push(ctx context.Context, w *waiter) {
	var key any
	if q.by != nil {
		key = q.by(ctx)
	}
	c := q.clients[key]
	if c == nil {
		c = &client{key: key}
		q.clients[key] = c
	}
	if len(c.waiters) == 0 {
		c.given = max(c.given, q.begin)
		q.turns = append(q.turns, c)
	}
	w.client = c
	c.waiters = append(c.waiters, w)
	q.waiting++
}

// first returns the request that comes next, or nil.
func (q *queue) first() *waiter {
	var next *client
	for _, c := range q.turns {
		if next == nil || c.given+c.waiters[0].n < next.given+next.waiters[0].n {
			next = c
		}
	}
	if next == nil {
		return nil
	}
	return next.waiters[0]
}

// firstSeat returns the request for a first seat of at most room bytes that waits in the client who came first, or nil.
func (q *queue) firstSeat(room int64) *waiter {
	for _, c := range q.turns {
		for _, w := range c.waiters {
			if w.as == firstSeat && w.n <= room {
				return w
			}
		}
	}
	return nil
}

// served says that w is given its bytes, and removes it.
func (q *queue) served(w *waiter) {
	c := w.client
	q.begin = max(q.begin, c.given) + w.n/newcomers
	c.given += w.n
	q.remove(w)
}

// remove reports whether w was in the queue, and removes it.
func (q *queue) remove(w *waiter) bool {
	c := w.client
	pos := slices.Index(c.waiters, w) // 0, unless it gives up
	if pos < 0 {
		return false
	}
	c.waiters = slices.Delete(c.waiters, pos, pos+1)
	q.waiting--
	if len(c.waiters) > 0 {
		return true
	}
	q.turns = slices.DeleteFunc(q.turns, func(o *client) bool { return o == c })
	q.forget()
	return true
}

// forget removes clients that nothing has to be known of.
func (q *queue) forget() {
	if q.waiting == 0 {
		clear(q.clients)
		q.begin, q.purge = 0, fewClients
		return
	}
	if len(q.clients) < q.purge {
		return
	}
	for key, c := range q.clients {
		if len(c.waiters) == 0 && c.given <= q.begin {
			delete(q.clients, key)
		}
	}
	q.purge = max(fewClients, 2*len(q.clients))
}
