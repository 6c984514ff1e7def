package consumer

import (
	"encoding/json"
	"sort"
	"sync"

	"github.com/segmentio/kafka-go"
)

// A membership is what a member tells the group about itself, and what the group's
// leader learns on the way. The library calls its balancers from a goroutine of its
// own.
type membership struct {
	mu         sync.Mutex // guards the fields below
	generation int32
	owned      map[string][]int
	leading    bool
	shared     map[string]int  // partitions that were shared out, when leading
	read       map[string]bool // topics this process has read from
}

// noteRead remembers that a topic was read.
func (m *membership) noteRead(topic string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil {
		m.read = make(map[string]bool)
	}
	m.read[topic] = true
}

// hasRead reports whether this process has read a topic before.
func (m *membership) hasRead(topic string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read[topic]
}

// own notes what a generation assigned to us.
func (m *membership) own(generation int32, owned map[string][]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation, m.owned = generation, owned
}

// leads reports whether this member shared out the present generation.
func (m *membership) leads() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leading
}

// claim is a member's user data: what it holds since which generation.
type claim struct {
	Generation int32            `json:"g"`
	Owned      map[string][]int `json:"o"`
}

// sticky shares partitions out so that members keep what they have where that is
// balanced. Rebalancing is eager, every partition is drained each time; but one that
// comes back to its owner finds finished work again.
type sticky struct{ member *membership }

func (sticky) ProtocolName() string { return "assay-sticky" }

// UserData begins a join: whether we lead is known again when partitions are shared out.
func (s sticky) UserData() ([]byte, error) {
	s.member.mu.Lock()
	defer s.member.mu.Unlock()
	s.member.leading = false
	return json.Marshal(claim{s.member.generation, s.member.owned})
}

func (s sticky) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	s.member.lead(partitions)
	return shareOut(members, partitions)
}

func (m *membership) lead(partitions []kafka.Partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leading = true
	m.shared = make(map[string]int)
	for _, p := range partitions {
		m.shared[p.Topic]++
	}
}

// forgot reports whether topics have partitions that were not there when we shared
// them out: nobody reads those.
func (m *membership) forgot(now map[string]int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, n := range now {
		if m.leading && n > m.shared[topic] {
			return true
		}
	}
	return false
}

// ranged is the library's range balancer, offered second: a group whose other members
// know no better still works with us.
type ranged struct {
	kafka.RangeGroupBalancer
	member *membership
}

func (r ranged) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	r.member.lead(partitions)
	return r.RangeGroupBalancer.AssignGroups(members, partitions)
}

// share is one member while partitions are shared out.
type share struct {
	id     string
	topics map[string]bool
	has    []topicPartition // ascending
}

// shareOut keeps claims, gives what nobody holds to whoever has least, and then moves
// single partitions from the fullest to the emptiest until they differ by one at most.
// Ties go by member id and partition, so every leader decides alike.
func shareOut(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	shares := make([]*share, len(members))
	for i, m := range members {
		shares[i] = &share{id: m.ID, topics: make(map[string]bool)}
		for _, t := range m.Topics {
			shares[i].topics[t] = true
		}
	}
	sort.Slice(shares, func(i, j int) bool { return shares[i].id < shares[j].id })
	all := make([]topicPartition, len(partitions))
	for i, p := range partitions {
		all[i] = topicPartition{p.Topic, p.ID}
	}
	sortPartitions(all)

	owner := claims(members, shares)
	for _, tp := range all {
		to := owner[tp]
		if to == nil || !to.topics[tp.topic] {
			owner[tp] = nil
			continue
		}
		to.has = append(to.has, tp)
	}
	for _, tp := range all {
		if owner[tp] != nil {
			continue
		}
		if to := emptiest(shares, tp.topic); to != nil {
			to.has = append(to.has, tp)
		}
	}
	for moveOne(shares) {
	}

	out := make(kafka.GroupMemberAssignments, len(shares))
	for _, s := range shares {
		byTopic := make(map[string][]int)
		sortPartitions(s.has)
		for _, tp := range s.has {
			byTopic[tp.topic] = append(byTopic[tp.topic], tp.partition)
		}
		out[s.id] = byTopic
	}
	return out
}

// claims returns who holds what; of two claims the one of the later generation counts.
func claims(members []kafka.GroupMember, shares []*share) map[topicPartition]*share {
	byID := make(map[string]*share, len(shares))
	for _, s := range shares {
		byID[s.id] = s
	}
	owner := make(map[topicPartition]*share)
	since := make(map[topicPartition]int32)
	for _, m := range members {
		var c claim
		if len(m.UserData) == 0 || json.Unmarshal(m.UserData, &c) != nil {
			continue // another program's data, or none
		}
		for topic, ids := range c.Owned {
			for _, id := range ids {
				tp := topicPartition{topic, id}
				held := owner[tp]
				if held == nil || c.Generation > since[tp] || c.Generation == since[tp] && m.ID < held.id {
					owner[tp], since[tp] = byID[m.ID], c.Generation
				}
			}
		}
	}
	return owner
}

// emptiest returns the member with the least among those that read the topic.
func emptiest(shares []*share, topic string) *share {
	var least *share
	for _, s := range shares {
		if s.topics[topic] && (least == nil || len(s.has) < len(least.has)) {
			least = s
		}
	}
	return least
}

// moveOne moves one partition from a fuller member to one that has at least two less,
// the widest gap first, and reports whether there was one.
func moveOne(shares []*share) bool {
	var from, to *share
	at, gap := 0, 1
	for _, a := range shares {
		for _, b := range shares {
			d := len(a.has) - len(b.has)
			if d <= gap {
				continue
			}
			for i := len(a.has) - 1; i >= 0; i-- {
				if b.topics[a.has[i].topic] {
					from, to, at, gap = a, b, i, d
					break
				}
			}
		}
	}
	if from == nil {
		return false
	}
	to.has = append(to.has, from.has[at])
	from.has = append(from.has[:at:at], from.has[at+1:]...)
	return true
}

func sortPartitions(list []topicPartition) {
	sort.Slice(list, func(i, j int) bool {
		if list[i].topic != list[j].topic {
			return list[i].topic < list[j].topic
		}
		return list[i].partition < list[j].partition
	})
}
