package evaluators

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"assay/evaluators/judge"
)

// reasonClaimsIncomplete is of a list of claims that leaves out half of the text.
const reasonClaimsIncomplete = "claims_incomplete"

const (
	extractTemplate = "claims_extracted/1"
	extractText     = "The blocks \"sentence\", by their numbers, are the sentences of a text. List every statement of fact that they make, each as one short sentence " +
		"that can be understood by itself: put names for pronouns and complete what is left out, from the other sentences or from the block \"input\" where there is one. " +
		"Say only what the sentences say: add nothing, judge nothing, correct nothing, leave nothing out. " +
		"Reply with one line for each statement and nothing else: the number of its sentence, a colon, and the statement. " +
		"One sentence may make several statements and then has several lines. One that makes none, such as a question, a greeting, an offer or a heading, " +
		"has one line too: its number, a colon, and the one word none."

	fieldSentence = "sentence"

	// mostSentences of a text are far more than an answer has. Each stands in a block of
	// its own, so that a text of single words is a prompt of many times its size.
	mostSentences = 1000
)

// extraction asks for the list of a text's claims. The text is shown sentence by
// sentence, so that each claim says where it stands and code can see what is missing.
func extraction(input *string, text string) (q judge.Question, pieces int) {
	q = judge.Question{Name: extractTemplate, Kind: judge.Text, Text: extractText}
	if given(input) {
		q.Fields = append(q.Fields, judge.Field{Name: fieldInput, Value: *input})
	}
	list := sentences(text)
	for _, piece := range list {
		q.Fields = append(q.Fields, judge.Field{Name: fieldSentence, Value: piece})
	}
	return q, len(list)
}

// extract has the judge list the claims of a text. Of more than limit claims so many are
// left, evenly from beginning to end. It returns false where r has become the result:
// a list that covers less than half of the sentences is none. A sentence is covered by a
// claim, or by the word that it makes none: greetings are not gaps.
func (q claimQuestions) extract(ctx context.Context, j judge.Judge, input *string, text string, limit int, r *Result) (claims []claim, all int, ok bool, err error) {
	question, pieces := extraction(input, text)
	switch {
	case pieces == 0:
		return nil, 0, true, nil
	case pieces > mostSentences:
		r.Status, r.Reason = NotApplicable, reasonTooLong
		r.Detail["sentences"] = pieces
		return nil, 0, false, nil
	}
	read := func(text string) ([]claimLine, error) { return readClaimLines(text, pieces) }
	lines, a, err := drafted(ctx, j, question, 1, read, r.spend)
	if err != nil {
		return nil, 0, false, r.settleError(ctx, err)
	}
	covered, stated := make(map[int]bool), make(map[string]bool)
	var listed []string
	for _, line := range lines {
		covered[line.sentence] = true
		if key := strings.ToLower(line.text); key != "" && !stated[key] { // said twice is one claim
			stated[key] = true
			listed = append(listed, line.text)
		}
	}
	if 2*len(covered) < pieces {
		r.Detail["sentences"], r.Detail["sentences_covered"] = pieces, len(covered)
		r.Status, r.Reason, r.Method, r.Model = Unscored, reasonClaimsIncomplete, a.Method, a.Model
		return nil, 0, false, nil
	}
	n := min(len(listed), limit)
	for k := range n {
		claims = append(claims, claim{text: listed[k*len(listed)/n]})
	}
	return claims, len(listed), true, nil
}

// A claimLine is a line of such a list. Its text is empty where the sentence makes no
// statement.
type claimLine struct {
	sentence int
	text     string
}

// readClaimLines reads the list of claims about n sentences. A line in another form makes
// the whole list unusable: nobody knows what it left out.
func readClaimLines(text string, n int) ([]claimLine, error) {
	lines := textLines(text)
	if len(lines) == 0 {
		return nil, errors.New("an empty list of claims")
	}
	form := regexp.MustCompile(`^(?:[-*] )?(\d{1,5})[:.)]\s*(\S.*)$`)
	var list []claimLine
	for _, line := range lines {
		m := form.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("a line that is no numbered claim: %.40q", line)
		}
		number, err := strconv.Atoi(m[1])
		if err != nil || number < 1 || number > n {
			return nil, fmt.Errorf("a claim of sentence %s, of %d", m[1], n)
		}
		statement := m[2]
		if strings.EqualFold(strings.Trim(statement, "*_`.\" "), "none") {
			statement = ""
		}
		list = append(list, claimLine{number, statement})
	}
	return list, nil
}
