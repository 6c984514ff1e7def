package evaluators

import (
	"slices"
	"strings"

	"assay/internal/interaction"
)

// refusalRunes is where an answer that declines says so. Further on, the same words
// belong to an answer: "I cannot find it in the log, but ...".
const refusalRunes = 250

// refusal asks whether the output answers at all. 1 is an answer, 0 a refusal.
func refusal() Spec {
	settings := slices.DeleteFunc(ruleSettings(), func(s Setting) bool { return s.Name == "refusals" })
	return yesNo(Spec{
		Name:     "refusal",
		Summary:  "Does the assistant answer (1) or decline (0), by the log's status or by how the output begins?",
		Use:      "a count of declined answers on all of the traffic",
		NotFor:   "whether declining was right: closed_qa with the policy as criteria",
		Required: []string{fieldOutput},
		Settings: append([]Setting{
			{Name: "phrases", Type: "list", Help: "further phrases that begin a refusal, case aside"},
		}, settings...),
	}, func(o *ruleOptions) rule {
		phrases := refusalPhrases()
		for _, p := range o.list("phrases") {
			phrases = append(phrases, plainWords(p))
		}
		return rule{measure: func(it Item) finding {
			if it.Status == interaction.Refusal {
				return finding{detail: map[string]any{"found": "status refusal"}}
			}
			start := plainWords(firstRunes(*it.Output, refusalRunes))
			for _, p := range phrases {
				if strings.Contains(start, p) {
					return finding{detail: map[string]any{"found": p}}
				}
			}
			return finding{score: 1}
		}}
	})
}

// plainWords makes spellings of one phrase equal: case, kinds of apostrophes, spaces.
func plainWords(s string) string {
	return lower(oneSpace(strings.NewReplacer("\u2019", "'", "\u02bc", "'").Replace(s)))
}

// refusalPhrases are phrases with which assistants decline, by language.
func refusalPhrases() []string {
	return []string{
		// English
		"i can't help with", "i cannot help with", "i can't assist with", "i cannot assist with", "i'm unable to help", "i am unable to help",
		"i'm not able to help", "i am not able to help", "i can't provide", "i cannot provide", "i can't comply", "i cannot comply",
		"i won't be able to help", "i must decline", "i have to decline", "i'm sorry, but i can't", "i'm sorry, but i cannot", "i can't do that",
		"i can't answer that", "i cannot answer that", "i'm not able to answer", "i can't discuss", "i cannot discuss",
		// German
		"dabei kann ich nicht helfen", "dabei kann ich ihnen nicht helfen", "dabei kann ich dir nicht helfen", "ich kann ihnen dabei nicht helfen",
		"dabei kann ich ihnen leider nicht helfen", "dabei kann ich dir leider nicht helfen", "ich kann ihnen dabei leider nicht helfen",
		"das kann ich nicht beantworten", "das darf ich nicht", "tut mir leid, aber ich kann", "ich kann diese frage nicht beantworten",
		// French
		"je ne peux pas vous aider", "je ne peux pas t'aider", "je ne suis pas en mesure de", "désolé, mais je ne peux pas", "je ne peux pas répondre à",
		// Spanish
		"no puedo ayudarte con", "no puedo ayudarle con", "lo siento, pero no puedo", "no me es posible responder", "no puedo responder a",
		// Italian
		"non posso aiutarti", "non posso aiutarla", "mi dispiace, ma non posso", "non sono in grado di rispondere",
		// Portuguese
		"não posso ajudar com", "desculpe, mas não posso", "lamento, mas não posso", "não consigo ajudar com",
		// Dutch
		"daar kan ik niet mee helpen", "daar kan ik je niet mee helpen", "daar kan ik u niet mee helpen", "het spijt me, maar ik kan",
		// Polish
		"nie mogę pomóc w", "przykro mi, ale nie mogę", "nie mogę odpowiedzieć na",
		// Russian
		"я не могу помочь", "к сожалению, я не могу", "извините, но я не могу",
		// Chinese, Japanese, Korean
		"我无法提供", "我无法回答", "我不能提供", "很抱歉，我无法", "抱歉，我不能", "お手伝いできません", "お答えできません", "도와드릴 수 없습니다", "답변할 수 없습니다",
	}
}
