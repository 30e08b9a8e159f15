package budget

import (
	"context"
	"maps"
	"slices"
)

// queue has the requests that wait for memory. Clients take turns: of those that wait, next is the oldest request of
// the client that would have received the fewest bytes, this request included. So the number of requests of a client
// makes no difference, and a client with small requests waits behind one with large requests only until it has
// received as much. A client alone is served first come, first served.
//
// Bytes count only while requests wait, because at other times nobody lacks memory. A client that joins the queue
// begins with the count of the client served last, so it saves nothing up while it is away.
//
// No request is passed over for ever. Each request that passes it raises the count of its own client, and new clients
// begin with ever higher counts: see newcomers.
type queue struct {
	by      func(context.Context) any // returns the client of a request; nil: all requests are of one client
	clients map[any]*queueClient      // that wait, or were given memory while others did
	waiting int                       // requests
	pushed  int64                     // requests until now
	begin   int64                     // bytes that clients which come count as having
}

// queueClient is one of the clients that share a queue.
type queueClient struct {
	bytes   int64           // given to it while requests waited
	waiters []*budgetWaiter // the oldest first
}

// newcomers is how many new clients, one after the other, may pass a request for each time that its client received as
// much as they do. It exceeds the number of clients of most servers, so new clients are not at a disadvantage.
const newcomers = 64

// push adds a request.
func (q *queue) push(ctx context.Context, w *budgetWaiter) {
	var key any
	if q.by != nil {
		key = q.by(ctx)
	}
	owner := q.clients[key]
	if owner == nil {
		owner = &queueClient{}
		q.clients[key] = owner
	}
	// A client must not save up while it is away.
	if len(owner.waiters) == 0 {
		owner.bytes = max(owner.bytes, q.begin)
	}
	owner.waiters = append(owner.waiters, w)
	q.waiting++
	q.pushed++
	w.client, w.number = owner, q.pushed
}

// first returns the request that comes next, or nil.
func (q *queue) first() *budgetWaiter {
	var next *budgetWaiter
	for _, client := range q.clients {
		if len(client.waiters) == 0 {
			continue
		}
		w := client.waiters[0]
		if next == nil || client.bytes+w.n < next.client.bytes+next.n ||
			client.bytes+w.n == next.client.bytes+next.n && w.number < next.number {
			next = w
		}
	}
	return next
}

// served says that w is given its bytes, and removes it.
func (q *queue) served(w *budgetWaiter) {
	c := w.client
	q.begin = max(q.begin, c.bytes) + w.n/newcomers
	c.bytes += w.n
	q.remove(w)
}

// remove reports whether w was in the queue, and removes it. Clients that nothing has to be known of go with it.
func (q *queue) remove(w *budgetWaiter) bool {
	pos := slices.Index(w.client.waiters, w) // 0, unless it gives up
	if pos < 0 {
		return false
	}
	w.client.waiters = slices.Delete(w.client.waiters, pos, pos+1)
	if q.waiting--; q.waiting == 0 {
		clear(q.clients)
		q.begin = 0
		return true
	}
	maps.DeleteFunc(q.clients, func(_ any, c *queueClient) bool { return len(c.waiters) == 0 && c.bytes <= q.begin })
	return true
}
