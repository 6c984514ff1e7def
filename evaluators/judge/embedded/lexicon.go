package embedded

import "strings"

// A class is what the lexicon knows of a word. A word may have several.
type class uint32

const (
	stop     class = 1 << iota // carries no content of its own
	negator                    // turns what follows round
	hedge                      // weakens what follows
	contrast                   // what follows corrects what stood before
	wrongCue                   // calls what stood before untrue
	month
	affirm // yes
	deny   // no
	abbreviation
	policy // tells a person what to do, so the text is a rule and not a fact

	// Function words of other languages. Particles that live in names read by
	// English speakers (de, la, van, von, di, le) are in none of them.
	german
	french
	spanish
	italian
	portuguese
	dutch
	nordic
	polish
	turkish
	indonesian
	catalan

	particle  // stands in names and in the sentences of Romance and Germanic languages
	ambiguous // an English function word that is a word elsewhere too

	foreign = german | french | spanish | italian | portuguese | dutch | nordic | polish | turkish | indonesian | catalan
)

// foreignLanguages lists the single bits of foreign.
func foreignLanguages() []class {
	return []class{german, french, spanish, italian, portuguese, dutch, nordic, polish, turkish, indonesian, catalan}
}

// A lexicon holds the word lists. It is immutable after newLexicon.
type lexicon struct {
	classes  map[string]class
	numbers  map[string]numberWord
	months   map[string]string   // short form -> name
	aliases  map[string][]string // short form -> the words it stands for
	units    map[string]unit
	refusals []string // phrases in folded text
}

func newLexicon() *lexicon {
	l := &lexicon{
		classes: map[string]class{},
		numbers: numberWords(),
		months: map[string]string{
			"jan": "january", "feb": "february", "mar": "march", "apr": "april", "jun": "june", "jul": "july",
			"aug": "august", "sep": "september", "sept": "september", "oct": "october", "nov": "november", "dec": "december",
		},
		aliases: map[string][]string{
			"usa": {"united", "states"}, "uk": {"united", "kingdom"}, "ussr": {"soviet", "union"},
			"nyc": {"new", "york", "city"}, "tv": {"television"}, "wwii": {"world", "war", "2"},
			"ww2": {"world", "war", "2"}, "wwi": {"world", "war", "1"}, "ww1": {"world", "war", "1"},
			"pct": {"percent"}, "uae": {"united", "arab", "emirates"},
		},
		units:    unitTable(),
		refusals: refusalPhrases(),
	}
	add := func(c class, words string) {
		for w := range strings.FieldsSeq(words) {
			l.classes[w] |= c
		}
	}
	add(stop, `a an the of in on at to for from by with as into onto upon over under about between through during
		and or nor so if then than that this these those which who whom whose what when where why how
		is are was were be been being am do does did done has have had having will would shall should can could may might must
		it its he she his her him hers they them their theirs we us our ours you your yours i me my mine
		there here also just only very such some any each both all other another same own too
		not no never none neither cannot dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont wouldnt cant couldnt
		but however although though yet because while until since after before again further once up down out off
		called known named yes s t`)
	add(negator, `not no never none neither nor cannot without dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont
		wouldnt cant couldnt shouldnt false untrue incorrect incorrectly wrong wrongly contrary myth misconception nothing nobody hardly barely`)
	add(hedge, `maybe perhaps possibly probably might could likely unlikely unclear uncertain unsure unknown guess think believe
		seems apparently reportedly allegedly supposedly presumably depends depending varies either whether`)
	add(contrast, `but however although though instead rather actually yet whereas nevertheless contrary correction despite unlike`)
	add(wrongCue, `wrong incorrect false untrue mistaken inaccurate myth misconception error mistake`)
	add(month, `january february march april may june july august september october november december`)
	add(affirm, `yes yeah yep indeed true correct certainly definitely absolutely affirmative`)
	add(deny, `no nope false incorrect untrue negative never`)
	add(abbreviation, `mr mrs ms dr st sr jr vs no prof gen col lt sgt capt rev hon inc ltd co corp dept est fig approx ca eg ie etc vol mt ft`)
	add(policy, `must should shall never always ensure please apologise apologize escalate advise refuse decline acknowledge
		politely customer agent assistant policy required mandatory forbidden`)

	add(german, `und ist nicht ein eine einen einer einem das dem mit auf fur sich auch wird wurde wurden sind war hat haben im zum zur
		oder aber wie wenn durch uber nach vom beim ich wir ihr sie des als bei aus nur noch kann`)
	add(french, `est et les des dans une un que qui pas sont pour par sur avec ce cette ces il elle ils nous vous ont ete etait aux
		mais ou donc au se sa son leur plus comme cest lest nest du`)
	add(spanish, `es y los las una un que por con para en fue son como pero mas esta este esto ha han sus al su no se lo muy tambien
		desde cuando donde entre sobre`)
	add(italian, `e il gli una un che per con sono stato stata non piu come anche nel nella dal dalla della delle dei degli alla al
		questo questa si ma ha hanno`)
	add(portuguese, `e o os as um uma que por com para em foi como mas mais nao dos das na pelo pela ao se sua seu esta este`)
	add(dutch, `het een en niet met voor op zijn werd wordt van naar ook maar door bij uit aan als dat deze dit heeft hebben ik wij`)
	add(nordic, `och ar inte ett en som med av for till den det var har jag och ikke er et paa fra ble blev eller hvor ja og pa`)
	add(polish, `jest nie na do sie ze przez oraz byl byla to jako w z po dla czy przy`)
	add(turkish, `ve bir bu icin ile olarak olan degil daha cok gibi kadar sonra`)
	add(indonesian, `yang dan di adalah dengan untuk dari ini itu pada tidak dalam oleh akan`)
	add(catalan, `els dels als amb que per mes seva seu aquest aquesta una segons perque tambe ha han pel pels estats hi`)

	add(particle, `la le les el los las de del della di da do dos das du des der den das die von van y i e es est en`)
	add(ambiguous, `a i s t no in on as so me he do an am was her all or have for`)

	// A word that English readers meet daily is no sign of another language.
	for w := range strings.FieldsSeq(`a an as at do do in on or so to no i e o al den die war man bin not men gift es et un en se sa son plus per me
		am an to na it is comes pour des du as for fur sur par can pa po w z y ms var by van di le la has and long van der von el il
		bei lo al si er et op us po har till dem dal yes des com di pay zum ja real come dos as von may door los las non self set plan ser era cos more sole male due`) {
		if c, ok := l.classes[w]; ok {
			l.classes[w] = c &^ foreign
		}
	}
	return l
}

// refusalPhrases are ways to say that no answer will be given, in folded text.
func refusalPhrases() []string {
	return []string{
		"i do not know", "i dont know", "i do not have", "i dont have", "i am not sure", "im not sure", "i am unable", "im unable",
		"i cannot", "i cant", "i could not find", "i couldnt find", "as an ai", "language model", "im sorry", "i am sorry", "i apologize",
		"no information", "not enough information", "cannot be determined", "can not be determined", "unable to answer", "cannot answer",
		"cant answer", "cannot provide", "cant provide", "not able to", "real time information", "knowledge cutoff", "my last update",
		"please provide", "please clarify", "could you please", "can you please", "need more", "more context", "more information",
		"not specified", "unclear what", "it is unclear", "would need to", "specify", "not possible to", "did not find", "didnt find", "not aware of",
		"there is no specific", "no specific", "no record", "does not mention", "no definitive",
	}
}
