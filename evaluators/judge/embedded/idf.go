package embedded

import (
	"math"
	"sort"
	"strings"
)

// idfStep is the width of a level: the table is read to a quarter of a nat, which
// costs no accuracy and lets a word take one byte beside its letters.
const idfStep = 0.25

// idfRare is in how many documents a stem must stand to be listed; rarer ones share
// the largest value.
const idfRare = 4

// An IDF says how telling a word is: the log of documents over documents with it.
// Only common stems are listed; every other one is worth the most.
type IDF struct {
	levels map[string]uint8
	rest   float64
}

// Of returns the weight of a stem.
func (f IDF) Of(stem string) float64 {
	if level, ok := f.levels[stem]; ok {
		return float64(level) * idfStep
	}
	return f.rest
}

// CountIDF makes a table from documents; each counts a stem once.
func CountIDF(documents []string) IDF {
	lex := newLexicon()
	df := map[string]int{}
	for _, text := range documents {
		for stem := range lex.read(text).positions {
			df[stem]++
		}
	}
	n := float64(len(documents))
	f := IDF{levels: map[string]uint8{}, rest: math.Round(math.Log(n/2)/idfStep) * idfStep}
	for stem, count := range df {
		if count >= idfRare && len(stem) <= 20 {
			f.levels[stem] = uint8(math.Round(math.Log(n/float64(count)) / idfStep))
		}
	}
	return f
}

// idfFile is the table as the weights file holds it: the stems of level i, sorted,
// in one string.
type idfFile struct {
	Rest   float64  `json:"rest"`
	Levels []string `json:"levels"`
}

func (f IDF) file() idfFile {
	var byLevel [256][]string
	top := 0
	for stem, level := range f.levels {
		byLevel[level] = append(byLevel[level], stem)
		top = max(top, int(level))
	}
	out := idfFile{Rest: f.rest, Levels: make([]string, top+1)}
	for i := range out.Levels {
		sort.Strings(byLevel[i])
		out.Levels[i] = strings.Join(byLevel[i], " ")
	}
	return out
}

func (f idfFile) table() IDF {
	t := IDF{levels: map[string]uint8{}, rest: f.Rest}
	for level, stems := range f.Levels {
		for stem := range strings.FieldsSeq(stems) {
			t.levels[stem] = uint8(level)
		}
	}
	return t
}
