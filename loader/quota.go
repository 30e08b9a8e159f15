package loader

import "github.com/chaski-eo/chaski/loader/batch"

// member returns a client of the engine or a stream of a client, which it creates if it is new.
func (s *queueShare) member(key any) *queueShare {
	found := s.members[key]
	if found == nil {
		found = &queueShare{key: key, of: s}
		if s.members == nil {
			s.members = map[any]*queueShare{}
		}
		s.members[key] = found
	}
	return found
}

// wait gives s a place among those that take turns, if it has none.
func (s *queueShare) wait() {
	if s.place == nil {
		s.place = s.of.turns.PushBack(s)
	}
}

// room reports whether the quota of s, one of the equal parts of bound, has room for n bytes.
func (s *queueShare) room(n, bound int64) bool {
	members := int64(len(s.of.members))
	return members == 1 || s.bytesInUse == 0 || s.bytesInUse+n <= bound/members
}

// remove takes the first ticket of a stream out of the queue, and the stream and its client out of the turns if it was
// their last one.
func (s *queueShare) remove() {
	p := s.first
	s.first, p.next, p.dequeued = p.next, nil, true
	for ; s.of != nil && s.first == nil && s.turns.Len() == 0; s = s.of {
		s.of.turns.Remove(s.place)
		s.place = nil
	}
}

// pass ends the turn of s, which has got a ticket.
func (s *queueShare) pass() {
	if s.place != nil {
		s.of.turns.MoveToBack(s.place)
	}
}

// end forgets a stream, and then perhaps its client, that has neither tickets nor memory.
func (s *queueShare) end() {
	for ; s.of != nil && s.place == nil && s.bytesInUse == 0 && len(s.members) == 0; s = s.of {
		delete(s.of.members, s.key)
	}
}

// end takes the claim off its quotas. Only the first call counts. c may be nil.
func (c *quotaClaim) end() {
	if c == nil {
		return
	}
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.bytes == 0 {
		return
	}
	c.share.bytesInUse -= c.bytes
	c.share.of.bytesInUse -= c.bytes
	c.bytes = 0
	c.share.end()
	q.poke() // its quota has room, and so have all others if it was the last one
}

// giveBack ends the claim and gives its memory back.
func (c *quotaClaim) giveBack(b batch.Buffer, keep bool) {
	c.queue.coming.Add(1)
	defer c.queue.coming.Add(-1)
	c.end()
	c.queue.memory.give(b, keep)
}

// poke wakes take. It never blocks, because take looks at all tickets.
func (q *queue) poke() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}
