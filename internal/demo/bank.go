package demo

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed bank/*.yaml
var bankFiles embed.FS

// Item is one thing customers ask, with what is true about it and answers of each
// class.
type Item struct {
	ID        string   `yaml:"id"` // topic and a word, returns-window
	Topic     string   `yaml:"-"`  // the name of its file
	Questions []string `yaml:"questions"`
	Reference string   `yaml:"reference"`
	Criteria  string   `yaml:"criteria"`
	Good      []string `yaml:"good"`
	Partial   []string `yaml:"partial"`
	Wrong     []string `yaml:"wrong"`
}

// Answers returns the item's answers of a class.
func (it Item) Answers(c Class) []string {
	switch c {
	case Good:
		return it.Good
	case Partial:
		return it.Partial
	case Wrong:
		return it.Wrong
	}
	return nil
}

// Bank is the question bank of the invented shop. It is immutable.
type Bank struct {
	items   []Item
	answers map[string]answer // by the answer's bare text, normalised
	asked   map[string]int    // question, normalised, to its item's index
}

type answer struct {
	item  int
	class Class
}

// LoadBank reads the bank that is built in.
func LoadBank() (*Bank, error) {
	names, err := fs.Glob(bankFiles, "bank/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("question bank: %w", err)
	}
	b := &Bank{answers: map[string]answer{}, asked: map[string]int{}}
	for _, name := range names {
		raw, err := bankFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("question bank: %w", err)
		}
		var items []Item
		if err := yaml.UnmarshalWithOptions(raw, &items, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("question bank %s: %w", name, err)
		}
		topic := strings.TrimSuffix(path.Base(name), ".yaml")
		for _, it := range items {
			it.Topic = topic
			if err := b.add(it); err != nil {
				return nil, fmt.Errorf("question bank %s: item %q: %w", name, it.ID, err)
			}
		}
	}
	return b, nil
}

// add refuses what would make the truth ambiguous: a text that stands for two things.
func (b *Bank) add(it Item) error {
	if !strings.HasPrefix(it.ID, it.Topic+"-") {
		return fmt.Errorf("id does not begin with %q", it.Topic+"-")
	}
	if len(it.Questions) < 1 || len(it.Good) < 2 || len(it.Partial) < 1 || len(it.Wrong) < 2 {
		return errors.New("want a question, 2 good, 1 partial and 2 wrong answers at least")
	}
	index := len(b.items)
	for _, q := range it.Questions {
		key := normalise(q)
		if _, twice := b.asked[key]; key == "" || twice {
			return fmt.Errorf("question %q is blank or asked twice", q)
		}
		b.asked[key] = index
	}
	for _, c := range []Class{Good, Partial, Wrong} {
		for _, a := range it.Answers(c) {
			key := bare(a)
			if _, twice := b.answers[key]; key == "" || twice {
				return fmt.Errorf("answer %q is blank or given twice", a)
			}
			b.answers[key] = answer{item: index, class: c}
		}
	}
	b.items = append(b.items, it)
	return nil
}

// Items returns every item, by topic and then in the order of the files.
func (b *Bank) Items() []Item { return slices.Clone(b.items) }

// Topics returns the topics that have items, in order.
func (b *Bank) Topics() []string {
	var topics []string
	for _, it := range b.items {
		if len(topics) == 0 || topics[len(topics)-1] != it.Topic {
			topics = append(topics, it.Topic)
		}
	}
	return topics
}

// Item returns the item of that id.
func (b *Bank) Item(id string) (Item, bool) {
	for _, it := range b.items {
		if it.ID == id {
			return it, true
		}
	}
	return Item{}, false
}

// Grade returns the class of an answer to a question of the bank, whatever greeting
// and closing stand around it. It is false for a question or an answer that is not
// the bank's, and for an answer that belongs to another question.
func (b *Bank) Grade(question, output string) (Class, bool) {
	item, ok := b.asked[normalise(question)]
	if !ok {
		return "", false
	}
	a, ok := b.answers[bare(output)]
	if !ok || a.item != item {
		return "", false
	}
	return a.class, true
}

// normalise makes texts equal that differ in white space and case only.
func normalise(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(text), " "))
}
