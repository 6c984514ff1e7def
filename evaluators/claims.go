package evaluators

// A claim is a sentence of a text, and what stands around it there: the sentences
// before and after it, or for a list item the one that leads into the list. "Salmon"
// says nothing without "Fish of the lake are:".
type claim struct {
	text, before, after string
}

// claimsOf takes a text apart. Of more than limit claims so many are left, evenly from
// beginning to end: the first ones alone would never see how a long answer ends. all is
// how many there were.
func claimsOf(text string, limit int) (claims []claim, all int) {
	pieces := sentences(text)
	all = len(pieces)
	n := min(all, limit)
	lead := make([]int, all) // the piece to read before each; -1 is none
	for i, piece := range pieces {
		lead[i] = i - 1
		if i > 0 && listMarker(piece) && listMarker(pieces[i-1]) {
			lead[i] = lead[i-1]
		}
	}
	for k := range n {
		i := k * all / n
		c := claim{text: pieces[i]}
		if lead[i] >= 0 {
			c.before = pieces[lead[i]]
		}
		if i+1 < all {
			c.after = pieces[i+1]
		}
		claims = append(claims, c)
	}
	return claims, all
}
