package loader

import (
	"sync"

	"github.com/chaski-eo/chaski/loader/pixels"
)

// plannedTicket is a ticket whose chunks Engine.tiles is to be told about.
type plannedTicket struct {
	plan  *tilePlan
	order int64 // of its first row
	rows  int
	needs func(row int) ([]pixels.Need, error)
}

// tilePlan is what a ticket has told Engine.tiles about the chunks of its windows.
type tilePlan struct {
	mu     sync.Mutex
	isDone bool // the ticket is done
	orders []int64
	needs  [][]pixels.Need // for each of orders
}

// planTiles tells tiles which chunks the tickets need. A worker that is faster reads its window without sharing.
func planTiles(tiles *pixels.TileCache, tickets <-chan plannedTicket) {
	for ticket := range tickets {
		for k := range ticket.rows {
			needs, err := ticket.needs(k)
			// Workers report what is bad.
			if err == nil && len(needs) > 0 && !ticket.plan.add(tiles, ticket.order+int64(k), needs) {
				break
			}
		}
	}
}

// add plans the chunks of a window, unless the ticket is done.
func (t *tilePlan) add(tiles *pixels.TileCache, order int64, needs []pixels.Need) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDone {
		return false
	}
	tiles.Plan(order, needs)
	t.orders, t.needs = append(t.orders, order), append(t.needs, needs)
	return true
}

// end takes back what is left of the plan.
func (t *tilePlan) end(tiles *pixels.TileCache) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isDone = true
	for i, order := range t.orders {
		tiles.Forget(order, t.needs[i])
	}
}
