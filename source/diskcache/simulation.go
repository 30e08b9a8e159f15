package diskcache

// Simulation says what a Folder would have, without a disk. Reads in the order of a run give the run's hits.
type Simulation struct {
	quota, used int64
	spans       index
	// HitBytes would come from the folder, MissedBytes from the store.
	HitBytes, MissedBytes int64
}

// NewSimulation returns the simulation of an empty folder.
func NewSimulation(quota int64) *Simulation { return &Simulation{quota: quota, spans: index{}} }

// Read reads a range of an object, and keeps what is missing of it.
func (s *Simulation) Read(o Object, span Span) {
	gaps := gapsOf(s.spans.touching(o, span), span)
	if len(gaps) == 0 {
		s.HitBytes += span.len()
		return
	}
	missing := gaps[len(gaps)-1].End - gaps[0].From
	s.MissedBytes += missing
	s.HitBytes += span.len() - missing
	for _, gap := range gaps {
		if cost := costOf(gap.len()); s.used <= s.quota-cost {
			s.used += cost
			s.spans.add(o, gap)
		}
	}
}
