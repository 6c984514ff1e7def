package decode

import (
	"strings"

	"assay/internal/interaction"
)

// The turns that may be the input of a conversation.
const (
	lastUser   = "last_user"
	firstUser  = "first_user"
	transcript = "transcript"
)

// Turns lists what of a conversation may be the input.
func Turns() []string { return []string{lastUser, firstUser, transcript} }

// Snapshots lists what may be done with rows that a connector read before it followed
// the changes.
func Snapshots() []string { return []string{"judge", "skip"} }

// chooseTurn puts another part of the conversation in the place of its last question, as
// the source asks. An input that was logged as one text stays as it is, and so does one
// that a path of the source points at.
func (e *element) chooseTurn() {
	it := &e.it
	switch e.r.src.turn {
	case firstUser:
		for i := range it.Messages {
			m := &it.Messages[i]
			if m.Role == "user" && !interaction.Blank(m.Text) && !isRedacted(m.Text) {
				text := m.Text
				it.Input = &text
				return
			}
		}
	case transcript:
		// Of a list that was cut off the end is missing: what was asked last may be there.
		if it.Input == nil || len(it.Messages) == 0 {
			return
		}
		var turns []string
		for _, m := range it.Messages {
			if m.Role != "system" && m.Role != "developer" && !interaction.Blank(m.Text) {
				turns = append(turns, m.Role+": "+m.Text)
			}
		}
		if text := strings.Join(turns, "\n\n"); text != "" {
			it.Input = &text
		}
	}
}
