package consumer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/segmentio/kafka-go"
)

func claimed(tb testing.TB, id string, generation int32, owned map[string][]int, topics ...string) kafka.GroupMember {
	tb.Helper()
	data, err := json.Marshal(claim{generation, owned})
	if err != nil {
		tb.Fatal(err)
	}
	return kafka.GroupMember{ID: id, Topics: topics, UserData: data}
}

func partitionsOf(topic string, n int) []kafka.Partition {
	out := make([]kafka.Partition, n)
	for i := range out {
		out[i] = kafka.Partition{Topic: topic, ID: i}
	}
	return out
}

// properties checks what must hold of any sharing out, and returns how many
// partitions changed hands that had an owner among the members.
func properties(t *testing.T, members []kafka.GroupMember, partitions []kafka.Partition, before map[topicPartition]string) (kafka.GroupMemberAssignments, int) {
	t.Helper()
	got := shareOut(members, partitions)
	owner := map[topicPartition]string{}
	least, most := len(partitions)+1, 0
	for _, m := range members {
		n := 0
		for topic, ids := range got[m.ID] {
			for _, id := range ids {
				tp := topicPartition{topic, id}
				if other, ok := owner[tp]; ok {
					t.Fatalf("%v given to %s and %s", tp, other, m.ID)
				}
				owner[tp] = m.ID
				n++
			}
		}
		least, most = min(least, n), max(most, n)
	}
	if len(owner) != len(partitions) {
		t.Fatalf("%d of %d partitions given away", len(owner), len(partitions))
	}
	if most-least > 1 {
		t.Fatalf("one member has %d, another %d", most, least)
	}
	moved := 0
	for tp, id := range before {
		if slices.ContainsFunc(members, func(m kafka.GroupMember) bool { return m.ID == id }) && owner[tp] != id {
			moved++
		}
	}
	shuffled := slices.Clone(members)
	slices.Reverse(shuffled)
	if again := shareOut(shuffled, partitions); !reflect.DeepEqual(again, got) {
		t.Fatalf("another order of members, another result:\n%v\n%v", got, again)
	}
	return got, moved
}

// leastMoves is how many partitions must change hands at least: what members hold
// above an even share, where as many as needed may keep one more.
func leastMoves(members []kafka.GroupMember, partitions int, before map[topicPartition]string) int {
	held := make([]int, len(members))
	for _, id := range before {
		for i, m := range members {
			if m.ID == id {
				held[i]++
			}
		}
	}
	slices.Sort(held)
	slices.Reverse(held)
	share, extra := partitions/len(members), partitions%len(members)
	moves := 0
	for i, n := range held {
		quota := share
		if i < extra {
			quota++
		}
		moves += max(n-quota, 0)
	}
	return moves
}

func TestSharingOutIsBalancedAndMovesTheLeast(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rng.IntN(40)
		partitions := partitionsOf("a", n)
		before := map[topicPartition]string{}
		var ids []string
		for i := range 1 + rng.IntN(6) {
			ids = append(ids, fmt.Sprintf("m%d", i))
		}
		for generation := range int32(6) {
			owned := map[string]map[string][]int{}
			for tp, id := range before {
				if owned[id] == nil {
					owned[id] = map[string][]int{}
				}
				owned[id][tp.topic] = append(owned[id][tp.topic], tp.partition)
			}
			var members []kafka.GroupMember
			for _, id := range ids {
				members = append(members, claimed(t, id, generation, owned[id], "a"))
			}
			got, moved := properties(t, members, partitions, before)
			if want := leastMoves(members, n, before); moved != want {
				t.Fatalf("seed %d generation %d: %d partitions moved, %d would do", seed, generation, moved, want)
			}
			before = map[topicPartition]string{}
			for id, topics := range got {
				for _, p := range topics["a"] {
					before[topicPartition{"a", p}] = id
				}
			}
			// someone joins or leaves, partitions are added
			switch rng.IntN(3) {
			case 0:
				ids = append(ids, fmt.Sprintf("n%d", generation))
			case 1:
				if len(ids) > 1 {
					ids = slices.Delete(ids, 0, 1)
				}
			default:
				n += rng.IntN(4)
				partitions = partitionsOf("a", n)
			}
		}
	}
}

func TestAStaleClaimLoses(t *testing.T) {
	zombie := claimed(t, "a", 3, map[string][]int{"t": {0, 1}}, "t")
	owner := claimed(t, "b", 9, map[string][]int{"t": {0, 1}}, "t")
	got := shareOut([]kafka.GroupMember{zombie, owner}, partitionsOf("t", 2))
	// both must have one; the later owner keeps the lower of its two
	if !reflect.DeepEqual(got["b"]["t"], []int{0}) || !reflect.DeepEqual(got["a"]["t"], []int{1}) {
		t.Errorf("%v", got)
	}
}

func TestForeignUserDataIsNoClaim(t *testing.T) {
	members := []kafka.GroupMember{
		{ID: "a", Topics: []string{"t"}, UserData: []byte{0xff, 1, 2}},
		{ID: "b", Topics: []string{"t"}},
	}
	properties(t, members, partitionsOf("t", 5), nil)
}

func TestOnlyReadersOfATopicGetItsPartitions(t *testing.T) {
	members := []kafka.GroupMember{
		claimed(t, "a", 1, map[string][]int{"x": {0, 1, 2, 3}, "gone": {0}}, "x", "y"),
		claimed(t, "b", 1, nil, "y"),
	}
	got := shareOut(members, append(partitionsOf("x", 4), partitionsOf("y", 2)...))
	if len(got["b"]["x"]) != 0 || len(got["a"]["gone"]) != 0 {
		t.Errorf("partitions of a topic nobody subscribed to: %v", got)
	}
	if len(got["a"]["x"]) != 4 || len(got["b"]["y"]) != 2 {
		t.Errorf("%v, want all of x with a and y with b", got)
	}
}

// A partition that comes between sharing out and the library's first look at the topic
// is taken by it for one that was shared out: the leader has to remember.
func TestTheLeaderSeesPartitionsNobodyGot(t *testing.T) {
	m := &membership{}
	s := sticky{m}
	f := func(now map[string]int, want bool) {
		t.Helper()
		if got := m.forgot(now); got != want {
			t.Errorf("%v: %t, want %t", now, got, want)
		}
	}
	f(map[string]int{"t": 2}, false) // not the leader: not ours to say
	s.AssignGroups([]kafka.GroupMember{claimed(t, "a", 1, nil, "t")}, partitionsOf("t", 2))
	f(map[string]int{"t": 2}, false)
	f(map[string]int{"t": 1}, false) // an old picture of the cluster
	f(map[string]int{"t": 3}, true)
	f(map[string]int{"t": 2, "new": 1}, true)
	if _, err := s.UserData(); err != nil { // the next join begins
		t.Fatal(err)
	}
	f(map[string]int{"t": 3}, false)
}
