// Package openai asks language models over HTTP: any server that speaks the OpenAI
// chat-completion protocol (the provider itself, or vLLM, llama.cpp, Ollama and others on
// one's own machine), and Anthropic's Messages API, which differs on the wire and in
// nothing else (messages.go).
//
// A question is laid out as a sheet: the judged text in fenced blocks, our question
// after it, and the options as lettered lines. Three methods read the answer, and which
// one is configured, never guessed:
//
//   - logprobs reads the probabilities of the first token over the letters. The text
//     that the model wrote is not used, so nothing the judged text says can be quoted
//     into a verdict.
//   - structured asks for a JSON object with stated probabilities.
//   - votes reads one answer as one vote; judge.Voting asks for several.
//
// A question of kind Text is answered with what the model writes, and one of kind Vector
// by the server's embeddings endpoint, where a model for that is configured.
//
// It promises that an answer it returns is a distribution that the server gave, and
// that everything else is an error which says what may be done about it. It tries
// once: pauses, budgets and limits are wrappers around it (package judge). It adapts
// to what a server refuses in the form of a request (see adapt.go), never in its
// meaning.
//
// It is plain net/http. A vendor's client retries by itself, hides status and content
// type, and decodes token bytes away; all three are what this package is about.
//
// Open openai.go first, then sheet.go (what the model reads), logprobs.go and
// structured.go (what is read back), transport.go (what a failure means).
package openai
